"""Judge and draw every published run anew from its published trials, after a change of claims, verdicts or figures.

    python tools/republish.py [STUDY …]           write them anew and print the rows that changed, and words
    python tools/republish.py --check [STUDY …]   only print what would change; exit 1 if anything does

Nothing is trained: a run whose trials are not all published (a trial has a new version, a stage asks for more) is
named and left as it is. ``--check`` needs no data set; writing needs those that the runs used.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from skiplab.reproduction.judgement import judgements
from skiplab.reproduction.publishing import publish_study
from skiplab.reproduction.runner import Options, Unfinished, judged_again, run_study
from skiplab.reproduction.settings import settings_of
from skiplab.reproduction.store import Store, StudyRun, published
from skiplab.reproduction.verdict import Verdict
from skiplab.studies import CATALOGUE

# What a row says in numbers, and what in words.
NUMBERS = (
    "verdict",
    "statistic",
    "low",
    "high",
    "margin",
    "p",
    "p_adjusted",
    "level",
    "paper_value",
    "runs",
    "headline",
    "source",
    "worth",
    "paired",
    "kind",
    "missing",
    "other_scale",
)
TEXTS = ("text", "detail", "unit")


def main(wanted: list[str], *, check: bool) -> int:
    """Judge the studies named, or all, anew; return how many could not be, or changed."""
    for name in wanted:
        CATALOGUE[name]  # refuses an unknown one with a suggestion, before any work
    found = changes_in_all = texts = 0
    runs = [run for run in published().runs() if not wanted or run.study in wanted]
    for number, run in enumerate(runs, 1):
        print(f"[{number}/{len(runs)}] {run.study} {run.name}", flush=True)
        try:
            rows = judged_again(CATALOGUE[run.study], run)
        except Unfinished as reason:
            absent = f"{reason.left} trial(s) that it names today are not published"
            print(f"    left as it is: {absent}; publish it with the settings that it was run with (--set)")
            found += 1
            continue
        changed, said = list(changes(run.verdicts, rows)), list(new_words(run.verdicts, rows))
        print("".join(f"    {line}\n" for line in changed + said), end="")
        texts += len(said)
        if check:
            found += len(changed) + len(said)
        else:
            write_anew(run)
        changes_in_all += len(changed)
    print(f"{changes_in_all} rows or claims say something else, {texts} in other words.")
    return found


def write_anew(run: StudyRun) -> None:
    """Publish the run that today's code makes of the same trials."""
    declared, used = (
        vars(CATALOGUE[run.study].settings[run.scale]),
        vars(settings_of(CATALOGUE[run.study], run)),
    )
    overrides = {key: value for key, value in used.items() if value != declared[key]}
    # A deadline in the past: a trial that is not there must not be started.
    options = Options(executor="serial", deadline=time.time() - 1)
    study, order = CATALOGUE[run.study], [study.id for study in CATALOGUE]
    with tempfile.TemporaryDirectory() as place:
        store = Store(Path(place))
        run_study(study, store, scale=run.scale, overrides=overrides, options=options)
        publish_study(study, store, run.scale, order)


def by_condition(
    old: Sequence[Verdict], new: Sequence[Verdict]
) -> Iterator[tuple[str, Verdict | None, Verdict | None]]:
    """Every row's claim and condition, the row as it was and as it is; None where it is new or gone."""
    before, after = ({(row.claim, row.condition): row for row in rows} for rows in (old, new))
    for key in {**before, **after}:
        yield ", ".join(key), before.get(key), after.get(key)


def new_words(old: Sequence[Verdict], new: Sequence[Verdict]) -> Iterator[str]:
    """Say which claims and rows have other words; words that several rows share are told once."""
    told = set()
    for key, was, now in by_condition(old, new):
        for name in TEXTS if was and now else ():
            one, other = getattr(was, name), getattr(now, name)
            if one != other and (name, one, other) not in told:
                told.add((name, one, other))
                yield f"{key}: {name} {one!r} → {other!r}"


def same(one: object, other: object) -> bool:
    """Whether two fields of a row say the same; the last digits of a number are the machine's."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    return one == other


def changes(old: Sequence[Verdict], new: Sequence[Verdict]) -> Iterator[str]:
    """Say which rows are new, gone, or say something else."""
    for key, was, now in by_condition(old, new):
        if was is None or now is None:
            yield f"{key}: {'new' if was is None else 'gone'}"
            continue
        pairs = {name: (getattr(was, name), getattr(now, name)) for name in NUMBERS}
        different = [
            f"{name} {one} → {other}" for name, (one, other) in pairs.items() if not same(one, other)
        ]
        if different:
            yield f"{key}: {', '.join(different)}"
    was_judged, is_judged = ({each.claim: each.verdict for each in judgements(rows)} for rows in (old, new))
    for claim in {**was_judged, **is_judged}:
        verdicts = was_judged.get(claim, "absent"), is_judged.get(claim, "absent")
        if verdicts[0] != verdicts[1]:
            yield f"CLAIM {claim}: {' → '.join(verdicts)}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    parser.add_argument("studies", nargs="*", metavar="STUDY")
    given = parser.parse_args()
    sys.exit(min(main(given.studies, check=given.check), 1))
