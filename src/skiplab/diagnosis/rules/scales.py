"""Layers and residual branches that are far larger than the others."""

from __future__ import annotations

import math
from collections.abc import Iterator

from skiplab.diagnosis import thresholds as limits
from skiplab.diagnosis.chart import Chart
from skiplab.diagnosis.finding import SEVERITIES, Finding
from skiplab.diagnosis.rules.evidence import finding
from skiplab.diagnosis.thresholds import Grade, Limits
from skiplab.measurements.branch_ratios import BranchRatios
from skiplab.measurements.tallies import square_sum
from skiplab.subjects.weight_layers import units_first, weight_layers, weight_matrices


def outlying_gain(chart: Chart) -> Iterator[Finding]:
    """A weight matrix far larger than all others, or than the median one.

    The scale of a matrix is RMS(W)·(fan in · fan out)^¼: with it, matrices drawn by the usual initialisations, be
    they made for the number of inputs or of outputs, are alike whatever their shape.
    """
    scales = {name: scale for name, scale in _scales(chart).items() if scale > 0 and math.isfinite(scale)}
    if len(scales) < 3:
        return
    for place, value in scales.items():
        others = sorted(scale for name, scale in scales.items() if name != place)
        over_next, over_median = value / others[-1], value / others[len(others) // 2]
        grade, ratio, limit = _worse(
            (over_next, limits.SCALE_OVER_NEXT), (over_median, limits.SCALE_OVER_MEDIAN)
        )
        if grade.is_bad:
            others_are = "any other" if limit is limits.SCALE_OVER_NEXT else "the median"
            words = f"the weights of {place} are {ratio:.3g} times as large as those of {others_are} layer"
            yield finding(
                "outlying-gain",
                grade,
                (place,),
                words,
                ratio,
                "times the other layers",
                limits=limit,
                remedy=("gain", "orthogonal-weights", "normalise-one-layer"),
            )


def exploding_branch(chart: Chart) -> Iterator[Finding]:
    """A residual branch that drowns its shortcut, or is far larger beside it than the other branches."""
    found = chart.get(BranchRatios)
    if found is None:
        return
    ratios = {
        name: ratio
        for name, ratio in zip(found.layers, found.ratio[0].tolist(), strict=True)
        if ratio > 0 and math.isfinite(ratio)
    }
    last = {block.name: block.layers[-1:] for block in found.blocks.blocks}
    for place, ratio in ratios.items():
        others = sorted(each for name, each in ratios.items() if name != place)
        relative = ratio / others[len(others) // 2] if others and ratio > 1 else math.nan
        grade, value, limit = _worse((ratio, limits.BRANCH), (relative, limits.BRANCH_OVER_MEDIAN))
        if grade.is_bad:
            words = f"the residual branch added in {place} is {ratio:.3g} times as large as its shortcut"
            if limit is limits.BRANCH_OVER_MEDIAN:
                words += f", and {relative:.3g} times as large beside it as the median branch"
            yield finding(
                "exploding-branch",
                grade,
                (place, *last[place]),
                words,
                value,
                "times the shortcut" if limit is limits.BRANCH else "times the median branch",
                limits=limit,
                remedy=("rescale-branches", "hardt-ma"),
            )


def _worse(*pairs: tuple[float, Limits]) -> tuple[Grade, float, Limits]:
    """The worst of several statistics by their own limits."""
    graded = [(limit.grade(value), value, limit) for value, limit in pairs if not math.isnan(value)]
    return min(graded, key=lambda each: (SEVERITIES.index(each[0].severity), -each[0].weight))


def _scales(chart: Chart) -> dict[str, float]:
    module = chart.patient.module
    layers, parts, found = weight_layers(module), dict(module.named_modules()), {}
    for name, (owner, parameter) in weight_matrices(module).items():
        weight, groups = getattr(parts[owner], parameter).detach(), 1
        if owner in layers:
            weight, groups = units_first(layers[owner], weight), getattr(layers[owner], "groups", 1)
        if not weight.numel():  # a layer of no units
            continue
        fan_in, fan_out = weight[0].numel(), len(weight) // groups * math.prod(weight.shape[2:])
        size = math.sqrt(float(square_sum(weight)) / weight.numel())
        found[name] = size * (fan_in * max(fan_out, 1)) ** 0.25
    return found
