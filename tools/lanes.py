"""Run chosen trials in lanes side by side on one GPU: a lane is a process that takes one trial after the other.

    python tools/lanes.py yu2019/table-1                   print the names of a study's trials at the paper's scale
    python tools/lanes.py --missing [STUDY …]              print those that are neither stored nor published
    python tools/lanes.py --store S --time-limit 20m "yu2019/table-1: plain, 20 layers" \\
        "yu2019/table-1: residual, 20 layers + yu2019/table-4: residual, 20 layers, rate 0.01, decay 0, 100 epochs"

Small ensembles leave a GPU idle between their kernels and while they are measured; several at once fill it (start
``nvidia-cuda-mps-control -d`` before, so that their kernels may overlap). What is unfinished when time is up goes on
from its checkpoint when the same command is given again; ``skiplab run`` then finds all of it in the store. Trials
that a stage names from the rows of an earlier one can be named as soon as these are stored or published; all others
can at any time, such as controls before what they control.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skiplab import data
from skiplab.checks import DataMissing
from skiplab.reproduction.results import Part, Results
from skiplab.reproduction.runner import Options, Unfinished, Watcher, complete, table_of, through_stages
from skiplab.reproduction.settings import choose, parse_duration
from skiplab.reproduction.store import Store
from skiplab.reproduction.study import Study
from skiplab.reproduction.trial import Call
from skiplab.studies import CATALOGUE

if TYPE_CHECKING:
    import pandas as pd

EVERY = 15.0  # seconds between two lines on a trial's progress
NEXT = " + "  # between the trials of a lane


class Lines(Watcher):
    """One line per so many seconds, and one per finished trial."""

    last = 0.0

    def progress(self, label: str, done: float, text: str) -> None:
        """Say how far a trial has come."""
        if time.monotonic() - self.last > EVERY:
            self.last = time.monotonic()
            print(f"{time.strftime('%T')} {label}: {text}", flush=True)

    def finished(self, label: str, seconds: float) -> None:
        """Say that a trial is stored."""
        print(f"{time.strftime('%T')} {label}: done in {seconds:.0f} s", flush=True)


class Awaited(Sequence[Part]):
    """Results that are not there: a stage that looks at them cannot name its trials yet."""

    def __len__(self) -> int:
        """Refuse: how many there will be is not known."""
        raise Unfinished(1)

    def __getitem__(self, place: Any) -> Any:
        """Refuse: none is there."""
        raise Unfinished(1)


def named(study: Study, scale: str, store: Store, *, missing: bool = False) -> dict[str, Call]:
    """The trials by label that a study names as far as its results are there, or those of them that are not.

    Behind a stage whose trials are not all there come those that later stages name without looking at their rows.
    """
    found: dict[str, Call] = {}
    settings = choose(study, scale, {}).settings

    def tables(calls: Mapping[str, Call]) -> list[pd.DataFrame]:
        known = {key: table_of(key, store) for key in calls}
        found.update({call.label: call for key, call in calls.items() if not missing or known[key] is None})
        there = [table for table in known.values() if table is not None]
        if len(there) < len(calls):
            raise Unfinished(len(calls) - len(there))
        return there

    try:
        through_stages(study, settings, data.fingerprint, tables)
    except Unfinished:
        for stage in study.stages:
            with contextlib.suppress(Unfinished):
                tables({call.key(data.fingerprint): call for call in stage(Results(settings, Awaited()))})
    return found


def listed(studies: Sequence[Study], given: argparse.Namespace) -> Iterator[str]:
    """A line per trial, under the first study that names it; or why a study is left out."""
    seen: set[str] = set()
    for study in studies:
        try:
            found = named(study, given.scale, Store(given.store), missing=given.missing)
        except DataMissing as reason:
            yield f"{study.id}: left out: {reason}"
            continue
        keys = {label: call.key(data.fingerprint) for label, call in found.items()}
        for label, call in found.items():
            if keys[label] not in seen:
                yield f"{study.id}: {label}{size(call) if given.missing else ''}"
        seen |= set(keys.values())


def size(call: Call) -> str:
    """How many networks a trial trains for how many epochs, where its settings say it."""
    own = [call.settings, getattr(call.settings, "training", None)]
    networks = getattr(call.settings, "seeds", ())
    epochs = next((each.epochs for each in own if hasattr(each, "epochs")), None)
    return f"   ({len(networks)} networks × {epochs} epochs)" if networks and epochs else ""


def trials_of(lane: str, given: argparse.Namespace) -> Iterator[tuple[Study, Call]]:
    """The trials that a lane names; one that does not exist ends the program with those that do."""
    for name in lane.split(NEXT):
        item, _, label = name.partition(": ")
        (study,) = CATALOGUE.select([item])
        known = named(study, given.scale, Store(given.store))
        if label not in known:
            sys.exit(f"{item} names no trial {label!r}; it has:\n" + "\n".join(known))
        yield study, known[label]


def drive(lane: str, given: argparse.Namespace) -> int:
    """Run one lane's trials here; the exit status is 3 where time was up."""
    options = Options(given.device, "serial", given.deadline, Lines())
    for study, call in list(trials_of(lane, given)):
        try:
            complete({call.key(data.fingerprint): call}, Store(given.store), study, options)
        except Unfinished:
            print(f"{time.strftime('%T')} {call.label}: time is up", flush=True)
            return 3
    return 0


def start(lanes: Sequence[str], given: argparse.Namespace) -> int:
    """Start a process per lane and wait for all; the largest exit status counts."""
    own = [sys.executable, __file__, "--store", given.store, "--device", given.device, "--scale", given.scale]
    if given.deadline is not None:
        own += ["--deadline", str(given.deadline)]
    running = [subprocess.Popen([*own, "--drive", lane]) for lane in lanes]
    try:
        return max(each.wait() for each in running)
    finally:
        for each in running:
            each.terminate()


def main(words: Sequence[str] | None = None) -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("lanes", nargs="*", metavar="LANE")
    parser.add_argument("--missing", action="store_true", help="only trials that have yet to run")
    parser.add_argument("--store", type=Path, default=None)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--scale", default="paper")
    parser.add_argument("--time-limit", type=parse_duration, default=None)
    parser.add_argument("--deadline", type=float, default=None, help=argparse.SUPPRESS)
    parser.add_argument("--drive", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(words)
    if given.missing and any(": " in lane for lane in given.lanes):
        parser.error(
            "--missing lists trials of whole studies, and trials are named too; leave out one of both"
        )
    if all(": " not in lane for lane in given.lanes):
        if not given.lanes and not given.missing:
            parser.error("name a study, or lanes of its trials, or say --missing")
        studies = CATALOGUE.select(given.lanes) if given.lanes else list(CATALOGUE)
        print("\n".join(listed(studies, given)))
        return 0
    given.store = Store(given.store).root
    if given.time_limit is not None:
        given.deadline = time.time() + given.time_limit
    for lane in given.lanes:
        list(trials_of(lane, given))  # so that a wrong name is said before anything runs
    return drive(given.lanes[0], given) if given.drive else start(given.lanes, given)


if __name__ == "__main__":
    sys.exit(main())
