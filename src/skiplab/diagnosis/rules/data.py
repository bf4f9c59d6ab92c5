"""Data that nobody prepared: inputs and targets far from 0, and columns of unlike scales."""

from __future__ import annotations

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
    # A network that normalises what its first layers give tells samples apart all the same.
    value = max(found.input_variation, found.output_variation)
    grade = limits.CENTRED.grade(value)
    if grade.is_bad and not chart.scan.learned:
        words = (
            f"the inputs are far from 0: only {found.input_variation:.2g} of their mean square differs between samples, "
            f"and {found.output_variation:.2g} of the output's; subtract each column's mean from the data"
        )
        yield finding(
            "off-centre-inputs",
            grade,
            (INPUT,),
            words,
            value,
            "share of the mean square",
            limits=limits.CENTRED,
        )


def unequal_inputs(chart: Chart) -> Iterator[Finding]:
    """One column of the inputs that moves the output far more than the others do."""
    found = chart.scan.preparation
    grade = limits.INFLUENCE.grade(found.influence)
    if grade.is_bad and not chart.scan.learned:
        words = (
            f"column {found.widest} of the inputs moves the output {found.influence:.3g} times as much as the median "
            "column does: divide each column of the data by its standard deviation"
        )
        yield finding(
            "unequal-inputs",
            grade,
            (INPUT,),
            words,
            found.influence,
            "times the median column's influence",
            limits=limits.INFLUENCE,
        )


def off_centre_targets(chart: Chart) -> Iterator[Finding]:
    """A squared error that is mostly the distance between the targets' mean and the outputs'."""
    start = chart.scan.preparation.start
    grade = limits.START.grade(start)
    if grade.is_bad and not chart.scan.learned:
        words = (
            f"the squared error is {start:.3g} times what the targets' own mean would have as an answer: subtract the "
            "targets' mean and divide by their standard deviation, or start the last layer there"
        )
        yield finding(
            "off-centre-targets",
            grade,
            (TARGETS,),
            words,
            start,
            "times the best constant answer's loss",
            limits=limits.START,
        )
