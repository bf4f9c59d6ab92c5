"""Signals that stop, shrink, grow or break: dead layers, weights that are 0, activations that are stuck."""

from __future__ import annotations

from collections.abc import Iterator

from skiplab.diagnosis import thresholds as limits
from skiplab.diagnosis.chart import Chart
from skiplab.diagnosis.finding import WHOLE, Finding
from skiplab.diagnosis.rules.evidence import finding
from skiplab.diagnosis.thresholds import CERTAIN, Grade
from skiplab.measurements.branch_ratios import BranchRatios
from skiplab.measurements.layer_signals import LayerSignals
from skiplab.measurements.saturation import Saturation
from skiplab.subjects.not_finite import INPUT

REDRAW = ("gain", "orthogonal-weights")
SAME = (
    "from layer {first} on all samples give nearly the same output, so that nothing behind can tell them apart: in "
    "layer {worst} only {value:.1g} of the mean square differs between samples"
)
SMALL = "signals shrink from layer {first} on: the output of layer {worst} has {value:.1g} of the first layer's size"
LARGE = "signals grow from layer {first} on: the output of layer {worst} has {value:.1g} times the first layer's size"


def not_finite(chart: Chart) -> Iterator[Finding]:
    """The module that made the first number that is not finite."""
    for found in (chart.get(LayerSignals), chart.get(Saturation), chart.get(BranchRatios)):
        if found is not None and found.first_not_finite[0]:
            place = found.first_not_finite[0]
            words = f"the first number that is not finite (NaN or ∞) is made in {place}"
            # No change of the network helps where the input or the loss is at fault.
            remedy = () if place.startswith("the ") else ("rescale-branches", *REDRAW)
            if place == INPUT:
                words = "the input itself holds numbers that are not finite (NaN or ∞)"
            yield finding("not-finite", CERTAIN, (place,), words, float("inf"), "", remedy=remedy)
            return


def zero_weights(chart: Chart) -> Iterator[Finding]:
    """Weight matrices that are 0 as a whole: what lies below learns nothing until they have moved."""
    signals = chart.get(LayerSignals)
    if signals is None:
        return
    gradients = signals.gradient[0].tolist()
    for place, share in zip(signals.layers, signals.zero_weights[0].tolist(), strict=True):
        if share < 1:
            continue
        others = [gradient for name, gradient in zip(signals.layers, gradients, strict=True) if name != place]
        stops = place == _last(signals) or 2 * others.count(0.0) >= max(len(others), 1)
        words = f"all weights of {place or WHOLE} are 0" + (
            ": no gradient passes it at the first step"
            if stops
            else ", so that what it adds starts at 0, as is often meant"
        )
        yield finding(
            "zero-weights",
            Grade("warning" if stops else "info", 1.0),
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
    signals = chart.get(LayerSignals)
    columns = (found.saturated[0].tolist(), found.never_active[0].tolist())
    for place, kind, layer, saturated, never in zip(
        found.layers, found.kinds, found.behind, *columns, strict=True
    ):
        where = (layer, place) if layer else (place,)
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
            elif grade.is_bad or never >= limits.WORTH_TELLING:
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
            # What a network answers with may be certain: a trained classifier's probabilities are near 0 and 1.
            if signals is not None and layer == _last(signals):
                continue
            limit = limits.SATURATED_GATES if _is_gate(chart, place, kind) else limits.SATURATED
            # Of a network that has learned its samples they are decided, not stuck.
            learned = chart.scan.learned
            grade = Grade("info", 0.0) if learned else limit.grade(saturated)
            if saturated > limit.warning:
                is_softmax = kind == "softmax"
                words = (
                    f"{saturated:.0%} of the rows of {place} give more than 99 % of their weight to one entry"
                    if is_softmax
                    else f"{saturated:.0%} of {place} is saturated: its slope is below a twentieth of the largest"
                ) + (", as they may be once a network has learned" if learned else _stops(place, kind))
                yield finding(
                    "saturated-activations",
                    grade,
                    where,
                    words,
                    saturated,
                    "share of rows" if is_softmax else "share of numbers",
                    limits=limit,
                    remedy=(*REDRAW, "normalise-one-layer"),
                )


def _last(signals: LayerSignals) -> str:
    """The weight layer that is called last."""
    called = [name for name in signals.layers if name not in signals.opaque]
    return (called or signals.layers)[-1]


def _stops(place: str, kind: str) -> str:
    """What does not pass a saturated activation: of a gate all but what it lets through."""
    if kind == "softmax":
        return ", so that hardly any gradient reaches the numbers by which they choose"
    if " gate" in place.rpartition(": ")[2]:  # of a recurrent layer, as ``recurrent_gates`` names them
        return (
            ", so that it is held open or closed: what it lets through has its gradient, but hardly any reaches the "
            "weights that set the gate"
        )
    return ", so that hardly any gradient passes through it"


def _is_gate(chart: Chart, place: str, kind: str) -> bool:
    """Whether an activation is a sigmoid or a softmax, which choose: those of trained networks are often decided."""
    if kind == "softmax":
        return True
    module = dict(chart.patient.module.named_modules()).get(place.partition("#")[0])
    name = place.rpartition(":")[2] if module is None else type(module).__name__
    return "sigmoid" in name.lower()


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
    variations = {place: variation for place, variation, _ in told if variation > 0}
    sizes = {place: output / first for place, _, output in told}
    keep = ("skips-identity", *REDRAW, "normalise-one-layer")
    damp = ("rescale-branches", *REDRAW, "normalise-one-layer")
    for id, values, limit, words, unit, remedy in (
        ("vanishing-signals", variations, limits.VARIATION, SAME, "share of the mean square", keep),
        ("vanishing-signals", sizes, limits.SHRINKING, SMALL, "times the first layer's output", keep),
        ("exploding-signals", sizes, limits.GROWING, LARGE, "times the first layer's output", damp),
    ):
        graded = {place: limit.grade(value) for place, value in values.items()}
        bad = [place for place, grade in graded.items() if grade.is_bad]
        if bad:
            # The place where the trouble begins, and the number of the layer where it is worst.
            worst = max(bad, key=lambda place: graded[place].weight)
            told_words = words.format(first=bad[0], worst=worst, value=values[worst])
            yield finding(
                id, graded[worst], (bad[0],), told_words, values[worst], unit, limits=limit, remedy=remedy
            )
