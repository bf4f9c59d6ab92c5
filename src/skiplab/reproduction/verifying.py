"""Looking at every file of a store: what is damaged is named and set aside, so that it is computed again."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from skiplab.files import Damaged, DamageFound, read_json, read_sealed, set_aside
from skiplab.reproduction.store import Store, mending, published

KEY = re.compile(r"[0-9a-f]{32}")


@dataclass
class Verified:
    """How many things were looked at, how many of them are damaged, and which studies have to run again."""

    trials: int = 0
    runs: int = 0
    checkpoints: int = 0
    published: int = 0
    damaged: int = 0
    without_checksum: int = 0  # trials of versions that had none
    set_aside_before: int = 0
    to_run_again: tuple[str, ...] = ()


def verify(store: Store) -> Verified:
    """Check all trials, checkpoints and runs of a store and all that is published; damage is said as it is found.

    Of the store what is damaged is set aside. What is published belongs to the package and stays.
    """
    found = Verified(set_aside_before=len(list(store.root.rglob(".damaged-*"))))
    store.tidy()
    for folder in _folders(store.root / "trials"):
        found.trials += 1
        try:
            found.without_checksum += "table_sha256" not in store.record(folder.name)
            store.table(folder.name)
        except Damaged as problem:
            found.damaged += 1
            set_aside(folder, problem, "the trial is computed again when a study needs it")
    for path in (file for folder in _folders(store.root / "checkpoints") for file in _files(folder)):
        found.checkpoints += 1
        try:
            read_json(path, sealed=True) if path.suffix == ".json" else read_sealed(path)
        except Damaged as problem:
            found.damaged += 1
            set_aside(path, problem, "what it held is computed again")
    again = set()
    for folder in store.run_folders():
        if not (folder / "run.json").exists():
            continue  # no run, and not ours
        found.runs += 1
        try:
            run = store.read_run(folder)
        except Damaged as problem:
            found.damaged += 1
            set_aside(folder, problem, f"{mending(folder)} makes it again")
            continue
        if any(not (store.has(each["key"]) or published().has(each["key"])) for each in run.trials):
            again.add(f"skiplab run {run.study} --scale {run.scale}")
    found.to_run_again = tuple(sorted(again))
    found.published = len(published().archives) + len(published().damage())
    for each in published().verify():
        found.damaged += 1
        warnings.warn(f"{each}; installing skiplab anew mends it.", DamageFound, stacklevel=2)
    return found


def _folders(room: Path) -> Iterator[Path]:
    """The folders of a room that are named by a trial's key; others are a user's."""
    yield from (path for path in sorted(room.glob("*")) if KEY.fullmatch(path.name) and path.is_dir())


def _files(folder: Path) -> Iterator[Path]:
    """Those files of a checkpoint that carry a checksum."""
    yield from (path for path in sorted(folder.glob("[!.]*")) if path.suffix in (".json", ".safetensors"))
