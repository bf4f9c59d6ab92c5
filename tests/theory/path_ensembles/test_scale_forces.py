"""Losses by paths, split gradients and steps against loops over networks and finite differences, in float64."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
import torch

from skiplab.checks import Refused
from skiplab.randomness import torch_generator
from skiplab.theory.path_ensembles.scale_forces import (
    SkippedNetworks,
    Skips,
    grows_at_every_angle,
    losses_by_length,
)

ONE, EACH = ((2, 3),), ((2, 2), (3, 3), (4, 4))


def networks(
    skips: Skips, count: int = 5, width: int = 6, depth: int = 4, *, bn: bool = True
) -> SkippedNetworks:
    stream = torch_generator("scale forces", str(skips), count)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=stream, dtype=torch.float64)

    scales = torch.exp(0.4 * normal(count, depth)) * torch.sign(normal(count, depth))
    return SkippedNetworks(
        weights=tuple(normal(count, width, width) for _ in range(depth)),
        scales=scales if bn else torch.ones_like(scales),
        inputs=normal(count, width),
        readout=normal(count, width),
        skips=skips,
    )


def by_hand(nets: SkippedNetworks, member: int) -> float:
    """One network's loss, layer by layer."""
    at = kept = nets.inputs[member]
    for layer, weights in enumerate(nets.weights, 1):
        if any(layer == first for first, _ in nets.skips):
            kept = at
        at = nets.scales[member, layer - 1] * torch.relu(weights[member] @ at)
        if any(layer == last for _, last in nets.skips):
            at = at + kept
    return float(nets.readout[member] @ at)


@pytest.mark.parametrize("skips", [(), ONE, EACH, ((1, 2), (4, 4))])
def test_many_networks_are_one_by_one_the_same(skips: Skips) -> None:
    nets = networks(skips)
    assert nets.loss().tolist() == pytest.approx([by_hand(nets, member) for member in range(5)], abs=1e-11)
    assert nets.loss(nets.gates()).tolist() == pytest.approx(nets.loss().tolist(), abs=1e-11)


def test_parts_through_and_beside_a_block_are_sums_over_paths() -> None:
    nets = networks(ONE)
    through, beside = nets.parts(0)
    gates = [gate.double() for gate in nets.gates()]
    maps = [
        nets.scales[:, layer, None, None] * gates[layer][:, :, None] * nets.weights[layer]
        for layer in range(4)
    ]
    start = maps[0] @ nets.inputs[:, :, None]
    torch.testing.assert_close(beside[:, :, None], maps[3] @ start)
    torch.testing.assert_close(through[:, :, None], maps[3] @ maps[2] @ maps[1] @ start)


def test_losses_by_length_are_sums_over_listed_paths() -> None:
    nets = networks(EACH, count=2, width=3, depth=4)
    gates = nets.gates()
    expected = torch.zeros(2, 5, dtype=torch.float64)
    for member in range(2):
        for size in range(4):
            for others in itertools.combinations(range(1, 4), size):
                at = nets.inputs[member]
                for layer in (0, *others):
                    at = (
                        nets.scales[member, layer] * gates[layer][member] * (nets.weights[layer][member] @ at)
                    )
                expected[member, size + 1] += nets.readout[member] @ at
    torch.testing.assert_close(losses_by_length(nets), expected)
    assert losses_by_length(nets).sum(1).tolist() == pytest.approx(nets.loss().tolist(), abs=1e-11)
    with pytest.raises(Refused, match="lengths are told apart for skips of one layer each"):
        losses_by_length(networks(ONE))


