from __future__ import annotations

import math

import pytest
import torch

from skiplab.checks import Refused
from skiplab.randomness import torch_generator
from skiplab.theory.symmetries.recurrent import (
    ACTIVATIONS,
    changed_basis,
    class_permutations,
    counted_permutations,
    permutation,
    permuted_rows,
    random_net,
    relative_change,
    rescaled_ends,
    rescaled_recurrence,
    untied_permutations,
)

INPUTS = torch.randn(8, 2, generator=torch_generator("inputs"), dtype=torch.float64)
every_activation = pytest.mark.parametrize("activation", ACTIVATIONS)


@pytest.mark.parametrize("activation", ["tanh", "ReLU"])  # torch has no linear RNN
def test_outputs_are_those_of_a_torch_rnn(activation: str) -> None:
    net = random_net(activation, 5, 2, torch_generator(0))
    rnn = torch.nn.RNN(2, 5, nonlinearity=activation.lower(), dtype=torch.float64)
    with torch.no_grad():
        for name, value in (("hh", net.W), ("ih", net.U)):
            getattr(rnn, f"weight_{name}_l0").copy_(value)
        rnn.bias_ih_l0.copy_(net.bias)
        rnn.bias_hh_l0.zero_()
        expected = rnn(INPUTS, net.start[None])[0] @ net.V.T
    torch.testing.assert_close(net.outputs(INPUTS), expected, rtol=1e-13, atol=1e-13)


@every_activation
@pytest.mark.parametrize("symmetric", [False, True])
def test_renaming_units_keeps_any_network_and_permuting_rows_none(activation: str, symmetric: bool) -> None:
    stream = torch_generator(1, activation)
    net = random_net(activation, 6, 2, stream, symmetric=symmetric)
    assert torch.equal(net.W, net.W.T) is symmetric
    P = permutation(6, stream)
    assert relative_change(net, changed_basis(net, P), INPUTS) < 1e-13
    assert relative_change(net, permuted_rows(net, P), INPUTS) > 1e-2
    untied = untied_permutations(net, len(INPUTS), stream)
    assert not torch.allclose(untied.W[1], untied.W[2])
    assert relative_change(net, untied, INPUTS) < 1e-13


@every_activation
def test_rescaling_keeps_homogeneous_units_only(activation: str) -> None:
    stream = torch_generator(2, activation)
    net = random_net(activation, 6, 2, stream)
    D = torch.diag(0.1 + torch.rand(6, generator=stream, dtype=torch.float64))
    for other in (rescaled_ends(net, 10), changed_basis(net, D)):
        change = relative_change(net, other, INPUTS)
        assert change > 1e-2 if activation == "tanh" else change < 1e-13
    assert torch.equal(rescaled_ends(net, 2.0).W, net.W)
    assert relative_change(net, rescaled_recurrence(net, 10), INPUTS) > 1e-2


def test_a_permutation_is_one_and_not_the_identity() -> None:
    for seed in range(20):
        P = permutation(2, torch_generator(seed))
        torch.testing.assert_close(P, torch.tensor([[0, 1], [1, 0]], dtype=torch.float64))


def test_class_permutations_are_counted() -> None:
    assert class_permutations(2, 2) == 8
    assert class_permutations(1, 5) == class_permutations(5, 1) == math.factorial(5)
    for classes, size in ((2, 2), (3, 2), (2, 3), (1, 4), (4, 1)):
        onto, itself = counted_permutations(classes, size)
        assert onto == class_permutations(classes, size)
        assert itself == math.factorial(size) ** classes


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(Refused, match=r"activation 'relu' is unknown"):
        random_net("relu", 3, 1, torch_generator(0))
    with pytest.raises(Refused, match="units is 1, but must be at least 2"):
        permutation(1, torch_generator(0))
