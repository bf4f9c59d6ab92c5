"""How sharp, how flat and how indefinite the loss is (orhan2018, figure 3)."""

from __future__ import annotations

import math
from collections.abc import Iterator

from torch import nn

from skiplab.diagnosis import thresholds as limits
from skiplab.diagnosis.chart import Chart
from skiplab.diagnosis.finding import Finding
from skiplab.diagnosis.patient import Patient
from skiplab.diagnosis.rules.evidence import finding
from skiplab.diagnosis.thresholds import Grade
from skiplab.measurements.hessian_extremes import HessianExtremes
from skiplab.measurements.hessian_spectrum import HessianSpectrum
from skiplab.torch_private import is_batch_norm


def sharpness(chart: Chart) -> Iterator[Finding]:
    """The largest curvature, and the largest step of gradient descent that it allows, 2/λ."""
    found = chart.get(HessianExtremes)
    if found is None:
        return
    estimate = found.estimates["λ"]
    largest = float(estimate.value[0, 0])
    low, high = float(estimate.low[0, 0]), float(estimate.high[0, 0])
    if not math.isfinite(largest):
        return
    # The published networks have neither: normalisation makes curvature large in networks that train.
    comparable = isinstance(chart.patient.loss.criterion, nn.CrossEntropyLoss) and not chart.scan.normalised
    grade = limits.SHARPNESS.grade(largest).at_most("warning") if comparable else Grade("info", 0.0)
    step = ""
    if _has_running_statistics(chart.patient):
        step = ", with the statistics of batch normalisation held constant"
    elif largest > 0:
        step = f"; gradient descent diverges along it from a learning rate of {2 / largest:.1g} on"
    yield finding(
        "sharp-curvature",
        grade,
        (),
        f"the sharpest direction of the loss has curvature {largest:.3g}{step}",
        largest,
        "loss per squared weight",
        limits=limits.SHARPNESS,
        quantity="largest-curvature",
        low=low,
        high=high,
        remedy=("rescale-branches", "gain", "normalise-one-layer"),
    )


def _has_running_statistics(patient: Patient) -> bool:
    """Whether the loss was measured with statistics that training replaces by the batch's."""
    return not patient.fresh_statistics and any(map(is_batch_norm, patient.module.modules()))


def flatness(chart: Chart) -> Iterator[Finding]:
    """Shares of directions that are flat and that go down; unresolved ones as intervals."""
    found = chart.get(HessianSpectrum)
    if found is None:
        return
    for id, name, words in (
        ("degenerate-curvature", "degenerate", "are flat: their curvature is between ±{scale:.1g}"),
        ("negative-curvature", "negative", "curve down: their curvature is below −{scale:.1g}"),
    ):
        share = getattr(found, name)
        low, high = float(share.low[0]), float(share.high[0])
        value = float(share.value[0])
        settled = bool(share.settled[0])
        told = f"{value:.0%}" if settled else f"{low:.0%} to {high:.0%} (unresolved)"
        scale = float(found.threshold[0])
        yield finding(
            id,
            Grade("info", 0.0),
            (),
            f"{told} of the loss's directions {words.format(scale=scale)}",
            value if settled else math.nan,
            "share of directions",
            low=low,
            high=high,
            reference="it depends on the number of samples and on the threshold: compare like with like",
        )
