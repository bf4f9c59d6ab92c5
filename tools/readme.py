#!/usr/bin/env python3
"""Writes what README.md and docs/ say in numbers, from published/ and from the first example alone.

python tools/readme.py            rewrite README.md, docs/scoreboard.md and docs/speed.md, and draw their figures
python tools/readme.py --check    exit 1 if they are not what this would write; the example is not run again
"""

from __future__ import annotations

import argparse
import contextlib
import io
import math
import re
import runpy
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from speed.page import draw_benchmarks, speed_in_short, speed_page

from skiplab.cli.verdicts import number
from skiplab.data.registry import with_titles
from skiplab.figures import style
from skiplab.files import write_bytes
from skiplab.reproduction.findings import Finding, findings
from skiplab.reproduction.judgement import Judgement, judgements, paid, tally
from skiplab.reproduction.publishing import picture_bytes
from skiplab.reproduction.scoreboard import counts, yet_to_run
from skiplab.reproduction.store import StudyRun, published
from skiplab.reproduction.verdict import CONTRADICTED, HOLDS, UNDECIDED, VERDICTS
from skiplab.studies import CATALOGUE

README = Path(__file__).parent.parent / "README.md"
DOCS = README.parent / "docs"
SCOREBOARD, SPEED = DOCS / "scoreboard.md", DOCS / "speed.md"
EXAMPLE, LOOK = README.parent / "examples" / "first_look.py", DOCS / "first_look.webp"
VALIDATION = DOCS / "diagnosis.md"
SIGNS = {HOLDS: "✓", CONTRADICTED: "✗", UNDECIDED: "?"}


def shown_runs() -> dict[str, StudyRun]:
    """The published run of every study that has one."""
    found: dict[str, StudyRun] = {}
    for run in published().runs():
        found.setdefault(run.study, run)
    return {study.id: found[study.id] for study in CATALOGUE if study.id in found}


def judged_of(paper: str = "") -> list[Judgement]:
    """The claims of published runs, of one paper or all; the papers' own and ours."""
    return [
        each
        for study, run in shown_runs().items()
        if study.startswith(paper)
        for each in judgements(run.verdicts)
    ]


def found() -> str:
    """Per paper the count of its claims, and two of those that carry it, one against it if there is one."""
    every = [each for each in judged_of() if not each.ours]
    lines = []
    for paper in CATALOGUE.papers:
        own = [each for each in every if each.study.startswith(paper.id)]
        carrying = findings(paper, shown_runs())
        against = [each for each in carrying if each.verdict == CONTRADICTED]
        told = [carrying[0], *(against[-1:] or carrying[1:2])]
        idea = paper.explains[0].lower() + paper.explains[1:]
        lines.append(
            f"- **{paper.id}**, by which {idea} Of its claims {tallied(own)}. {' '.join(map(sentence, told))}"
        )
    turned = [
        sum(each.verdict == verdict and bool(each.turned) for each in every)
        for verdict in (HOLDS, CONTRADICTED)
    ]
    parts = [
        f"Of the papers' {len(every)} claims {tallied(every)}. By paper, with two of the claims that carry it, the "
        "number that decides each and its interval at the level of the test:",
        "\n".join(lines),
        "Orhan's papers do not state the initial scale of weights: our verdicts are at the best scale of each "
        f"network or at one for all, and at some other scale {turned[0]} of the claims that hold and {turned[1]} of "
        f"those contradicted say the reverse. {shared_runs()}",
    ]
    return "\n\n".join(parts)


def sentence(finding: Finding) -> str:
    """A claim with its verdict, the number that decides and where it is from."""
    return f"{SIGNS[finding.verdict]} *{finding.text}* {finding.evidence} (`{finding.judged.study}`)"


def carrying() -> str:
    """All claims that carry each paper, with their numbers."""
    parts = [
        "\n".join(
            [f"**{paper.title}**", "", *(f"- {sentence(each)}" for each in findings(paper, shown_runs()))]
        )
        for paper in CATALOGUE.papers
    ]
    return "\n\n".join(parts)


