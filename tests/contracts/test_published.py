"""What every published archive and run must satisfy."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest
from PIL import Image

from skiplab.benchmarks.record import Record
from skiplab.reproduction.runner import judged_again
from skiplab.reproduction.shipped import MANIFEST, Archive
from skiplab.reproduction.slimming import SLIM, is_search
from skiplab.reproduction.store import PUBLISHED, StudyRun, published
from skiplab.studies import CATALOGUE

RUNS = published().runs()
LIMIT = 20_000_000  # bytes of all that ships
every_run = pytest.mark.parametrize("run", RUNS, ids=lambda run: f"{run.study}/{run.name}")
every_archive = pytest.mark.parametrize("study", sorted(published().archives))


def test_published_runs_belong_to_studies() -> None:
    assert RUNS
    assert {run.study for run in RUNS} <= {study.id for study in CATALOGUE}
    assert {run.study for run in RUNS} == set(published().archives)
    assert not published().damage()


def test_all_that_ships_is_small_and_known() -> None:
    files = [path for path in PUBLISHED.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < LIMIT
    archives = published().archives
    pictures = {archive.picture.study for archive in archives.values()}
    expected = {f"{name}.zip" for name in archives} | {f"{name}.webp" for name in pictures}
    benches = {path.name for path in PUBLISHED.glob("bench-*.json")}  # the speed that docs/speed.md tells
    assert "bench-h200.json" in benches
    drawn = {
        Path(name).with_suffix(".webp").name for name in benches if Record.read(PUBLISHED / name).scalings
    }
    expected |= benches | drawn
    assert {path.relative_to(PUBLISHED).as_posix() for path in files} == expected


@every_archive
def test_an_archive_is_what_its_manifest_says(study: str) -> None:
    archive = Archive(PUBLISHED / f"{study}.zip")  # which has read no member yet
    assert archive.run.study == study
    with zipfile.ZipFile(archive.path) as source:
        assert source.namelist() == [MANIFEST, *archive.sha256]
        assert {member.date_time for member in source.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    for member in archive.sha256:
        archive.read(member)  # which compares it with its hash
    assert set(archive.records) == set(archive.trials)
    for key in archive.trials:
        assert archive.records[key]["trial"]
        assert len(archive.table(key)) > 0
    picture = (PUBLISHED / f"{archive.picture.study}.webp").read_bytes()
    assert hashlib.sha256(picture).hexdigest() == archive.picture.sha256


def test_a_trial_lies_in_the_archive_of_the_first_study_that_names_it() -> None:
    runs, archives = {run.study: run for run in RUNS}, published().archives
    seen: set[str] = set()
    for study in CATALOGUE:
        if study.id in runs:
            named = {each["key"] for each in runs[study.id].trials}
            assert set(archives[study.id].trials) == named - seen
            seen |= named


def test_what_tables_lack_is_of_trials_that_are_published() -> None:
    named = [each for run in RUNS for each in run.trials]
    assert set(SLIM) <= {each["trial"] for each in named}
    searches = {each["key"] for each in named if is_search(each)}
    assert not searches & {each["key"] for each in named if not is_search(each)}, "its epochs would be missed"


@every_run
def test_a_condition_without_runs_says_whether_they_are_yet_to_be_made_or_the_paper_is_silent(
    run: StudyRun,
) -> None:
    unsaid = [row.claim for row in run.verdicts if row.headline and row.runs == 0 and not row.missing]
    assert unsaid == []


@pytest.mark.slow
@every_run
def test_judged_again_it_says_the_same(run: StudyRun) -> None:
    """Today's code on the published trials gives every published row: its statistic, interval and verdict.

    Numbers to 1e-9: last digits are the machine's. Seven runs differ by up to 7e-13 from where they were published,
    and which instructions NumPy may use moves one of them by 2e-13.
    """
    again = judged_again(CATALOGUE[run.study], run)
    words = [[(row.claim, row.condition, row.verdict) for row in rows] for rows in (again, run.verdicts)]
    assert words[0] == words[1]
    for mine, theirs in zip(again, run.verdicts, strict=True):
        numbers, expected = ([row.statistic, row.low, row.high] for row in (mine, theirs))
        where = (mine.claim, mine.condition)
        assert [each is None for each in numbers] == [each is None for each in expected], where
        for number, other in zip(numbers, expected, strict=True):
            assert number is None or number == pytest.approx(other, rel=1e-9, abs=1e-12, nan_ok=True), where


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
