from __future__ import annotations

import pytest
import torch

from skiplab.checks import Refused
from skiplab.randomness import torch_generator
from skiplab.theory.singular.layers import (
    KINDS,
    SingularLayer,
    curvature,
    loss_along,
    singular_layer,
    zeros,
)

STEPS = torch.linspace(-2, 2, 9, dtype=torch.float64)
every_kind = pytest.mark.parametrize("kind", KINDS)


def drawn(kind: str, seed: int = 0, units: int = 4, **options: bool) -> SingularLayer:
    return singular_layer(kind, units, 40, torch_generator(seed, kind), **options)


@every_kind
def test_the_plain_loss_is_flat_far_along_every_direction(kind: str) -> None:
    layer = drawn(kind)
    for direction in layer.directions:
        losses = loss_along(layer, direction, STEPS)
        torch.testing.assert_close(losses, losses[4].expand(9), rtol=1e-14, atol=0)


@every_kind
def test_beside_the_point_or_with_a_skip_it_is_not(kind: str) -> None:
    for layer in (drawn(kind, beside=True), drawn(kind, skip=True)):
        for direction in layer.directions:
            assert float(loss_along(layer, direction, STEPS).std()) > 1e-3


@every_kind
@pytest.mark.parametrize("skip", [False, True])
def test_curvature_is_the_second_difference_of_the_loss(kind: str, skip: bool) -> None:
    """Beside the point, where it is not 0, and small steps: ReLUs are piecewise linear."""
    layer = drawn(kind, beside=True, skip=skip)
    found = curvature(layer)
    step = 1e-4
    for direction, along in zip(layer.directions, found.along, strict=True):
        low, middle, high = loss_along(
            layer, direction, torch.tensor([-step, 0, step], dtype=torch.float64)
        ).tolist()
        assert (high - 2 * middle + low) / step**2 == pytest.approx(float(along), rel=1e-4)


@every_kind
def test_predicted_directions_have_no_curvature_and_the_block_gains_their_zeros(kind: str) -> None:
    for seed in range(5):
        at, beside = curvature(drawn(kind, seed)), curvature(drawn(kind, seed, beside=True))
        assert float(at.along.abs().max()) <= 1e-15 * at.scale
        assert zeros(at.block_spectrum) - zeros(beside.block_spectrum) == 4


@every_kind
def test_a_skip_leaves_neither(kind: str) -> None:
    for seed in range(5):
        at = curvature(drawn(kind, seed, skip=True))
        beside = curvature(drawn(kind, seed, skip=True, beside=True))
        assert float(at.along.min()) > 1e-4 * at.scale
        assert zeros(at.block_spectrum) == zeros(beside.block_spectrum) == 0


def test_gauss_newton_of_the_outgoing_block_is_the_responses_second_moment() -> None:
    """∂y_k/∂W_kj = h_j, so the block is 2/(Nn)·hᵀh once for every output."""
    layer = drawn("overlap", skip=True)
    h = layer.responses()
    moment = torch.linalg.eigvalsh(h.T @ h * 2 / (len(h) * 4))
    torch.testing.assert_close(
        curvature(layer).block_spectrum, moment.flip(0).repeat_interleave(4), rtol=1e-10, atol=1e-14
    )


def test_curvature_with_a_skip_has_its_closed_form() -> None:
    """Along (W_a, W_b) ↦ (+, −)/√2 the outputs move by (h_a − h_b)/√2 = (x_a − x_b)/√2."""
    layer = drawn("overlap", skip=True)
    moved = (layer.inputs[:, 0] - layer.inputs[:, 1]).square().mean() / 2
    torch.testing.assert_close(curvature(layer).along, (2 * moved / 4).expand(4))


def test_off_an_optimum_the_hessian_still_pushes_along_a_flat_direction() -> None:
    found = curvature(drawn("overlap"))
    assert float(found.pushed.min()) > 1e-3 * found.scale


def test_dependent_responses_are_dependent_but_do_not_overlap() -> None:
    layer = drawn("linear dependence")
    h = layer.responses()
    assert int(torch.linalg.matrix_rank(h)) == 3
    assert torch.corrcoef(layer.J[:3])[0, 1] < 0.999


def test_directions_are_orthonormal_and_draws_repeat() -> None:
    for kind in KINDS:
        flat = drawn(kind).directions.flatten(1)
        torch.testing.assert_close(flat @ flat.T, torch.eye(4, dtype=torch.float64))
        assert torch.equal(drawn(kind).weights, drawn(kind).weights)


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(Refused, match=r"kind 'overlaps' is unknown.*Did you mean overlap"):
        drawn("overlaps")
    with pytest.raises(Refused, match="units is 2, but must be at least 3"):
        singular_layer("overlap", 2, 10, torch_generator(0))
