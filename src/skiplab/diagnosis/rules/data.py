"""Data that were not centred or scaled: inputs and targets far from 0, one wide column, and targets out of reach."""

from __future__ import annotations

import math
from collections.abc import Iterator

from skiplab.diagnosis import thresholds as limits
from skiplab.diagnosis.chart import Chart
from skiplab.diagnosis.finding import Finding
from skiplab.diagnosis.rules.evidence import finding
from skiplab.subjects.not_finite import INPUT

TARGETS = "the targets"


def off_centre_inputs(chart: Chart) -> Iterator[Finding]:
    """Inputs that are mostly the same for every sample, and outputs that are so, too."""
    found = chart.scan.preparation
    shares = (found.input_variation, found.output_variation)
    # A network that normalises what its first layers give tells samples apart all the same; one whose output is the
    # same for all samples, as behind weights of 0, does not show whether it does.
    value = math.nan if any(map(math.isnan, shares)) else max(shares)
    grade = limits.CENTRED.grade(value)
    if chart.scan.normalised:  # such a network may get over it, as some of the development list do
        grade = grade.at_most("warning")
    if grade.is_bad and not chart.scan.learned:
        words = (
            f"the inputs are mostly the same for every sample: only {shares[0]:.2g} of their mean square differs "
            f"between these {chart.scan.samples} samples, and {shares[1]:.2g} of the output's; if they stand for all "
            "the data, subtract each column's mean, or each channel's; a pattern that all samples share, such as of "
            "positions, is subtracted step by step or left out"
        )
        unit = "share of the mean square"
        yield finding("off-centre-inputs", grade, (INPUT,), words, value, unit, limits=limits.CENTRED)


def unequal_inputs(chart: Chart) -> Iterator[Finding]:
    """One column of the inputs that varies far more than the others do, and moves the output far more."""
    found = chart.scan.preparation
    value = min(found.spread, found.influence)
    grade = limits.INFLUENCE.grade(value)
    if grade.is_bad and not chart.scan.learned:
        words = (
            f"column {found.widest} of the inputs varies {found.spread:.3g} times as much as the narrower half of "
            f"the columns together and moves the output {found.influence:.3g} times as much: divide each column of "
            "the data by its standard deviation"
        )
        unit = "times the narrower half of the columns"
        yield finding("unequal-inputs", grade, (INPUT,), words, value, unit, limits=limits.INFLUENCE)


def off_centre_targets(chart: Chart) -> Iterator[Finding]:
    """A squared error that is mostly the distance between the targets' mean and the outputs'."""
    found = chart.scan.preparation
    # Outputs that are too large make a large error, too: that is no trouble of the targets.
    value = min(found.start, found.targets)
    grade = limits.START.grade(value)
    if grade.is_bad and not chart.scan.learned:
        words = (
            f"the targets are far from 0 and from what the network answers: their mean square is {found.targets:.3g} "
            f"times their variance, the squared error {found.start:.3g} times; subtract their mean and divide by "
            "their standard deviation, or set the last layer's bias to their mean"
        )
        unit = "times the targets' variance"
        yield finding("off-centre-targets", grade, (TARGETS,), words, value, unit, limits=limits.START)


def wide_targets(chart: Chart) -> Iterator[Finding]:
    """Targets of a squared error that spread so far that steps of a usual learning rate do not reach them."""
    value = chart.scan.preparation.reach
    grade = limits.REACH.grade(value).at_most("warning")
    if grade.is_bad and not chart.scan.learned:
        words = (
            f"the targets spread {value:.3g} times as far as the network's outputs, or as 1: at usual learning rates "
            "it takes as many more steps to get there, and gradients are as large; divide the targets by their "
            "standard deviation, and multiply the answers by it"
        )
        unit = "times the outputs' standard deviation, or 1"
        yield finding("wide-targets", grade, (TARGETS,), words, value, unit, limits=limits.REACH)
