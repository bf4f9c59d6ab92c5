"""Damage on disk, done for real: a flipped bit, a cut, an empty or a missing file changes no number silently."""

from __future__ import annotations

import json
import random
import shutil
import warnings
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from counted_studies import CATALOGUE, COUNT, SHARING, Draw, counts, draw

from skiplab.checks import Refused
from skiplab.files import Damaged, DamageFound, read_json
from skiplab.reporting import site
from skiplab.reproduction.publishing import publish_study
from skiplab.reproduction.runner import Options, TableLost, complete, run_study, study_table
from skiplab.reproduction.scoreboard import scoreboard
from skiplab.reproduction.shipped import Archive
from skiplab.reproduction.store import Store, best_runs, published

SERIAL = Options(executor="serial")
CALL = draw.of(Draw(0), label="seed 0")
KEY = CALL.key(str)

Change = Callable[[bytes], bytes]


def flip(bit: int) -> Change:
    def change(content: bytes) -> bytes:
        changed = bytearray(content)
        changed[bit // 8 % len(content)] ^= 1 << bit % 8
        return bytes(changed)

    return change


def damage(path: Path, change: Change | None) -> None:
    """Change a file's bytes, or remove it."""
    content = path.read_bytes()
    path.unlink()
    if change is not None:
        path.write_bytes(change(content))


damages = pytest.mark.parametrize(
    "change",
    [
        None,
        lambda content: b"",
        lambda content: content[:1],
        lambda content: content[: len(content) // 2],
        lambda content: content[:-1],
        lambda content: content + b"\0",
        lambda content: bytes(len(content)),
    ],
    ids=["missing", "empty", "one byte", "half", "cut", "longer", "zeros"],
)


def trial_again(store: Store) -> tuple[pd.DataFrame, list[str]]:
    """The table of the trial as a run gets it, and the sentences that were said."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        (table,) = complete({KEY: CALL}, store, COUNT, SERIAL)
    assert {each.category for each in heard} <= {DamageFound}
    return table, [str(each.message) for each in heard]


def set_aside(store: Store) -> list[Path]:
    return sorted((store.root / "trials").glob(".damaged-*"))


# Trials -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", ["table.parquet", "record.json"])
def test_no_flipped_bit_changes_a_number(store: Store, marks: Path, file: str) -> None:
    whole, _ = trial_again(store)
    path = store.trial_folder(KEY) / file
    bits = random.Random(0).sample(range(8 * path.stat().st_size), 200)
    noticed = 0
    for bit in bits:
        record = store.record(KEY)
        damage(path, flip(bit))
        again, said = trial_again(store)
        pd.testing.assert_frame_equal(again, whole, check_exact=True)
        noticed += len(said)
        assert len(said) <= 1
        if not said:
            # The word "sha256" of the seal itself was hit; what it seals is whole.
            assert file == "record.json"
            assert store.record(KEY).items() >= record.items()
            shutil.rmtree(store.trial_folder(KEY))
            trial_again(store)
    assert len(set_aside(store)) == noticed
    assert noticed >= (200 if file == "table.parquet" else 190)


@damages
@pytest.mark.parametrize("file", ["table.parquet", "record.json"])
def test_a_damaged_trial_is_set_aside_said_and_computed_again(
    store: Store, marks: Path, file: str, change: Change | None
) -> None:
    whole, _ = trial_again(store)
    path = store.trial_folder(KEY) / file
    damage(path, change)
    kept = {each.name: each.read_bytes() for each in path.parent.iterdir()}
    with pytest.warns(DamageFound):
        assert store.sound_table(KEY) is None
    assert not store.has(KEY)
    (folder,) = set_aside(store)
    assert {each.name: each.read_bytes() for each in folder.iterdir()} == kept
    again, said = trial_again(store)
    assert said == []  # once is enough
    pd.testing.assert_frame_equal(again, whole, check_exact=True)
    assert counts(marks) == {0: 2}
    assert store.has(KEY)


def test_the_sentence_names_the_file_and_what_happens(store: Store, marks: Path) -> None:
    trial_again(store)
    damage(store.trial_folder(KEY) / "table.parquet", flip(800))
    _, (sentence,) = trial_again(store)
    (folder,) = set_aside(store)
    assert sentence == (
        f"{store.trial_folder(KEY) / 'table.parquet'} fails its checksum; {KEY} was set aside as {folder.name}, "
        "and the trial is computed again when a study needs it."
    )


def test_a_record_carries_the_hash_of_its_table_and_old_ones_without_it_are_read(
    store: Store, marks: Path
) -> None:
    whole, _ = trial_again(store)
    path = store.trial_folder(KEY) / "record.json"
    record = json.loads(path.read_text())
    assert len(record["table_sha256"]) == 64
    path.write_text(json.dumps({name: value for name, value in record.items() if "sha256" not in name}))
    again, said = trial_again(store)
    assert said == []
    assert counts(marks) == {0: 1}
    pd.testing.assert_frame_equal(again, whole, check_exact=True)
    damage(path.with_name("table.parquet"), lambda content: content[:-1])
    assert len(trial_again(store)[1]) == 1


def test_a_table_of_another_trial_is_noticed(store: Store, marks: Path) -> None:
    run_study(COUNT, store, options=SERIAL)
    other = draw.of(Draw(1)).key(str)
    shutil.copyfile(store.trial_folder(other) / "table.parquet", store.trial_folder(KEY) / "table.parquet")
    with pytest.raises(Damaged, match=r"table\.parquet fails its checksum"):
        store.table(KEY)


def test_a_damaged_trial_runs_again_in_its_study(store: Store, marks: Path) -> None:
    first = run_study(SHARING, store, options=SERIAL)
    before = study_table(SHARING, first)
    damage(store.trial_folder(KEY) / "table.parquet", flip(999))
    with pytest.warns(DamageFound, match=KEY) as said:
        second = run_study(SHARING, store, options=SERIAL)
    assert len(said) == 1
    pd.testing.assert_frame_equal(study_table(SHARING, second), before, check_exact=True)
    assert second.verdicts == first.verdicts
    assert counts(marks)[0] == 2
    assert sum(counts(marks).values()) == 8


def test_damage_that_a_worker_finds_is_said_by_the_caller(
    store: Store, marks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COUNTED_DAMAGED", "1,3")
    with pytest.warns(DamageFound) as said:
        run_study(COUNT, store, options=Options(executor="processes"))
    assert {str(each.message) for each in said} == {"seed 1 was damaged.", "seed 3 was damaged."}


# Published trials -------------------------------------------------------------------------------------------


def damage_member(archive: Path, member: str) -> None:
    """Flip a bit in the middle of a member's bytes."""
    with zipfile.ZipFile(archive) as source:
        info = source.getinfo(member)
    place = info.header_offset + 30 + len(member) + info.compress_size // 2
    damage(archive, flip(8 * place))


def test_a_damaged_published_trial_stays_where_it_is_and_is_computed_here(
    store: Store, tmp_path: Path, marks: Path
) -> None:
    run = run_study(COUNT, store, options=SERIAL)
    _, archive = publish_study(COUNT, store, "quick")
    other = Store(tmp_path / "other")
    damage_member(archive, "tables/counted/draw.parquet")
    before = archive.read_bytes()
    said = (
        r"draw\.parquet in .*figure-1\.zip .*; the trial is computed again here, until skiplab is installed"
    )
    with pytest.warns(DamageFound, match=said):
        again = run_study(COUNT, other, options=SERIAL)
    assert again.verdicts == run.verdicts
    assert archive.read_bytes() == before
    assert counts(marks)[0] == 2
    run_study(COUNT, other, options=SERIAL)  # which has its own now, and says nothing


def test_no_flipped_bit_changes_what_is_published(store: Store, marks: Path) -> None:
    run_study(COUNT, store, options=SERIAL)
    _, archive = publish_study(COUNT, store, "quick")
    (run,) = published().runs()
    whole = archive.read_bytes()
    table, record = published().table(KEY), published().record(KEY)
    for bit in random.Random(2).sample(range(8 * len(whole)), 200):
        archive.write_bytes(flip(bit)(whole))
        with suppress(Damaged):
            opened = Archive(archive)
            assert opened.run == run
            assert opened.records[KEY] == record
            pd.testing.assert_frame_equal(opened.table(KEY), table, check_exact=True)


@damages
def test_a_damaged_archive_is_said_and_its_trials_are_computed_here(
    store: Store, tmp_path: Path, marks: Path, change: Change | None
) -> None:
    run_study(COUNT, store, options=SERIAL)
    _, archive = publish_study(COUNT, store, "quick")
    damage(archive, change)
    if change is not None and published().damage():
        with pytest.warns(DamageFound, match=r"the run is passed over, and installing skiplab anew mends it"):
            assert published().runs() == []
        with pytest.warns(DamageFound, match=r"the trials in it are computed again here") as said:
            run_study(COUNT, Store(tmp_path / "other"), options=SERIAL)
        assert len(said) == 1
        assert counts(marks)[0] == 2
    elif change is not None:  # a byte more at the end is no part of a zip
        assert published().table(KEY).equals(store.table(KEY))


def test_a_damaged_trial_is_not_published(store: Store, marks: Path) -> None:
    run_study(COUNT, store, options=SERIAL)
    damage(store.trial_folder(KEY) / "table.parquet", flip(700))
    with (
        pytest.warns(DamageFound, match=KEY),
        pytest.raises(Refused, match=f"trial {KEY} .* run the study again"),
    ):
        publish_study(COUNT, store, "quick")


def test_publishing_beside_a_damaged_run_removes_none_of_its_trials(store: Store, marks: Path) -> None:
    run_study(COUNT, store, options=SERIAL)
    run_study(COUNT, store, scale="paper", options=SERIAL)
    publish_study(COUNT, store, "paper")
    archive = published().root / f"{COUNT.id}.zip"
    damage(archive, lambda content: content[:-9])
    before = archive.read_bytes()
    with pytest.raises(Refused, match=r"figure-1\.zip .*; restore it before"):
        publish_study(COUNT, store, "quick")
    assert archive.read_bytes() == before


# Runs -------------------------------------------------------------------------------------------------------


@damages
def test_a_damaged_run_is_passed_over_and_the_others_are_shown(
    store: Store, marks: Path, tmp_path: Path, change: Change | None
) -> None:
    run_study(COUNT, store, options=SERIAL)
    run = run_study(SHARING, store, options=SERIAL)
    damage(run.folder / "run.json", change)
    said = (
        r"run\.json .*; the run is passed over, and `skiplab run toy2000/figure-2 --scale quick` mends it\.$"
    )
    with pytest.warns(DamageFound, match=said):
        assert {entry.judged.study for entry in scoreboard(CATALOGUE, store)} == {COUNT.id}
    with pytest.warns(DamageFound, match=said):
        assert site.build(CATALOGUE, best_runs(store), tmp_path / "report").exists()
    run_study(SHARING, store, options=SERIAL)
    assert {entry.judged.study for entry in scoreboard(CATALOGUE, store)} == {COUNT.id, SHARING.id}


def test_no_flipped_bit_changes_a_run(store: Store, marks: Path) -> None:
    run = run_study(COUNT, store, options=SERIAL)
    path = run.folder / "run.json"
    whole = path.read_bytes()
    for bit in random.Random(1).sample(range(8 * len(whole)), 200):
        path.write_bytes(flip(bit)(whole))
        with suppress(Damaged):
            assert store.read_run(run.folder) == run


def test_a_run_that_a_later_version_wrote_is_read(store: Store, marks: Path) -> None:
    run = run_study(COUNT, store, options=SERIAL)
    content = read_json(run.folder / "run.json")
    (run.folder / "run.json").write_text(json.dumps(content | {"added_later": 1}))
    (run.folder / "run.json~").write_text("an editor's copy")
    assert store.runs() == [run]
    (run.folder / "run.json").write_text(json.dumps(content | {"scale": "huge"}))
    with pytest.warns(DamageFound, match=r"run\.json is no record of a run \(scale of a run is 'huge'\)"):
        assert store.runs() == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda row: {name: row[name] for name in row if name not in ("kind", "text")}, "lacks kind, text"),
        (lambda row: row | {"kind": "likely"}, "Kind of claim 'likely' is unknown"),
        (lambda row: row | {"verdict": "maybe"}, "Verdict 'maybe' is unknown"),
        (lambda row: row | {"statistic": "large"}, "statistic of a stored verdict is 'large'"),
        (lambda row: None, "TypeError"),
    ],
)
def test_a_run_whose_verdicts_say_too_little_is_named_and_passed_over(
    store: Store, marks: Path, change: Callable[[dict[str, Any]], Any], reason: str
) -> None:
    run = run_study(COUNT, store, options=SERIAL)
    content = read_json(run.folder / "run.json")
    rows = [change(content["verdicts"][0]), *content["verdicts"][1:]]
    (run.folder / "run.json").write_text(json.dumps(content | {"verdicts": rows}))
    said = rf"run\.json is no record of a run \(.*{reason}.*\); the run is passed over, and `skiplab run {COUNT.id} "
    with pytest.warns(DamageFound, match=said):
        assert store.runs() == []


def test_a_lost_table_is_said_and_the_report_goes_on(store: Store, marks: Path, tmp_path: Path) -> None:
    run_study(COUNT, store, options=SERIAL)
    run = run_study(SHARING, store, options=SERIAL)
    extra = run.trials[-1]["key"]
    damage(store.trial_folder(extra) / "table.parquet", lambda content: b"")
    lost = r"the table of toy2000/figure-2 cannot be read; make it again with `skiplab run toy2000/figure-2`"
    with pytest.warns(DamageFound, match=extra), pytest.raises(TableLost, match=lost):
        study_table(SHARING, run)
    with pytest.warns(DamageFound, match=lost):
        site.build(CATALOGUE, best_runs(store), tmp_path / "report")
    assert (tmp_path / "report/studies/toy2000/figure-1/table.csv").exists()
    assert not (tmp_path / "report/studies/toy2000/figure-2/table.csv").exists()