def test_the_slope_along_the_scale_of_all_weights_counts_lengths() -> None:
    """Eq 21, by finite differences."""
    nets, h = networks(EACH, bn=False), 1e-6
    sides = [replace(nets, weights=tuple(w * (1 + s * h) for w in nets.weights)).loss() for s in (1, -1)]
    differences = (sides[0] - sides[1]) / (2 * h) / nets.size()
    counted = (losses_by_length(nets) * torch.arange(5)).sum(1) / nets.size()
    torch.testing.assert_close(nets.size_slope(), differences, rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(nets.size_slope(), counted)


def test_gradients_are_finite_differences_and_a_step_goes_against_them() -> None:
    nets, h = networks(ONE), 1e-6
    gradient = nets.gradient(SkippedNetworks.loss)
    through, beside = nets.split_gradient(0)
    torch.testing.assert_close(through + beside, gradient)
    bumped = [each.clone() for each in nets.weights]
    bumped[2][:, 1, 4] += h
    place = 2 * 36 + 1 * 6 + 4
    slope = (replace(nets, weights=tuple(bumped)).loss() - nets.loss()) / h
    torch.testing.assert_close(gradient[:, place], slope, atol=1e-5, rtol=1e-4)
    rate = torch.full((5,), 1e-3, dtype=torch.float64)
    torch.testing.assert_close(nets.moved(gradient, rate).flat(), nets.flat() - 1e-3 * gradient)


@pytest.mark.parametrize("layer", [1, 2, 3, 4])
def test_theorem_3s_force_after_a_step(layer: int) -> None:
    """−(μ/λ)‖g‖² outside of the block, which eq 43 writes without ‖g‖², and −(μ/λ)(‖g_p‖² + g_pᵀg_m) inside."""
    nets = networks(ONE, count=20, width=12)
    skipped = layer in (2, 3)
    still = nets.blind_to(nets.parts(0)[0] if skipped else nets.output())
    assert (still.scale_slopes()[:, layer - 1].abs() < 1e-10).all()
    through, beside = still.split_gradient(0)
    gradient = through + beside
    expected = (through * gradient).sum(1) if skipped else gradient.square().sum(1)
    rate = 1e-7 * still.flat().norm(dim=1) / gradient.norm(dim=1)
    slopes = still.moved(gradient, rate).scale_slopes()[:, layer - 1]
    found = -slopes * still.scales[:, layer - 1] / rate
    torch.testing.assert_close(
        found / gradient.square().sum(1), expected / gradient.square().sum(1), rtol=0, atol=1e-4
    )
    if not skipped:
        grown = (still.scales[:, layer - 1] - rate * slopes).abs()
        assert (grown >= still.scales[:, layer - 1].abs()).all()


def test_theorem_4s_force_after_a_step_and_why_equation_46_does_not_matter() -> None:
    nets, m, p = networks(ONE, count=20, width=12, bn=False), 2, 4
    through, beside = nets.parts(0)
    still = nets.blind_to(m * beside + p * through)
    through, beside = still.split_gradient(0)
    gradient = through + beside
    assert (
        (gradient * still.flat()).sum(1).abs() < 1e-9 * gradient.norm(dim=1) * still.flat().norm(dim=1)
    ).all()
    a, b = beside.norm(dim=1), through.norm(dim=1)
    expected = m * a**2 + p * b**2 + (m + p) * (through * beside).sum(1)
    rate = 1e-7 * still.flat().norm(dim=1) / gradient.norm(dim=1)
    found = -still.moved(gradient, rate).size_slope() * still.size() / rate
    scale = m * a**2 + p * b**2 + (m + p) * a * b
    torch.testing.assert_close(found / scale, expected / scale, rtol=0, atol=1e-4)
    assert (found[grows_at_every_angle(a, b, m, p)] > 0).all()


def test_which_norms_decide_at_every_angle() -> None:
    m, p = 3, 5
    ratios = torch.tensor([0.5, 0.99, 1.01, 1.3, 1.66, 1.67, 3.0], dtype=torch.float64)
    opposed = m * ratios**2 + p - (m + p) * ratios
    told = grows_at_every_angle(ratios, torch.ones_like(ratios), m, p)
    assert (opposed > 0).tolist() == told.tolist() == [True, True, False, False, False, True, True]
