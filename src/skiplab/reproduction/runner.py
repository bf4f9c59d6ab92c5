"""Running a study: stages of trials, then its table, verdicts and figure.

A trial that is in the store, or published, is not repeated. What finishes is stored at once, so a killed run
goes on where it was.
"""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from skiplab import data
from skiplab.checks import DataMissing, SkiplabError
from skiplab.files import aside_folder, check_writable, move, writing_to
from skiplab.reproduction import provenance
from skiplab.reproduction.arithmetic import steady_arithmetic
from skiplab.reproduction.executor import Job, check_executor, execute
from skiplab.reproduction.results import Part, Results
from skiplab.reproduction.settings import Chosen, choose, settings_of
from skiplab.reproduction.store import Store, StudyRun, published
from skiplab.reproduction.study import Study, stage_name
from skiplab.reproduction.trial import Call, plain

if TYPE_CHECKING:
    import pandas as pd

    from skiplab.reproduction.published import Published
    from skiplab.reproduction.verdict import Verdict


class Watcher:
    """Hears how a run goes on; the command line draws bars from it. The default is silence."""

    def stage(self, study: Study, total: int, known: int) -> None:
        """A stage with so many trials begins, some of them known already."""

    def starting(self, calls: Sequence[Call], device: str) -> None:
        """These trials, which nobody knows yet, are about to run on a device."""

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


class DataInPart(UserWarning):
    """A study runs on fewer images than the set has; the command line prints it as it is."""


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
    _say_what_is_partial(getattr(chosen.settings, "data", ()))
    # Stages, tables and verdicts compute as well. Without torch, which takes long to import, nobody has set anything.
    with steady_arithmetic() if "torch" in sys.modules else contextlib.nullcontext():
        results, named = through_stages(
            study, chosen.settings, data.fingerprint, lambda calls: complete(calls, store, study, options)
        )
        return conclude(study, chosen, results, named, store, options.device, time.monotonic() - started)


def _say_what_is_partial(names: Sequence[str]) -> None:
    for name in names:
        if part := data.part_of(name):
            sentence = f"only a part of {name} is here, {part}; `{data.remedy(name)}` gets the rest."
            warnings.warn(sentence, DataInPart, stacklevel=3)


def through_stages(
    study: Study,
    settings: Any,
    fingerprint: Callable[[str], str],
    tables_of: Callable[[Mapping[str, Call]], Sequence[pd.DataFrame]],
) -> tuple[Results, list[dict[str, Any]]]:
    """Go through a study's stages: its results, and what a run remembers of the trials they named.

    ``fingerprint`` gives a data set's hash, which need not be here; ``tables_of`` gives a stage's tables.
    """
    results, named = Results(settings), []
    for stage in study.stages:
        calls = {call.key(fingerprint): call for call in stage(results)}
        of = stage_name(stage)
        named += [_named(key, call, of) for key, call in calls.items()]
        results = results.and_then(
            [
                Part(call.trial.name, call.stage or of, table, plain(call.settings), of)
                for call, table in zip(calls.values(), tables_of(calls), strict=True)
            ]
        )
    return results, named


def judged_again(study: Study, run: StudyRun) -> list[Verdict]:
    """The verdicts that today's code gives on the published trials of a run; nothing runs and no data are needed."""
    from skiplab.reproduction.verdict import judge

    def known(calls: Mapping[str, Call]) -> list[pd.DataFrame]:
        tables = [table for key in calls if (table := published().sound_table(key)) is not None]
        if len(tables) < len(calls):
            raise Unfinished(len(calls) - len(tables))
        return tables

    results, _ = through_stages(study, settings_of(study, run), run.provenance["data"].__getitem__, known)
    return judge(study, results, run.scale)


def _named(key: str, call: Call, stage: str) -> dict[str, Any]:
    """What a run remembers of a trial that a stage named."""
    own = {"key": key, "trial": call.trial.name, "version": call.trial.version, "label": call.label}
    return own | {"stage": call.stage or stage, "named_in": stage}


