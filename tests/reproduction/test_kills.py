"""Kills at random moments: no finished trial is lost, no process and no half-written folder stays.

``SKIPLAB_KILLS=1000 pytest -m slow tests/reproduction/test_kills.py`` does it so many times; 100 by default.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import counted_studies
import pandas as pd
import pytest
from counted_studies import SHARING, counts
from test_workers import alive, descendants, gone_within

from skiplab.files import leftovers
from skiplab.reproduction.runner import Options, run_study, study_table
from skiplab.reproduction.store import Store

KILLS = int(os.environ.get("SKIPLAB_KILLS", "100"))
WORDS = ("run", "toy2000/figure-2", "--scale", "paper")


def finished(store: Store) -> dict[str, bytes]:
    """The tables of all trials that are in place."""
    return {path.parent.name: path.read_bytes() for path in store.root.glob("trials/[!.]*/table.parquet")}


def half_written(store: Store) -> list[Path]:
    return [
        path for path in store.root.rglob(".*") if path.name.startswith((".skiplab-", ".aside-", ".old-"))
    ]


def kill_at_random(store: Store, marks: Path, number: int, executor: str) -> tuple[int, set[int]]:
    """Start a run, kill it at a random moment and return how many trials it lost and which processes it left."""
    chance = random.Random(f"{executor} {number}")
    before = finished(store)
    environment = os.environ | {
        "SKIPLAB_STORE": str(store.root),
        "COUNTED_SECONDS": str(chance.choice([0, 0, 0.1])),
    }
    run = subprocess.Popen(
        [sys.executable, counted_studies.__file__, *WORDS, "--executor", executor, "--seed", str(10 * number)],
        env=environment, cwd=marks, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    # Half of the kills come while trials run and are stored, half at any moment, also of the start.
    started, end = len(list(marks.iterdir())), time.monotonic() + 60
    while number % 2 and len(list(marks.iterdir())) == started:
        if run.poll() is not None or time.monotonic() > end:
            break
        time.sleep(0.005)
    end = time.monotonic() + chance.uniform(0, 2.0 if number % 2 else 5.0)
    while run.poll() is None and time.monotonic() < end:
        time.sleep(0.002)
    family = descendants(run.pid)
    run.kill()  # nothing where it has ended by itself, as half of them may on a fast machine
    run.wait()
    orphans = gone_within(family, 5)
    after = finished(store)
    return sum(after.get(key) != content for key, content in before.items()), orphans


@pytest.mark.parametrize(
    ("executor", "kills"),
    [
        pytest.param("processes", 2, marks=pytest.mark.slow),
        pytest.param("processes", KILLS - KILLS // 2, marks=pytest.mark.slow, id="processes-many"),
        pytest.param("serial", KILLS // 2, marks=pytest.mark.slow, id="serial-many"),
    ],
)
def test_kills_at_random_moments_lose_nothing_and_leave_nothing(
    store: Store, marks: Path, tmp_path: Path, executor: str, kills: int, capsys: pytest.CaptureFixture[str]
) -> None:
    lost, orphans = 0, set()
    for number in range(1, kills + 1):
        gone, left = kill_at_random(store, marks, number, executor)
        lost, orphans = lost + gone, orphans | left
    stored = len(finished(store))
    assert lost == 0
    assert alive(orphans) == set()
    # The next start removes what the kills left, and goes on from what had finished.
    time.sleep(leftovers.NEWBORN)
    left_by_kills = len(half_written(store))
    tables = finished(store)
    seed = 10 * kills
    again = subprocess.run(
        [sys.executable, counted_studies.__file__, *WORDS, "--executor", "serial", "--seed", str(seed)],
        env=os.environ | {"SKIPLAB_STORE": str(store.root)}, cwd=marks, check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert again.returncode == 0, again.stderr
    assert half_written(store) == []
    assert {key: content for key, content in finished(store).items() if key in tables} == tables
    # What was computed between kills is what an undisturbed run computes.
    undisturbed = Store(tmp_path / "undisturbed")
    fresh = run_study(
        SHARING, undisturbed, scale="paper", overrides={"seed": seed}, options=Options(executor="serial")
    )
    (mended,) = [run for run in store.runs(SHARING.id) if run.settings["seed"] == seed]
    assert mended.verdicts == fresh.verdicts
    pd.testing.assert_frame_equal(study_table(SHARING, mended), study_table(SHARING, fresh), check_exact=True)
    for key in {each["key"] for each in fresh.trials} & tables.keys():
        assert store.table(key).equals(undisturbed.table(key))
    with capsys.disabled():
        print(
            f"\n{kills} kills ({executor}): {stored} finished trials, {lost} lost, {len(orphans)} orphans after 5 s, "
            f"{left_by_kills} half-written left by kills, {len(half_written(store))} after the next start, "
            f"{sum(counts(marks).values())} trials started"
        )
