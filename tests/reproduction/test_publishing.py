"""Publishing adds a study trial by trial, and keeps what is there."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from counted_studies import COUNT, counts
from PIL import Image

from skiplab.checks import Refused
from skiplab.randomness import numpy_generator
from skiplab.reproduction import publishing
from skiplab.reproduction.publishing import publish_study, write_picture
from skiplab.reproduction.runner import Options, run_study, study_table
from skiplab.reproduction.store import Store, published, read_json

SERIAL = Options(executor="serial")


def test_publishing_adds_trial_by_trial(tmp_path: Path, marks: Path) -> None:
    one, other = Store(tmp_path / "one"), Store(tmp_path / "other")
    run_study(COUNT, one, options=SERIAL)
    count, folder = publish_study(COUNT, one, "quick")
    assert count == 6
    assert sorted(path.name for path in folder.iterdir()) == ["figure.webp", "run.json.gz"]
    stamps = {path: path.stat().st_mtime_ns for path in (published().root / "trials").rglob("*.parquet")}
    assert len(stamps) == 6
    # Another machine runs the paper's scale, of which six of seven trials are published already.
    run_study(COUNT, other, scale="paper", options=SERIAL)
    assert sum(counts(marks).values()) == 7
    assert publish_study(COUNT, other, "paper")[0] == 7
    now = {path: path.stat().st_mtime_ns for path in (published().root / "trials").rglob("*.parquet")}
    assert len(now) == 7
    assert stamps.items() <= now.items()
    assert [run.scale for run in published().runs(COUNT.id)] == ["paper", "quick"]
    assert all(run.published for run in published().runs())


def test_a_published_table_is_made_again_from_its_trials(store: Store, marks: Path) -> None:
    run = run_study(COUNT, store, options=SERIAL)
    publish_study(COUNT, store, "quick")
    (shipped,) = published().runs(COUNT.id)
    pd.testing.assert_frame_equal(study_table(COUNT, shipped), study_table(COUNT, run))


def pixels(path: Path) -> np.ndarray:
    with Image.open(path) as picture:
        return np.asarray(picture.convert("RGB")).astype(int)


def test_a_published_figure_has_the_pixels_that_the_run_drew(store: Store, marks: Path) -> None:
    run = run_study(COUNT, store, options=SERIAL)
    assert [path.name for path in run.pictures] == ["figure.svg", "figure.png"]
    publish_study(COUNT, store, "quick")
    (shipped,) = published().runs(COUNT.id)
    assert shipped.pictures == [shipped.bitmap] == [shipped.folder / "figure.webp"]
    np.testing.assert_array_equal(pixels(shipped.bitmap), pixels(run.folder / "figure.png"))


def test_a_large_figure_has_256_colours_close_to_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ramp = np.linspace(0, 1, 300)[None, :, None] * np.array(
        [250.0, 20.0, 90.0]
    )  # a colour bar on white paper
    drawn = np.full((200, 400, 3), 255, dtype=np.uint8)
    drawn[90:100, 50:350] = ramp.round()
    drawn[150:] -= numpy_generator(0, "grain").integers(0, 9, size=(50, 400, 3), dtype=np.uint8)
    source, small, large = (tmp_path / name for name in ("figure.png", "small.webp", "large.webp"))
    Image.fromarray(drawn).save(source)
    write_picture(source, small)
    np.testing.assert_array_equal(pixels(small), drawn)
    monkeypatch.setattr(publishing, "FULL_COLOUR", small.stat().st_size - 1)
    write_picture(source, large)
    assert large.stat().st_size < small.stat().st_size
    assert len(np.unique(pixels(large).reshape(-1, 3), axis=0)) <= 256
    assert np.abs(pixels(large) - drawn).max() <= 8
    assert (pixels(large)[:90] == 255).all()


def test_a_run_takes_the_place_of_the_earlier_one(tmp_path: Path, marks: Path) -> None:
    one, other = Store(tmp_path / "one"), Store(tmp_path / "other")
    run_study(COUNT, one, options=SERIAL)
    publish_study(COUNT, one, "quick")
    fewer = run_study(COUNT, other, overrides={"runs": 2}, options=SERIAL)
    _, folder = publish_study(COUNT, other, "quick")
    (shipped,) = published().runs(COUNT.id)
    assert shipped.deviations == fewer.deviations
    assert shipped.deviations
    kept = {path.name for path in (published().root / "trials").iterdir()}
    assert kept == {each["key"] for each in shipped.trials}
    assert read_json(folder / "run.json")["deviations"] == fewer.deviations


def test_what_cannot_be_published_is_refused(store: Store, marks: Path, published_root: Path) -> None:
    with pytest.raises(Refused, match=r"has no paper run in .*`skiplab run toy2000/figure-1 --scale paper`"):
        publish_study(COUNT, store, "paper")
    with pytest.raises(Refused, match=r"scale 'papr' is unknown.*Did you mean paper"):
        publish_study(COUNT, store, "papr")
    run = run_study(COUNT, store, options=SERIAL)
    shutil.rmtree(store.trial_folder(run.trials[3]["key"]))
    with pytest.raises(Refused, match=f"trial {run.trials[3]['key']} .* run the study again"):
        publish_study(COUNT, store, "quick")
    assert published().runs() == []
    (published_root.parents[2] / "pyproject.toml").unlink()
    with pytest.raises(Refused, match=r"run it in a checkout of skiplab"):
        publish_study(COUNT, store, "quick")
