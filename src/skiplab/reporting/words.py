"""Times, settings and commands as a reader wants to see them; numbers are in ``reproduction.numerals``."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

from markupsafe import Markup

from skiplab.reproduction.numerals import NOTHING

CODE = re.compile(r"`([^`]+)`")


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


def prose(text: str) -> Markup:
    """Write a study's words for a page: what stands in backticks is code, and nothing else is markup."""
    return Markup("").join(
        Markup("<code>{}</code>" if number % 2 else "{}").format(part)
        for number, part in enumerate(CODE.split(text))
    )


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
