"""The store: one folder per finished trial, one folder per study's run; everything written aside, then renamed.

    trials/KEY/{table.parquet, record.json}            a trial's table and provenance
    checkpoints/KEY/                                    where an unfinished training trial goes on
    studies/PAPER/ITEM/RUN/{run.json, figure.png, figure.svg}      drawn when first looked at

A run's name is its scale, with a short hash behind it when settings were overridden. What ships with the package
lies in one archive per study (see ``published.py``) and is read after the local store.

Records and runs carry their own checksum and that of the table beside them. A damaged trial is renamed to
``trials/.damaged-KEY-…`` and computed again; a damaged run is passed over; both are said in one sentence.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skiplab.checks import Refused, printable
from skiplab.files import (
    Damaged,
    DamageFound,
    read_json,
    remove,
    remove_empty,
    set_aside,
    sweep,
    write_folder,
    write_json,
)
from skiplab.reproduction.study import SCALES
from skiplab.reproduction.tables import read_table, write_table
from skiplab.reproduction.validation import check_record, check_run, cleaned
from skiplab.reproduction.verdict import Verdict

if TYPE_CHECKING:
    import pandas as pd

    from skiplab.reproduction.published import Published

PUBLISHED = Path(__file__).parent.parent / "published"
PICTURES = ("figure.svg", "figure.png", "figure.webp")  # lines before pixels
# What a run's folder loses when the study is run again; the rest is a user's. Earlier versions kept tables there.
RUN_FILES = ("run.json", "table.parquet", "table.csv", *PICTURES)
NOT_STORED = ("folder", "published", "picture")  # where a run lies, as opposed to what it says


@dataclass(frozen=True)
class StudyRun:
    """What one run of a study left behind; everything a page or a scoreboard shows, as data."""

    study: str
    scale: str
    name: str
    settings: dict[str, Any]
    deviations: dict[str, dict[str, Any]]  # field -> {"declared": …, "used": …}
    left_out: list[dict[str, str]]  # parts without data or time: {"part": …, "remedy": …}
    trials: list[dict[str, Any]]  # {"key", "trial", "version", "label", "stage", "named_in"}
    verdicts: list[Verdict]
    provenance: dict[str, Any]
    seconds: float
    folder: Path = field(compare=False, default=Path())  # of a published run, its archive
    published: bool = False
    picture: Path | None = field(compare=False, default=None)  # of a published run; may be another study's

    @property
    def rank(self) -> tuple[int, bool, bool, str]:
        """Larger is shown first: larger scale, as declared, local before published, newest."""
        return SCALES.index(self.scale), not self.deviations, not self.published, self.provenance["finished"]

    @property
    def pictures(self) -> list[Path]:
        """The files that show its figure, lines before pixels; none where it left no figure."""
        places = [self.picture] if self.picture else [self.folder / name for name in PICTURES]
        return [place for place in places if place.is_file()]

    @property
    def bitmap(self) -> Path | None:
        """The picture made of pixels, which every viewer and Pillow can open."""
        return next((path for path in self.pictures if path.suffix != ".svg"), None)

    def content(self) -> dict[str, Any]:
        """What run.json holds of it."""
        own = {name: value for name, value in asdict(self).items() if name not in NOT_STORED}
        return own | {"verdicts": [verdict.to_dict() for verdict in self.verdicts]}

    @classmethod
    def of(cls, content: dict[str, Any], where: Path, *, checked: bool = False, **place: Any) -> StudyRun:
        """The run that run.json holds, read from ``where``; raise Damaged where it holds none.

        ``checked`` is what ships with the package, whose checksum holds: it is as our code wrote it.
        """
        # A later version may have written more than we know.
        known = {each.name for each in fields(cls)} - set(NOT_STORED)
        try:
            if not checked:
                content = cleaned(content)
                check_run(content)
            kept = {name: value for name, value in content.items() if name in known}
            kept["verdicts"] = [Verdict.from_dict(each, checked=checked) for each in content["verdicts"]]
            return cls(**kept, **place)
        except (TypeError, ValueError, KeyError, AttributeError, OverflowError, RecursionError) as error:
            reason = str(error).rstrip(".") if isinstance(error, Refused) else type(error).__name__
            raise Damaged(f"{where} is no record of a run ({printable(reason)})") from error

    def stale(self, versions: dict[str, int]) -> bool:
        """Whether a trial behind this run has a newer version by now."""
        return any(versions.get(each["trial"], each["version"]) != each["version"] for each in self.trials)


def default_root() -> Path:
    """Return ``$SKIPLAB_STORE``, else ``./skiplab-results``."""
    return Path(os.environ.get("SKIPLAB_STORE") or "skiplab-results")


class Store:
    """Finished trials and study runs below one folder."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = Path(root) if root else default_root()

    # Trials ---------------------------------------------------------------------------------------------

    def trial_folder(self, key: str) -> Path:
        """Return the folder of a finished trial, whether or not it is there."""
        return self.root / "trials" / key

    def has(self, key: str) -> bool:
        """Whether this trial has finished here."""
        return (self.trial_folder(key) / "record.json").exists()

    def table(self, key: str) -> pd.DataFrame:
        """Read a finished trial's table; raise Damaged where it is not as it was stored."""
        sha256 = self.record(key).get("table_sha256")  # records of earlier versions have none
        return read_table(self.trial_folder(key) / "table.parquet", sha256)

    def sound_table(self, key: str) -> pd.DataFrame | None:
        """Read a finished trial's table, or None where there is none; a damaged trial is set aside and said."""
        folder = self.trial_folder(key)
        if not folder.is_dir():
            return None
        try:
            return self.table(key)
        except Damaged as problem:
            set_aside(folder, problem, "the trial is computed again when a study needs it")
            return None

    def record(self, key: str) -> dict[str, Any]:
        """Read a finished trial's provenance; raise Damaged where it is not as it was stored."""
        place = self.trial_folder(key) / "record.json"
        content = read_json(place)
        try:
            record: dict[str, Any] = cleaned(content)
            check_record(record)
        except (Refused, RecursionError) as error:
            raise Damaged(f"{place} is no record of a trial ({printable(str(error)).rstrip('.')})") from error
        return record

    def commit(self, key: str, table: pd.DataFrame, record: dict[str, Any]) -> None:
        """Store a finished trial at once and drop its checkpoints."""

        def write(folder: Path) -> None:
            sha256 = write_table(table, folder / "table.parquet")
            write_json(folder / "record.json", record | {"table_sha256": sha256}, indent=1, sort_keys=True)

        # Two runs may compute the same trial at the same time: whoever comes first has written it.
        write_folder(self.trial_folder(key), write, replace=False)
        self._drop_checkpoints(key)

    def _drop_checkpoints(self, key: str) -> None:
        """Remove what a trial needed to go on, but for what was found damaged."""
        folder = self.checkpoints(key)
        for path in folder.glob("*"):
            if not path.name.startswith(".damaged-"):
                remove(path)
        remove_empty(folder)

    def checkpoints(self, key: str) -> Path:
        """Return the folder in which a trial in flight keeps what it needs to go on."""
        return self.root / "checkpoints" / key

    def tidy(self) -> None:
        """Remove what killed runs left half-written; what somebody is writing stays."""
        # A run's own folder too: figures are drawn into it when they are first looked at.
        for pattern in (".", "trials", "checkpoints/*", "studies/*/*", "studies/*/*/[!.]*"):
            for folder in self.root.glob(pattern) if pattern != "." else [self.root]:
                if folder.is_dir() and (folder == self.root or not folder.is_symlink()):
                    sweep(folder)

    # Study runs -----------------------------------------------------------------------------------------

    def run_folder(self, study: str, name: str) -> Path:
        """Return the folder of a study's run."""
        return self.root / "studies" / study / name

    def save_run(self, run: StudyRun, write_more: Callable[[Path], None] = lambda folder: None) -> StudyRun:
        """Write a run's folder (run.json and whatever write_more adds) and return the run as stored."""
        target = self.run_folder(run.study, run.name)

        def write(folder: Path) -> None:
            write_json(folder / "run.json", run.content(), indent=1, allow_nan=False)
            write_more(folder)

        write_folder(target, write, ours=RUN_FILES)
        return self.read_run(target)

    def runs(self, study: str | None = None) -> list[StudyRun]:
        """All stored runs, of one study or of every one, best first; a damaged one is said and passed over."""
        return sorted(self._sound_runs(study), key=lambda run: run.rank, reverse=True)

    def _sound_runs(self, wanted: str | None) -> Iterator[StudyRun]:
        for folder in self.run_folders(wanted):
            try:
                yield self.read_run(folder)
            except Damaged as problem:
                sentence = f"{problem}; the run is passed over, and {mending(folder)} mends it."
                warnings.warn(sentence, DamageFound, stacklevel=2)

    def run_folders(self, study: str | None = None) -> list[Path]:
        """The folders of all runs, of one study or of every one."""
        found = sorted((self.root / "studies").glob(f"{study or '*/*'}/*"))
        # A run that was killed while it wrote leaves a folder aside, which begins with a dot.
        return [folder for folder in found if folder.is_dir() and not folder.name.startswith(".")]

    def read_run(self, folder: Path) -> StudyRun:
        """Read the run in a folder; raise Damaged where it is not as it was stored."""
        place = folder / "run.json"
        return StudyRun.of(read_json(place), place, folder=folder)


def mending(folder: Path) -> str:
    """The command that makes the run in a folder again."""
    return f"`skiplab run {'/'.join(folder.parts[-3:-1])} --scale {folder.name.partition('+')[0]}`"


def published() -> Published:
    """Return the results that ship with the package."""
    from skiplab.reproduction.published import Published

    return Published(PUBLISHED)


def runs_at_hand(store: Store, study: str | None = None) -> list[StudyRun]:
    """Local and published runs together, best first: the first of a study is the one to show."""
    found = store.runs(study) + published().runs(study)
    return sorted(found, key=lambda run: run.rank, reverse=True)


def best_runs(store: Store) -> dict[str, StudyRun]:
    """The run to show of every study that has one above smoke scale."""
    best: dict[str, StudyRun] = {}
    for run in runs_at_hand(store):
        if run.scale != "smoke":
            best.setdefault(run.study, run)
    return best
