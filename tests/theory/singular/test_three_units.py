from __future__ import annotations

import numpy as np
import pytest

from skiplab.randomness import numpy_generator
from skiplab.theory.singular.three_units import ThreeUnits

TOYS = [ThreeUnits(), ThreeUnits(alpha=-0.3, beta=1.2, target=(0.2, 1.0, -0.7)), ThreeUnits(skip=1.0)]
every_toy = pytest.mark.parametrize("toy", TOYS)


@every_toy
def test_velocity_is_minus_the_gradient(toy: ThreeUnits) -> None:
    theta = numpy_generator("three units").standard_normal(4)
    slope = [(toy.loss(theta + e) - toy.loss(theta - e)) / 2e-5 for e in 1e-5 * np.eye(4)]
    np.testing.assert_allclose(-toy.velocity(theta), slope, atol=1e-8)


@every_toy
def test_the_loss_is_that_of_three_units_on_white_inputs(toy: ThreeUnits) -> None:
    theta = numpy_generator("toy loss").standard_normal(4)
    units = np.array([[1, 0, 0], [0, 1, 0], [toy.alpha, toy.beta, theta[3] + toy.skip]])
    left = np.asarray(toy.target) - theta[:3] @ units
    assert toy.loss(theta) == pytest.approx(0.5 * left @ left)


def test_on_the_manifold_the_null_direction_is_flat_and_gets_no_gradient() -> None:
    toy = ThreeUnits()
    theta = numpy_generator("on the manifold").standard_normal(4)
    theta[3] = 0
    assert toy.velocity(theta) @ toy.null_direction == pytest.approx(0, abs=1e-15)
    assert toy.loss(theta + 3 * toy.null_direction) == pytest.approx(float(toy.loss(theta)))
    broken = ThreeUnits(skip=1.0)
    assert abs(broken.velocity(theta) @ toy.null_direction) > 0.1


@every_toy
def test_where_two_weights_fit_the_full_flow_is_the_plane_of_the_docstring(toy: ThreeUnits) -> None:
    s, distance = np.array([0.3, -0.8]), np.array([0.2, 0.5])
    left = toy.target[2] - s * distance / toy.kappa
    full = toy.velocity(toy.point(s, distance - toy.skip))
    np.testing.assert_allclose(full @ toy.null_direction, distance / toy.kappa * left, atol=1e-14)
    np.testing.assert_allclose(full[..., 3], s / toy.kappa * left, atol=1e-14)


def test_the_full_flow_waits_at_the_saddle_and_then_learns() -> None:
    toy = ThreeUnits()
    times = np.array([0.0, 2.0, 60.0])
    path = toy.full_flow(toy.point(0.01, 0.01), times)
    losses = toy.loss(path)
    assert losses[1] > 0.99 * losses[0]
    assert losses[2] < 1e-6
