from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from skiplab.architectures.fully_connected import (
    HyperResidualNet,
    InputResidualNet,
    PathResidualNet,
    PlainNet,
    ResidualNet,
)
from skiplab.architectures.initialisers import HMWI, standard_normal
from skiplab.architectures.skip_matrices import Folded, Identity, Orthogonal
from skiplab.checks import Refused
from skiplab.randomness import torch_generator

KINDS = [PlainNet, ResidualNet, HyperResidualNet, PathResidualNet]


def build(kind: type, **changes: Any) -> Any:
    """A small network with random biases, so that their place in the equations shows."""
    settings = {"inputs": 6, "width": 8, "depth": 5, "outputs": 3, "dtype": torch.float64} | changes
    net = kind(generator=torch_generator("net"), **settings)
    generator = torch_generator("biases")
    with torch.no_grad():
        for layer in net.hidden:
            layer.linear.bias.copy_(standard_normal(layer.linear.bias.shape, generator))
    return net


def batch(features: int = 6) -> Tensor:
    return standard_normal((7, features), torch_generator("batch"))


def activities(net: nn.Module, x: Tensor) -> list[Tensor]:
    """What forward hooks on the named blocks see."""
    seen: list[Tensor] = []
    handles = [
        net.get_submodule(name).register_forward_hook(lambda module, args, output: seen.append(output))
        for name in net.block_names
    ]
    net(x)
    for handle in handles:
        handle.remove()
    return seen


def inner(net: Any, layer: int, x: Tensor, f: Any = torch.relu) -> Tensor:
    """f(W_l x_l + b_{l+1}), layers counted from 0 for the input's."""
    linear = net.hidden[layer].linear
    return f(x @ linear.weight.T + linear.bias)


def close(actual: list[Tensor], expected: list[Tensor]) -> None:
    assert len(actual) == len(expected)
    for one, other in zip(actual, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("name", "f"), [("relu", torch.relu), ("tanh", torch.tanh), ("linear", lambda x: x)])
def test_plain_follows_equation_24(name: str, f: Any) -> None:
    net, x = build(PlainNet, activation=name), batch()
    xs = [inner(net, 0, x, f)]
    for layer in range(1, 5):
        xs.append(inner(net, layer, xs[-1], f))
    close(activities(net, x), xs)
    torch.testing.assert_close(net(x), F.linear(xs[-1], net.output.weight, net.output.bias))


@pytest.mark.parametrize("skip", [Identity(), Orthogonal(), Folded(2)])
def test_residual_follows_equation_25(skip: Any) -> None:
    net, x = build(ResidualNet, skip=skip), batch()
    xs = [inner(net, 0, x)]
    for layer in range(1, 5):
        q = torch.eye(8).double() if skip == Identity() else net.hidden[layer].skip.matrix
        xs.append(inner(net, layer, xs[-1]) + xs[-1] @ q.T)
    close(activities(net, x), xs)


def test_a_skip_from_the_input_makes_x_1_the_input() -> None:
    net, x = build(InputResidualNet, inputs=8), batch(8)
    xs = [x]
    for layer in range(5):
        xs.append(inner(net, layer, xs[-1]) + xs[-1])
    close(activities(net, x), xs[1:])
    with pytest.raises(Refused, match="inputs is 6 and width 8, but a skip from the input needs equal sizes"):
        build(InputResidualNet)


@pytest.mark.parametrize("normalised", [True, False])
def test_hyper_residual_follows_equation_26(normalised: bool) -> None:
    net, x = build(HyperResidualNet, skip=Orthogonal(), depth=6, normalised=normalised), batch()
    xs = [inner(net, 0, x)]
    for ell in range(1, 6):
        bracket = sum((xs[k - 1] @ net.far[k - 1].matrix.T for k in range(1, ell)), torch.zeros(()))
        adjacent = xs[-1] @ net.hidden[ell].skip.matrix.T
        divisor = max(ell - 1, 1) if normalised else 1
        xs.append(inner(net, ell, xs[-1]) + adjacent + bracket / divisor)
    close(activities(net, x), xs)


def test_hyper_residual_starts_as_the_paper_says() -> None:
    net = build(HyperResidualNet, depth=6, width=16)
    assert all(isinstance(layer.skip, nn.Identity) for layer in net.hidden[1:])
    ranks = [torch.linalg.matrix_rank(far.matrix).item() for far in net.far]
    assert ranks == [4, 4, 4, 4]


def test_hyper_residual_projects_every_layer_once() -> None:
    net = build(HyperResidualNet, depth=6)
    calls = [0] * len(net.far)

    def count(k: int) -> Any:
        def hook(*_: Any) -> None:
            calls[k] += 1

        return hook

    for k, far in enumerate(net.far):
        far.register_forward_hook(count(k))
    net(batch())
    assert calls == [1, 1, 1, 1]


