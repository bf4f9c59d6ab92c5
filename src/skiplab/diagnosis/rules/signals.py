"""Signals that stop, shrink, grow or break: dead layers, weights that are 0, activations that are stuck."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from skiplab.diagnosis import thresholds as limits
from skiplab.diagnosis.chart import Chart
from skiplab.diagnosis.finding import Finding
from skiplab.diagnosis.rules.evidence import finding
from skiplab.diagnosis.thresholds import CERTAIN, Grade
from skiplab.measurements.branch_ratios import BranchRatios
from skiplab.measurements.layer_signals import LayerSignals
from skiplab.measurements.saturation import Saturation

REDRAW = ("gain", "orthogonal-weights")


def not_finite(chart: Chart) -> Iterator[Finding]:
    """The module that made the first number that is not finite."""
    for found in (chart.get(LayerSignals), chart.get(Saturation), chart.get(BranchRatios)):
        if found is not None and found.first_not_finite[0]:
            place = found.first_not_finite[0]
            outside = place.startswith("the ")  # "the input" or "the loss": no change of the network helps
            words = f"the first number that is not finite is {'in' if outside else 'made in'} {place}"
            remedy = () if outside else ("rescale-branches", *REDRAW)
            yield finding("not-finite", CERTAIN, (place,), words, float("inf"), "", remedy=remedy)
            return


def zero_weights(chart: Chart) -> Iterator[Finding]:
    """Weight matrices that are 0 as a whole: what lies below learns nothing until they have moved."""
    signals = chart.get(LayerSignals)
    if signals is None:
        return
    branches = {
        layer
        for block in (chart.scan.residual.blocks if chart.scan.residual else ())
        for layer in block.layers
    }
    for place, share in zip(signals.layers, signals.zero_weights[0].tolist(), strict=True):
        if share < 1:
            continue
        inside = place in branches
        words = f"all weights of {place} are 0" + (
            ", so that its residual branch starts at 0, as is often meant"
            if inside
            else ": no gradient passes it at the first step"
        )
        yield finding(
            "zero-weights",
            Grade("info" if inside else "warning", 1.0),
            (place,),
            words,
            1.0,
            "share of weights",
            reference="weights are drawn at random, but for branches that are to start at 0",
            remedy=REDRAW,
        )


def stuck_activations(chart: Chart) -> Iterator[Finding]:
    """Rectifiers that are never active, and bounded activations that are saturated."""
    found = chart.get(Saturation)
    if found is None:
        return
    rows = zip(
        found.layers, found.kinds, found.saturated[0].tolist(), found.never_active[0].tolist(), strict=True
    )
    for place, kind, saturated, never in rows:
        where = _with_layer(chart, place)
        if kind == "rectifier":
            grade = limits.NEVER_ACTIVE.grade(never)
            if grade.severity == "severe":
                words = f"nothing passes {place}: none of its units is active for any sample"
                yield finding(
                    "dead-layer",
                    CERTAIN,
                    where,
                    words,
                    never,
                    "share of units",
                    limits=limits.NEVER_ACTIVE,
                    remedy=(*REDRAW, "skips-identity"),
                )
            elif grade.is_bad:
                words = f"{never:.0%} of the units of {place} are active for no sample"
                yield finding(
                    "dead-units",
                    grade,
                    where,
                    words,
                    never,
                    "share of units",
                    limits=limits.NEVER_ACTIVE,
                    remedy=(*REDRAW, "skips-identity"),
                )
        else:
            grade = limits.SATURATED.grade(saturated)
            if grade.is_bad:
                words = (
                    f"{saturated:.0%} of {place} is saturated: its slope is below a twentieth of the largest"
                )
                yield finding(
                    "saturated-activations",
                    grade,
                    where,
                    words,
                    saturated,
                    "share of numbers",
                    limits=limits.SATURATED,
                    remedy=(*REDRAW, "normalise-one-layer"),
                )


def fading_signals(chart: Chart) -> Iterator[Finding]:
    """Outputs that no longer tell samples apart, and outputs that shrink or grow from layer to layer."""
    signals = chart.get(LayerSignals)
    if signals is None:
        return
    rows = list(zip(signals.layers, signals.variation[0].tolist(), signals.output[0].tolist(), strict=True))
    told = [
        (place, variation, output)
        for place, variation, output in rows
        if output > 0 and output < float("inf")
    ]
    if not told or any(signals.first_not_finite):
        return
    first = told[0][2]
    varied = [(place, variation) for place, variation, _ in told if variation > 0]
    yield from _worst(
        [(place, v, limits.VARIATION.grade(v)) for place, v in varied],
        "vanishing-signals",
        "from {place} on samples are hardly told apart: they differ in {value:.1g} of the mean square",
        "share of the mean square",
        limits.VARIATION,
        ("skips-identity", *REDRAW, "normalise-one-layer"),
    )
    sizes = [(place, output / first) for place, _, output in told]
    yield from _worst(
        [(place, size, limits.SHRINKING.grade(size)) for place, size in sizes],
        "vanishing-signals",
        "signals shrink: the output of {place} has {value:.1g} of the size of the first layer's",
        "times the first layer's output",
        limits.SHRINKING,
        ("skips-identity", *REDRAW, "normalise-one-layer"),
    )
    yield from _worst(
        [(place, size, limits.GROWING.grade(size)) for place, size in sizes],
        "exploding-signals",
        "signals grow: the output of {place} is {value:.1g} times as large as the first layer's",
        "times the first layer's output",
        limits.GROWING,
        ("rescale-branches", *REDRAW, "normalise-one-layer"),
    )


def _worst(
    graded: Sequence[tuple[str, float, Grade]],
    id: str,
    words: str,
    unit: str,
    limit: limits.Limits,
    remedy: Sequence[str],
) -> Iterator[Finding]:
    """One finding about the first layer that is beyond the limit, with the number of the worst."""
    bad = [(place, value, grade) for place, value, grade in graded if grade.is_bad]
    if bad:
        _, value, grade = max(bad, key=lambda each: each[2].weight)
        place = bad[0][0]
        yield finding(
            id,
            grade,
            (place,),
            words.format(place=place, value=value),
            value,
            unit,
            limits=limit,
            remedy=remedy,
        )


def _with_layer(chart: Chart, activation: str) -> tuple[str, ...]:
    """The weight layer before an activation, if it is known, and the activation."""
    layer = chart.scan.layer_before(activation)
    return (activation,) if layer is None else (layer, activation)
