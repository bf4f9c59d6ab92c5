"""First weights: orthogonal, with the gain of the nonlinearity behind, and near 0 in branches."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from networks_to_treat import Functional, blocks, convnet, drawn, mlp, normal
from torch import Tensor, nn
from torch.nn import functional as F

from skiplab.checks import Refused
from skiplab.randomness import torch_generator
from skiplab.remedies import initialise
from skiplab.remedies.linearity import is_linear
from skiplab.remedies.pointwise import gain_of, is_nonlinearity


@pytest.mark.parametrize(
    ("function", "gain"),
    [
        (torch.relu, math.sqrt(2)),  # E ρ² = 1/2
        (lambda z: z, 1.0),
        (torch.sin, math.sqrt(2 / (1 - math.exp(-2)))),  # E sin² = (1 − e⁻²)/2
        (torch.exp, math.exp(-1)),  # E e²ᶻ = e²
        (lambda z: F.leaky_relu(z, 0.2), math.sqrt(2 / 1.04)),
        (torch.erf, 1 / math.sqrt(2 / math.pi * math.asin(2 / 3))),  # Williams (1998)
    ],
)
def test_gains_are_those_of_closed_forms(function: Callable[[Tensor], Tensor], gain: float) -> None:
    assert gain_of(function) == pytest.approx(gain, rel=1e-6)


def test_nonlinearities_are_told_by_what_they_do() -> None:
    yes = (
        nn.ReLU(),
        nn.Tanh(),
        nn.GELU(),
        nn.Sigmoid(),
        nn.PReLU(),
        nn.Hardtanh(),
        nn.Softplus(),
        nn.ReLU(True),
    )
    no = (
        nn.Identity(),
        nn.Dropout(),
        nn.Softmax(-1),
        nn.LayerNorm(4, elementwise_affine=False),
        nn.Linear(4, 4),
    )
    no += (nn.BatchNorm1d(4), nn.Flatten(), nn.MaxPool1d(2), nn.PReLU(4), nn.Softmax(0), nn.GLU())
    assert all(map(is_nonlinearity, yes))
    assert not any(map(is_nonlinearity, no))


@pytest.mark.parametrize("act", [nn.ReLU, nn.Tanh, nn.GELU, nn.ELU])
def test_thirty_layers_make_fields_of_variance_one_of_such(act: type[nn.Module]) -> None:
    width = 100
    net = mlp(depth=30, width=width, act=act, inputs=width, outputs=width)
    treated = initialise(net, normal(50, width), kind="gain", seed=1).model
    with torch.no_grad():
        variances = [treated[place](act()(normal(200, width))).square().mean() for place in range(2, 62, 2)]
    assert torch.stack(variances).mean().item() == pytest.approx(1, rel=0.03)


def test_the_variance_stays_over_thirty_rectified_layers() -> None:
    """To a few percent per layer: with 300 units a layer's mean square varies by about √(5/300)."""
    net, x = mlp(depth=30, width=300, act=nn.ReLU, inputs=300, outputs=300), normal(50, 300)
    with torch.no_grad():
        fields = initialise(net, x, kind="gain", seed=1).model(3 * x)
    assert (fields.square().mean().item() / 9) ** (1 / 30) == pytest.approx(1, rel=0.05)


def test_fields_of_tanh_layers_have_variance_one_whatever_the_input() -> None:
    """A fixed point that attracts, so that 30 layers are as near to it as one."""
    net, x = mlp(depth=30, width=400, inputs=400, outputs=400), normal(50, 400)
    with torch.no_grad():
        fields = initialise(net, x, kind="gain").model(3 * x)
    assert fields.square().mean().item() == pytest.approx(1, rel=0.05)


