"""The line through grouped points, against closed forms and against ordinary statistics without groups."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from skiplab.randomness import numpy_generator
from skiplab.studies.orhan2018 import regression


@pytest.fixture
def cloud() -> tuple[np.ndarray, np.ndarray]:
    generator = numpy_generator(0, "test regression")
    x = generator.uniform(size=40)
    return x, 0.2 + 0.5 * x + 0.1 * generator.standard_normal(40)


def test_line_and_correlation_are_those_of_scipy(cloud: tuple[np.ndarray, np.ndarray]) -> None:
    found = stats.linregress(*cloud)
    np.testing.assert_allclose(regression.line(*cloud), [found.intercept, found.slope], rtol=1e-12)
    assert regression.correlation(*cloud) == pytest.approx(found.rvalue, rel=1e-12)
    assert regression.slope(*cloud) == pytest.approx(found.slope, rel=1e-12)


def test_pseudo_values_of_a_mean_are_the_groups_own_means() -> None:
    """With equally many points a group, the pseudo-value of the mean is the group's mean: exact."""
    generator = numpy_generator(1, "test regression")
    y = generator.standard_normal((5, 3))
    groups = np.repeat(list("abcde"), 3)
    found = regression.pseudo_values(lambda x, y: float(y.mean()), y.ravel(), y.ravel(), groups)
    np.testing.assert_allclose(found, y.mean(1), rtol=1e-12)


def test_repeating_each_point_within_its_group_does_not_narrow_the_band(
    cloud: tuple[np.ndarray, np.ndarray],
) -> None:
    x, y = cloud
    at = np.linspace(0, 1, 5)
    once = regression.line_with_band(x, y, np.arange(40), at)
    thrice = regression.line_with_band(np.tile(x, 3), np.tile(y, 3), np.tile(np.arange(40), 3), at)
    np.testing.assert_allclose(once[0], thrice[0], rtol=1e-10)
    np.testing.assert_allclose(once[1], thrice[1], rtol=1e-10)


def test_the_band_of_independent_points_is_near_the_textbook_one(
    cloud: tuple[np.ndarray, np.ndarray],
) -> None:
    x, y = cloud
    _, half = regression.line_with_band(x, y, np.arange(40), np.array([x.mean()]))
    residuals = y - np.polyval(np.polyfit(x, y, 1), x)
    textbook = stats.t.ppf(0.975, 38) * np.sqrt(residuals @ residuals / 38 / 40)
    assert half[0] == pytest.approx(textbook, rel=0.1)


def test_bins_count_each_group_once() -> None:
    x = np.array([0.0, 0.1, 0.2, 0.9, 1.0, 1.1])
    y = np.array([1.0, 3.0, 8.0, 5.0, 5.0, 7.0])
    groups = np.array(["a", "a", "b", "a", "b", "b"])
    middle, mean, error = regression.binned(x, y, groups, 2)
    np.testing.assert_allclose(middle, [(0.05 + 0.2) / 2, (0.9 + 1.05) / 2])
    np.testing.assert_allclose(mean, [(2 + 8) / 2, (5 + 6) / 2])
    np.testing.assert_allclose(error, [3.0, 0.5])
    assert np.isnan(regression.binned(x[:2], y[:2], groups[:2], 1)[2]).all()


def test_what_does_not_vary_has_no_slope_and_no_correlation() -> None:
    same, rising = np.ones(4), np.arange(4.0)
    assert np.isnan(regression.line(same, rising)).all()
    assert np.isnan(regression.correlation(rising, same))
    assert np.isnan(regression.slope(same, rising))
    assert np.isfinite(regression.rank_z(rising, 2 * rising)).all()
    assert np.isnan(regression.pseudo_values(regression.slope, rising, rising, np.array(["a"] * 4))).all()


def test_jackknife_intervals_cover_the_correlation_of_normal_pairs() -> None:
    draw, hits, rho = np.random.default_rng(0), 0, 0.4
    spearman = 6 / np.pi * np.arcsin(rho / 2)  # of a bivariate normal law
    for _ in range(200):
        x = draw.standard_normal(60)
        y = rho * x + np.sqrt(1 - rho**2) * draw.standard_normal(60)
        values = regression.rank_z(x, y)
        reach = stats.t.isf(0.025, 59) * values.std(ddof=1) / np.sqrt(60)
        hits += abs(values.mean() - np.arctanh(spearman)) <= reach
    assert 180 <= hits <= 198
