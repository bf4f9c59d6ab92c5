"""Units that copy each other, depend on each other or do nothing (orhan2018, figures 1 and 4)."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from scipy import special

from skiplab.diagnosis import thresholds as limits
from skiplab.diagnosis.chart import Chart
from skiplab.diagnosis.finding import WHOLE, Finding
from skiplab.diagnosis.rules.evidence import finding
from skiplab.diagnosis.thresholds import Grade
from skiplab.measurements.estimate import Estimate
from skiplab.measurements.layer_singularities import LayerSingularities, Singularities
from skiplab.measurements.symmetry import Symmetry
from skiplab.subjects.weight_layers import units_first, weight_layers

FEWEST_TO_DEPEND = (
    10  # samples, for their responses to depend on each other by anything but their number; ours
)


def duplicated_units(chart: Chart) -> Iterator[Finding]:
    """Pairs of units whose incoming weights are the same but for a factor, where chance makes no such pairs."""
    found = chart.get(Singularities)
    if found is None:
        return
    known = weight_layers(chart.patient.module)
    for layer in found.layers:
        distance = 1 - layer.closest[0]
        weight = units_first(known[layer.name], known[layer.name].weight.detach())
        # Weights that do not vary have no correlation; they are copies if they are equal, and not just 0.
        flat = layer.closest[0].isnan() & (layer.incoming[0] > 0)
        if int(flat.sum()) > 1 and len(weight[flat].flatten(1).unique(dim=0)) < int(flat.sum()):
            distance = torch.where(flat, 0.0, distance)
        if expected_pairs(len(weight), weight[0].numel(), limits.COPIES.warning) > limits.CHANCE:
            continue
        closest = float(distance.nan_to_num(2).min().clamp_min(0))
        if not limits.COPIES.grade(closest).is_bad:
            continue
        units = (distance < limits.COPIES.warning).nonzero().flatten().tolist()
        named = ", ".join(map(str, units[:4])) + ", …" * (len(units) > 4)
        place = layer.name or WHOLE
        words = f"{len(units)} units of {place} copy another ({named}): 1 − correlation of weights is {closest:.1g}"
        yield finding(
            "duplicated-units",
            Grade("warning", 1.0),
            (layer.name,),
            words,
            closest,
            "1 − correlation",
            limits=limits.COPIES,
            remedy=("gain", "orthogonal-weights", "bias-regularisation"),
        )


def expected_pairs(units: int, inputs: int, distance: float) -> float:
    """How many pairs of random units have weights whose correlation is within a distance of 1.

    Centred weights point in a random direction of n − 1 dimensions; the angle θ to another has sin² θ distributed as
    Beta((n − 2)/2, ½), and half of those with small sin² θ point the same way.
    """
    pairs = units * (units - 1) / 2
    if inputs < 3:
        return pairs
    return float(pairs * special.betainc((inputs - 2) / 2, 0.5, distance * (2 - distance)) / 2)


def dependent_units(chart: Chart) -> Iterator[Finding]:
    """How far the units' responses depend on each other, in the layer where they do most."""
    found = chart.get(Singularities)
    layers = [layer for layer in found.layers if math.isfinite(_dependence(layer))] if found else []
    # Centred responses to n samples have n − 1 directions: three are all of them, or most.
    if found is None or not layers or chart.patient.samples < FEWEST_TO_DEPEND:
        return
    layer = max(layers, key=_dependence)
    words = (
        f"three directions hold {_dependence(layer):.0%} of the responses' variance in {layer.name or WHOLE}, "
        f"{float(found.dependence[0]):.0%} on average over layers"
    )
    yield finding(
        "dependent-units",
        Grade("info", 0.0),
        (layer.name,),
        words,
        _dependence(layer),
        "share of variance",
        reference="healthy and sick networks have the same before training (orhan2018/figure-4)",
    )


def _dependence(layer: LayerSingularities) -> float:
    return float(layer.dependence[0])


def symmetric_units(chart: Chart) -> Iterator[Finding]:
    """How far outputs move when the units of a layer are permuted, or two layers rescaled against each other."""
    found = {
        change: next(iter(result.estimates.values()))[0, 0]
        for change, result in (
            ("permuting a layer's units", chart.get(Symmetry, "permutation_symmetry")),
            ("rescaling two layers", chart.get(Symmetry, "rescaling_symmetry")),
        )
        if result is not None
    }
    known = {change: moved for change, moved in found.items() if bool(moved.value.isfinite())}
    if known:
        yield finding(
            "symmetric-units",
            Grade("info", 0.0),
            (),
            ", ".join(
                f"{change} moves outputs by {_in_percent(moved)} of their size"
                for change, moved in known.items()
            ),
            float(next(iter(known.values())).value),
            "relative change",
            reference="without skips permuting has 0, and so has rescaling behind ReLUs: these symmetries are exact; "
            "skips break them (orhan2017/figure-1)",
        )


def _in_percent(moved: Estimate) -> str:
    """A share with its interval, left out where both ends read alike."""
    value, low, high = (f"{float(end):.1%}" for end in (moved.value, moved.low, moved.high))
    return value if low == high or not bool(moved.settled) else f"{value} ({low} to {high})"
