"""How noise travels, how gradients flow, how deep paths are: facts, since none tells sick from healthy networks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from skiplab.diagnosis.chart import Chart
from skiplab.diagnosis.finding import WHOLE, Finding
from skiplab.diagnosis.references import references
from skiplab.diagnosis.rules.evidence import finding
from skiplab.diagnosis.thresholds import Grade
from skiplab.measurements.dominant_gradient_flow import DominantGradientFlow
from skiplab.measurements.noise_stability.weight_noise import WeightNoise
from skiplab.measurements.path_depth.path_shares import PathDepth

FACT = Grade("info", 0.0)


def _shares(quantity: str, change: Callable[[float], float] = float) -> str:
    """What our published healthy networks have of a quantity, in per cent: "7 to 12 %"."""
    found = references().quantities[quantity].healthy
    assert found is not None
    return f"{100 * change(found.low):.0f} to {100 * change(found.high):.0f} %"


def noise(chart: Chart) -> Iterator[Finding]:
    """The layer in which a tenth of noise moves the output most."""
    found = chart.get(WeightNoise)
    if found is None:
        return
    by_layer = found.estimates["change"]
    changes = by_layer.value[0]
    known = changes.isfinite()
    if not bool(known.any()):
        return
    place = int(changes.masked_fill(~known, -math.inf).argmax())
    value, low, high = (float(getattr(by_layer, end)[0, place]) for end in ("value", "low", "high"))
    name = found.layers[place]
    words = f"noise of a tenth in the weights of {name or WHOLE} moves outputs by {value:.0%}, the most of all layers"
    yield finding(
        "noise-sensitive",
        FACT,
        (name,),
        words,
        value,
        "relative change",
        low=low,
        high=high,
        reference=f"trained networks of 20 layers have {_shares('weight-noise', math.exp)} in the median layer "
        "(yu2019/noise)",
    )


def flows(chart: Chart) -> Iterator[Finding]:
    """How much of the gradient keeps to its channel."""
    found = chart.get(DominantGradientFlow)
    if found is None:
        return
    shares = found.by_mean[0]
    known = shares[shares.isfinite()]
    if not len(known):
        return
    value = float(known.mean())
    yield finding(
        "gradient-leaks",
        FACT,
        (),
        f"{value:.0%} of the gradient flows that dominate a channel end in that channel",
        value,
        "share of channels",
        reference=f"trained networks of 20 layers have {_shares('dominant-flow')} (yu2019/figure-3)",
    )


def paths(chart: Chart) -> Iterator[Finding]:
    """How many residual branches the paths take that carry the output."""
    found = chart.get(PathDepth)
    if found is None:
        return
    estimate = found.depth
    value = float(estimate.value[0])
    count = len(found.layers) - 1
    if not math.isfinite(value) or count < 1:
        return
    id = "shallow-paths" if value < count / 2 else "deep-paths"
    words = f"paths that carry the output take {value:.3g} of {count} residual branches"
    low, high = float(estimate.low[0]), float(estimate.high[0])
    yield finding(
        id,
        FACT,
        (),
        words,
        value,
        "branches",
        low=low,
        high=high,
        reference="branches as large as their shortcuts have half of them (littwin2017)",
    )