@pytest.mark.parametrize("depth", [1, 2])
def test_shallow_hyper_residual_is_residual(depth: int) -> None:
    hyper, residual = build(HyperResidualNet, depth=depth), build(ResidualNet, depth=depth)
    assert len(hyper.far) == 0
    assert torch.equal(hyper(batch()), residual(batch()))


@pytest.mark.parametrize(("scale", "factor"), [(None, 1 / 8), (1.0, 1.0)])
def test_path_residual_adds_ones_as_in_equation_4(scale: float | None, factor: float) -> None:
    net, x = build(PathResidualNet, skip_scale=scale), batch()
    xs = [inner(net, 0, x)]
    for layer in range(1, 5):
        ones = factor * torch.ones(8, 8, dtype=torch.float64)
        xs.append(inner(net, layer, xs[-1]) + xs[-1] @ ones.T)
    close(activities(net, x), xs)


@pytest.mark.parametrize("kind", KINDS)
def test_equal_seeds_give_all_kinds_equal_weights(kind: type) -> None:
    plain = dict(build(PlainNet).named_parameters())
    net = dict(build(kind).named_parameters())
    assert plain.keys() == net.keys()
    assert all(torch.equal(plain[name], net[name]) for name in plain)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("width", "count"), [(16, 4_852), (32, 14_292)])
def test_small_nets_have_orhan2018s_numbers_of_parameters(kind: type, width: int, count: int) -> None:
    net = kind(128, width, 10, 20, generator=torch_generator(0))
    assert sum(p.numel() for p in net.parameters()) == count


def test_the_initialiser_reaches_every_layer() -> None:
    net = build(PlainNet, init=HMWI(counts="input"))
    generator = torch_generator("net")
    for layer in [hidden.linear for hidden in net.hidden] + [net.output]:
        fan_in = layer.in_features
        torch.testing.assert_close(layer.weight, standard_normal(layer.weight.shape, generator) / fan_in)


@pytest.mark.parametrize("kind", KINDS)
def test_batch_normalisation_sits_on_the_pre_activations_of_one_layer(kind: type) -> None:
    net, plain = build(kind, batch_norm_at=3), build(kind)
    assert [isinstance(layer.norm, nn.BatchNorm1d) for layer in net.hidden] == [
        False,
        False,
        True,
        False,
        False,
    ]
    before, after = activities(plain, batch()), activities(net, batch())
    close(after[:2], before[:2])
    field = F.linear(before[1], plain.hidden[2].linear.weight, plain.hidden[2].linear.bias)
    normed = (field - field.mean(0)) / (field.var(0, unbiased=False) + 1e-5).sqrt()
    change = torch.relu(normed) - torch.relu(field)
    close([after[2]], [before[2] + change])


def test_leading_axes_are_batch_axes() -> None:
    net = build(HyperResidualNet)
    x = standard_normal((2, 3, 6), torch_generator("axes"))
    torch.testing.assert_close(net(x), net(x.reshape(6, 6)).reshape(2, 3, 3))
    torch.testing.assert_close(net(x[0, 0]), net(x)[0, 0])


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"depth": 0}, "depth is 0, but must be a whole number of at least 1"),
        ({"width": 2.5}, "width is 2.5, but must be a whole number of at least 1"),
        ({"outputs": -1}, "outputs is -1, but must be a whole number"),
        ({"batch_norm_at": 6}, "batch_norm_at is 6, but must be a hidden layer from 1 to 5, or None"),
        ({"batch_norm_at": 0}, "batch_norm_at is 0, but must be a hidden layer from 1 to 5, or None"),
        ({"activation": "rellu"}, r"activation 'rellu' is unknown; .* Did you mean relu\?"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_wrong_settings_are_refused(kind: type, changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Refused, match=sentence):
        build(kind, **changes)


def test_a_width_that_cannot_be_folded_twice_is_refused() -> None:
    with pytest.raises(
        Refused, match=r"width is 10, but folding far skips twice needs a multiple of 4; .* far_skip"
    ):
        build(HyperResidualNet, width=10)
    assert build(HyperResidualNet, width=10, far_skip=Orthogonal())(batch()).shape == (7, 3)


def test_batch_normalisation_refuses_more_than_one_batch_axis() -> None:
    with pytest.raises(
        Refused, match=r"shape \(2, 3, 6\), but batch normalisation needs \(batch, 6\); flatten"
    ):
        build(PlainNet, batch_norm_at=1)(torch.zeros(2, 3, 6, dtype=torch.float64))