def complete(calls: Mapping[str, Call], store: Store, study: Study, options: Options) -> list[pd.DataFrame]:
    """Run those calls that are neither in the store nor published, or damaged there; return all their tables."""
    tables = {key: table for key in calls if (table := table_of(key, store)) is not None}
    missing = {key: call for key, call in calls.items() if key not in tables}
    options.watcher.stage(study, len(calls), len(calls) - len(missing))
    if not missing:
        return list(tables.values())
    options.watcher.starting(list(missing.values()), options.device)
    # A place that cannot be written is better known before the first trial than after it.
    check_writable(store.root)
    store.tidy()
    jobs = [
        Job(key, call, options.device, store.checkpoints(key).resolve(), options.deadline)
        for key, call in missing.items()
    ]
    late, problems = 0, []
    executed = execute(
        jobs,
        options.chosen_executor,
        lambda key, done, text: options.watcher.progress(calls[key].label, done, text),
    )
    with contextlib.closing(executed):  # whatever stops us stops the workers
        for done in executed:
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
    if problems:
        others = f" ({len(problems) - 1} more failed; the rest is stored.)" if len(problems) > 1 else ""
        raise TrialFailed(problems[0] + others)
    if late:
        raise Unfinished(late)
    return [tables[key] for key in calls]


def table_of(key: str, store: Store | Published, shipped: Published | None = None) -> pd.DataFrame | None:
    """Read a finished trial's table, local before published; None where neither has it undamaged."""
    table = store.sound_table(key)
    return (shipped or published()).sound_table(key) if table is None else table


def conclude(
    study: Study,
    chosen: Chosen,
    results: Results,
    trials: list[dict[str, Any]],
    store: Store,
    device: str,
    seconds: float,
) -> StudyRun:
    """Judge a study's claims on its trials' tables, and store the verdicts as a run."""
    from skiplab.reproduction.verdict import judge

    verdicts = judge(study, results, chosen.scale)
    records = [_record_of(key, store) for key in {each["key"] for each in trials}]
    facts = provenance.describe(device, seconds)
    facts["trials_seconds"] = round(sum(record.get("seconds", 0.0) for record in records), 1)
    facts["trials_devices"] = sorted({record.get("device", "unknown") for record in records})
    facts["trials_sources"] = sorted({record.get("source", "unknown") for record in records})
    if chosen.scale == "paper" and chosen.deviations:
        facts["reduction"] = reduction(chosen)
    wanted = getattr(chosen.settings, "data", ())
    facts["data"] = {name: data.fingerprint(name) for name in wanted}
    parts = {name: part for name in wanted if (part := data.part_of(name))}
    if parts:
        facts["data_in_part"] = parts
    run = StudyRun(
        study=study.id,
        scale=chosen.scale,
        name=chosen.name,
        settings=plain(dataclasses.asdict(chosen.settings)),
        deviations=chosen.deviations,
        left_out=chosen.left_out,
        trials=trials,
        verdicts=verdicts,
        provenance=facts,
        seconds=round(seconds, 2),
    )
    return store.save_run(run)


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


def results_of(study: Study, run: StudyRun) -> Results:
    """The results of a stored run, from its trials' tables."""
    shipped = published().as_it_is()
    store = shipped if run.published else Store(run.folder.parents[3])  # root/studies/PAPER/ITEM/RUN
    names = [stage_name(stage) for stage in study.stages]
    parts = []
    for each in run.trials:
        table = _there(table_of(each["key"], store, shipped), study)
        stage = names[each["stage"]] if isinstance(each["stage"], int) else each["stage"]
        settings = _record_of(each["key"], store, shipped).get("settings", {})
        parts.append(Part(each["trial"], stage, table, settings, each.get("named_in", stage)))
    return Results(settings_of(study, run), parts)


def drawn(study: Study, run: StudyRun) -> StudyRun:
    """A run with its figure: drawn from its trials' tables when it is first looked at, then kept beside the run."""
    if run.pictures or run.published:
        return run
    from skiplab.figures import style

    figure = study.figure(results_of(study, run))
    with writing_to(run.folder), aside_folder(run.folder) as aside:
        style.save(figure, aside)
        for picture in sorted(aside.iterdir()):
            move(picture, run.folder / picture.name)
    return run


def study_table(study: Study, run: StudyRun) -> pd.DataFrame:
    """All rows behind a stored run, each with its trial and stage."""
    return results_of(study, run).frame


def _there(table: pd.DataFrame | None, study: Study) -> pd.DataFrame:
    if table is None:
        raise TableLost(
            f"the table of {study.id} cannot be read; make it again with `skiplab run {study.id}`."
        )
    return table


def _record_of(key: str, store: Store | Published, shipped: Published | None = None) -> dict[str, Any]:
    return store.record(key) if store.has(key) else (shipped or published()).record(key)


def can_run(study: Study, scale: str, overrides: Mapping[str, Any]) -> DataMissing | None:
    """The reason why a study has to be left out on this machine, or None."""
    try:
        choose(study, scale, overrides)
    except DataMissing as reason:
        return reason
    return None
