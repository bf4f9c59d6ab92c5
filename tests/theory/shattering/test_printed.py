"""The theorems as printed: wrong where the errata say, and refused where they have no meaning."""

from __future__ import annotations

import math

import pytest

from skiplab.checks import Refused
from skiplab.theory.shattering import covariances as theory
from skiplab.theory.shattering import printed


def test_printed_versions_are_wrong_where_the_errata_say() -> None:
    assert printed.printed_plain(2) == theory.plain(2)
    assert printed.printed_plain(3).covariance > theory.plain(3).covariance
    assert printed.printed_highway(100).covariance > 80
    assert printed.printed_residual_batch_norm(100).covariance == pytest.approx(10.0)
    assert printed.printed_correlation(100, 0.1) == pytest.approx(1.0)


def test_the_appendixs_three_products() -> None:
    """√(2L), √L and √(4(L + 1)/π) of A3.4 beside the product itself, at L = 100."""
    exact = theory.residual_batch_norm(99).covariance
    assert exact == pytest.approx(11.270, abs=5e-4)
    assert math.sqrt(4 / math.pi * 101) == pytest.approx(11.340, abs=5e-4)
    assert math.sqrt(4 / math.pi * 101) / exact - 1 == pytest.approx(0.006, abs=5e-4)
    assert math.sqrt(4 / math.pi * 100) / exact - 1 == pytest.approx(0.001, abs=5e-4)
    assert math.sqrt(200) == pytest.approx(14.1, abs=0.05)


def test_means_beside_the_printed_moments() -> None:
    assert printed.printed_highway(3).mean == pytest.approx(theory.highway(3).mean)
    assert printed.printed_residual_batch_norm(100).mean == 1.0


def test_refusals() -> None:
    with pytest.raises(Refused, match=r"beta is 0\.0"):
        printed.printed_correlation(10, 0.0)
    with pytest.raises(Refused, match=r"beta is -1\.0"):
        printed.printed_residual_batch_norm(10, -1.0)
    with pytest.raises(Refused, match="layers is 0"):
        printed.printed_correlation(0)
    with pytest.raises(Refused, match="depth is 0"):
        printed.printed_plain(0)
