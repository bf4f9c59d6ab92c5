from __future__ import annotations

import numpy as np
import pytest

from skiplab.checks import Refused
from skiplab.randomness import numpy_generator
from skiplab.theory.path_ensembles.multipliers import multipliers
from skiplab.theory.spin_glasses.mixtures import (
    alpha_squared,
    bound_of_equation_50,
    complexity,
    complexity_at,
    complexity_slope,
    derivatives,
    pure,
    shares_of,
    variance_by_index,
)


@pytest.mark.parametrize(
    ("beta", "theta"), [(0.1, 0.306), (0.5, 0.810), (1.0, 0.993), (2.0, 1.126), (5.0, 1.232)]
)
def test_complexities_at_a_hundred_layers(beta: float, theta: float) -> None:
    assert float(complexity(shares_of(100, beta))) == pytest.approx(theta, abs=5e-4)


def test_pure_models() -> None:
    assert float(complexity(pure(100))) == pytest.approx(1.318, abs=5e-4)
    for p in (2, 3, 4, 50):
        assert derivatives(pure(p)) == (p, p * (p - 1))
        assert float(alpha_squared(pure(p))) == 0
        assert float(complexity(pure(p))) == pytest.approx(np.log(p - 1) / 2 - (p - 2) / p, abs=1e-14)


def test_derivatives_are_those_of_the_covariance() -> None:
    """v(t) = Σ ε_r² tʳ has v′ and v″ as its derivatives at 1."""
    shares = numpy_generator("shares").dirichlet(np.ones(7))
    v = np.polynomial.Polynomial([0, 0, *shares])
    first, second = derivatives(shares)
    assert first == pytest.approx(v.deriv()(1))
    assert second == pytest.approx(v.deriv(2)(1))
    r = np.arange(2, 9)
    assert float(alpha_squared(shares)) == pytest.approx(shares @ r**2 - (shares @ r) ** 2)


def test_dropping_paths_of_one_layer_changes_hardly_anything() -> None:
    for beta in (0.05, 0.1, 0.5):
        squares, r = multipliers(100, beta) ** 2, np.arange(1, 101)
        kept = complexity_at((squares @ (r * (r - 1))) / (squares @ r))
        assert abs(float(kept - complexity(shares_of(100, beta)))) < 2e-5


def test_no_mixture_beats_the_pure_model_since_theta_rises_with_the_ratio() -> None:
    stream = numpy_generator("mixtures")
    for p in (3, 4, 20):
        shares = stream.dirichlet(np.full(p - 1, 0.3), size=2000)
        first, second = derivatives(shares)
        assert (second / first < p - 1).all()
        assert (complexity(shares) < complexity(pure(p))).all()
    x, h = np.geomspace(1.001, 1e4, 500), 1e-6
    differences = (complexity_at(x * (1 + h)) - complexity_at(x * (1 - h))) / (2 * h * x)
    np.testing.assert_allclose(complexity_slope(x), differences, atol=1e-9)
    assert (complexity_slope(x) > 0).all()
    assert complexity_slope(1.0) == 0


@pytest.mark.parametrize("p", [3, 10, 100])
def test_the_printed_proof_bounds_theta_by_too_much(p: int) -> None:
    """(r − 2)/r is least at r = 2, where it is 0, and 1 − 2/p is its largest value."""
    seconds = [(r - 2) / r for r in range(2, p + 1)]
    assert (min(seconds), max(seconds)) == pytest.approx((0, 1 - 2 / p))
    firsts = [np.log(r - 1) / 2 for r in range(2, p + 1)]
    assert bound_of_equation_50(p) == pytest.approx(max(firsts) - min(seconds))
    assert bound_of_equation_50(p) > float(complexity(pure(p)))


def test_theta_rises_with_beta_and_lies_above_the_pure_model_of_the_mean() -> None:
    for p in (5, 100):
        shares = np.stack([shares_of(p, beta) for beta in np.geomspace(0.05, 100, 40)])
        assert (np.diff(complexity(shares)) > 0).all()
        assert (complexity(shares) > complexity_at(derivatives(shares)[0] - 1)).all()
    assert float(complexity_at(derivatives(shares_of(100, 0.1))[0] - 1)) == pytest.approx(0.291, abs=5e-4)


def test_the_variance_is_the_number_of_spins_and_that_of_sampled_hamiltonians() -> None:
    stream = numpy_generator("hamiltonian")
    shares, spins = np.array([0.3, 0.7]), stream.normal(size=4)
    spins *= 2 / np.linalg.norm(spins)
    assert variance_by_index(shares, spins) == pytest.approx(4, rel=1e-13)
    assert variance_by_index(shares, 2 * spins) != pytest.approx(4, rel=0.1)
    two = np.einsum("nij,i,j->n", stream.normal(size=(20_000, 4, 4)), spins, spins)
    three = np.einsum("nijk,i,j,k->n", stream.normal(size=(20_000, 4, 4, 4)), spins, spins, spins)
    energies = np.sqrt(0.3 / 4) * two + np.sqrt(0.7) / 4 * three
    assert energies.var() == pytest.approx(4, rel=4 * np.sqrt(2 / 20_000))


def test_interactions_of_one_spin_are_refused() -> None:
    with pytest.raises(Refused, match=r"v″/v′ is 0\.5, but interactions of r ≥ 2 spins have at least 1"):
        complexity_at(0.5)
    with pytest.raises(Refused, match="p is 1, but interactions have at least 2 spins"):
        shares_of(1, 0.5)
