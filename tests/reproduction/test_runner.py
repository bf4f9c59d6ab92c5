"""Running studies: what is stored is not repeated, what fails is told once, and the rest is kept."""

from __future__ import annotations

import dataclasses
import json
import time
from pathlib import Path

import pandas as pd
import pytest
from counted_studies import CATALOGUE, COUNT, SHARING, WITH_DATA, Draw, counts, draw

from skiplab.checks import DataMissing
from skiplab.files import write_bytes
from skiplab.reproduction.runner import (
    DataInPart,
    Options,
    TrialFailed,
    Unfinished,
    Watcher,
    can_run,
    drawn,
    run_study,
    study_table,
)
from skiplab.reproduction.scoreboard import scoreboard
from skiplab.reproduction.shipped import Picture, archive_bytes
from skiplab.reproduction.store import Store
from skiplab.reproduction.study import Study
from skiplab.reproduction.trial import Trial

SERIAL = Options(executor="serial")


class Listening(Watcher):
    """Remembers what it hears."""

    def __init__(self) -> None:
        self.stages: list[tuple[str, int, int]] = []
        self.heard: list[str] = []
        self.stored: list[str] = []

    def stage(self, study: Study, total: int, known: int) -> None:
        self.stages.append((study.id, total, known))

    def progress(self, label: str, done: float, text: str) -> None:
        self.heard.append(f"{label}: {text}")

    def finished(self, label: str, seconds: float) -> None:
        self.stored.append(label)


def test_a_run_leaves_table_figure_verdicts_and_where_they_came_from(store: Store, marks: Path) -> None:
    run = run_study(COUNT, store, options=SERIAL)
    assert sorted(path.name for path in run.folder.iterdir()) == ["run.json"]
    assert [path.name for path in drawn(COUNT, run).pictures] == ["figure.svg", "figure.png"]
    assert len(study_table(COUNT, run)) == 24
    assert [(row.claim, row.verdict) for row in run.verdicts] == [
        ("positive", "holds"),
        ("positive", "contradicted"),
        ("complete", "holds"),
    ]
    assert run.settings["gains"] == [0.3, 1.0]
    assert run.provenance["trials_devices"] == [run.provenance["device"]]
    assert [each["label"] for each in run.trials] == [f"seed {seed}" for seed in range(6)]
    assert all(store.has(each["key"]) for each in run.trials)
    record = store.record(run.trials[0]["key"])
    assert record["settings"] == {"seed": 0}
    assert record["trial"] == "counted/draw"
    json.loads((run.folder / "run.json").read_text(), parse_constant=lambda word: pytest.fail(word))


def test_nothing_is_repeated(store: Store, marks: Path) -> None:
    first = run_study(COUNT, store, options=SERIAL)
    watcher = Listening()
    second = run_study(COUNT, store, options=dataclasses.replace(SERIAL, watcher=watcher))
    assert counts(marks) == dict.fromkeys(range(6), 1)
    assert watcher.stages == [("toy2000/figure-1", 6, 6)]
    assert watcher.stored == []
    assert second.verdicts == first.verdicts


def test_a_trial_named_by_two_studies_runs_once(store: Store, marks: Path) -> None:
    run_study(COUNT, store, options=SERIAL)
    watcher = Listening()
    run = run_study(SHARING, store, options=dataclasses.replace(SERIAL, watcher=watcher))
    (extra,) = set(counts(marks)) - set(range(6))
    assert set(counts(marks).values()) == {1}
    assert watcher.stages == [("toy2000/figure-2", 6, 6), ("toy2000/figure-2", 1, 0)]
    assert watcher.heard == ["the best again: half way"]
    assert watcher.stored == ["the best again"]
    # The second stage was named from the first one's table.
    means = study_table(SHARING, run).groupby("seed")["value"].mean()
    assert extra == 100 + means.drop(extra).idxmax()


