"""Where trials run: here one by one, in one process a core, or on a Dask cluster.

Every trial on a CPU runs on one thread, whatever the executor, so that tables come out bit for bit the same.
Results return to the caller, which alone writes to the store.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skiplab import data
from skiplab.checks import Refused, SkiplabError, TimeIsUp, near
from skiplab.files import DamageFound
from skiplab.reproduction import provenance
from skiplab.reproduction.arithmetic import steady_arithmetic
from skiplab.reproduction.trial import Bench, Call

if TYPE_CHECKING:
    import pandas as pd

EXECUTORS = ("serial", "processes", "dask", "dask://HOST:PORT")
# How often a worker writes its progress, and the caller looks.
TICK = 0.3


@dataclass(frozen=True)
class Job:
    """A call with its key and all a worker elsewhere must know."""

    key: str
    call: Call
    device: str
    checkpoints: Path | None
    deadline: float | None
    progress: Path | None


@dataclass(frozen=True)
class Done:
    """A finished job: its table and record, or the word why there is none."""

    key: str
    table: pd.DataFrame | None
    record: dict[str, Any]
    problem: str = ""
    out_of_time: bool = False
    damage: tuple[str, ...] = ()  # what a worker elsewhere found damaged, one sentence each


def run_job(job: Job, tell: Callable[[float, str], None] | None = None) -> Done:
    """Run one trial in an arithmetic of its own; failures come back as words, so that one cannot stop the others."""
    last = 0.0

    def report(done: float, text: str) -> None:
        nonlocal last
        if tell is not None:
            tell(done, text)
        elif job.progress is not None and time.monotonic() - last > TICK:
            last = time.monotonic()
            # Progress is a courtesy: losing the folder must not lose the trial.
            with contextlib.suppress(OSError):
                job.progress.write_text(f"{done:.4f} {text}")

    if job.deadline is not None and time.time() > job.deadline:
        return Done(job.key, None, {}, out_of_time=True)
    started = time.monotonic()
    try:
        with steady_arithmetic(job.device):
            bench = Bench(job.device, job.checkpoints, job.deadline, report)
            table = job.call.trial.function(job.call.settings, bench)
    except TimeIsUp:
        return Done(job.key, None, {}, out_of_time=True)
    except SkiplabError as error:
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


def execute(jobs: Sequence[Job], executor: str, tell: Callable[[str, float, str], None]) -> Iterator[Done]:
    """Run jobs and yield each as it finishes; ``tell(key, done, text)`` hears of progress."""
    check_executor(executor)
    if executor == "serial" or (len(jobs) == 1 and executor == "processes"):
        for job in jobs:
            yield run_job(job, lambda done, text, key=job.key: tell(key, done, text))  # type: ignore[misc]
    elif executor == "processes":
        workers = min(cores(), len(jobs))
        with _watching(jobs, tell):
            yield from _parallel(jobs, {"backend": "loky", "n_jobs": workers, "inner_max_num_threads": 1})
    else:
        with _dask_client(executor, jobs), _watching(jobs, tell):
            yield from _parallel(jobs, {"backend": "dask", "n_jobs": -1})


def check_executor(executor: str) -> None:
    """Refuse an executor that does not exist, before anything is run."""
    if executor not in EXECUTORS[:-1] and not executor.startswith("dask://"):
        hint = near(executor, EXECUTORS)
        raise Refused(f"executor {executor!r} is unknown; choose one of {', '.join(EXECUTORS)}.{hint}")


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _parallel(jobs: Sequence[Job], config: dict[str, Any]) -> Iterator[Done]:
    import joblib

    with joblib.parallel_config(**config), warnings.catch_warnings():
        # Said when Ctrl-C cancels what is in flight, which is what was asked for.
        warnings.filterwarnings("ignore", message=".*tasks .* by the workers have been cancelled")
        warnings.filterwarnings("ignore", message=".*tasks have been successfully executed")
        # loky replaces a worker whose memory has grown, between two trials; none is lost.
        warnings.filterwarnings("ignore", message="A worker stopped while some jobs were given")
        parallel = joblib.Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch="2 * n_jobs")
        for done in parallel(joblib.delayed(_run_elsewhere)(job) for job in jobs):
            for sentence in done.damage:
                warnings.warn(sentence, DamageFound, stacklevel=2)
            yield done


def _run_elsewhere(job: Job) -> Done:
    """Run one trial in a worker; damage that it found travels back, to be said where the user reads."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("default")
        done = run_job(job)
    for each in heard:
        if not issubclass(each.category, DamageFound):
            warnings.showwarning(each.message, each.category, each.filename, each.lineno)
    found = tuple(str(each.message) for each in heard if issubclass(each.category, DamageFound))
    return replace(done, damage=found)


@contextlib.contextmanager
def _watching(jobs: Sequence[Job], tell: Callable[[str, float, str], None]) -> Iterator[None]:
    """Pass on what workers write into their progress files."""
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(TICK):
            for job in jobs:
                with contextlib.suppress(OSError, ValueError):
                    assert job.progress is not None
                    done, _, text = job.progress.read_text().partition(" ")
                    tell(job.key, float(done), text)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextlib.contextmanager
def _dask_client(executor: str, jobs: Sequence[Job]) -> Iterator[None]:
    """Start a local cluster, or join one after checking that its workers have skiplab and the data."""
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise Refused("executor 'dask' needs dask; install it with `pip install 'skiplab[dask]'`.") from None
    with contextlib.ExitStack() as stack:
        if executor == "dask":
            options: dict[str, Any] = {"processes": True, "threads_per_worker": 1, "dashboard_address": None}
            cluster = stack.enter_context(LocalCluster(n_workers=cores(), **options))
            client = stack.enter_context(Client(cluster))
        else:
            address = executor.replace("dask://", "tcp://")
            try:
                client = stack.enter_context(Client(address, timeout=10))
            except (OSError, ValueError):
                raise Refused(f"no Dask scheduler answers at {address}; start one or use dask.") from None
        # A worker without the package would hang the run: ask before anything is sent.
        names = sorted({job.call.settings.data for job in jobs if getattr(job.call.settings, "data", None)})
        answers = client.run(what_is_here, names, on_error="return")
        if not answers:
            raise Refused(f"the Dask cluster at {executor} has no workers; start some and try again.")
        check_workers(answers, what_is_here(names))
        yield


def check_workers(answers: Mapping[str, Any], here: Mapping[str, Any]) -> None:
    """Refuse a cluster unless every worker has our skiplab and our data; an answer may be an exception."""
    for worker, answer in answers.items():
        # The question itself is a function of skiplab, so a worker without the package cannot even read it.
        if isinstance(answer, BaseException) or answer["source"] != here["source"]:
            word = "no" if isinstance(answer, BaseException) else "another"
            raise Refused(f"Dask worker {worker} has {word} skiplab; install this version there first.")
        for name, fingerprint in here["data"].items():
            if answer["data"][name] != fingerprint:
                remedy = data.remedy(name)
                raise Refused(f"Dask worker {worker} has not our {name}; run `{remedy}` there first.")


def what_is_here(names: Sequence[str]) -> dict[str, Any]:
    """The source hash and data fingerprints on the machine that runs this."""
    fingerprints = {name: data.fingerprint(name) if data.is_available(name) else None for name in names}
    return {"source": provenance.source_hash(), "data": fingerprints}
