"""Where trials run: here one by one, in a process per core (``processes.py``), or on a Dask cluster (``cluster.py``).

Every trial on a CPU runs on one thread, whatever the executor, so that tables come out bit for bit the same.
Results return to the caller, which alone writes to the store. A worker process that dies takes no other trial with
it: its trial is tried once more when no other runs, and if that fails too it is named and the others are stored.
"""

from __future__ import annotations

import os
import time
import traceback
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skiplab.checks import Refused, SkiplabError, TimeIsUp, near
from skiplab.files import DamageFound, DiskTrouble
from skiplab.reproduction import provenance
from skiplab.reproduction.arithmetic import steady_arithmetic
from skiplab.reproduction.trial import Bench, Call

if TYPE_CHECKING:
    import pandas as pd

EXECUTORS = ("serial", "processes", "dask", "dask://HOST:PORT")
TICK = 0.3  # seconds between two words of a worker on its progress

Tell = Callable[[str, float, str], None]  # key, fraction done, text


@dataclass(frozen=True)
class Job:
    """A call with its key and all a worker elsewhere must know."""

    key: str
    call: Call
    device: str
    checkpoints: Path | None
    deadline: float | None


@dataclass(frozen=True)
class Done:
    """A finished job: its table and record, or the word why there is none."""

    key: str
    table: pd.DataFrame | None
    record: dict[str, Any]
    problem: str = ""
    out_of_time: bool = False
    damage: tuple[str, ...] = ()  # what a worker elsewhere found damaged, one sentence each


def run_job(job: Job, tell: Callable[[float, str], None]) -> Done:
    """Run one trial in an arithmetic of its own; failures come back as words, so that one cannot stop the others."""
    if job.deadline is not None and time.time() > job.deadline:
        return Done(job.key, None, {}, out_of_time=True)
    started = time.monotonic()
    try:
        with steady_arithmetic(job.device):
            table = job.call.trial.function(
                job.call.settings, Bench(job.device, job.checkpoints, job.deadline, tell)
            )
    except TimeIsUp:
        return Done(job.key, None, {}, out_of_time=True)
    except (SkiplabError, DiskTrouble) as error:
        return Done(job.key, None, {}, problem=str(error))
    except Exception:
        return Done(job.key, None, {}, problem=traceback.format_exc())
    record = {
        "key": job.key,
        "trial": job.call.trial.name,
        "version": job.call.trial.version,
        "label": job.call.label,
    } | provenance.describe(job.device, time.monotonic() - started)
    return Done(job.key, table, record)


def run_elsewhere(job: Job, tell: Tell) -> Done:
    """Run one trial in a worker; damage that it found travels back, to be said where the user reads."""
    last = 0.0

    def report(done: float, text: str) -> None:
        nonlocal last
        if time.monotonic() - last > TICK:
            last = time.monotonic()
            tell(job.key, done, text)

    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("default")
        done = run_job(job, report)
    for each in heard:
        if not issubclass(each.category, DamageFound):
            warnings.showwarning(each.message, each.category, each.filename, each.lineno)
    found = tuple(str(each.message) for each in heard if issubclass(each.category, DamageFound))
    return replace(done, damage=found)


def execute(jobs: Sequence[Job], executor: str, tell: Tell) -> Generator[Done, None, None]:
    """Run jobs and yield each as it finishes; ``tell(key, done, text)`` hears of progress.

    Closing the iterator stops what is running.
    """
    check_executor(executor)
    if executor == "serial" or (len(jobs) == 1 and executor == "processes"):
        for job in jobs:
            yield run_job(job, lambda done, text, key=job.key: tell(key, done, text))  # type: ignore[misc]
        return
    if executor == "processes":
        from skiplab.reproduction.processes import in_processes

        finished = in_processes(jobs, min(cores(), len(jobs)), tell)
    else:
        from skiplab.reproduction.cluster import on_dask

        finished = on_dask(jobs, executor, tell)
    with closing(finished):
        for done in finished:
            for sentence in done.damage:
                warnings.warn(sentence, DamageFound, stacklevel=2)
            yield done


def died_twice(job: Job, how: str) -> Done:
    """What is said of a trial whose worker died, and again when no other ran."""
    problem = (
        f"its worker process died twice, the second time with no other beside it ({how}); free some memory or make "
        "the trial smaller with --set, then give the same command again."
    )
    return Done(job.key, None, {}, problem=problem)


def check_executor(executor: str) -> None:
    """Refuse an executor that does not exist, before anything is run."""
    if executor not in EXECUTORS[:-1] and not executor.startswith("dask://"):
        hint = near(executor, EXECUTORS)
        raise Refused(f"executor {executor!r} is unknown; choose one of {', '.join(EXECUTORS)}.{hint}")


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
