"""What every published run must satisfy."""

from __future__ import annotations

import pytest
from PIL import Image

from skiplab.reproduction.store import StudyRun, published
from skiplab.studies import CATALOGUE

RUNS = published().runs()
every_run = pytest.mark.parametrize("run", RUNS, ids=lambda run: f"{run.study}/{run.name}")


def test_published_runs_belong_to_studies() -> None:
    assert RUNS
    assert {run.study for run in RUNS} <= {study.id for study in CATALOGUE}


@every_run
def test_its_picture_opens_and_is_lossless(run: StudyRun) -> None:
    assert run.bitmap is not None
    assert run.pictures == [run.bitmap]
    assert run.bitmap.read_bytes()[12:16] == b"VP8L"  # the lossless kind of WebP
    with Image.open(run.bitmap) as picture:
        picture.load()
        assert (picture.format, picture.mode) == ("WEBP", "RGB")
        assert picture.width >= 1000
        assert len(picture.getcolors(picture.width * picture.height)) > 10


@every_run
def test_its_folder_holds_the_run_and_the_picture_alone(run: StudyRun) -> None:
    assert sorted(path.name for path in run.folder.iterdir()) == ["figure.webp", "run.json.gz"]
