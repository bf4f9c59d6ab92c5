"""The formula with smallest eigenvalues against Rice's on the circle and determinants of sampled Hessians."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, special

from skiplab.randomness import numpy_generator
from skiplab.theory.spin_glasses.kac_rice import (
    corrections,
    fitted_complexity,
    log_minima,
    minima_on_a_circle,
)
from skiplab.theory.spin_glasses.mixtures import complexity, derivatives, pure
from skiplab.theory.spin_glasses.smallest_eigenvalues import smallest_eigenvalues, tridiagonals

MODELS = {"3": pure(3), "4": pure(4), "2 + 6": np.array([0.5, 0, 0, 0, 0.5])}


def dense(size: int, count: int, stream: np.random.Generator) -> np.ndarray:
    """GOE matrices (count, size, size): variance 2 on the diagonal, 1 beside it."""
    drawn = stream.normal(size=(count, size, size))
    return (drawn + drawn.swapaxes(1, 2)) / math.sqrt(2)


@pytest.mark.parametrize("size", [1, 2, 3, 17])
def test_bisection_finds_the_smallest_eigenvalue_of_the_tridiagonal_matrices(size: int) -> None:
    diagonal, squares = tridiagonals(size, 40, numpy_generator("tridiagonal", size))
    beside = np.sqrt(squares)
    expected = [
        np.linalg.eigvalsh(
            np.diag(diagonal[:, k]) + np.diag(beside[:, k], 1) + np.diag(beside[:, k], -1)
        ).min()
        for k in range(40)
    ]
    found = smallest_eigenvalues(size, 40, numpy_generator("tridiagonal", size))
    np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.parametrize("size", [2, 5, 20])
def test_tridiagonal_and_dense_matrices_have_smallest_eigenvalues_of_one_law(size: int) -> None:
    from scipy import stats

    count = 4000
    ours = smallest_eigenvalues(size, count, numpy_generator("law", size))
    theirs = np.linalg.eigvalsh(dense(size, count, numpy_generator("dense", size)))[:, 0]
    assert stats.ks_2samp(ours, theirs).pvalue > 0.001


@pytest.mark.parametrize("name", MODELS)
def test_minima_on_the_circle_are_half_the_zeros_of_the_derivative(name: str) -> None:
    """The GOE of size 2 has a closed density, so that the whole formula is an integral."""
    first, second = map(float, derivatives(MODELS[name]))
    a = (second - first) / (second + first)

    def weight(y: float, x: float) -> float:  # eigenvalues x < y, density ∝ (y − x) exp(−(x² + y²)/4)
        return (y - x) * math.exp(-(x**2 + y**2) / 4)

    total, _ = integrate.dblquad(weight, -12, 12, lambda x: x, 12)
    tilted, _ = integrate.dblquad(
        lambda y, x: weight(y, x) * math.exp(-a * x**2 / 4), -12, 12, lambda x: x, 12
    )
    mean = 2 * math.sqrt(2 * first / (first + second)) * second / first * tilted / total
    assert mean == pytest.approx(minima_on_a_circle(first, second), rel=1e-6)
    drawn = smallest_eigenvalues(2, 50_000, numpy_generator("circle", name))
    assert math.exp(log_minima(first, second, 2, drawn).log_mean) == pytest.approx(mean, rel=0.02)


def test_minima_on_the_circle_are_those_of_sampled_processes() -> None:
    """H on the circle is a trigonometric polynomial: minima are counted on a fine grid."""
    first, second = map(float, derivatives(pure(3)))
    stream, t = numpy_generator("processes"), np.linspace(0, 2 * np.pi, 400, endpoint=False)
    spins = np.stack([np.cos(t), np.sin(t)])
    tensors = stream.normal(size=(4000, 2, 2, 2))
    h = np.einsum("nijk,it,jt,kt->nt", tensors, spins, spins, spins)
    minima = ((h < np.roll(h, 1, axis=1)) & (h < np.roll(h, -1, axis=1))).sum(axis=1)
    error = minima.std() / math.sqrt(len(minima))
    assert minima.mean() == pytest.approx(minima_on_a_circle(first, second), abs=4 * error)


@pytest.mark.parametrize("size", [3, 6])
@pytest.mark.parametrize("name", MODELS)
def test_smallest_eigenvalues_count_what_determinants_of_hessians_count(name: str, size: int) -> None:
    """Kac and Rice directly: where the gradient is 0, the Hessian is √Λ(√v″ M + √(v″ + v′) x I) in Λ − 1 dimensions,

    M a GOE matrix and x a normal number; minima have it positive definite.
    """
    first, second = map(float, derivatives(MODELS[name]))
    stream, count = numpy_generator("hessians", name, size), 60_000
    M = dense(size - 1, count, stream)
    shift = math.sqrt(second + first) * stream.normal(size=(count, 1))
    eigenvalues = math.sqrt(second) * np.linalg.eigvalsh(M) + shift
    determinants = np.where(eigenvalues.min(axis=1) > 0, np.abs(eigenvalues).prod(axis=1), 0)
    sphere = 2 * math.pi ** (size / 2) / special.gamma(size / 2)
    at_zero = (2 * math.pi * first) ** (-(size - 1) / 2)
    direct = sphere * at_zero * determinants.mean()
    error = sphere * at_zero * determinants.std() / math.sqrt(count)
    smallest = smallest_eigenvalues(size, 40_000, numpy_generator("smallest", size))
    ours = log_minima(first, second, size, smallest)
    assert ours.effective > 5_000
    assert math.exp(ours.log_mean) == pytest.approx(direct, abs=4 * error + 0.02 * direct)


def test_a_rate_at_finite_size_is_far_from_its_limit_and_the_expansion_is_not() -> None:
    first, second = map(float, derivatives(pure(3)))
    sizes, theta = (10, 20, 40, 80), float(complexity(pure(3)))
    rates = []
    for size in sizes:
        smallest = smallest_eigenvalues(size, 8000, numpy_generator("rates", size))
        rates.append(log_minima(first, second, size, smallest).log_mean / size)
    assert rates[-1] > 4 * theta
    assert fitted_complexity(first, second, sizes, rates)[0] == pytest.approx(theta, abs=0.003)


def test_the_fit_finds_what_was_put_in() -> None:
    first, second = map(float, derivatives(MODELS["2 + 6"]))
    sizes = np.array([10, 20, 40])
    rates = 0.2 + corrections(first, second, sizes) + 0.7 / sizes
    assert fitted_complexity(first, second, sizes.tolist(), rates) == pytest.approx((0.2, 0.7))


def test_equal_weights_have_the_whole_sample_as_effective() -> None:
    assert log_minima(1.0, 2.0, 5, np.full(100, -3.0)).effective == pytest.approx(100)
    few = log_minima(1.0, 2.0, 5, np.concatenate([np.full(99, -60.0), [0.0]]))
    assert few.effective == pytest.approx(1)