def test_gains_follow_the_nonlinearity_that_each_layer_reads() -> None:
    x = normal(7, 5)
    assert initialise(drawn(Functional()), x, kind="gain").changed == (
        "all 5 layers (first, hidden.0 … head) drawn anew with variance g²/fan-in, g = 1.41 in 4, 1 in 1"
    )

    class Swish(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x * torch.sigmoid(x)  # several calls to torch

    net = drawn(nn.Sequential(nn.Linear(5, 6), nn.LayerNorm(6), nn.Dropout(), Swish(), nn.Linear(6, 3)))
    assert initialise(net, x, kind="gain").changed.endswith("g = 1 in 1, 1.68 in 1")


def test_orthogonal_weights_have_the_gram_matrix_of_their_gain() -> None:
    net = initialise(mlp(act=nn.ReLU), normal(7, 5), kind="orthogonal").model
    for place, gain in ((0, 1.0), (2, 2.0), (8, 2.0), (10, 2.0)):
        weight = net[place].weight
        small = weight.T @ weight if len(weight) >= weight.shape[1] else weight @ weight.T
        torch.testing.assert_close(small, gain * torch.eye(len(small), dtype=torch.float64))
        assert not net[place].bias.any()
    net = initialise(convnet(), normal(2, 2, 8, 8), kind="orthogonal").model
    kernel = net[2].weight
    centre = kernel[:, :, 1, 1]
    torch.testing.assert_close(centre @ centre.T, 2 * torch.eye(4, dtype=torch.float64))
    assert kernel.square().sum().item() == pytest.approx(8)  # nothing beside the centre


def test_a_patch_embedding_is_orthogonal_over_its_window() -> None:
    net = drawn(nn.Sequential(nn.Conv2d(2, 8, 2, stride=2), nn.Flatten(), nn.Linear(128, 3)))
    weight = initialise(net, normal(2, 2, 8, 8), kind="orthogonal").model[0].weight.flatten(1)
    torch.testing.assert_close(weight @ weight.T, torch.eye(8, dtype=torch.float64))


def test_only_what_where_names_is_drawn_anew() -> None:
    net, x = mlp(), normal(7, 5)
    treated = initialise(net, x, kind="gain", where=["4"])
    differing = [
        name
        for name, value in net.named_parameters()
        if not torch.equal(value, treated.model.get_parameter(name))
    ]
    assert differing == ["4.weight", "4.bias"]
    whole = initialise(net, x, kind="gain").model
    assert torch.equal(whole.get_parameter("4.weight"), treated.model.get_parameter("4.weight"))  # by name


@pytest.mark.parametrize("kind", ["orthogonal", "gain"])
def test_seeds_name_the_weights(kind: str) -> None:
    net, x = mlp(), normal(7, 5)
    first, again, other = (initialise(net, x, kind=kind, seed=seed).model(x) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.allclose(first, other)


def test_hardt_ma_draws_the_last_layers_of_branches_near_zero() -> None:
    net, x = blocks(width=50), normal(20, 5)
    treated = initialise(net, x, kind="hardt-ma")
    for place in range(1, 5):
        last = treated.model[place].two
        assert last.weight.std().item() == pytest.approx(1 / 50, rel=0.1)  # yu2019 eq 4
        assert not last.bias.any()
        assert torch.equal(treated.model[place].one.weight, net[place].one.weight)
    assert (
        treated.changed == "the last layers of the branches of all 4 residual additions (1, 2, 3, 4) near 0"
    )


def test_a_normalisation_behind_the_last_layer_does_not_undo_hardt_ma() -> None:
    net, x = blocks(width=50, ends="norm"), normal(20, 5)
    treated = initialise(net, x, kind="hardt-ma", where=["2"])
    tail = treated.model[2].tail
    torch.testing.assert_close(tail.weight, torch.full_like(tail.weight, math.sqrt(50) / 50))
    assert not tail.bias.any()
    assert torch.equal(treated.model[1].tail.weight, net[1].tail.weight)
    branch = treated.model[2].branch(normal(20, 50))
    assert branch.square().mean().sqrt().item() == pytest.approx(1 / math.sqrt(50), rel=0.01)


def test_looks_linear_is_among_the_kinds() -> None:
    net, x = mlp(act=nn.ReLU), normal(7, 5)
    assert is_linear(initialise(net, x, kind="looks-linear").model, x, torch_generator(0))


@pytest.mark.parametrize("kind", ["gain", "orthogonal"])
def test_frozen_layers_are_left_alone(kind: str) -> None:
    network, x = mlp(6), normal(4, 5)
    layers = [part for part in network.modules() if isinstance(part, nn.Linear)]
    layers[0].requires_grad_(False)
    treated = initialise(network, x, kind=kind)
    others = [part for part in treated.model.modules() if isinstance(part, nn.Linear)]
    assert [torch.equal(old.weight, new.weight) for old, new in zip(layers, others, strict=True)] == [
        True,
        *[False] * (len(layers) - 1),
    ]
    assert "left alone: 1 that are frozen" in treated.changed
    network.requires_grad_(False)
    with pytest.raises(Refused, match="all weight layers are frozen"):
        initialise(network, x, kind=kind)


class Tied(nn.Module):
    """A head that shares its weights with an embedding, and a linear layer of the other orientation."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.hidden, self.head = nn.Embedding(7, 4), nn.Linear(4, 4), nn.Linear(4, 7, bias=False)
        self.head.weight = self.words.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.tanh(self.hidden(self.words(x))))


def test_an_embedding_is_not_redrawn_through_the_head_that_shares_it() -> None:
    net = drawn(Tied())
    treated = initialise(net, torch.tensor([[1, 2, 3]]), kind="gain")
    assert torch.equal(treated.model.words.weight, net.words.weight)
    assert treated.changed.startswith("1 layer (hidden) drawn anew")


@pytest.mark.parametrize(
    ("net", "settings", "words"),
    [
        (mlp(), {"kind": "gains"}, "Did you mean gain"),
        (mlp(), {"kind": "hardt-ma"}, "has no residual addition, so no branch; add skips first"),
        (mlp(), {"kind": "looks-linear"}, "has no ReLU"),
        (mlp(act=nn.ReLU), {"kind": "looks-linear", "where": ["0"]}, "the whole network; leave where out"),
        (mlp(), {"where": ["1"]}, "'1' is no weight layer that can be treated"),
        (nn.Flatten(), {}, "the network has no Linear or convolution"),
        (
            nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(5, 3))).double(),
            {},
            "The weight of '0' is computed from other parameters; remove its parametrisation first",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused(net: nn.Module, settings: dict, words: str) -> None:
    with pytest.raises(Refused, match=words):
        initialise(net, normal(7, 5), **settings)


def test_a_network_that_is_one_layer_is_named() -> None:
    net = nn.Linear(5, 3, dtype=torch.float64)
    assert initialise(net, normal(7, 5)).changed.startswith("1 layer (the network) drawn anew")
