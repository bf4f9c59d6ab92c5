"""Numbers as a reader sees them."""

from __future__ import annotations

import math

import pytest

from skiplab.reproduction import numerals


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (math.nan, "–"),
        (math.inf, "∞"),
        (0.0, "0"),
        (-0.4, "−0.400"),
        (51.096, "51.1"),
        (123456.0, "123456"),
        (3.1e-15, "3.10 × 10⁻¹⁵"),
        (-2.5e7, "−2.50 × 10⁷"),
    ],
)
def test_numbers(value: float | None, text: str) -> None:
    assert numerals.number(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(1.0, "1"), (-0.25, "−0.25"), (1e-12, "1 × 10⁻¹²"), (100.0, "100")]
)
def test_limits_lose_idle_zeros(value: float, text: str) -> None:
    assert numerals.limit(value) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (1.1234, 5.314, "1.1 to 5.3"),
        (-0.0123, 0.0456, "−0.012 to 0.046"),
        (None, 0.5, "−∞ to 0.500"),
        (0.0, 0.0, "0"),
        (1e-9, 2e-9, "1.00 × 10⁻⁹ to 2.00 × 10⁻⁹"),
        (99.0, 251.0, "99 to 251"),
    ],
)
def test_intervals_are_as_precise_as_they_are_wide(low: float | None, high: float | None, text: str) -> None:
    assert numerals.interval(low, high) == text


@pytest.mark.parametrize(("p", "text"), [(None, "–"), (0.00099, "< .001"), (0.0312, ".031"), (1.0, "1.000")])
def test_p_values(p: float | None, text: str) -> None:
    assert numerals.p_value(p) == text
