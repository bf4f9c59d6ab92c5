from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from skiplab.checks import Refused
from skiplab.theory.path_ensembles.multipliers import (
    band,
    beta_of,
    betas_of_peak,
    log_multipliers,
    mass_outside,
    mean_and_deviation,
    multipliers,
    peaks,
    predicted_peaks,
    squared_binomials,
)


def listed(p: int, beta: Fraction) -> list[Fraction]:
    """C(p − 1, r − 1) βʳ, exactly."""
    return [math.comb(p - 1, r - 1) * beta**r for r in range(1, p + 1)]


@pytest.mark.parametrize("p", [1, 2, 7, 40])
@pytest.mark.parametrize("beta", [Fraction(1, 10), Fraction(1), Fraction(7, 2)])
def test_multipliers_are_those_of_equation_17(p: int, beta: Fraction) -> None:
    exact = np.array([float(each) for each in listed(p, beta)])
    np.testing.assert_allclose(multipliers(p, float(beta)), exact / np.linalg.norm(exact), rtol=1e-12)


@pytest.mark.parametrize("beta", [0.1, 0.5, 2.0])
def test_a_million_layers_have_finite_logarithms_that_agree_with_the_gamma_function(beta: float) -> None:
    from scipy.special import gammaln

    p = 10**6
    logs, r = log_multipliers(p, beta), np.arange(1, p + 1)
    assert np.isfinite(logs).all()
    assert np.exp(2 * logs).sum() == pytest.approx(1, abs=1e-12)
    other = gammaln(p) - gammaln(r) - gammaln(p - r + 1) + r * math.log(beta)
    near = np.abs(r - p * beta / (1 + beta)) < 5 * math.sqrt(p)
    differences = (logs - other)[near]
    assert np.ptp(differences) < 1e-7  # gammaln itself is off by some 1e-9 here


@pytest.mark.parametrize(("beta", "peak"), [(Fraction(1, 10), 10), (Fraction(1, 2), 34), (Fraction(2), 67)])
def test_the_figures_peaks(beta: Fraction, peak: int) -> None:
    values = listed(100, beta)
    assert values.index(max(values)) + 1 == peak
    assert peaks(100, beta) == predicted_peaks(100, beta) == (peak,)
    assert int(multipliers(100, float(beta)).argmax()) + 1 == peak


@pytest.mark.parametrize("p", [1, 2, 9, 33])
@pytest.mark.parametrize("beta", [Fraction(1, 8), Fraction(1, 2), Fraction(1), Fraction(5, 4), Fraction(40)])
def test_peaks_are_those_of_the_list_and_two_where_the_share_is_whole(p: int, beta: Fraction) -> None:
    values = listed(p, beta)
    found = tuple(r for r, value in enumerate(values, 1) if value == max(values))
    assert peaks(p, beta) == predicted_peaks(p, beta) == found
    share = p * beta / (1 + beta)
    assert (len(found) == 2) == (share.denominator == 1 and p > 1)


@pytest.mark.parametrize("p", [2, 5, 12])
def test_every_length_is_a_peak_in_its_range_of_beta_and_not_outside(p: int) -> None:
    for k in range(1, p + 1):
        low, high = betas_of_peak(p, k)
        for step in range(1, 60):
            beta = Fraction(step, 12)
            values = listed(p, beta)
            assert (values[k - 1] == max(values)) == (low <= beta <= high)
    assert betas_of_peak(p, p) == (p - 1, math.inf)


@pytest.mark.parametrize("beta", [0.1, 0.5, 2.0])
def test_weight_outside_a_band_is_the_sum_of_squares_there_and_vanishes_with_depth(beta: float) -> None:
    """On both sides, and for β above 1 too, where the paper proves less."""
    squares, r = multipliers(50, beta) ** 2, np.arange(1, 51)
    low, high = 20 * beta, 35
    expected = squares[(r < low) | (r > high)].sum()
    assert mass_outside(50, beta, low, high) == pytest.approx(expected, rel=1e-12)
    assert mass_outside(50, beta, 1, 50) == 0.0
    centre = beta / (1 + beta)
    for side in ((centre - 0.02, 1.0), (0.0, centre + 0.02)):
        outside = [mass_outside(p, beta, p * side[0], p * side[1]) for p in (100, 1000, 10_000, 100_000)]
        assert outside == sorted(outside, reverse=True)
        assert outside[-1] < 1e-30


def test_weights_inside_the_figures_band_at_finite_depth() -> None:
    """.45–.68 at 100 layers and .94–.998 at 1,000, within ±.02 p."""

    def inside(p: int, beta: float) -> float:
        centre = p * beta / (1 + beta)
        return 1 - mass_outside(p, beta, centre - 0.02 * p, centre + 0.02 * p)

    found = {p: [inside(p, beta) for beta in (0.1, 0.5, 2.0)] for p in (100, 1000)}
    assert (min(found[100]), max(found[100])) == pytest.approx((0.45, 0.68), abs=0.005)
    assert (min(found[1000]), max(found[1000])) == pytest.approx((0.94, 0.998), abs=0.003)


@pytest.mark.parametrize("beta", [0.3, 1.0, 4.0])
def test_the_spread_of_lengths(beta: float) -> None:
    mean, deviation = mean_and_deviation(6, beta)
    squares, r = multipliers(6, beta) ** 2, np.arange(1, 7)
    assert mean == pytest.approx(sum(squares * r))
    assert deviation**2 == pytest.approx(sum(squares * r**2) - mean**2)
    for p, near in ((1000, 1e-3), (100_000, 1e-5)):
        assert mean_and_deviation(p, beta)[1] == pytest.approx(band(p, beta), rel=near)


@pytest.mark.parametrize("beta", [0.1, 0.5, 2.0])
@pytest.mark.parametrize("p", [1, 2, 9, 40])
def test_equation_39_is_the_sum_from_zero(p: int, beta: float) -> None:
    terms = [math.comb(p, r) ** 2 * beta ** (2 * r) for r in range(p + 1)]
    assert squared_binomials(p, beta) == pytest.approx(sum(terms), rel=1e-12)
    assert terms[0] == 1  # what a sum from r = 1 lacks


def test_beta_of_the_usual_initialisation_is_the_share_of_open_gates() -> None:
    for n in (10, 1000):
        assert beta_of(0.5, n, n**-0.5, n) == pytest.approx(0.5, rel=1e-15)
    assert beta_of(0.5, 400, 1.0, 400) == pytest.approx(10)


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(Refused, match="β is 0, but must be a finite number above 0"):
        multipliers(5, 0)
    with pytest.raises(Refused, match="p is 0, but must be a whole number of at least 1"):
        multipliers(0, 1.0)
    with pytest.raises(Refused, match="length is 6, but paths have at most p = 5 layers"):
        betas_of_peak(5, 6)
    with pytest.raises(Refused, match="β is 1, where eq 39 divides 0 by 0"):
        squared_binomials(3, 1.0)
