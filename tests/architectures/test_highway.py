from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from skiplab.architectures.highway import HighwayNet, ScalarHighwayNet
from skiplab.architectures.initialisers import standard_normal
from skiplab.architectures.rescaled import RescaledNet
from skiplab.checks import Refused
from skiplab.randomness import torch_generator

SIZES: dict[str, Any] = {"inputs": 4, "width": 8, "depth": 5, "outputs": 3, "dtype": torch.float64}


def build(kind: Any, **changes: Any) -> Any:
    return kind(**(SIZES | changes), generator=torch_generator(0))


def batch() -> Tensor:
    return standard_normal((7, 4), torch_generator("batch"))


def activities(net: Any, x: Tensor) -> list[np.ndarray]:
    """x_1 … x_depth as forward hooks see them."""
    seen: list[np.ndarray] = []
    for block in net.blocks:
        block.register_forward_hook(lambda module, args, output: seen.append(output.detach().numpy()))
    net(x)
    return seen


def affine(layer: nn.Linear, x: np.ndarray) -> np.ndarray:
    return np.array([layer.weight.detach().numpy() @ row + layer.bias.detach().numpy() for row in x])


@pytest.mark.parametrize("gamma", [None, 0.0, 0.6, 1.0])
def test_scalar_gates_follow_their_equation(gamma: float | None) -> None:
    net, x = build(ScalarHighwayNet, gamma=gamma, bias_std=0.5), batch()
    expected_gamma = math.sqrt(1 - 1 / 5) if gamma is None else gamma
    assert net.gamma_1 == expected_gamma
    assert net.gamma_1**2 + net.gamma_2**2 == pytest.approx(1, abs=1e-15)
    current = affine(net.first, x.numpy())
    for block, found in zip(net.blocks, activities(net, x), strict=True):
        field = affine(block.linear, np.maximum(current, 0))
        current = expected_gamma * current + math.sqrt(1 - expected_gamma**2) * field
        np.testing.assert_allclose(found, current, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(net(x).detach().numpy(), affine(net.output, current), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("depth", [1, 2, 10, 100])
def test_gammas_lie_on_the_unit_circle_at_every_depth(depth: int) -> None:
    net = build(ScalarHighwayNet, depth=depth)
    assert net.gamma_2 == pytest.approx(1 / math.sqrt(depth), rel=1e-12)
    assert net.gamma_1**2 + net.gamma_2**2 == pytest.approx(1, abs=1e-15)


def test_scalar_gates_are_equation_2_with_its_own_alpha_and_beta() -> None:
    highway = build(ScalarHighwayNet, gamma=0.8, bias_std=0.5)
    residual = build(RescaledNet, alpha=0.8, beta=0.6 / 0.8, bias_std=0.5)
    torch.testing.assert_close(highway(batch()), residual(batch()), rtol=1e-12, atol=1e-12)


def test_learned_gates_follow_their_equation() -> None:
    net, x = build(HighwayNet, bias_std=0.5), batch()
    current = affine(net.first, x.numpy())
    for block, found in zip(net.blocks, activities(net, x), strict=True):
        gate = 1 / (1 + np.exp(-affine(block.gate, current)))
        current = (1 - gate) * current + gate * np.maximum(affine(block.linear, current), 0)
        np.testing.assert_allclose(found, current, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(net(x).detach().numpy(), affine(net.output, current), rtol=1e-12, atol=1e-12)


def test_gates_start_at_their_bias_and_learn() -> None:
    net = build(HighwayNet, bias_std=0.5)
    assert all(bool((block.gate.bias == -1).all()) for block in net.blocks)
    assert all(bool((block.linear.bias != 0).all()) for block in net.blocks)
    net(batch()).square().sum().backward()
    assert all(bool((block.gate.weight.grad != 0).any()) for block in net.blocks)


@pytest.mark.parametrize("open_gates", [False, True])
def test_closed_gates_carry_and_open_gates_transform(open_gates: bool) -> None:
    net = build(HighwayNet, gate_bias=200.0 if open_gates else -200.0)
    start = net.first(batch())
    expected = torch.relu(net.blocks[0].linear(start)) if open_gates else start
    torch.testing.assert_close(net.blocks[0](start), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("kind", "changes", "sentence"),
    [
        (ScalarHighwayNet, {"gamma": 1.2}, r"gamma is 1\.2, but must lie between 0 and 1, because .* = 1"),
        (ScalarHighwayNet, {"gamma": -0.2}, r"gamma is -0\.2, but must lie between 0 and 1"),
        (ScalarHighwayNet, {"gamma": math.nan}, "gamma is nan, but must lie between 0 and 1"),
        (ScalarHighwayNet, {"depth": 0}, "depth is 0, but must be a whole number of at least 1"),
        (
            ScalarHighwayNet,
            {"normalisation": "layer"},
            "normalisation 'layer' is unknown; choose one of none",
        ),
        (HighwayNet, {"gate_bias": math.inf}, "gate_bias is inf, but must be a finite number"),
        (HighwayNet, {"width": 0}, "width is 0, but must be a whole number of at least 1"),
        (HighwayNet, {"bias_std": math.nan}, "bias_std is nan, but must be a finite number of at least 0"),
    ],
    ids=str,
)
def test_wrong_settings_are_refused(kind: Any, changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Refused, match=sentence):
        build(kind, **changes)
