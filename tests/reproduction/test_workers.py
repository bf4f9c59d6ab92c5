"""Worker processes, done for real: killed ones cost one retry, and none outlives the run that started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import counted_studies
import pandas as pd
import pytest
from counted_studies import COUNT, Draw, counts, draw, hoard, resident_mb

from skiplab.reproduction import processes
from skiplab.reproduction.executor import Job, execute
from skiplab.reproduction.runner import Options, TrialFailed, run_study
from skiplab.reproduction.store import Store

PROCESSES = Options(executor="processes")


def jobs_of(count: int) -> list[Job]:
    return [Job(f"key-{seed}", draw.of(Draw(seed)), "cpu", None, None) for seed in range(count)]


def silent(key: str, done: float, text: str) -> None:
    """Hear nothing."""


def descendants(pid: int) -> set[int]:
    """All processes below one, by /proc; those that have ended do not count."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        if fields[0] not in "ZX":
            parents[int(stat.parent.name)] = int(fields[1])
    found, new = set(), {pid}
    while new:
        new = {child for child, parent in parents.items() if parent in new} - found
        found |= new
    return found


def alive(pids: set[int]) -> set[int]:
    return {pid for pid in pids if Path(f"/proc/{pid}").exists() and _state(pid) not in "ZX"}


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def gone_within(pids: set[int], seconds: float) -> set[int]:
    """Wait until processes have ended; return those that have not."""
    end = time.monotonic() + seconds
    while alive(pids) and time.monotonic() < end:
        time.sleep(0.02)
    return alive(pids)


# Workers that die -------------------------------------------------------------------------------------------


