"""Gradients that vanish or explode with depth (orhan2017, figure 8), or have nothing in common (balduzzi2017)."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from skiplab.diagnosis import thresholds as limits
from skiplab.diagnosis.chart import Chart
from skiplab.diagnosis.finding import Finding
from skiplab.diagnosis.rules.evidence import finding
from skiplab.diagnosis.thresholds import CERTAIN, Grade
from skiplab.measurements.gradient_norms import GradientNorms
from skiplab.measurements.gradient_shattering import GradientShattering
from skiplab.measurements.layer_signals import LayerSignals

SILENT = 2  # blocks at the beginning without any gradient, from which on none is said to reach them


def gradients_with_depth(chart: Chart) -> Iterator[Finding]:
    """The change of the gradient norm from the last block to the first, by its slope, so that ends count little."""
    norms = chart.get(GradientNorms)
    if norms is None or len(norms.layers) < 3:
        return
    if _silent_at_first(norms) >= SILENT:
        yield _stopped(chart, norms)
        return
    # Blocks on which the loss does not depend, such as a second head that is not trained, say nothing of depth.
    reached = (norms.mean[0] != 0).nonzero().flatten().tolist()
    if len(reached) < 3:
        return
    fall, error = _fall(norms.mean[0, reached], norms.stderr[0, reached])
    first, last = norms.layers[reached[0]], norms.layers[reached[-1]]
    if math.isnan(fall):
        return
    low, high = fall - 2 * error, fall + 2 * error
    if fall > 0:
        grade = limits.GRADIENT_FALL.grade(fall)
        falls = f"from {last} to {first} the norm of gradients falls {_times(fall)}"
        if grade.is_bad:
            falls = f"gradients vanish: {falls}"
        yield finding(
            "vanishing-gradients",
            grade,
            (first,),
            falls,
            fall,
            "powers of e",
            limits=limits.GRADIENT_FALL,
            quantity="gradient-decay",
            remedy=("skips-identity", "gain", "orthogonal-weights", "looks-linear"),
            low=low,
            high=high,
        )
        return
    grade = limits.GRADIENT_RISE.grade(-fall)
    if grade.is_bad and not limits.GRADIENT_RISE_PER_BLOCK.grade(-fall / (len(reached) - 1)).is_bad:
        grade = grade.at_most("info")
    words = f"from {last} to {first} the norm of gradients grows {_times(-fall)}"
    if grade.is_bad:
        words = f"gradients explode: {words}"
    yield finding(
        "exploding-gradients",
        grade,
        (first,),
        words,
        -fall,
        "powers of e",
        low=-high,
        high=-low,
        limits=limits.GRADIENT_RISE,
        quantity="gradient-growth",
        remedy=("rescale-branches", "gain", "orthogonal-weights", "normalise-one-layer"),
    )


def _silent_at_first(norms: GradientNorms) -> int:
    """How many blocks, counted from the first, have no gradient at all."""
    reached = (norms.mean[0] != 0).nonzero().flatten().tolist()
    return reached[0] if reached else len(norms.layers)


def _stopped(chart: Chart, norms: GradientNorms) -> Finding:
    """No gradient reaches the first blocks; where a matrix of zeros stops it, that is found by itself and passes."""
    silent = _silent_at_first(norms)
    signals = chart.get(LayerSignals)
    zeros = signals is not None and bool((signals.zero_weights[0] == 1).any())
    words = f"no gradient reaches the first {silent} of {len(norms.layers)} blocks"
    return finding(
        "vanishing-gradients",
        Grade("info", 0.0) if zeros else CERTAIN,
        norms.layers[silent - 1 : silent + 1][
            ::-1
        ],  # the output of the first of the two has a gradient still
        f"{words}, since weights behind them are all 0" if zeros else words,
        math.inf,
        "powers of e",
        limits=limits.GRADIENT_FALL,
        remedy=("skips-identity", "gain", "orthogonal-weights", "looks-linear"),
    )


def _times(powers: float) -> str:
    """A power of e as a factor: 12 is "1.63e+05 times (12 powers of e)"."""
    decades = powers / math.log(10)
    factor = f"{math.exp(powers):,.3g}" if decades < 6 else f"10^{decades:.0f}"
    return f"{factor} times ({powers:.2g} powers of e)"


def _fall(mean: Tensor, stderr: Tensor) -> tuple[float, float]:
    """Least-squares slope of ln norm by block × (blocks − 1), with its standard error over samples.

    The error is that of blocks whose errors have nothing in common. Samples with large gradients have large ones in
    all blocks, which moves no slope, so the error is rather too large.
    """
    count = len(mean)
    at = torch.arange(count, dtype=torch.float64) - (count - 1) / 2
    weights = at / (at @ at) * (count - 1)
    fall = float(weights @ mean.double().cpu().log())
    error = float((weights * (stderr / mean).double().cpu()).square().sum().sqrt())
    return fall, error if math.isfinite(error) and math.isfinite(fall) else 0.0


def shattered_gradients(chart: Chart) -> Iterator[Finding]:
    """The correlation of two samples' gradients; white noise has 0.

    Healthy networks with normalisation may have white gradients too, so that only a deep network with neither skips
    nor normalisation is warned of.
    """
    found = chart.get(GradientShattering)
    if found is None or found.gradients.shape[1] < 3:
        return
    value, error = _correlation(found.gradients[0].double())
    if math.isnan(value):
        return
    residual = chart.scan.residual
    plain = residual is not None and not residual.blocks and not chart.scan.normalised
    is_white = value < limits.SAMPLES_ALIKE.warning
    is_deep = plain and is_white and limits.PLAIN_DEPTH.grade(len(chart.scan.blocks.names)).is_bad
    grade = limits.SAMPLES_ALIKE.grade(value) if is_deep else Grade("info", 0.0)
    words = (
        f"the gradients of two samples correlate by {value:.2f} (0: noise, so that a step for one does nothing for "
        "the other; 1: the same)"
    )
    yield finding(
        "shattered-gradients",
        grade,
        (),
        words,
        value,
        "correlation",
        limits=limits.SAMPLES_ALIKE,
        remedy=("skips-identity", "looks-linear"),
        low=value - 2 * error,
        high=value + 2 * error,
    )


def _correlation(rows: Tensor) -> tuple[float, float]:
    """Mean product of two samples' gradients over their mean square, and its error by leaving samples out in turn."""
    products, count = rows @ rows.mT, len(rows)
    squares = products.diagonal()
    crossed = products.sum() - squares.sum()
    without = crossed - 2 * (products.sum(1) - squares)

    def ratio(crossed: Tensor, squares: Tensor, samples: int) -> Tensor:
        return crossed / (samples - 1) / squares

    whole = float(ratio(crossed, squares.sum(), count))
    left = ratio(without, squares.sum() - squares, count - 1)
    spread = float(((count - 1) / count * (left - left.mean()).square().sum()).sqrt())
    return whole, spread if math.isfinite(spread) else 0.0
