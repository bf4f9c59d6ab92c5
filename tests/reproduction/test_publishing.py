"""Publishing adds a study trial by trial, and keeps what is there."""

from __future__ import annotations

import dataclasses
import os
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from counted_studies import COUNT, SHARING, counts
from PIL import Image

from skiplab.checks import Refused
from skiplab.files import DamageFound
from skiplab.randomness import numpy_generator
from skiplab.reproduction import publishing
from skiplab.reproduction.publishing import (
    picture_bytes,
    publish_study,
    published_entries,
    write_archives,
)
from skiplab.reproduction.runner import Options, drawn, run_study, study_table
from skiplab.reproduction.store import Store, published

SERIAL = Options(executor="serial")


def shipped_files() -> dict[str, bytes]:
    root = published().root
    return {
        path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }


def test_publishing_adds_trial_by_trial(tmp_path: Path, marks: Path) -> None:
    one, other = Store(tmp_path / "one"), Store(tmp_path / "other")
    run_study(COUNT, one, options=SERIAL)
    count, archive = publish_study(COUNT, one, "quick")
    assert count == 6
    assert archive == published().root / "toy2000/figure-1.zip"
    assert set(shipped_files()) == {"toy2000/figure-1.zip", "toy2000/figure-1.webp"}
    with zipfile.ZipFile(archive) as source:
        assert source.namelist() == [
            "manifest.json",
            "run.json",
            "records.json",
            "figure.svg",
            "tables/counted/draw.parquet",
        ]
        assert b"<svg" in source.read("figure.svg")
    # Another machine runs the paper's scale, of which six of seven trials are published already.
    run_study(COUNT, other, scale="paper", options=SERIAL)
    assert sum(counts(marks).values()) == 7
    assert publish_study(COUNT, other, "paper")[0] == 7
    (run,) = published().runs(COUNT.id)
    assert run.scale == "paper"
    assert run.published
    assert sum(published().has(each["key"]) for each in run.trials) == 7
    with pytest.raises(
        Refused, match=r"figure-1 is published at paper scale, and a quick run would take its"
    ):
        publish_study(COUNT, one, "quick")


@pytest.mark.slow
def test_a_shared_trial_lies_in_one_archive_whatever_came_first(store: Store, marks: Path) -> None:
    for study in (COUNT, SHARING):
        run_study(study, store, options=SERIAL)
    order = [SHARING.id, COUNT.id]
    publish_study(COUNT, store, "quick", order)
    assert len(published().archives[COUNT.id].trials) == 6
    publish_study(SHARING, store, "quick", order)
    assert len(published().archives[COUNT.id].trials) == 0
    first = shipped_files()
    publish_study(COUNT, store, "quick", order)
    assert shipped_files() == first
    shutil.rmtree(published().root)
    for study in (SHARING, COUNT):
        publish_study(study, store, "quick", order)
    assert shipped_files() == first
    for run in published().runs():
        for each in run.trials:
            pd.testing.assert_frame_equal(published().table(each["key"]), store.table(each["key"]))
            assert published().record(each["key"]).items() <= store.record(each["key"]).items()


def test_an_alias_shows_the_figure_of_the_other(store: Store, marks: Path) -> None:
    alias = dataclasses.replace(COUNT, id="toy2000/figure-S1")
    for study in (alias, COUNT):
        run_study(study, store, options=SERIAL)
        publish_study(study, store, "quick")
    assert set(shipped_files()) == {
        "toy2000/figure-1.zip",
        "toy2000/figure-1.webp",
        "toy2000/figure-S1.zip",
    }
    (run,), (other,) = (published().runs(name) for name in (COUNT.id, alias.id))
    assert run.pictures == other.pictures == [published().root / "toy2000/figure-1.webp"]
    # The first has another figure now, and the alias keeps what it showed.
    before = run.pictures[0].read_bytes()
    entries = published_entries(published())
    entries[COUNT.id] = dataclasses.replace(entries[COUNT.id], picture=b"another")
    write_archives(published(), entries, {}, (), changed=COUNT.id)
    assert published().runs(alias.id)[0].pictures[0].read_bytes() == before
    assert published().runs(COUNT.id)[0].pictures[0].read_bytes() == b"another"