def tallied(judged: Sequence[Judgement]) -> str:
    """Counts of claims by verdict in words; too small an effect is told apart from a reverse one."""
    told, small = tally(judged), sum(each.too_small for each in judged)
    waiting = sum(each.waits for each in judged)
    reverse = f"{told[CONTRADICTED]} {'is' if told[CONTRADICTED] == 1 else 'are'} contradicted" + (
        f" ({small} for want of an effect worth having)" if small else ""
    )
    waits = f" ({waiting} for want of declared runs alone)" if waiting else ""
    are = "is" if told[UNDECIDED] == 1 else "are"
    return f"{told[HOLDS]} hold, {reverse}, {told[UNDECIDED]} {are} undecided{waits}"


def shared_runs() -> str:
    """How many claims of a later paper rest mostly on runs that an earlier paper's claims rest on, too."""
    runs, order = shown_runs(), [paper.id for paper in CATALOGUE.papers]
    keys = {study: {each["key"] for each in run.trials} for study, run in runs.items()}
    items, claims = [], 0
    for study, own in keys.items():
        earlier = order[: order.index(study.partition("/")[0])]
        before = set().union(*(found for other, found in keys.items() if other.partition("/")[0] in earlier))
        if 2 * len(own & before) >= len(own):
            items.append(f"`{study}`")
            claims += sum(not each.ours for each in judgements(runs[study].verdicts))
    if not items:
        return ""
    named = ", ".join(items)
    return f"Half or more of the runs behind {claims} claims ({named}) are an earlier paper's, too."


