"""A diagnosis as a person reads it: findings with the worst first, what was measured, and what was not."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from skiplab.diagnosis.chart import Examined, Unmeasured
from skiplab.diagnosis.finding import MARKS, SEVERITIES, WHOLE, Finding
from skiplab.diagnosis.scan import Scan
from skiplab.reporting import words
from skiplab.version import __version__

if TYPE_CHECKING:
    import pandas as pd

    from skiplab.diagnosis.changes import Changes

MOST_FINDINGS = 6  # that a terminal shows; all are in .findings and to_frame()
WIDTH = 100
SCHEMA_VERSION = 1


@dataclass(frozen=True, repr=False, eq=False)
class Report:
    """What ``diagnose`` found; ``findings`` has the worst first."""

    name: str
    findings: tuple[Finding, ...]
    measured: tuple[Examined, ...]
    unmeasured: tuple[Unmeasured, ...]
    scan: Scan
    notes: tuple[str, ...]
    seconds: float

    @property
    def is_healthy(self) -> bool:
        """Whether nothing severe and no warning was found."""
        return all(finding.severity == "info" for finding in self.findings)

    @property
    def verdict(self) -> str:
        """The whole in a sentence."""
        counts = {kind: sum(f.severity == kind for f in self.findings) for kind in SEVERITIES}
        if self.is_healthy:
            examined = words.count(len(self.measured), "examination")
            return f"nothing wrong found by {examined}" if self.measured else "nothing could be measured"
        parts = [f"{counts[kind]} {kind}" for kind in SEVERITIES[:-1] if counts[kind]]
        return f"{' and '.join(parts)} finding{'s' * (sum(counts.values()) - counts['info'] != 1)}"

    @property
    def proposed(self) -> tuple[str, ...]:
        """Ids of remedies, those of the worst findings first; ``sl.try_remedies`` tells which of them help."""
        return tuple(dict.fromkeys(remedy for finding in self.findings for remedy in finding.remedy))

    def result(self, name: str) -> Any:
        """The result of one examination, with its own ``plot()`` and ``frame()``."""
        from skiplab.checks import one_of

        known = {each.name: each.result for each in self.measured}
        return known[one_of("examination", name, known)]

    def to_frame(self) -> pd.DataFrame:
        """One row per finding."""
        import pandas as pd

        rows = [finding.to_dict() for finding in self.findings]
        for row in rows:
            row |= {"where": ", ".join(row["where"]), "remedy": ", ".join(row["remedy"])}
        return pd.DataFrame(rows, columns=list(_FRAME))

    def frame(self) -> pd.DataFrame:
        """The same as ``to_frame``: what results of instruments call it."""
        return self.to_frame()

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON has it; ``skiplab.diagnosis.schema`` describes it."""
        return {
            "schema": SCHEMA_VERSION,
            "skiplab": __version__,
            "network": self.name,
            "parameters": self.scan.parameters,
            "samples": self.scan.samples,
            "seconds": round(self.seconds, 2),
            "notes": list(self.notes),
            "findings": [finding.to_dict() for finding in self.findings],
            "measured": [each.to_dict() for each in self.measured],
            "unmeasured": [each.to_dict() for each in self.unmeasured],
        }

    def compare(self, other: Report) -> Changes:
        """What became better and worse from this report to another, such as one of a treated copy."""
        from skiplab.checks import require
        from skiplab.diagnosis.changes import Changes

        require(
            isinstance(other, Report), f"a {type(other).__name__} was given; pass a report of sl.diagnose."
        )
        return Changes(self, other)

    def save(self, path: str | Path) -> Path:
        """Write the report as one HTML page with its figures, which asks nothing of the network."""
        from skiplab.checks import require
        from skiplab.diagnosis.page import write_page

        require(
            isinstance(path, str | Path), f"path is {path!r}, but must be a text such as 'diagnosis.html'."
        )
        return write_page(self, Path(path))

    def __repr__(self) -> str:
        lines = [f"{self.name}: {self.verdict}"]
        lines += [f"  {line}" for line in wrap(self._based_on, WIDTH)]
        for finding in self.findings[:MOST_FINDINGS]:
            lines += _told(finding)
        more = len(self.findings) - MOST_FINDINGS
        if more > 0:
            lines.append(f"  and {more} further finding{'s' * (more != 1)}: to_frame() and --html have all")
        if self.proposed:
            lines.append(
                "  next: sl.try_remedies(model, batches, remedies=report.proposed) tells which remedies help"
            )
        lines += [f"  {line}" for note in self.notes for line in wrap(note, WIDTH)]
        if self.unmeasured:
            lines += [f"  {line}" for line in wrap(self._left_out, WIDTH)]
        return "\n".join(lines)

    @property
    def _left_out(self) -> str:
        """What was not measured, with the reason if one sentence says it of all."""
        reasons = {each.why for each in self.unmeasured}
        why = reasons.pop() if len(reasons) == 1 else ""
        why = why if 0 < len(why) <= WIDTH else "why: .unmeasured, --html"
        return f"not measured ({why}): {', '.join(each.name for each in self.unmeasured)}"

    @property
    def _based_on(self) -> str:
        scan, examined = self.scan, words.count(len(self.measured), "examination")
        samples = words.count(scan.samples, "sample")
        layers = f"; {scan.blocks}" if scan.blocks.names else ""
        return f"{scan.parameters:,} parameters, {samples}, {examined}{layers}"

    def _repr_html_(self) -> str:
        """The findings as a table, and below them what was assumed and not measured."""
        head = "".join(f"<th>{name}</th>" for name in ("", "finding", "where", "reference", "remedy"))
        rows = "".join(
            f"<tr><td>{MARKS[each.severity]} {each.severity}</td><td>{escape(each.words)}</td>"
            f"<td>{escape(', '.join(each.where))}</td><td>{escape(each.reference)}</td>"
            f"<td>{escape(', '.join(each.remedy))}</td></tr>"
            for each in self.findings
        )
        table = f"<table><tr>{head}</tr>{rows}</table>" if rows else ""
        left = "".join(f"<li>{escape(each.name)}: {escape(each.why)}</li>" for each in self.unmeasured)
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        title = f"<b>{escape(self.name)}: {escape(self.verdict)}</b><br>{escape(self._based_on)}"
        unmeasured = f"<details><summary>not measured</summary><ul>{left}</ul></details>" if left else ""
        return f"<p>{title}</p>{table}<ul>{notes}</ul>{unmeasured}"


_FRAME = (
    *("severity", "id", "where", "words", "statistic", "low", "high", "unit", "reference"),
    *("paper", "support", "remedy"),
)


def _told(finding: Finding) -> list[str]:
    """A finding in two or three lines: what, compared with what, and the remedy."""
    names = [name or WHOLE for name in finding.where[:2]] + ["…"] * (len(finding.where) > 2)
    place = f" [{', '.join(names)}]" if names else ""
    mark = MARKS[finding.severity]
    first = wrap(f"{mark} {finding.severity}: {finding.words}{place}", WIDTH, subsequent_indent="    ")
    lines = [f"  {line}" for line in first]
    if finding.severity != "info":
        lines += [f"      {line}" for line in wrap(f"compare: {finding.reference}", WIDTH - 4)]
        if finding.remedy:
            lines.append(f"      remedy: {', '.join(finding.remedy)}")
    return lines
