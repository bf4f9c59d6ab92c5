"""Running a study: stages of trials, then its table, verdicts and figure.

A trial that is in the store, or published, is not repeated. What finishes is stored at once, so a killed run
goes on where it was.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import sys
import tempfile
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skiplab import data
from skiplab.checks import DataMissing, SkiplabError
from skiplab.files import Damaged, DamageFound, remove, write_bytes
from skiplab.reproduction import provenance
from skiplab.reproduction.arithmetic import steady_arithmetic
from skiplab.reproduction.executor import Job, check_executor, execute
from skiplab.reproduction.settings import Chosen, choose, settings_of
from skiplab.reproduction.store import Store, StudyRun, published
from skiplab.reproduction.study import Study
from skiplab.reproduction.tables import read_table, table_bytes
from skiplab.reproduction.trial import Call, plain

if TYPE_CHECKING:
    import pandas as pd


class Watcher:
    """Hears how a run goes on; the command line draws bars from it. The default is silence."""

    def stage(self, study: Study, total: int, known: int) -> None:
        """A stage with so many trials begins, some of them known already."""

    def progress(self, label: str, done: float, text: str) -> None:
        """A trial in flight has come so far."""

    def finished(self, label: str, seconds: float) -> None:
        """A trial is stored."""


@dataclasses.dataclass(frozen=True)
class Options:
    """How to run, as opposed to what: none of these changes a number's meaning."""

    device: str = "cpu"
    executor: str = ""  # default: processes on a CPU, serial on a GPU
    deadline: float | None = None
    watcher: Watcher = dataclasses.field(default_factory=Watcher)

    @property
    def chosen_executor(self) -> str:
        """The executor asked for, or the one that fits the device."""
        return self.executor or ("processes" if self.device == "cpu" else "serial")


class Unfinished(Exception):
    """The time limit came before all trials were done."""

    def __init__(self, left: int) -> None:
        super().__init__(f"{left} trial(s) did not finish within the time limit")
        self.left = left


class TrialFailed(SkiplabError):
    """A trial raised; the others went on and are stored."""


class TableLost(SkiplabError):
    """A run's table is damaged, and so are trials from which it could be made again."""


def run_study(
    study: Study,
    store: Store,
    *,
    scale: str = "quick",
    overrides: Mapping[str, Any] | None = None,
    options: Options | None = None,
) -> StudyRun:
    """Run whatever is missing of a study at a scale and judge its claims."""
    options = options or Options()
    check_executor(options.chosen_executor)
    chosen = choose(study, scale, overrides or {})
    started = time.monotonic()
    tables: list[pd.DataFrame] = []
    named: list[dict[str, Call]] = []
    # Stages, tables and verdicts compute as well. Without torch, which takes long to import, nobody has set anything.
    with steady_arithmetic() if "torch" in sys.modules else contextlib.nullcontext():
        for stage in study.stages:
            calls = {call.key(data.fingerprint): call for call in stage(chosen.settings, tables)}
            named.append(calls)
            tables.append(_joined(complete(calls, store, study, options)))
        return conclude(study, chosen, tables, named, store, options.device, time.monotonic() - started)


def complete(calls: Mapping[str, Call], store: Store, study: Study, options: Options) -> list[pd.DataFrame]:
    """Run those calls that are neither in the store nor published, or damaged there; return all their tables."""
    tables = {key: table for key in calls if (table := table_of(key, store)) is not None}
    missing = {key: call for key, call in calls.items() if key not in tables}
    options.watcher.stage(study, len(calls), len(calls) - len(missing))
    if not missing:
        return list(tables.values())
    # A place that cannot be written is better known before the first trial than after it.
    store.root.mkdir(parents=True, exist_ok=True)
    progress = Path(tempfile.mkdtemp(prefix="skiplab-progress-"))
    jobs = [
        Job(key, call, options.device, store.checkpoints(key).resolve(), options.deadline, progress / key)
        for key, call in missing.items()
    ]

    flying = set(missing)

    def tell(key: str, done: float, text: str) -> None:
        # The last word of a finished trial stays in its progress file and would be heard again and again.
        if key in flying:
            options.watcher.progress(calls[key].label, done, text)

    late, problems = 0, []
    try:
        for done in execute(jobs, options.chosen_executor, tell):
            flying.discard(done.key)
            if done.out_of_time:
                late += 1
            elif done.table is None:
                problems.append(f"trial '{calls[done.key].label}' failed: {done.problem}")
            else:
                record = done.record | {"settings": plain(calls[done.key].settings)}
                store.commit(done.key, done.table, record)
                # As it is stored: types come back from disk a little different.
                tables[done.key] = store.table(done.key)
                options.watcher.finished(calls[done.key].label, done.record["seconds"])
    finally:
        remove(progress)
    if problems:
        others = f" ({len(problems) - 1} more failed; the rest is stored.)" if len(problems) > 1 else ""
        raise TrialFailed(problems[0] + others)
    if late:
        raise Unfinished(late)
    return [tables[key] for key in calls]


