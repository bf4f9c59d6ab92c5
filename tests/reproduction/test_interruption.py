"""Killing, interrupting and limiting a run: at most the trial in flight is repeated."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import counted_studies
import pytest
from counted_studies import counts

from skiplab.reproduction.store import Store

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(store: Store, marks: Path, tmp_path: Path) -> Start:
    """Start skiplab's command line with the counted studies, in a process of its own."""

    def begin(*words: str, seconds: float = 0.0) -> subprocess.Popen[str]:
        environment = os.environ | {"SKIPLAB_STORE": str(store.root), "COUNTED_SECONDS": str(seconds)}
        command = [sys.executable, counted_studies.__file__, *words]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(command, env=environment, cwd=tmp_path, text=True, **pipes)  # type: ignore[call-overload, no-any-return]

    return begin


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Wait for something that a running process brings about."""
    end = time.monotonic() + 60
    while not condition():
        assert process.poll() is None, f"ended early: {process.communicate()}"
        assert time.monotonic() < end, "nothing happened for a minute"
        time.sleep(0.02)


def stored(store: Store) -> set[int]:
    return {int(store.table(path.name)["seed"].iloc[0]) for path in (store.root / "trials").glob("[!.]*")}


@pytest.mark.slow
def test_killing_a_run_repeats_only_the_trial_in_flight(start: Start, store: Store, marks: Path) -> None:
    run = start("run", "toy2000/figure-1", "--executor", "serial", seconds=0.5)
    wait_until(lambda: len(counts(marks)) == 3, run)
    os.kill(run.pid, signal.SIGKILL)
    run.communicate(timeout=30)
    before = stored(store)
    flying = set(counts(marks)) - before
    assert len(before) == 2
    assert len(flying) == 1

    again = start("run", "toy2000/figure-1", "--executor", "serial")
    output, errors = again.communicate(timeout=60)
    assert again.returncode == 0, errors
    assert "✓ holds" in output
    assert counts(marks) == {seed: 1 + (seed in flying) for seed in range(6)}


@pytest.mark.parametrize("executor", [pytest.param("serial", marks=pytest.mark.slow), "processes"])
def test_ctrl_c_says_so_and_loses_nothing_stored(
    start: Start, store: Store, marks: Path, executor: str
) -> None:
    run = start("run", "toy2000/figure-1", "--executor", executor, seconds=0.4)
    wait_until(lambda: store.root.exists() and len(stored(store)) >= 2, run)
    os.kill(run.pid, signal.SIGINT)
    _, errors = run.communicate(timeout=30)
    assert run.returncode == 130
    assert "Stopped; what had finished is stored, and the same command goes on from it." in errors
    assert "Traceback" not in errors
    before = stored(store)
    assert 2 <= len(before) < 6

    again = start("run", "toy2000/figure-1", "--executor", executor)
    _, errors = again.communicate(timeout=60)
    assert again.returncode == 0, errors
    assert stored(store) == set(range(6))
    assert {counts(marks)[seed] for seed in before} == {1}


def test_the_time_limit_stops_cleanly_and_the_same_command_goes_on(
    start: Start, store: Store, marks: Path
) -> None:
    words = ("run", "toy2000/figure-1", "--executor", "serial", "--time-limit", "2s")
    run = start(*words, seconds=0.9)
    output, errors = run.communicate(timeout=60)
    assert run.returncode == 3, errors
    assert "Left out: toy2000/figure-1: " in output
    assert "did not finish within the time limit; the same command goes on from there." in output
    before = stored(store)
    assert len(before) < 6

    again = start("run", "toy2000/figure-1", "--executor", "serial", "--time-limit", "60s")
    output, errors = again.communicate(timeout=60)
    assert again.returncode == 0, errors
    assert "✓ holds" in output
    assert {counts(marks)[seed] for seed in before} <= {1}
    assert sum(counts(marks).values()) <= 7
