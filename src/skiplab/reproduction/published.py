"""What ships with the package: one archive per study, read like a store and changed by publishing alone.

    published/PAPER/ITEM.zip       a study's run and trials (see ``shipped.py``)
    published/PAPER/ITEM.webp      its figure, a file of its own so that a README can show it

A trial that several studies name lies in the archive of the first of them in the catalogue's order.
"""

from __future__ import annotations

import functools
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skiplab.files import Damaged, DamageFound, read_bytes
from skiplab.reproduction.shipped import Archive
from skiplab.reproduction.store import StudyRun

if TYPE_CHECKING:
    import pandas as pd


class Published:
    """The archives below one folder."""

    def __init__(self, root: Path, shelf: _Shelf | None = None) -> None:
        self.root, self._seen = root, shelf

    def as_it_is(self) -> Published:
        """The same, looked through once: for hundreds of trials in a row, of which each would look at every file."""
        return Published(self.root, self._shelf())

    @property
    def archives(self) -> dict[str, Archive]:
        """The archive of every study that has one, without those that are damaged."""
        return self._shelf().archives

    def damage(self) -> list[Damaged]:
        """What is wrong with archives that cannot be opened."""
        return self._shelf().problems

    def verify(self) -> list[Damaged]:
        """Read everything that is published and return what is wrong with it."""
        shelf = self._shelf()
        problems = list(shelf.problems)
        for name, archive in shelf.archives.items():
            try:
                assert archive.run.study == name
                read_bytes(self.root / f"{archive.picture.study}.webp", archive.picture.sha256)
                assert isinstance(archive.drawing, bytes)
                for key in archive.trials:
                    archive.records[key], archive.table(key)
            except Damaged as problem:
                problems.append(problem)
        return problems

    def has(self, key: str) -> bool:
        """Whether this trial is published."""
        return key in self._shelf().homes

    def record(self, key: str) -> dict[str, Any]:
        """Read a published trial's provenance; raise Damaged where it is not as it was published."""
        return self._home(key).records[key]

    def table(self, key: str) -> pd.DataFrame:
        """Read a published trial's table; raise Damaged where it is not as it was published."""
        return self._home(key).table(key)

    def sound_table(self, key: str) -> pd.DataFrame | None:
        """Read a published trial's table, or None where there is none; a damaged one is said."""
        shelf = self._shelf()
        # The package is not ours to change, and may be another user's.
        here = "computed again here, until skiplab is installed anew."
        if key not in shelf.homes:
            for each in shelf.unsaid():
                warnings.warn(f"{each}; the trials in it are {here}", DamageFound, stacklevel=2)
            return None
        try:
            return self.table(key)
        except Damaged as problem:
            warnings.warn(f"{problem}; the trial is {here}", DamageFound, stacklevel=2)
            return None

    def runs(self, study: str | None = None) -> list[StudyRun]:
        """All published runs, or that of one study, best first; a damaged one is said and passed over."""
        shelf = self._shelf()
        found, problems = [], [] if study else list(shelf.problems)
        for name, archive in shelf.archives.items():
            if study in (None, name):
                try:
                    found.append(archive.run)
                except Damaged as problem:
                    problems.append(problem)
        for each in problems:
            sentence = f"{each}; the run is passed over, and installing skiplab anew mends it."
            warnings.warn(sentence, DamageFound, stacklevel=2)
        return sorted(found, key=lambda run: run.rank, reverse=True)

    def _home(self, key: str) -> Archive:
        home = self._shelf().homes.get(key)
        if home is None:
            raise Damaged(f"trial {key} is missing in {self.root}")
        return home

    def _shelf(self) -> _Shelf:
        if self._seen is not None:
            return self._seen
        found = []
        for path in sorted(self.root.glob("*/*.zip")):
            now = path.stat() if path.exists() else path.lstat()  # a link to nothing
            found.append((path, now.st_mtime_ns, now.st_size, now.st_ino))
        return _opened(tuple(found))


@dataclass
class _Shelf:
    """All archives as they are now, and which of them holds a trial."""

    archives: dict[str, Archive]
    homes: dict[str, Archive]
    problems: list[Damaged]
    said: bool = False

    def unsaid(self) -> list[Damaged]:
        """The problems, the first time that somebody asks; hundreds of trials may."""
        said, self.said = self.said, True
        return [] if said else self.problems


@functools.lru_cache(maxsize=4)
def _opened(files: tuple[tuple[Path, int, int, int], ...]) -> _Shelf:
    """Read all manifests; again only when a file has changed."""
    shelf = _Shelf({}, {}, [])
    for path, *_ in files:
        try:
            archive = Archive(path)
        except Damaged as problem:
            shelf.problems.append(problem)
            continue
        shelf.archives["/".join((path.parent.name, path.stem))] = archive
        for key in archive.trials:
            shelf.homes.setdefault(key, archive)
    return shelf
