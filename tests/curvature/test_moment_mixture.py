"""The paper's mixture is recovered from its own moments, and breaks where we say it does."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from skiplab.checks import Refused
from skiplab.curvature.moment_mixture import Mixture, fit_mixture


@pytest.mark.parametrize("weight", [0.05, 0.4, 0.9])
@pytest.mark.parametrize("shape", [-3.0, 0.5, 4.0])
@pytest.mark.parametrize("location", [-0.02, 0.1])
def test_a_mixture_is_recovered_from_its_moments(weight: float, shape: float, location: float) -> None:
    truth = Mixture(weight, location, 0.3, shape)
    found = fit_mixture(truth.moments())
    assert found.moments() == pytest.approx(truth.moments(), rel=1e-9)
    if (shape, location) == (0.5, 0.1) and weight < 0.5:
        # Four moments do not always tell: a second mixture has the same ones, and the larger w is taken.
        assert found.weight > weight + 0.01
    else:
        assert found.weight == pytest.approx(weight, rel=1e-6)
        assert found.below(-1e-3) == pytest.approx(truth.below(-1e-3), rel=1e-5)


def test_moments_are_those_of_scipy() -> None:
    mixture = Mixture(0.7, 0.2, 0.5, 2.5)
    broad = stats.skewnorm(2.5, 0.2, 0.5)
    expected = [0.7 * broad.moment(j) + 0.3 * stats.norm(0, 1e-3).moment(j) for j in (1, 2, 3, 4)]
    assert mixture.moments() == pytest.approx(expected, rel=1e-8)


def test_the_density_integrates_to_one_and_the_masses_add_up() -> None:
    mixture = Mixture(0.6, 0.1, 0.4, 1.5)
    points = np.concatenate(
        [np.linspace(-3, -0.01, 4000), np.linspace(-0.01, 0.01, 4001), np.linspace(0.01, 4, 4000)]
    )
    assert np.trapezoid(mixture.density(points.tolist()), points) == pytest.approx(1, abs=1e-4)
    assert mixture.below(0.3) + mixture.above(0.3) == pytest.approx(0.6)


def test_an_outlier_makes_the_fit_call_almost_everything_degenerate() -> None:
    # 40 % of the eigenvalues are clearly not zero, but one is 100 times larger than the rest.
    eigenvalues = np.concatenate([np.zeros(600), np.linspace(0.05, 1.0, 399), [100.0]])
    fit = fit_mixture([float(np.mean(eigenvalues**j)) for j in (1, 2, 3, 4)])
    assert 1 - fit.weight > 0.95


def test_a_light_tailed_spectrum_has_no_component_at_zero() -> None:
    eigenvalues = np.linspace(-1, 1, 1001)  # flatter than any skew-normal
    assert fit_mixture([float(np.mean(eigenvalues**j)) for j in (1, 2, 3, 4)]).weight == 1.0


def test_impossible_moments_are_refused() -> None:
    with pytest.raises(Refused, match="not those of a spectrum; use more probes"):
        fit_mixture([0.0, -1.0, 0.0, 1.0])
    with pytest.raises(Refused, match="3 moments were given; the mixture needs the first four"):
        fit_mixture([0.0, 1.0, 0.0])
