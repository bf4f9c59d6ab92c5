"""Rules that turn what was measured into findings; each is a function of the chart."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from skiplab.diagnosis.chart import Chart
from skiplab.diagnosis.finding import Finding, ranked
from skiplab.diagnosis.rules import curvature, data, gradients, scales, signals, stability, units

Rule = Callable[[Chart], Iterable[Finding]]
RULES: tuple[Rule, ...] = (
    signals.not_finite,
    data.off_centre_inputs,
    data.unequal_inputs,
    data.off_centre_targets,
    data.wide_targets,
    signals.zero_weights,
    signals.stuck_activations,
    signals.fading_signals,
    scales.outlying_gain,
    scales.exploding_branch,
    gradients.gradients_with_depth,
    gradients.shattered_gradients,
    units.duplicated_units,
    units.dependent_units,
    units.symmetric_units,
    curvature.sharpness,
    curvature.flatness,
    stability.noise,
    stability.flows,
    stability.paths,
)


def findings_of(chart: Chart) -> tuple[Finding, ...]:
    """What all rules find, the worst first; each finding knows the examinations that its rule looked at."""
    found: list[Finding] = []
    for rule in RULES:
        chart.read.clear()
        own = list(rule(chart))
        found += [replace(finding, told_by=tuple(sorted(chart.read))) for finding in own]
    return ranked(found)
