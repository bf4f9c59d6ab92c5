from __future__ import annotations

import numpy as np
import pytest

from skiplab.checks import Refused
from skiplab.randomness import numpy_generator
from skiplab.theory.singular.two_units import TwoUnits, gaussian_nodes, response, task


def plane(H: list[list[float]]) -> TwoUnits:
    return task([0.9, -0.4], 1.2, H, order=24)


def anywhere(units: TwoUnits) -> np.ndarray:
    return numpy_generator("two units").standard_normal(2 * units.dimension + 2)


def test_nodes_integrate_gaussian_moments() -> None:
    nodes, masses = gaussian_nodes(2, 8)
    assert masses.sum() == pytest.approx(1)
    assert masses @ nodes[:, 0] ** 6 == pytest.approx(15)
    assert masses @ (nodes[:, 0] ** 2 * nodes[:, 1] ** 4) == pytest.approx(3)


def test_expectations_agree_with_a_closed_form() -> None:
    """E[erf(ax/√2)²] = (2/π)·arcsin(a²/(1 + a²)) for standard normal x (Saad & Solla 1995)."""
    nodes, masses = gaussian_nodes(1, 64)
    value = response(1.3 * nodes[:, 0])[0]
    assert masses @ value**2 == pytest.approx(2 / np.pi * np.arcsin(1.69 / 2.69), rel=1e-12)


def test_response_derivatives() -> None:
    a = np.linspace(-3, 3, 13)
    step = 1e-5
    _, slope, bend = response(a)
    np.testing.assert_allclose((response(a + step)[0] - response(a - step)[0]) / (2 * step), slope, atol=1e-9)
    np.testing.assert_allclose((response(a + step)[1] - response(a - step)[1]) / (2 * step), bend, atol=1e-9)


def test_the_target_has_the_single_unit_and_the_matrix_asked_for() -> None:
    H = [[-0.02, 0.01], [0.01, 0.03]]
    units = plane(H)
    errors = (units.targets - 1.2 * response(units.nodes @ units.v)[0]) * units.masses
    bend = response(units.nodes @ units.v)[2]
    np.testing.assert_allclose(1.2 * (units.nodes.T * (errors * bend)) @ units.nodes, H, atol=1e-14)
    for z in (-1.5, 0.0, 0.7):
        np.testing.assert_allclose(units.velocity(units.point([0.0, 0.0], z)), 0, atol=1e-15)


def test_velocity_and_hessian_are_derivatives_of_the_loss() -> None:
    units = plane([[-0.02, 0.01], [0.01, 0.03]])
    theta, steps = anywhere(units), 1e-5 * np.eye(6)
    slope = [(units.loss(theta + e) - units.loss(theta - e)) / 2e-5 for e in steps]
    np.testing.assert_allclose(-units.velocity(theta), slope, atol=1e-8)
    bend = [-(units.velocity(theta + e) - units.velocity(theta - e)) / 2e-5 for e in steps]
    np.testing.assert_allclose(units.hessian(theta), bend, atol=1e-8)


def test_reduced_coordinates_go_there_and_back() -> None:
    units = plane([[0.01, 0.0], [0.0, 0.02]])
    reduced = units.reduced(units.point([0.3, -0.2], 0.4))
    np.testing.assert_allclose(reduced.u, [0.3, -0.2])
    np.testing.assert_allclose(reduced.v, units.v)
    assert (float(reduced.z), float(reduced.w), float(reduced.h)) == pytest.approx((0.4, 1.2, 0.065))


def test_rates_are_the_velocity_in_reduced_coordinates() -> None:
    units = plane([[0.01, 0.0], [0.0, 0.02]])
    theta = units.point([0.3, -0.2], 0.4) + 0.01
    move = 1e-6 * units.velocity(theta)
    before, after = units.reduced(theta - move), units.reduced(theta + move)
    u_rate, z_rate = units.rates(theta)
    np.testing.assert_allclose((after.u - before.u) / 2e-6, u_rate, rtol=1e-6)
    assert (after.z - before.z) / 2e-6 == pytest.approx(float(z_rate), rel=1e-5)


def test_the_loss_is_quadratic_in_u_as_stated() -> None:
    H = np.array([[-0.02, 0.01], [0.01, 0.03]])
    units = plane(H.tolist())
    u, z = np.array([3e-3, -2e-3]), 0.4
    gain = units.loss(units.point(u, z)) - units.loss(units.point([0, 0], z))
    assert gain == pytest.approx(-(1 - z**2) / 8 * u @ H @ u, rel=1e-2)


def test_slaving_is_how_the_best_w_follows_u() -> None:
    """Minimise the loss in (v, w) with u and z held, by Newton's method on the full problem."""
    units, z = task([0.8], 1.1, [[0.0]]), 0.3
    theta = units.point([0.02], z)
    # Columns: how (v, w) move (J₁, J₂, w₁, w₂) when u and z stay.
    move = np.array([[1, 0], [1, 0], [0, (1 + z) / 2], [0, (1 - z) / 2]])
    for _ in range(20):
        theta = theta + move @ np.linalg.solve(
            move.T @ units.hessian(theta) @ move, move.T @ units.velocity(theta)
        )
    shift = units.reduced(theta).w - 1.1
    assert shift == pytest.approx((1 - z**2) * float(units.slaving[0, 0]) * 0.02**2, rel=1e-2)


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(Refused, match=r"shapes \(2,\), \(\) and \(1, 1\); pass"):
        task([1.0, 0.0], 1.0, [[0.1]])
    with pytest.raises(Refused, match="w is 0"):
        task([1.0], 0.0, [[0.1]])
    with pytest.raises(Refused, match="H is not symmetric"):
        task([1.0, 0.0], 1.0, [[0.1, 0.2], [0.0, 0.1]])
