"""The store: whole folders or none, local before published, the best run first."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from skiplab.files import write_bytes
from skiplab.files.leftovers import ASIDE
from skiplab.reproduction.shipped import Picture, archive_bytes
from skiplab.reproduction.store import (
    Store,
    StudyRun,
    best_runs,
    default_root,
    runs_at_hand,
)
from skiplab.reproduction.verifying import verify

TABLE = pd.DataFrame({"seed": [1, 2], "value": [0.1, float("nan")]})


def run_of(name: str = "quick", **changes: Any) -> StudyRun:
    content: dict[str, Any] = {
        "study": "toy2000/figure-1",
        "scale": name.partition("+")[0],
        "name": name,
        "settings": {"runs": 5},
        "deviations": {},
        "left_out": [],
        "trials": [{"key": "k", "trial": "toy.draw", "version": 1, "label": "", "stage": "seeds"}],
        "verdicts": [],
        "provenance": {"finished": "2025-01-01T00:00:00+00:00"},
        "seconds": 1.5,
    }
    return StudyRun(**(content | changes))


def test_a_trial_comes_back_as_it_was_stored(store: Store) -> None:
    assert not store.has("abc")
    store.checkpoints("abc").mkdir(parents=True)
    store.commit("abc", TABLE, {"seconds": 2.0})
    assert store.has("abc")
    pd.testing.assert_frame_equal(store.table("abc"), TABLE)
    sha256 = hashlib.sha256((store.trial_folder("abc") / "table.parquet").read_bytes()).hexdigest()
    assert store.record("abc") == {"seconds": 2.0, "table_sha256": sha256}
    assert not store.checkpoints("abc").exists()


def test_a_run_comes_back_as_it_was_saved(store: Store) -> None:
    run = run_of(deviations={"runs": {"declared": 5, "used": 6}})
    saved = store.save_run(run, lambda folder: (folder / "more").touch())
    assert saved == run
    assert saved.folder == store.root / "studies/toy2000/figure-1/quick"
    assert (saved.folder / "more").exists()
    assert store.runs("toy2000/figure-1") == [run]
    assert store.runs("toy2000/figure-2") == []


def test_a_run_without_strict_json_is_not_stored(store: Store) -> None:
    with pytest.raises(ValueError, match=r"Out of range float"):
        store.save_run(run_of(settings={"x": float("nan")}))
    assert store.runs() == []


def test_a_half_written_run_is_passed_over(store: Store) -> None:
    saved = store.save_run(run_of())
    aside = saved.folder.parent / ".aside-killed"
    aside.mkdir()
    (aside / "run.json").write_text(json.dumps({"half": "written"}))
    assert store.runs() == [saved]


def test_larger_then_as_declared_then_local_then_newest_is_shown(store: Store, published_root: Path) -> None:
    later = {"finished": "2026-01-01T00:00:00+00:00"}
    deviating = {"seed": {"declared": 0, "used": 1}}
    store.save_run(run_of("smoke", provenance=later))
    store.save_run(run_of("quick"))
    store.save_run(run_of("quick+1", deviations=deviating, provenance=later))
    store.save_run(run_of("quick+0", deviations=deviating))
    for item, run in (("figure-1", run_of("quick", provenance=later)), ("figure-2", run_of("paper"))):
        content = archive_bytes(run.content(), Picture("toy2000/figure-1", ""), {}, {})
        write_bytes(published_root / "toy2000" / f"{item}.zip", content)
    names = [(run.name, run.published) for run in runs_at_hand(store)]
    assert names == [
        ("paper", True),
        ("quick", False),
        ("quick", True),
        ("quick+1", False),
        ("quick+0", False),
        ("smoke", False),
    ]
    assert best_runs(store)["toy2000/figure-1"].name == "paper"


def test_smoke_is_never_the_run_to_show(store: Store) -> None:
    store.save_run(run_of("smoke"))
    assert best_runs(store) == {}


def test_a_run_is_stale_once_a_trial_has_a_newer_version() -> None:
    assert run_of().stale({"toy.draw": 2})
    assert not run_of().stale({"toy.draw": 1})
    assert not run_of().stale({})


def test_the_environment_says_where_the_store_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKIPLAB_STORE", "/somewhere")
    assert Store().root == default_root() == Path("/somewhere")
    assert Store(Path("/else")).root == Path("/else")
    monkeypatch.setenv("SKIPLAB_STORE", "")
    assert Store().root == Path("skiplab-results")


def test_a_users_folders_beside_results_are_nobodys_leftovers_and_no_damage(tmp_path: Path) -> None:
    theirs = [
        ".old-photos/a.jpg",
        ".aside-mine/b",
        "checkpoints/my-model/config.json",
        "trials/mine/c",
        "studies/a/b/c/d",
    ]
    for name in theirs:
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("mine")
        for path in (tmp_path / name, (tmp_path / name).parent):
            os.utime(path, (1e9, 1e9))
    store = Store(tmp_path)
    store.tidy()
    assert verify(store).damaged == 0
    assert all((tmp_path / name).read_text() == "mine" for name in theirs)


def test_what_a_killed_writer_left_is_removed_wherever_it_wrote_but_not_behind_a_link(tmp_path: Path) -> None:
    store, elsewhere = Store(tmp_path / "store"), tmp_path / "elsewhere"
    places = ["", "trials", "checkpoints/key", "studies/paper/item", "studies/paper/item/run"]
    left = [store.root / place / f"{ASIDE}killed" for place in places] + [elsewhere / f"{ASIDE}killed"]
    for path in left:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("half")
        os.utime(path, (1e9, 1e9))
    (store.root / "studies/paper/item/link").symlink_to(elsewhere)
    store.tidy()
    assert [path.exists() for path in left] == [False] * len(places) + [True]
