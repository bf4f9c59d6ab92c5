"""A diagnosis as one HTML page: findings as cards, what was measured with figures, and what was not."""

from __future__ import annotations

import math
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from skiplab.diagnosis.chart import Examined
from skiplab.diagnosis.finding import MARKS, SEVERITIES, Finding
from skiplab.diagnosis.papers import sources_in
from skiplab.diagnosis.scan import Scan
from skiplab.diagnosis.single_page import picture, write_single_page
from skiplab.measurements.result import Result
from skiplab.remedies import REMEDIES
from skiplab.reporting import words
from skiplab.reporting.forest import interval_drawing
from skiplab.reproduction import numerals

if TYPE_CHECKING:
    from skiplab.diagnosis.report import Report

MOST_ROWS = 300  # of a table on the page; the result's frame() has all
DECADES = 2.0  # from which a drawing's axis is logarithmic
MARGIN = 0.12  # of a drawing's range, left and right of what it shows


def write_page(report: Report, path: Path) -> Path:
    """Write a report as one HTML file and return its path; see ``single_page`` for what is refused."""
    return write_single_page(
        path,
        "diagnosis.html",
        report=report,
        findings=[card(finding) for finding in report.findings],
        counts={each: sum(f.severity == each for f in report.findings) for each in SEVERITIES},
        marks=MARKS,
        structure=structure(report.scan),
        measured=[answer(each) for each in report.measured],
        provenance=provenance(report),
    )


def card(finding: Finding) -> dict[str, Any]:
    """What the page shows of one finding."""
    ends, (drawing, caption) = (finding.low, finding.high), strip(finding)
    interval = between(*ends) if all(map(math.isfinite, ends)) and ends[0] < ends[1] else ""
    return {
        "finding": finding,
        "mark": MARKS[finding.severity],
        "number": numerals.number(finding.statistic),
        "interval": interval,
        "drawing": drawing,
        "drawn": caption,
        "sources": sources_in(finding.paper),
        "remedies": [
            {"id": each, "title": REMEDIES[each].title if each in REMEDIES else "", "line": line_for(each)}
            for each in finding.remedy
        ],
    }


def line_for(remedy: str) -> str:
    """The Python that applies a remedy to a copy of the network."""
    return f"model = REMEDIES[{remedy!r}].apply(model, batch).model"


def strip(finding: Finding) -> tuple[Markup, str]:
    """Draw a finding's number and interval beside the usual range, with a caption; nothing without a range."""
    usual = finding.usual
    if any(map(math.isnan, usual)) or not math.isfinite(finding.statistic):
        return Markup(""), ""
    ends = (finding.low, finding.high)
    has_interval = all(map(math.isfinite, ends)) and ends[0] < ends[1]
    points = [each for each in (finding.statistic, *ends, *usual) if math.isfinite(each)]
    by_decades = min(points) > 0 and math.log10(max(points) / min(points)) > DECADES

    def scaled(value: float) -> float:
        return math.log10(value) if by_decades and math.isfinite(value) else value

    low, high = scaled(min(points)), scaled(max(points))
    pad = MARGIN * ((high - low) or max(abs(low), 1.0))
    caption = f"usual: {usual_words(usual)}{', logarithmic scale' * by_decades}"
    drawing = interval_drawing(
        finding.severity,
        f"{numerals.number(finding.statistic)}; {caption}",
        (low - pad, high + pad),
        (scaled(usual[0]), scaled(usual[1])),
        scaled(finding.statistic),
        (scaled(ends[0]), scaled(ends[1])) if has_interval else None,
    )
    return drawing, caption


def between(low: float, high: float) -> str:
    """An interval in digits that follow its width, or each end in its own where they are decades apart."""
    if low > 0 and high > 10 * low:
        return f"{numerals.number(low, 2)} to {numerals.number(high, 2)}"
    return numerals.interval(low, high)


def usual_words(usual: tuple[float, float]) -> str:
    """A range that may be open at one end, in words."""
    low, high = map(numerals.limit, usual)
    if math.isinf(usual[0]):
        return f"at most {high}"
    return f"at least {low}" if math.isinf(usual[1]) else f"{low} to {high}"


def structure(scan: Scan) -> list[tuple[str, str]]:
    """What was found of the network's parts, as pairs of a name and a text."""
    blocks, residual = scan.blocks, scan.residual
    kind = "layers, since nothing repeats" if blocks.how == "layers" else f"blocks, {blocks.how}"
    rows = [(f"{len(blocks.names)} {kind}", f"{', '.join(blocks.names)} ({', '.join(blocks.kinds)})")]
    around = {"stem": blocks.stem, "between blocks": blocks.between, "head": blocks.head}
    rows += [(place, ", ".join(names)) for place, names in around.items() if names]
    if residual is None:
        return [*rows, ("residual additions", "unknown: the network's calls to torch could not be followed")]
    lines = [line.strip() for line in repr(residual).splitlines()[1:]]
    return [*rows, (words.count(len(residual.blocks), "residual addition"), "; ".join(lines) or "none")]


def answer(measured: Examined) -> dict[str, Any]:
    """What the page shows of one examination."""
    figure, trouble = drawn(measured.result)
    table = measured.result.table_to_read()
    shown = table.head(MOST_ROWS)
    return {
        "name": measured.name,
        "question": measured.question,
        "seconds": words.duration(measured.seconds),
        "text": repr(measured.result),
        "figure": figure,
        "trouble": trouble,
        "columns": [str(name) for name in table.columns],
        "rows": [[_cell(value) for value in row] for row in shown.itertuples(index=False, name=None)],
        "further": len(table) - len(shown),
    }


def drawn(result: Result) -> tuple[str, str]:
    """The result's figure as an image, or why there is none."""
    try:
        return picture(result.plot()), ""
    except Exception as problem:  # a page without one figure is better than no page
        return "", f"{type(problem).__name__}: {problem}".strip().splitlines()[0]


def _cell(value: Any) -> str:
    return numerals.number(value) if isinstance(value, float) else str(value)


def provenance(report: Report) -> list[tuple[str, str]]:
    """What made the numbers, as pairs of a name and a value."""
    import torch

    from skiplab.version import __version__

    scan = report.scan
    return [
        ("parameters", f"{scan.parameters:,}"),
        ("layers with weights", str(scan.weight_layers)),
        ("samples", str(scan.samples)),
        ("time", words.duration(report.seconds)),
        ("one pass, forward and backward", f"{numerals.number(scan.seconds)} s"),
        ("versions", f"skiplab {__version__}, torch {torch.__version__}, Python {platform.python_version()}"),
    ]