def table_of(key: str, store: Store) -> pd.DataFrame | None:
    """Read a finished trial's table, local before published; None where neither has it undamaged."""
    table = store.sound_table(key)
    return published().sound_table(key) if table is None else table


def conclude(
    study: Study,
    chosen: Chosen,
    tables: Sequence[pd.DataFrame],
    stages: Sequence[Mapping[str, Call]],
    store: Store,
    device: str,
    seconds: float,
) -> StudyRun:
    """Make the study's table, verdicts and figure from its trials' tables, and store them as a run."""
    from skiplab.figures import style
    from skiplab.reproduction.verdict import judge

    table = study.table(chosen.settings, tables)
    content = table_bytes(table)
    verdicts = judge(study, table, chosen.settings, chosen.scale)
    records = [_record_of(key, store) for key in {key for calls in stages for key in calls}]
    facts = provenance.describe(device, seconds)
    facts["trials_seconds"] = round(sum(record["seconds"] for record in records), 1)
    facts["trials_devices"] = sorted({record["device"] for record in records})
    facts["trials_sources"] = sorted({record["source"] for record in records})
    if chosen.scale == "paper" and chosen.deviations:
        facts["reduction"] = reduction(chosen)
    wanted = getattr(chosen.settings, "data", ())
    facts["data"] = {name: data.fingerprint(name) for name in wanted}
    run = StudyRun(
        study=study.id,
        scale=chosen.scale,
        name=chosen.name,
        settings=plain(dataclasses.asdict(chosen.settings)),
        deviations=chosen.deviations,
        left_out=chosen.left_out,
        trials=[
            {
                "key": key,
                "trial": call.trial.name,
                "version": call.trial.version,
                "label": call.label,
                "stage": number,
            }
            for number, calls in enumerate(stages)
            for key, call in calls.items()
        ],
        verdicts=verdicts,
        provenance=facts,
        seconds=round(seconds, 2),
        table_sha256=hashlib.sha256(content).hexdigest(),
    )

    def write_more(folder: Path) -> None:
        write_bytes(folder / "table.parquet", content)
        style.save(study.figure(table, chosen.settings), folder)

    return store.save_run(run, write_more)


def reduction(chosen: Chosen) -> str:
    """Say in a sentence how a paper-scale run differs from the declared one."""
    changes = [
        f"{key} {_brief(change['used'])} instead of {_brief(change['declared'])}"
        for key, change in chosen.deviations.items()
    ]
    return f"Changed from the declared paper scale: {'; '.join(changes)}."


def _brief(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_brief(part) for part in value)
    return "all" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def study_table(study: Study, run: StudyRun) -> pd.DataFrame:
    """The table of a stored run, made again from its trials where it is damaged or was not kept (published runs)."""
    path = run.folder / "table.parquet"
    if path.exists():
        try:
            return read_table(path, run.table_sha256)
        except Damaged as problem:
            warnings.warn(f"{problem}; it is made again from its trials.", DamageFound, stacklevel=2)
    store = Store(run.folder.parents[3], published=run.published)  # root/studies/PAPER/ITEM/RUN
    found = {each["key"]: table_of(each["key"], store) for each in run.trials}
    tables = [
        _joined([_there(found[each["key"]], study) for each in run.trials if each["stage"] == number])
        for number in range(len(study.stages))
    ]
    return study.table(settings_of(study, run), tables)


def _there(table: pd.DataFrame | None, study: Study) -> pd.DataFrame:
    if table is None:
        raise TableLost(
            f"the table of {study.id} cannot be read; make it again with `skiplab run {study.id}`."
        )
    return table


def _record_of(key: str, store: Store) -> dict[str, Any]:
    return store.record(key) if store.has(key) else published().record(key)


def _joined(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    import pandas as pd

    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def can_run(study: Study, scale: str, overrides: Mapping[str, Any]) -> DataMissing | None:
    """The reason why a study has to be left out on this machine, or None."""
    try:
        choose(study, scale, overrides)
    except DataMissing as reason:
        return reason
    return None
