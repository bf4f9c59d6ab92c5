"""The store: one folder a finished trial, one folder a study's run; everything written aside, then renamed.

    trials/KEY/{table.parquet, record.json}            a trial's table and provenance
    checkpoints/KEY/                                    where an unfinished training trial goes on
    studies/PAPER/ITEM/RUN/{run.json, table.parquet, figure.png, figure.svg}

A run's name is its scale, with a short hash behind it when settings were overridden. ``published/`` inside the
package has the same layout, smaller (run.json.gz, figure.webp, no table), and is read after the local store.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skiplab.reproduction.study import SCALES
from skiplab.reproduction.tables import read_table, write_table

if TYPE_CHECKING:
    import pandas as pd

PUBLISHED = Path(__file__).parent.parent / "published"
# A run draws the first two; publishing makes the last from the second and keeps it alone.
PICTURES = ("figure.svg", "figure.png", "figure.webp")


@dataclass(frozen=True)
class StudyRun:
    """What one run of a study left behind; everything a page or a scoreboard shows, as plain data."""

    study: str
    scale: str
    name: str
    settings: dict[str, Any]
    deviations: dict[str, dict[str, Any]]  # field -> {"declared": …, "used": …}
    left_out: list[dict[str, str]]  # parts without data or time: {"part": …, "remedy": …}
    trials: list[dict[str, Any]]  # {"key", "trial", "version", "label"}
    verdicts: list[dict[str, Any]]
    provenance: dict[str, Any]
    seconds: float
    folder: Path = field(compare=False, default=Path())
    published: bool = False

    @property
    def rank(self) -> tuple[int, bool, bool, str]:
        """Larger is shown first: larger scale, as declared, local before published, newest."""
        return SCALES.index(self.scale), not self.deviations, not self.published, self.provenance["finished"]

    @property
    def pictures(self) -> list[Path]:
        """The files that show its figure, lines before pixels; none where it left no figure."""
        return [self.folder / name for name in PICTURES if (self.folder / name).is_file()]

    @property
    def bitmap(self) -> Path | None:
        """The picture made of pixels, which every viewer and Pillow can open."""
        return next((path for path in self.pictures if path.suffix != ".svg"), None)

    def stale(self, versions: dict[str, int]) -> bool:
        """Whether a trial behind this run has a newer version by now."""
        return any(versions.get(each["trial"], each["version"]) != each["version"] for each in self.trials)


def default_root() -> Path:
    """Return ``$SKIPLAB_STORE``, else ``./skiplab-results``."""
    return Path(os.environ.get("SKIPLAB_STORE") or "skiplab-results")


class Store:
    """Finished trials and study runs below one folder."""

    def __init__(self, root: Path | None = None, *, published: bool = False) -> None:
        self.root = Path(root) if root else default_root()
        self.is_published = published

    # Trials ---------------------------------------------------------------------------------------------

    def trial_folder(self, key: str) -> Path:
        """Return the folder of a finished trial, whether or not it is there."""
        return self.root / "trials" / key

    def has(self, key: str) -> bool:
        """Whether this trial has finished here."""
        return any((self.trial_folder(key) / name).exists() for name in ("record.json", "record.json.gz"))

    def table(self, key: str) -> pd.DataFrame:
        """Read a finished trial's table."""
        return read_table(self.trial_folder(key) / "table.parquet")

    def record(self, key: str) -> dict[str, Any]:
        """Read a finished trial's provenance."""
        return read_json(self.trial_folder(key) / "record.json")

    def commit(self, key: str, table: pd.DataFrame, record: dict[str, Any]) -> None:
        """Store a finished trial at once and drop its checkpoints."""

        def write(folder: Path) -> None:
            write_table(table, folder / "table.parquet")
            (folder / "record.json").write_text(json.dumps(record, indent=1, sort_keys=True))

        write_folder(self.trial_folder(key), write)
        shutil.rmtree(self.checkpoints(key), ignore_errors=True)

    def checkpoints(self, key: str) -> Path:
        """Return the folder in which a trial in flight keeps what it needs to go on."""
        return self.root / "checkpoints" / key

    # Study runs -----------------------------------------------------------------------------------------

    def run_folder(self, study: str, name: str) -> Path:
        """Return the folder of a study's run."""
        return self.root / "studies" / study / name

    def save_run(self, run: StudyRun, write_more: Callable[[Path], None] = lambda folder: None) -> StudyRun:
        """Write a run's folder (run.json and whatever write_more adds) and return the run as stored."""
        target = self.run_folder(run.study, run.name)
        content = {key: value for key, value in asdict(run).items() if key not in ("folder", "published")}

        def write(folder: Path) -> None:
            (folder / "run.json").write_text(json.dumps(content, indent=1, allow_nan=False))
            write_more(folder)

        write_folder(target, write)
        return self._read_run(target / "run.json")

    def runs(self, study: str | None = None) -> list[StudyRun]:
        """All stored runs, of one study or of every one, best first."""
        return sorted(self._runs(study or "*/*"), key=lambda run: run.rank, reverse=True)

    def _runs(self, pattern: str) -> Iterator[StudyRun]:
        for path in sorted((self.root / "studies").glob(f"{pattern}/*/run.json*")):
            # A run that was killed while it wrote leaves a folder aside, which begins with a dot.
            if not path.parent.name.startswith("."):
                yield self._read_run(path.parent / "run.json")

    def _read_run(self, path: Path) -> StudyRun:
        content = read_json(path)
        return StudyRun(**content, folder=path.parent, published=self.is_published)


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON file, or the compressed one that ships in its place."""
    packed = path.with_name(path.name + ".gz")
    text = path.read_bytes() if path.exists() else gzip.decompress(packed.read_bytes())
    found: dict[str, Any] = json.loads(text)
    return found


def published() -> Store:
    """Return the store of results that ship with the package."""
    return Store(PUBLISHED, published=True)


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


def write_folder(target: Path, write: Callable[[Path], None]) -> None:
    """Write a folder aside and rename it into place, so that it is there whole or not at all.

    Of two processes that write the same folder at the same moment, the one that came first stays.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=".aside-", dir=target.parent))
    try:
        write(aside)
        aside.chmod(0o755)
        if target.exists():
            old = Path(tempfile.mkdtemp(prefix=".old-", dir=target.parent))
            os.rename(target, old / "was")
            os.rename(aside, target)
            shutil.rmtree(old, ignore_errors=True)
        else:
            try:
                os.rename(aside, target)
            except OSError:
                if not target.exists():
                    raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)
