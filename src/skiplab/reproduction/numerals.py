"""Numbers as a reader wants to see them: in rules, beside drawings and on pages."""

from __future__ import annotations

import math

NOTHING = "–"
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float | None, digits: int = 3) -> str:
    """Write a number to some significant digits, as a power of ten where that is shorter."""
    if value is None or math.isnan(value):
        return NOTHING
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if size < -3 or size > 5:
        mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
        text = f"{mantissa} × 10{str(int(exponent)).translate(_SUPERSCRIPT)}"
    else:
        text = f"{value:.{max(digits - 1 - size, 0)}f}"
    return text.replace("-", "−")


def limit(value: float) -> str:
    """Write a number that was chosen, not measured: without digits that say nothing."""
    text = number(value)
    return text.rstrip("0").rstrip(".") if "." in text and "×" not in text else text.replace(".00 ×", " ×")


def interval(low: float | None, high: float | None, digits: int = 2) -> str:
    """Write an interval to a precision that follows its width; None is an end at infinity."""
    if low is None or high is None:
        ends = number(-math.inf if low is None else low), number(math.inf if high is None else high)
        return f"{ends[0]} to {ends[1]}"
    width, largest = high - low, max(abs(low), abs(high))
    if not width or not 1e-3 <= largest < 1e6:
        ends = number(low), number(high)
    else:
        decimals = min(max(digits - 1 - math.floor(math.log10(width)), 0), 6)
        ends = f"{low:.{decimals}f}".replace("-", "−"), f"{high:.{decimals}f}".replace("-", "−")
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def with_unit(text: str, unit: str) -> str:
    """Put a unit behind a number, close for a percent sign."""
    if not unit or text == NOTHING:
        return text
    return f"{text} {unit}"


def p_value(p: float | None) -> str:
    """Write a p-value with three decimals, or say that it is smaller."""
    if p is None:
        return NOTHING
    return "< .001" if p < 0.001 else f"{p:.3f}".removeprefix("0")