def test_more_runs_repeat_only_what_is_new(store: Store, marks: Path) -> None:
    run_study(COUNT, store, options=SERIAL)
    run = run_study(COUNT, store, overrides={"runs": "8"}, options=SERIAL)
    assert counts(marks) == dict.fromkeys(range(8), 1)
    assert run.deviations == {"runs": {"declared": 6, "used": 8}}
    assert run.name != "quick"
    assert len(store.runs(COUNT.id)) == 2


def test_an_override_that_trials_see_changes_their_keys(store: Store, marks: Path) -> None:
    first = run_study(COUNT, store, options=SERIAL)
    other = run_study(COUNT, store, overrides={"shift": 2.0}, options=SERIAL)
    assert counts(marks) == dict.fromkeys(range(6), 2)
    assert not {each["key"] for each in first.trials} & {each["key"] for each in other.trials}


def test_a_published_trial_is_not_repeated(store: Store, marks: Path, published_root: Path) -> None:
    key = draw.of(Draw(2)).key(str)
    table = pd.DataFrame({"seed": [2], "value": [55.0]})
    record = {"seconds": 1.0, "device": "H200", "source": "theirs", "settings": {}}
    content = archive_bytes({}, Picture("toy2000/x", ""), {key: record}, {draw.name: {key: table}})
    write_bytes(published_root / "toy2000/x.zip", content)
    run = run_study(COUNT, store, options=SERIAL)
    assert sorted(counts(marks)) == [0, 1, 3, 4, 5]
    assert not store.has(key)
    assert 55.0 in set(study_table(COUNT, run)["value"])
    assert "H200" in run.provenance["trials_devices"]


