"""Judge and draw every published run anew from its published trials, after a change of claims, verdicts or figures.

    python tools/republish.py [STUDY …]

Nothing is trained: a run whose trials are not all published (a trial has a new version, a stage asks for more) is
named and left as it is. Prints the rows whose verdict changed.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from skiplab.reproduction.publishing import publish_study
from skiplab.reproduction.runner import Options, Unfinished, run_study
from skiplab.reproduction.store import Store, StudyRun, published
from skiplab.studies import CATALOGUE


def main(wanted: list[str]) -> int:
    """Republish the studies named, or all; return how many could not be."""
    for name in wanted:
        CATALOGUE[name]  # refuses an unknown one with a suggestion, before any work
    left = 0
    runs = [run for run in published().runs() if not wanted or run.study in wanted]
    for number, run in enumerate(runs, 1):
        print(f"[{number}/{len(runs)}] {run.study} {run.name}", flush=True)
        with tempfile.TemporaryDirectory() as place:
            store = Store(Path(place))
            overrides = {key: change["used"] for key, change in run.deviations.items()}
            try:
                # A deadline in the past: a trial that is not there must not be started.
                options = Options(executor="serial", deadline=time.time() - 1)
                new = run_study(
                    CATALOGUE[run.study], store, scale=run.scale, overrides=overrides, options=options
                )
            except Unfinished as reason:
                print(f"    left as it is: {reason}")
                left += 1
                continue
            tell_changes(run, new)
            publish_study(CATALOGUE[run.study], store, run.scale)
    return left


def tell_changes(old: StudyRun, new: StudyRun) -> None:
    """Print the rows that are new, gone or judged otherwise."""
    before, after = ({(row.claim, row.condition): row for row in run.verdicts} for run in (old, new))
    for key in {**before, **after}:
        was, now = (rows[key].verdict if key in rows else "–" for rows in (before, after))
        if was != now:
            row = after.get(key, before.get(key))
            assert row is not None
            print(f"    {'headline' if row.headline else 'further'}: {', '.join(key)}: {was} → {now}")


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
