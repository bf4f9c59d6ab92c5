"""Theorem 3 as printed: an asymptotic form, and refused where it has no meaning."""

from __future__ import annotations

import math

import pytest

from skiplab.checks import Refused
from skiplab.theory.shattering import covariances as theory
from skiplab.theory.shattering import printed


def test_the_printed_forms_are_those_of_the_paper() -> None:
    assert printed.printed_residual_batch_norm(100).covariance == pytest.approx(10.0)
    assert printed.printed_correlation(100, 0.1) == pytest.approx(1.0)
    assert printed.printed_residual_batch_norm(100).mean == 1.0


@pytest.mark.parametrize(("beta", "constant"), [(1.0, 1.128), (0.3, 1.011), (0.1, 1.0008)])
def test_the_exact_correlation_tends_to_the_printed_one_up_to_a_constant(
    beta: float, constant: float
) -> None:
    """R β√L against √β^−2 Γ(β^−2)/Γ(β^−2 + ½), to which the Gamma functions of the product tend."""
    a = beta**-2
    limit = math.sqrt(a) * math.exp(math.lgamma(a) - math.lgamma(a + 0.5))
    assert limit == pytest.approx(constant, abs=6e-4)
    far = 200_000
    exact = theory.residual_batch_norm(far - 1, beta).correlation
    assert exact / printed.printed_correlation(far, beta) == pytest.approx(limit, rel=1e-3)


def test_the_appendixs_three_products() -> None:
    """√(2L), √L and √(4(L + 1)/π) of A3.4 beside the product itself, at L = 100."""
    exact = theory.residual_batch_norm(99).covariance
    assert exact == pytest.approx(11.270, abs=5e-4)
    assert math.sqrt(4 / math.pi * 101) == pytest.approx(11.340, abs=5e-4)
    assert math.sqrt(4 / math.pi * 101) / exact - 1 == pytest.approx(0.006, abs=5e-4)
    assert math.sqrt(4 / math.pi * 100) / exact - 1 == pytest.approx(0.001, abs=5e-4)
    assert math.sqrt(200) == pytest.approx(14.1, abs=0.05)


def test_refusals() -> None:
    with pytest.raises(Refused, match=r"beta is 0\.0"):
        printed.printed_correlation(10, 0.0)
    with pytest.raises(Refused, match=r"beta is -1\.0"):
        printed.printed_residual_batch_norm(10, -1.0)
    with pytest.raises(Refused, match="layers is 0"):
        printed.printed_correlation(0)
