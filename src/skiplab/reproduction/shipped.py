"""One published archive: a plain zip with a study's run, and the trials that it is the first study to name.

    manifest.json                  the SHA-256 of all other members and of the picture; which holds which trial
    run.json                       the run, as a store has it
    figure.svg                     its figure as lines
    records.json                   the provenance of each trial, by key
    tables/PAPER/TRIAL.parquet     the tables of one trial's name (see ``table_groups.py``)

The same content gives the same bytes: members have a fixed date and order. A member is compared with its hash when it
is first read by a process.
"""

from __future__ import annotations

import functools
import hashlib
import io
import os
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skiplab.files import Damaged, kind_of, sealed_json, unsealed_json
from skiplab.reproduction.store import StudyRun

if TYPE_CHECKING:
    import pandas as pd

    from skiplab.reproduction.table_groups import Group

FORM = 1
MANIFEST, RUN, RECORDS, DRAWING = "manifest.json", "run.json", "records.json", "figure.svg"
DATE = (1980, 1, 1, 0, 0, 0)  # the first that a zip can have
BAD = (
    zipfile.BadZipFile,
    zlib.error,
    OSError,
    EOFError,
    KeyError,
    ValueError,
    NotImplementedError,
    RuntimeError,
)


@dataclass(frozen=True)
class Picture:
    """A published figure: whose it is (an alias shows that of another study), and its hash."""

    study: str
    sha256: str


# Writing ----------------------------------------------------------------------------------------------------


def archive_bytes(
    run: Mapping[str, Any],
    picture: Picture,
    records: Mapping[str, Mapping[str, Any]],
    tables: Mapping[str, Mapping[str, pd.DataFrame]],
    drawing: bytes = b"",
) -> bytes:
    """Make an archive of a run and its figure as SVG, and of records by key and tables by trial and key."""
    members = {RUN: _json(run), RECORDS: _json(records)} | ({DRAWING: drawing} if drawing else {})
    homes: dict[str, str] = {}
    for trial in sorted(tables):
        for name, (keys, content) in _grouped(trial, tables[trial]).items():
            members[name] = content
            homes |= dict.fromkeys(keys, name)
    manifest = {
        "form": FORM,
        "picture": {"study": picture.study, "sha256": picture.sha256},
        "sha256 of members": {name: hashlib.sha256(each).hexdigest() for name, each in members.items()},
        "trials": homes,
    }
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as target:
        for name, content in ({MANIFEST: _json(manifest)} | members).items():
            info = zipfile.ZipInfo(name, DATE)
            info.create_system, info.external_attr = 3, 0o644 << 16  # the same on every system
            # Parquet is compressed already.
            kind = zipfile.ZIP_DEFLATED if name.endswith((".json", ".svg")) else zipfile.ZIP_STORED
            target.writestr(info, content, kind, 9)
    return file.getvalue()


def _grouped(trial: str, tables: Mapping[str, pd.DataFrame]) -> dict[str, tuple[list[str], bytes]]:
    """One file for each schema that the tables of a trial have: the keys in it, and its bytes."""
    from skiplab.reproduction.table_groups import group_bytes, schema_of

    groups: dict[Any, dict[str, pd.DataFrame]] = {}
    for key, table in tables.items():
        groups.setdefault(schema_of(table), {})[key] = table
    ends = ("", *(f"-{number}" for number in range(2, len(groups) + 1)))
    return {
        f"tables/{trial}{end}.parquet": (list(group), group_bytes(group))
        for end, group in zip(ends, groups.values(), strict=True)
    }


def _json(content: Mapping[str, Any]) -> bytes:
    return sealed_json(dict(content), separators=(",", ":"), ensure_ascii=False, allow_nan=False)


# Reading ----------------------------------------------------------------------------------------------------


class Archive:
    """An archive on disk; whatever is not as it was written raises Damaged."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._checked: set[str] = set()
        content = unsealed_json(self._bytes(MANIFEST), f"{MANIFEST} in {path}", sealed=True)
        if content.get("form") != FORM:
            raise Damaged(f"{path} has form {content.get('form')!r}, but this skiplab reads {FORM}")
        try:
            self.sha256: dict[str, str] = content["sha256 of members"]
            self.trials: dict[str, str] = content["trials"]
            self.picture = Picture(**content["picture"])
        except (KeyError, TypeError) as error:
            raise Damaged(f"{MANIFEST} in {path} lacks something ({type(error).__name__})") from error

    @functools.cached_property
    def run(self) -> StudyRun:
        """The study's run."""
        root = self.path.parents[1]
        place = {"folder": self.path, "published": True, "picture": root / f"{self.picture.study}.webp"}
        return StudyRun.of(self._json(RUN), self.path, checked=True, **place)

    @functools.cached_property
    def records(self) -> dict[str, dict[str, Any]]:
        """The provenance of the trials in it, by key."""
        return self._json(RECORDS)

    @property
    def drawing(self) -> bytes:
        """The run's figure as SVG; empty where the archive has none."""
        return self.read(DRAWING) if DRAWING in self.sha256 else b""

    def table(self, key: str) -> pd.DataFrame:
        """The table of a trial in it."""
        return _group(self, self.trials[key]).table(key)

    def read(self, member: str) -> bytes:
        """The bytes of a member, compared with the manifest when they are first read."""
        content = self._bytes(member)
        if member not in self._checked:
            if hashlib.sha256(content).hexdigest() != self.sha256.get(member):
                raise Damaged(f"{member} in {self.path} fails its checksum")
            self._checked.add(member)
        return content

    def _json(self, member: str) -> dict[str, Any]:
        return unsealed_json(self.read(member), f"{member} in {self.path}")

    def _bytes(self, member: str) -> bytes:
        if os.path.lexists(self.path) and not self.path.is_file():  # a FIFO would keep us waiting
            raise Damaged(f"{self.path} is {kind_of(self.path)}, not an archive")
        try:
            with zipfile.ZipFile(self.path) as source:
                return source.read(member)
        except PermissionError:
            raise  # the file may be whole, and the user can mend this
        except BAD as error:
            raise Damaged(f"{member} in {self.path} cannot be read ({type(error).__name__})") from error


@functools.lru_cache(maxsize=8)
def _group(archive: Archive, member: str) -> Group:
    """The tables of a member; a study reads those of all its trials, so the last few stay in memory."""
    from skiplab.reproduction.table_groups import Group

    return Group(archive.read(member), f"{member} in {archive.path}")
