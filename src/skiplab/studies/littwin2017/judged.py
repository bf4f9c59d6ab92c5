"""Evidence, or why there is none: networks that are no match for the paper's, or of which it says nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from skiplab.reproduction import NOT_RUN, Evidence


def judged(
    condition: str,
    samples: Sequence[Any],
    why_not: str,
    *,
    headline: bool = True,
    missing: str = NOT_RUN,
    detail: str = "",
    paired: bool = False,
) -> Evidence:
    """Evidence, or a condition without numbers where there is a reason not to judge."""
    if not why_not:
        return Evidence(condition, samples, headline=headline, detail=detail, paired=paired)
    if headline:
        return Evidence.without(condition, missing, why_not, len(samples))
    return Evidence(condition, [[] for _ in samples], headline=False, detail=why_not)