def test_a_published_table_is_made_again_from_its_trials(store: Store, marks: Path) -> None:
    run = run_study(COUNT, store, options=SERIAL)
    publish_study(COUNT, store, "quick")
    (shipped,) = published().runs(COUNT.id)
    pd.testing.assert_frame_equal(study_table(COUNT, shipped), study_table(COUNT, run))


def test_the_archives_are_looked_through_once_for_all_trials_of_a_study(
    store: Store, marks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_study(COUNT, store, options=SERIAL)
    publish_study(COUNT, store, "quick")
    (run,) = published().runs(COUNT.id)
    looked: list[str] = []
    every = Path.glob

    def glob(folder: Path, pattern: str) -> object:
        looked.append(pattern)
        return every(folder, pattern)

    monkeypatch.setattr(Path, "glob", glob)
    assert len(study_table(COUNT, run)) == 24
    assert looked == ["*/*.zip"]


def test_what_is_looked_through_once_stays_as_it_was(store: Store, marks: Path) -> None:
    run_study(COUNT, store, options=SERIAL)
    before = published().as_it_is()
    publish_study(COUNT, store, "quick")
    assert before.runs() == []
    assert [run.study for run in published().as_it_is().runs()] == [COUNT.id]


def pixels(path: Path) -> np.ndarray:
    with Image.open(path) as picture:
        return np.asarray(picture.convert("RGB")).astype(int)


def test_a_published_figure_has_the_pixels_that_the_run_drew(store: Store, marks: Path) -> None:
    run = drawn(COUNT, run_study(COUNT, store, options=SERIAL))
    assert [path.name for path in run.pictures] == ["figure.svg", "figure.png"]
    publish_study(COUNT, store, "quick")
    (shipped,) = published().runs(COUNT.id)
    assert shipped.pictures == [shipped.bitmap] == [published().root / "toy2000/figure-1.webp"]
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
    small.write_bytes(picture_bytes(source))
    np.testing.assert_array_equal(pixels(small), drawn)
    monkeypatch.setattr(publishing, "FULL_COLOUR", small.stat().st_size - 1)
    large.write_bytes(picture_bytes(source))
    assert large.stat().st_size < small.stat().st_size
    assert len(np.unique(pixels(large).reshape(-1, 3), axis=0)) <= 256
    assert np.abs(pixels(large) - drawn).max() <= 8
    assert (pixels(large)[:90] == 255).all()


def test_a_run_takes_the_place_of_the_earlier_one(tmp_path: Path, marks: Path) -> None:
    one, other = Store(tmp_path / "one"), Store(tmp_path / "other")
    run_study(COUNT, one, options=SERIAL)
    publish_study(COUNT, one, "quick")
    fewer = run_study(COUNT, other, overrides={"runs": 2}, options=SERIAL)
    publish_study(COUNT, other, "quick")
    (shipped,) = published().runs(COUNT.id)
    assert shipped.deviations == fewer.deviations
    assert shipped.deviations
    assert set(published().archives[COUNT.id].trials) == {each["key"] for each in shipped.trials}


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


@pytest.mark.parametrize("end", ["zip", "webp"])
def test_what_no_archive_knows_is_not_replaced(store: Store, marks: Path, end: str) -> None:
    run_study(COUNT, store, options=SERIAL)
    place = published().root / f"{COUNT.id}.{end}"
    place.parent.mkdir(parents=True)
    os.mkfifo(place)
    words = (
        r"zip is a FIFO, not an archive; restore it" if end == "zip" else r"webp is a FIFO that no archive"
    )
    with pytest.raises(Refused, match=words):
        publish_study(COUNT, store, "quick")
    assert place.is_fifo()
    assert len(shipped_files()) == 0


def test_a_link_to_nothing_among_the_archives_is_said_and_passed_over(store: Store, marks: Path) -> None:
    run_study(COUNT, store, options=SERIAL)
    publish_study(COUNT, store, "quick")
    (published().root / "toy2000/figure-9.zip").symlink_to("nowhere")
    with pytest.warns(DamageFound, match=r"figure-9\.zip is a link, not an archive; the run is passed over"):
        assert [run.study for run in published().runs()] == [COUNT.id]
