"""Numbers, times and settings as a reader wants to see them."""

from __future__ import annotations

import json
import math
import shlex
from typing import Any

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


def duration(seconds: float) -> str:
    """Write a time in the largest two units that matter."""
    if seconds < 1:
        return "under 1 s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def setting(value: Any) -> str:
    """Write a setting: plain words for switches and numbers, JSON for what is nested."""
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and all(isinstance(each, int | float | str) for each in value):
        return ", ".join(setting(each) for each in value) or "none"
    if isinstance(value, int | float):
        return f"{value:g}" if isinstance(value, float) else str(value)
    return json.dumps(value, ensure_ascii=False, default=str)


def count(amount: int, one: str, many: str | None = None) -> str:
    """Write an amount with its noun."""
    return f"{amount} {one if amount == 1 else many or one + 's'}"


def command(study: str, scale: str, deviations: dict[str, dict[str, Any]], gpu: bool) -> str:
    """Write the command line that makes a run again."""
    parts = ["skiplab", "run", study]
    if scale != "quick":
        parts += ["--scale", scale]
    if gpu:
        parts += ["--device", "cuda"]
    for name, values in deviations.items():
        used = values["used"]
        text = ",".join(map(_typed, used)) if isinstance(used, list | tuple) else _typed(used)
        # These three have options of their own.
        parts += [f"--{name}", text] if name in ("runs", "seed", "data") else ["--set", f"{name}={text}"]
    return shlex.join(parts)


def _typed(value: Any) -> str:
    """Write a setting as ``reproduction.settings.parse`` reads it back."""
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)