def scoreboard() -> str:
    """A table: one row per study, the paper's claims counted by verdict, ours beside them."""
    lines = [
        "| study | what the paper shows | ✓ | ✗ | ? | ours | amended | runs on |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for study_id, run in shown_runs().items():
        study, told = CATALOGUE[study_id], counts(judgements(run.verdicts))
        cells = " | ".join(str(told["paper"][name]) for name in VERDICTS)
        ours, amended = sum(told["ours"].values()), len(study.amendments)
        own = f"{told['ours'][HOLDS]} of {ours}" if ours else ""
        size = "paper scale" if not run.deviations else "paper scale, reduced"
        place = ", ".join(run.provenance["trials_devices"])
        lines.append(
            f"| `{study_id}` | {study.title} | {cells} | {own} | {amended or ''} | {size}; {place} |"
        )
    return "\n".join(lines)


def waiting() -> str:
    """The studies of which no run is published, with their claims and what a run costs."""
    claims, items = yet_to_run(CATALOGUE.studies, shown_runs()), []
    for study in (CATALOGUE[name] for name in claims):
        minutes = math.ceil(study.cost["paper"] / 60)
        items.append(f"`{study.id}` ({claims[study.id]}; {minutes} minutes of {study.paper_device})")
    if not items:
        return ""
    total = sum(claims.values())
    return f"Not run yet at the paper's scale, and in no count: {total} claims of the papers. {', '.join(items)}."


def by_other_rules() -> str:
    """How the count would look if other things were counted, or contradictions paid for their conditions."""
    every = judged_of()
    own = [each for each in every if not each.ours]
    rows = [row for each in own for row in each.rows]
    all_rows = [row for each in every for row in (*each.rows, *each.further)]
    against = [each for each in own if each.verdict == CONTRADICTED]
    counted = {
        "the papers' claims, one verdict each": [each.verdict for each in own],
        "their headline conditions, one verdict each": [row.verdict for row in rows],
        "all rows, further conditions and ours included": [row.verdict for row in all_rows],
    }
    lines = ["| counted | ✓ | ✗ | ? |", "|---|---|---|---|"]
    for what, verdicts in counted.items():
        lines.append(f"| {what} | {' | '.join(str(verdicts.count(name)) for name in VERDICTS)} |")
    small, turned = sum(each.too_small for each in against), sum(bool(each.turned) for each in against)
    unpaid = sum(not paid(each) for each in against)
    lines += [
        "",
        "Until 2026-11-15 all rows were counted, with one family for Holm, unpaired and without a smallest effect "
        "worth having: 1,038 ✓, 279 ✗, 269 ? of 1,586 rows on 38 items of three papers.",
        "",
        f"Of the {len(against)} contradicted claims {small} are so for want of an effect worth having; {turned} say "
        f"the reverse at another initial gain; {unpaid} would be open if a contradiction by one of n conditions had "
        "to be n times as sure (Bonferroni), which the rules do not ask.",
    ]
    return "\n".join(lines)


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
    if judged.turned:
        reason += f"; holds at {judged.turned[0].condition}"
    share = f"in {len(against)} of {len(judged.rows)} conditions, e.g. " if len(judged.rows) > 1 else ""
    value = f"ours {number(row.statistic)} {interval}{paper}{reason}"
    return with_titles(
        f"- *{judged.text}* ({judged.source}) `{study_id}`, {share}{row.condition}: {value} ({row.unit})."
    )


def example() -> str:
    """The first example and what it prints; its figure is drawn beside."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        names = runpy.run_path(str(EXAMPLE))
    with tempfile.TemporaryDirectory() as aside:
        style.save(names["figure"], Path(aside))
        write_bytes(LOOK, picture_bytes(Path(aside) / "figure.png"))
    code = EXAMPLE.read_text().split('"""', 2)[2].strip()
    return f"```python\n{code}\n```\n\nprints\n\n```text\n{printed.getvalue().strip()}\n```"


def validated() -> str:
    """How often a diagnosis is right, as docs/diagnosis.md counts it."""
    rows = (line.strip("| ").split(" | ") for line in VALIDATION.read_text().splitlines() if " of " in line)
    told = {row[0]: row[1:] for row in rows if len(row) == 3}
    planted, healthy, sick, rescaled = (
        told[kind][0] for kind in ("Planted defects", "Healthy networks", "Remedies", "Rescaled data")
    )
    rules = {
        "inputs far from 0": told["off-centre-inputs"],
        "one wide column": told["unequal-inputs"],
        "targets far from 0": told["off-centre-targets"],
    }
    (named, spoilt), (blamed, harmless) = (
        _summed([cells[column] for cells in rules.values()]) for column in (0, 1)
    )
    by_rule = [", ".join(f"{rule} {cells[column]}" for rule, cells in rules.items()) for column in (0, 1)]
    return (
        f"On networks not used to set its limits, {planted} planted defects are found in their layer, {healthy} "
        f"healthy networks raise no warning, and for {sick} sick ones the first remedy proposed lowers the loss. "
        f"Of {spoilt} sets of data with a change that keeps a network from training {named} are named "
        f"({by_rule[0]}); of {harmless} with a change with which it still trains {blamed} are blamed "
        f"({by_rule[1]}), of rescaled ones, which these rules do not look at, {_left(rescaled)}."
    )


def _summed(cells: Sequence[str]) -> tuple[int, int]:
    """The sums of cells such as "3 of 7"."""
    pairs = [[int(number) for number in cell.split(" of ")] for cell in cells]
    return sum(part for part, _ in pairs), sum(whole for _, whole in pairs)


def _left(cell: str) -> str:
    """How many are not right, of a cell that tells how many are."""
    right, whole = map(int, cell.split(" of "))
    return f"{whole - right or 'none'} of {whole}"


def written(*, run_example: bool) -> str:
    """README.md with every marked part made anew; the example only where it is to run."""
    text = README.read_text()
    parts = {"found": found, "speed": speed_in_short, "validated": validated} | (
        {"example": example} if run_example else {}
    )
    for name, make in parts.items():
        pattern = rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)"
        made = make().replace("\\", r"\\")  # a replacement's own escapes are not meant
        text, count = re.subn(pattern, rf"\g<1>{made}\n\g<2>", text, flags=re.DOTALL)
        assert count == 1, f"README.md has no part marked {name}"
    return text


def board() -> str:
    """docs/scoreboard.md."""
    return f"""# Scoreboard

Written by `python tools/readme.py` from what is published. Counted are the papers' claims, one verdict each: ✓ holds
in every condition that the claim speaks of, ✗ contradicted in one of them (or smaller there than the smallest effect
worth having), ? undecided. *Ours* are checks and readings of our own, which count neither for nor against a paper;
*amended* is what we changed after results were seen. [reruns.md](reruns.md) has verdicts of cheap studies over seeds.

{scoreboard()}

{waiting()}

## The claims that carry each paper

{carrying()}

## By other rules

{by_other_rules()}

## Contradicted

With the place in the paper and the clearest condition:

{contradicted()}
"""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    pages = {SCOREBOARD: board, SPEED: speed_page}
    if parser.parse_args().check:
        same = all(page.read_text() == make() for page, make in pages.items())
        sys.exit(not same or written(run_example=False) != README.read_text())
    draw_benchmarks()
    README.write_text(written(run_example=True))
    for page, make in pages.items():
        page.write_text(make())
