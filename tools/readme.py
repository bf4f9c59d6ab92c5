#!/usr/bin/env python3
"""Writes the parts of README.md that hold numbers, from published/ alone.

python tools/readme.py            rewrite README.md
python tools/readme.py --check    exit 1 if README.md is not what this would write
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from skiplab.cli.verdicts import number
from skiplab.reproduction.judgement import Judgement, judgements
from skiplab.reproduction.scoreboard import counts
from skiplab.reproduction.store import StudyRun, published
from skiplab.reproduction.verdict import CONTRADICTED, HOLDS, UNDECIDED, VERDICTS
from skiplab.studies import CATALOGUE

README = Path(__file__).parent.parent / "README.md"


def shown_runs() -> dict[str, StudyRun]:
    """The published run of every study that has one."""
    found: dict[str, StudyRun] = {}
    for run in published().runs():
        found.setdefault(run.study, run)
    return {study.id: found[study.id] for study in CATALOGUE if study.id in found}


def scoreboard() -> str:
    """A table: one row per study, the paper's claims counted by verdict, ours beside them."""
    lines = [
        "| study | what the paper shows | ✓ | ✗ | ? | ours | amended | runs on |",
        "|---|---|---|---|---|---|---|---|",
    ]
    totals = dict.fromkeys(VERDICTS, 0)
    for study_id, run in shown_runs().items():
        study, found = CATALOGUE[study_id], counts(judgements(run.verdicts))
        cells = " | ".join(str(found["paper"][name]) for name in VERDICTS)
        ours, amended = sum(found["ours"].values()), len(study.amendments)
        own = f"{found['ours'][HOLDS]} of {ours}" if ours else ""
        size = "paper scale" if not run.deviations else "paper scale, reduced"
        place = ", ".join(run.provenance["trials_devices"])
        lines.append(
            f"| `{study_id}` | {study.title} | {cells} | {own} | {amended or ''} | {size}; {place} |"
        )
        totals = {name: totals[name] + found["paper"][name] for name in VERDICTS}
    words = (
        f"{totals[HOLDS]} hold, {totals[CONTRADICTED]} are contradicted, {totals[UNDECIDED]} are undecided"
    )
    return "\n".join([f"Of the papers' {sum(totals.values())} claims {words}.", "", *lines])


def contradicted() -> str:
    """A bullet for every claim of a paper that our runs contradict, with its place and its clearest condition.

    A study that shares all trials with earlier ones is an alias and says nothing new.
    """
    lines = []
    seen: set[str] = set()
    for study_id, run in shown_runs().items():
        keys = {each["key"] for each in run.trials}
        if not keys <= seen:
            against = [
                each for each in judgements(run.verdicts) if each.verdict == CONTRADICTED and not each.ours
            ]
            lines += [_bullet(study_id, each) for each in against]
        seen |= keys
    return "\n".join(line.replace(" ().", ".") for line in lines)


def _bullet(study_id: str, judged: Judgement) -> str:
    against = [row for row in judged.rows if row.verdict == CONTRADICTED]
    row = max(against, key=lambda row: abs(row.statistic or 0.0))
    interval = row.meaning.written_interval(f"[{number(row.low)}, {number(row.high)}]")
    paper = "" if row.paper_value is None else f", the paper's {number(row.paper_value)}"
    reason = f"; {row.reason}" if row.reason else ""
    share = f"in {len(against)} of {len(judged.rows)} conditions, e.g. " if len(judged.rows) > 1 else ""
    value = f"ours {number(row.statistic)} {interval}{paper}{reason}"
    return f"- *{judged.text}* ({judged.source}) `{study_id}`, {share}{row.condition}: {value} ({row.unit})."


def speed() -> str:
    """How fast the published GPU trials trained, from their own records."""
    store = published()
    seconds: float = 0
    epochs: float = 0
    devices = set()
    for key in sorted({each["key"] for each in shown_runs()["orhan2017/figure-7"].trials}):
        record = store.record(key)
        settings = record["settings"]
        if "seeds" in settings and record["device"].startswith("NVIDIA"):
            if len(settings["seeds"]) < 50 or settings["model"].endswith("-bn"):
                continue  # small searches do not fill the GPU; the BN trial went on from a checkpoint
            seconds += record["seconds"]
            epochs += len(settings["seeds"]) * settings["training"].get("epochs", 100)
            devices.add(record["device"])
    per = f"{1000 * seconds / epochs:.1f} ms"
    return (
        f"The published trials of figure 7 trained 80 to 360 networks of 30 × 128 units at once on one "
        f"{' / '.join(sorted(devices))}: {per} a network and epoch of 50,000 images, everything included (building, "
        "compiling, measuring)."
    )


def written() -> str:
    """README.md with every marked part made anew."""
    text = README.read_text()
    for name, make in (("scoreboard", scoreboard), ("contradicted", contradicted), ("speed", speed)):
        pattern = rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)"
        made = make().replace("\\", r"\\")  # a replacement's own escapes are not meant
        text, count = re.subn(pattern, rf"\g<1>{made}\n\g<2>", text, flags=re.DOTALL)
        assert count == 1, f"README.md has no part marked {name}"
    return text


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(written() != README.read_text())
    README.write_text(written())
