"""Publishing: putting a study's run, figure and trials into the package.

A study has one published run; a further one takes its place. A trial that is published already stays, so a study
may be published from several machines; trials that no run names any more go. A trial that several studies name lies
in the archive of the first of them, and so does a figure that several show: the archives depend on what is published,
not on how it came there. What tables lose is declared in ``slimming.py``.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skiplab.checks import Refused, one_of
from skiplab.files import Damaged, kind_of, read_bytes, remove, write_bytes
from skiplab.reproduction.published import Published
from skiplab.reproduction.runner import drawn
from skiplab.reproduction.shipped import Picture, archive_bytes
from skiplab.reproduction.slimming import slimmed
from skiplab.reproduction.store import Store, StudyRun, published
from skiplab.reproduction.study import SCALES, Study

if TYPE_CHECKING:
    import pandas as pd

FULL_COLOUR = 40_000  # bytes that a figure may take before its colours are reduced

Trials = Mapping[str, tuple["pd.DataFrame", Mapping[str, Any]]]  # table and record by key


@dataclass(frozen=True)
class Entry:
    """What is published of one study: its run, as run.json has it, and its figure in pixels and as SVG."""

    run: Mapping[str, Any]
    picture: bytes
    drawing: bytes

    @property
    def trials(self) -> dict[str, str]:
        """The trials it names, by key."""
        return {each["key"]: each["trial"] for each in self.run["trials"]}


def publish_study(study: Study, store: Store, scale: str, order: Sequence[str] = ()) -> tuple[int, Path]:
    """Put the best run of a study at a scale into ``published/``; return the count of its trials and its archive.

    ``order`` is the catalogue's order of studies, by which shared trials find their place.
    """
    one_of("scale", scale, SCALES)
    shipped = published()
    if not (shipped.root.parent.parent.parent / "pyproject.toml").exists():
        raise Refused("publish writes into the source tree; run it in a checkout of skiplab.")
    runs = [run for run in store.runs(study.id) if run.scale == scale]
    if not runs:
        raise Refused(
            f"{study.id} has no {scale} run in {store.root}; "
            f"make one with `skiplab run {study.id} --scale {scale}`."
        )
    entries = published_entries(shipped)
    before = entries.get(study.id)
    if before and SCALES.index(before.run["scale"]) > SCALES.index(scale):
        raise Refused(
            f"{study.id} is published at {before.run['scale']} scale, and a {scale} run would take its place."
        )
    fresh = _trials_of(runs[0], store, shipped)
    run = drawn(study, runs[0])
    drawing = (run.folder / "figure.svg").read_bytes()
    entries[study.id] = Entry(run.content(), picture_bytes(run.folder / "figure.png"), drawing)
    write_archives(shipped, entries, fresh, order, changed=study.id)
    return len(run.trials), shipped.root / f"{study.id}.zip"


def published_entries(shipped: Published) -> dict[str, Entry]:
    """Everything published, by study; refuse to go on where something is damaged."""
    try:
        for problem in shipped.damage():
            raise problem
        return {
            name: Entry(
                each.run.content(),
                read_bytes(shipped.root / f"{each.picture.study}.webp", each.picture.sha256),
                each.drawing,
            )
            for name, each in shipped.archives.items()
        }
    except Damaged as problem:
        # Passed over, it would take its trials with it.
        raise Refused(f"{problem}; restore it before trials that no run names are removed.") from problem


def _trials_of(run: StudyRun, store: Store, shipped: Published) -> Trials:
    """Those trials of a run that are not published yet, slimmed."""
    found = {}
    for each in run.trials:
        key = each["key"]
        if key in found or shipped.has(key):
            continue
        table = store.sound_table(key)
        if table is None:
            raise Refused(f"trial {key} of {run.study} is not in {store.root}; run the study again.")
        # The hash is that of the store's own file.
        record = {name: value for name, value in store.record(key).items() if name != "table_sha256"}
        found[key] = (slimmed(table, each), record)
    return found


def write_archives(
    shipped: Published,
    entries: Mapping[str, Entry],
    fresh: Trials,
    order: Iterable[str],
    *,
    changed: str = "",
) -> None:
    """Write every archive and figure that is not as it should be: ``changed``, and those that gain or lose by it."""
    known = [name for name in order if name in entries]
    trial_homes: dict[str, str] = {}
    picture_homes: dict[bytes, str] = {}
    for name in (*known, *sorted(set(entries) - set(known))):
        picture_homes.setdefault(entries[name].picture, name)
        for key in entries[name].trials:
            trial_homes.setdefault(key, name)
    # All are made before any is written, since a trial that moves is read from where it was.
    made: dict[str, bytes] = {}
    for name, entry in entries.items():
        held = [key for key in entry.trials if trial_homes[key] == name]
        picture = Picture(picture_homes[entry.picture], hashlib.sha256(entry.picture).hexdigest())
        old = shipped.archives.get(name)
        if name == changed or old is None or old.picture != picture or set(old.trials) != set(held):
            made[name] = _archive(entry, picture, held, fresh, shipped)
    pictures = {each.picture.study for each in shipped.archives.values()}
    for name in made:
        path = shipped.root / f"{name}.webp"
        if picture_homes[entries[name].picture] == name and name not in pictures and os.path.lexists(path):
            raise Refused(f"{path} is {kind_of(path)} that no archive knows; move it away.")
    for name, content in made.items():
        write_bytes(shipped.root / f"{name}.zip", content)
        if picture_homes[entries[name].picture] == name:
            write_bytes(shipped.root / f"{name}.webp", entries[name].picture)
    for name in set(entries) - set(picture_homes.values()):
        remove(shipped.root / f"{name}.webp")


def _archive(entry: Entry, picture: Picture, keys: Sequence[str], fresh: Trials, shipped: Published) -> bytes:
    """Make one archive, of trials that are fresh or in another one so far."""
    tables: dict[str, dict[str, pd.DataFrame]] = {}
    records = {}
    for key in sorted(keys):  # the order in which a run names them may change without a number changing
        table, record = fresh[key] if key in fresh else (shipped.table(key), shipped.record(key))
        tables.setdefault(entry.trials[key], {})[key] = table
        records[key] = record
    return archive_bytes(entry.run, picture, records, tables, entry.drawing)


def picture_bytes(source: Path) -> bytes:
    """Make a lossless WebP of a figure: in full colour where that is small, otherwise in 256 colours."""
    from PIL import Image

    full = Image.open(source).convert("RGB")
    # Colours chosen to cover the range, not the common ones as median cut does: of our figures above the limit, none
    # is off by more than 17 of 255 (median cut: 83), so colour bars stay smooth, and they shrink by 42 % (30 %).
    few = full.quantize(256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).convert("RGB")
    for picture in (full, few):
        file = io.BytesIO()
        # The encoder's greatest effort takes seconds once, for a file that every clone holds.
        picture.save(file, "WEBP", lossless=True, quality=100, method=6)
        if file.tell() <= FULL_COLOUR:
            break
    return file.getvalue()