def test_a_worker_that_dies_once_costs_one_retry(
    store: Store, marks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run_study(COUNT, Store(tmp_path / "other"), options=Options(executor="serial"))
    for mark in marks.iterdir():
        mark.unlink()
    monkeypatch.setenv("COUNTED_DYING_ONCE", "2,4")
    run = run_study(COUNT, store, options=PROCESSES)
    assert counts(marks) == {0: 1, 1: 1, 2: 2, 3: 1, 4: 2, 5: 1}
    assert run.verdicts == whole.verdicts


def test_a_trial_that_kills_its_worker_twice_is_named_and_the_others_are_stored(
    store: Store, marks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COUNTED_DYING", "3")
    said = (
        r"^trial 'seed 3' failed: its worker process died twice, the second time with no other beside it "
        r"\(SIGKILL, as when memory runs out\); free some memory .* then give the same command again\.$"
    )
    with pytest.raises(TrialFailed, match=said):
        run_study(COUNT, store, options=PROCESSES)
    assert counts(marks) == {0: 1, 1: 1, 2: 1, 3: 2, 4: 1, 5: 1}
    assert len(list((store.root / "trials").iterdir())) == 5
    monkeypatch.delenv("COUNTED_DYING")
    run_study(COUNT, store, options=PROCESSES)
    assert counts(marks) == {0: 1, 1: 1, 2: 1, 3: 3, 4: 1, 5: 1}


@pytest.mark.slow
def test_the_retry_runs_when_no_other_does(marks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COUNTED_DYING_ONCE", "0")
    assert [done.key for done in execute(jobs_of(4), "processes", silent)][-1] == "key-0"
    assert max(marks.iterdir(), key=lambda mark: mark.stat().st_mtime_ns).name.startswith("0-")


@pytest.mark.slow
def test_workers_are_kept_for_the_next_stage_and_replaced_when_dead(
    marks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    list(execute(jobs_of(2), "processes", silent))
    kept = {worker.process.pid for worker in processes._idle}
    list(execute(jobs_of(2), "processes", silent))
    assert {worker.process.pid for worker in processes._idle} == kept
    for pid in kept:
        os.kill(pid, signal.SIGKILL)
    assert len(list(execute(jobs_of(2), "processes", silent))) == 2
    assert counts(marks) == {0: 3, 1: 3}
    processes.dismiss()
    assert gone_within(kept, 5) == set()


@pytest.mark.slow
def test_a_job_that_a_worker_cannot_read_is_a_problem_of_its_own(
    marks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = processes.pickle.dumps
    monkeypatch.setattr(
        processes.pickle, "dumps", lambda job: b"no pickle" if job.key == "key-1" else real(job)
    )
    done = {each.key: each for each in execute(jobs_of(3), "processes", silent)}
    assert "UnpicklingError" in done["key-1"].problem
    assert isinstance(done["key-0"].table, pd.DataFrame)
    assert isinstance(done["key-2"].table, pd.DataFrame)


@pytest.mark.slow
def test_giving_up_the_results_ends_the_workers(marks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COUNTED_SECONDS", "60")
    before = descendants(os.getpid())
    started: set[int] = set()

    def stop(key: str, done: float, text: str) -> None:
        started.update(descendants(os.getpid()) - before)
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        list(execute(jobs_of(2), "processes", stop))
    assert started
    assert gone_within(descendants(os.getpid()) - before, 5) == set()


# Memory -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_worker_gives_back_what_a_trial_has_freed_and_grows_with_none(marks: Path) -> None:
    """Read when the next trial has begun: a worker answers first and tidies up then."""
    jobs = [Job("hoard", hoard.of(Draw(0)), "cpu", None, None), *jobs_of(120)]
    processes.dismiss()
    before = descendants(os.getpid())
    memory: dict[str, float] = {}
    for done in processes.in_processes(jobs, 1, silent):
        (worker,) = descendants(os.getpid()) - before
        memory[done.key] = resident_mb(worker) if done.key != "hoard" else float(done.table["mb"].iloc[0])
    assert memory["hoard"] - memory["key-1"] > 300
    assert abs(memory["key-119"] - memory["key-10"]) < 20


# Parents that die -------------------------------------------------------------------------------------------

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(store: Store, marks: Path, tmp_path: Path) -> Start:
    """Start skiplab's command line with the counted studies, in a process of its own."""

    def begin(*words: str, seconds: float = 0.0) -> subprocess.Popen[str]:
        environment = os.environ | {"SKIPLAB_STORE": str(store.root), "COUNTED_SECONDS": str(seconds)}
        return subprocess.Popen(
            [sys.executable, counted_studies.__file__, *words], env=environment, cwd=tmp_path, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    return begin


def wait_for(marks: Path, count: int, process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 60
    while len(list(marks.iterdir())) < count:
        assert process.poll() is None, f"ended early: {process.communicate()}"
        assert time.monotonic() < end, "nothing happened for a minute"
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("number", "status", "executor"),
    [
        (signal.SIGKILL, -9, "processes"),
        (signal.SIGTERM, 143, "processes"),
        pytest.param(signal.SIGHUP, 129, "processes", marks=pytest.mark.slow),
        pytest.param(
            signal.SIGINT, 130, "processes", marks=pytest.mark.slow
        ),  # test_interruption.py does it too
        pytest.param(signal.SIGTERM, 143, "serial", marks=pytest.mark.slow),
        pytest.param(signal.SIGKILL, -9, "dask", marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, 143, "dask", marks=pytest.mark.slow),
    ],
)
def test_no_worker_outlives_the_run_however_it_ends(
    start: Start, marks: Path, store: Store, number: int, status: int, executor: str
) -> None:
    run = start("run", "toy2000/figure-1", "--executor", executor, seconds=60)
    many = 0 if executor == "serial" else 2
    wait_for(marks, many or 1, run)
    workers = descendants(run.pid)
    assert len(workers) >= many
    os.kill(run.pid, number)
    _, errors = run.communicate(timeout=30)
    assert run.returncode == status
    assert gone_within(workers, 5) == set()
    if number != signal.SIGKILL:
        assert errors.splitlines()[-1] == (
            "Stopped; what had finished is stored, and the same command goes on from it."
        )
        assert "Traceback" not in errors
        assert not list(store.root.rglob(".skiplab-*"))


def test_a_worker_without_prctl_sees_that_its_parent_is_gone(start: Start, tmp_path: Path) -> None:
    """As on systems other than Linux."""
    script = (
        "import ctypes, os, subprocess, sys, time\n"
        "if len(sys.argv) == 1:\n"
        "    child = subprocess.Popen([sys.executable, sys.argv[0], str(os.getpid())])\n"
        "    print(child.pid, flush=True); time.sleep(60)\n"
        "ctypes.CDLL = None\n"
        "from skiplab.reproduction import processes\n"
        "processes.LOOK = 0.1; processes._die_with(int(sys.argv[1]))\n"
        "while True: sum(range(1000))\n"
    )
    (tmp_path / "parent.py").write_text(script)
    parent = subprocess.Popen([sys.executable, tmp_path / "parent.py"], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    time.sleep(0.5)
    assert alive({child}) == {child}
    parent.kill()
    parent.communicate()
    assert gone_within({child}, 10) == set()
