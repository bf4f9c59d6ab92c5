"""Rules that turn what was measured into findings; each is a function of the chart."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from skiplab.diagnosis.chart import Chart
from skiplab.diagnosis.finding import Finding, ranked

Rule = Callable[[Chart], Iterable[Finding]]
RULES: tuple[Rule, ...] = ()


def findings_of(chart: Chart) -> tuple[Finding, ...]:
    """What all rules find, the worst first."""
    return ranked([finding for rule in RULES for finding in rule(chart)])