def test_one_failure_is_told_and_the_others_are_stored(
    store: Store, marks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COUNTED_FAILING", "1,3")
    watcher = Listening()
    with pytest.raises(
        TrialFailed, match=r"(?s)trial 'seed 1' failed: Traceback.*told to fail.*1 more failed"
    ):
        run_study(COUNT, store, options=dataclasses.replace(SERIAL, watcher=watcher))
    assert watcher.stored == ["seed 0", "seed 2", "seed 4", "seed 5"]
    assert store.runs() == []
    monkeypatch.setenv("COUNTED_FAILING", "")
    run_study(COUNT, store, options=SERIAL)
    assert counts(marks) == {0: 1, 1: 2, 2: 1, 3: 2, 4: 1, 5: 1}


def test_a_refusal_stays_one_sentence(store: Store, marks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COUNTED_REFUSING", "1")
    with pytest.raises(
        TrialFailed, match=r"^trial 'seed 1' failed: seed 1 was told to refuse; choose another\.$"
    ):
        run_study(COUNT, store, options=SERIAL)


def test_the_time_limit_keeps_what_is_done(
    store: Store, marks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COUNTED_SECONDS", "0.2")
    with pytest.raises(Unfinished, match=r"\d trial\(s\) did not finish within the time limit") as error:
        run_study(COUNT, store, options=Options(executor="serial", deadline=time.time() + 0.5))
    done = len(list((store.root / "trials").iterdir()))
    assert 1 <= done < 6
    assert error.value.left == 6 - done
    monkeypatch.setenv("COUNTED_SECONDS", "0")
    run_study(COUNT, store, options=SERIAL)
    assert sorted(counts(marks).values(), reverse=True)[0] <= 2
    assert sum(counts(marks).values()) <= 7


def test_processes_and_serial_store_the_same_bytes(tmp_path: Path, marks: Path) -> None:
    serial = run_study(COUNT, Store(tmp_path / "a"), options=SERIAL)
    parallel = run_study(COUNT, Store(tmp_path / "b"), options=Options(executor="processes"))
    for one, other in zip(drawn(COUNT, serial).pictures, drawn(COUNT, parallel).pictures, strict=True):
        assert one.read_bytes() == other.read_bytes(), one.name
    pd.testing.assert_frame_equal(study_table(COUNT, serial), study_table(COUNT, parallel), check_exact=True)
    assert serial.verdicts == parallel.verdicts


@pytest.mark.slow
def test_a_finished_trial_is_heard_no_more(
    store: Store, marks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker's last word may come after its table; it must not be told."""
    monkeypatch.setattr("skiplab.reproduction.executor.TICK", 0.02)
    monkeypatch.setenv("COUNTED_SECONDS", "0.1")
    late: list[str] = []

    class Strict(Listening):
        def progress(self, label: str, done: float, text: str) -> None:
            super().progress(label, done, text)
            if label in self.stored:
                late.append(label)

    watcher = Strict()
    run_study(COUNT, store, options=Options(executor="processes", watcher=watcher))
    assert sorted(watcher.stored) == [f"seed {seed}" for seed in range(6)]
    assert watcher.heard
    assert late == []


def test_missing_data_are_left_out_or_a_reason_not_to_run(
    store: Store, marks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SKIPLAB_DATA", str(tmp_path / "none"))
    run = run_study(WITH_DATA, store, scale="smoke", options=SERIAL)
    assert run.left_out == [{"part": "cifar10", "remedy": "skiplab data fetch cifar10"}]
    assert run.settings["data"] == ["digits"]
    assert set(run.provenance["data"]) == {"digits"}
    assert can_run(WITH_DATA, "quick", {}) is None
    reason = can_run(WITH_DATA, "quick", {"data": ("stl10",)})
    assert isinstance(reason, DataMissing)
    assert "skiplab data fetch stl10" in str(reason)


def test_a_part_of_a_set_is_used_and_said(
    store: Store, marks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SKIPLAB_DATA", str(tmp_path))
    file = tmp_path / "cifar-10-batches-bin" / "data_batch_2.bin"
    file.parent.mkdir()
    file.write_bytes(bytes(3 * 3073))
    part = "3 of 50,000 train images and 0 of 10,000 test images"
    said = f"only a part of cifar10 is here, {part}; `skiplab data fetch cifar10` gets the rest."
    with pytest.warns(DataInPart, match=said) as heard:
        run = run_study(WITH_DATA, store, scale="smoke", options=SERIAL)
    assert len(heard) == 1
    assert run.provenance["data_in_part"] == {"cifar10": part}


def test_a_newer_version_makes_results_stale(store: Store, marks: Path) -> None:
    run_study(COUNT, store, options=SERIAL)
    run_study(COUNT, store, scale="smoke", options=SERIAL)
    entries = scoreboard(CATALOGUE, store)
    assert [(entry.judged.claim, entry.stale, entry.to_dict()["scale"]) for entry in entries] == [
        ("positive", False, "quick"),
        ("complete", False, "quick"),
    ]
    try:
        Trial(draw.function, draw.name, 2)
        assert {entry.stale for entry in scoreboard(CATALOGUE, store)} == {True}
    finally:
        Trial(draw.function, draw.name, 1)


def test_the_scoreboard_shows_the_best_run_or_all_in_the_order_of_the_catalogue(
    store: Store, marks: Path
) -> None:
    run_study(SHARING, store, options=SERIAL)
    run_study(COUNT, store, overrides={"runs": 7}, options=SERIAL)
    run_study(COUNT, store, options=SERIAL)
    best = scoreboard(CATALOGUE, store)
    assert [entry.judged.study for entry in best] == [COUNT.id] * 2 + [SHARING.id] * 2
    everything = scoreboard(CATALOGUE, store, all_runs=True)
    assert [entry.judged.study for entry in everything] == [COUNT.id] * 4 + [SHARING.id] * 2
    positive = [entry.judged for entry in everything if entry.judged.claim == "positive"]
    assert [row.runs for judged in positive for row in (*judged.rows, *judged.further)] == [6, 6, 7, 7, 7, 7]
    assert {entry.run.partition("+")[0] for entry in everything} == {"quick"}
    assert len({entry.run for entry in everything}) == 2


def test_a_newer_version_runs_again(store: Store, marks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_study(COUNT, store, scale="smoke", options=SERIAL)
    monkeypatch.setattr(draw, "version", 2)
    run_study(COUNT, store, scale="smoke", options=SERIAL)
    assert counts(marks) == {0: 2, 1: 2}
