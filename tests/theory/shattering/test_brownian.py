"""The random walk of a one-layer net's gradient, its covariance and its Karhunen–Loève expansion."""

from __future__ import annotations

import math

import numpy as np
import pytest

from skiplab.checks import Refused
from skiplab.randomness import numpy_generator
from skiplab.theory.shattering import brownian


def test_the_gradient_is_a_sum_over_active_neurons() -> None:
    stream = numpy_generator(0, "one layer")
    weights, biases = stream.normal(size=(2, 5, 30))
    x = np.append(stream.normal(size=7), biases[0, :3])  # at a bias itself the neuron is not active
    found = brownian.gradient_of_one_layer(x, weights, biases)
    expected = ((x[:, None] > biases[:, None, :]) * weights[:, None, :]).sum(-1)
    np.testing.assert_allclose(found, expected, atol=1e-13)
    single = brownian.gradient_of_one_layer(x, weights[0], biases[0])
    np.testing.assert_array_equal(single, found[0])


def test_the_walk_has_its_covariance_exactly() -> None:
    """Over all signs of ten weights ±1/√N."""
    neurons = 10
    signs = 1 - 2.0 * ((np.arange(2**neurons)[:, None] >> np.arange(neurons)) & 1)
    walks = brownian.walk_of(signs / math.sqrt(neurons))
    t = np.arange(neurons + 1) / neurons
    expected = brownian.covariance(t[:, None], t[None], neurons)
    np.testing.assert_allclose(walks.T @ walks / len(walks), expected, atol=1e-13)
    np.testing.assert_allclose(expected, brownian.covariance(t[:, None], t[None]), atol=1e-13)
    assert brownian.covariance(0.37, 0.59, neurons) == pytest.approx(0.3)


def test_against_x_the_clock_is_the_distribution_of_biases() -> None:
    stream = numpy_generator(1, "in x")
    weights = stream.normal(size=(20_000, 20)) / math.sqrt(20)
    found = brownian.gradient_of_one_layer([-0.5, 0.3], weights, 0.4 * stream.normal(size=weights.shape))
    expected = brownian.covariance_in_x(np.array([-0.5, 0.3])[:, None], np.array([-0.5, 0.3]), 0.4)
    np.testing.assert_allclose(found.T @ found / len(found), expected, atol=0.03)
    assert float(brownian.covariance_in_x(0.0, 5.0, 1.0)) == pytest.approx(0.5)


@pytest.mark.parametrize("neurons", [2, 9, 40])
def test_eigenvalues_of_the_walk(neurons: int) -> None:
    steps = np.arange(neurons)
    kernel = np.minimum.outer(steps, steps) / neurons  # S_⌊Nt⌋ on [i/N, (i + 1)/N)
    exact = np.linalg.eigvalsh(kernel / neurons)[::-1]
    np.testing.assert_allclose(brownian.eigenvalues(neurons, neurons), exact, atol=1e-14)


def test_the_walk_tends_to_brownian_motion() -> None:
    limit = brownian.eigenvalues(5)
    apart = [np.abs(brownian.eigenvalues(5, neurons) / limit - 1).max() for neurons in (100, 1000, 10_000)]
    assert apart[1] == pytest.approx(apart[0] / 10, rel=0.05)
    assert apart[2] == pytest.approx(apart[1] / 10, rel=0.05)
    assert brownian.eigenvalues(100_000).sum() == pytest.approx(0.5, abs=1e-5)  # ∫ K(t, t) dt


def test_eigenfunctions_solve_the_integral_equation() -> None:
    t = (np.arange(4000) + 0.5) / 4000
    functions = brownian.eigenfunctions(t, 3)
    np.testing.assert_allclose(functions @ functions.T / len(t), np.eye(3), atol=1e-6)
    some = t[::500]
    found = brownian.covariance(some[:, None], t[None]) @ functions.T / len(t)
    np.testing.assert_allclose(found.T, brownian.eigenvalues(3)[:, None] * functions[:, ::500], atol=1e-6)


def test_components_are_integrals_of_the_step_function() -> None:
    walk = brownian.walk_of(numpy_generator(2, "walk").normal(size=(2, 5)))
    t = (np.arange(100_000) + 0.5) / 100_000
    fine = walk[:, np.floor(5 * t).astype(int)]
    expected = fine @ brownian.eigenfunctions(t, 4).T / len(t)
    np.testing.assert_allclose(brownian.components(walk, 4), expected, atol=1e-8)


def test_components_are_nearly_uncorrelated_with_the_eigenvalues_as_variances() -> None:
    """Exactly, from the covariance of the steps: F = C w with E[w wᵀ] = I/N."""
    neurons = 500
    steps = np.eye(neurons)
    loading = brownian.components(brownian.walk_of(steps), 4)  # F_k of a unit step at neuron i
    moments = loading.T @ loading / neurons
    limit = brownian.eigenvalues(4)
    np.testing.assert_allclose(np.diagonal(moments), limit, rtol=0.02)
    off = moments / np.sqrt(np.outer(limit, limit)) - np.diag(np.diagonal(moments) / limit)
    assert np.abs(off).max() < 0.02


def test_refusals() -> None:
    with pytest.raises(Refused, match="bias_std is 0"):
        brownian.covariance_in_x(0.0, 1.0, 0.0)
    with pytest.raises(Refused, match="do not fit biases"):
        brownian.gradient_of_one_layer([0.0], np.zeros(3), np.zeros(4))
    with pytest.raises(Refused, match="count is 0"):
        brownian.eigenvalues(0)
