from __future__ import annotations

import numpy as np
import pytest

from skiplab.checks import Refused
from skiplab.randomness import numpy_generator
from skiplab.theory.dominant_flow.gaussian_ratio import (
    approximate_exceedance,
    exceedance,
    integrated_exceedance,
    largest_error,
)


@pytest.mark.parametrize("ratio", [0.01, 0.3, 1.0, 2.5, 40.0])
def test_the_arctangent_is_the_papers_integral(ratio: float) -> None:
    assert float(exceedance(ratio)) == pytest.approx(integrated_exceedance(ratio), abs=1e-12)


@pytest.mark.parametrize("ratio", [0.2, 1.0, 3.0])
def test_the_arctangent_is_the_share_of_draws(ratio: float) -> None:
    stream = numpy_generator("ratio", str(ratio))
    x, y = ratio * stream.normal(size=200_000), stream.normal(size=200_000)
    phi = float(exceedance(ratio))
    assert (np.abs(x) > np.abs(y)).mean() == pytest.approx(phi, abs=4 * np.sqrt(phi * (1 - phi) / 200_000))


def test_special_values() -> None:
    assert float(exceedance(1.0)) == 0.5
    assert float(exceedance(0.0)) == 0.0
    assert float(exceedance(np.inf)) == float(approximate_exceedance(np.inf)) == 1.0
    assert float(approximate_exceedance(0.0)) == 0.0
    ratios = np.geomspace(1e-3, 1e3, 13)
    np.testing.assert_allclose(exceedance(1 / ratios), 1 - exceedance(ratios), atol=1e-15)


def test_the_approximation_errs_by_less_than_a_hundredth() -> None:
    most, at = largest_error()
    assert most == pytest.approx(0.0081, abs=5e-5)
    assert at > 1
    assert abs(float(approximate_exceedance(1 / at) - exceedance(1 / at))) == pytest.approx(most, rel=1e-9)
    assert largest_error(1.0)[0] > 5 * most


def test_negative_ratios_are_refused() -> None:
    with pytest.raises(Refused, match=r"ratio is -1\.0, but a ratio of deviations is a number of at least 0"):
        exceedance(-1.0)
