"""What every study must satisfy, run over all of the catalogue."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from skiplab import data
from skiplab.reproduction.results import Results
from skiplab.reproduction.runner import Options, drawn, results_of, run_study, study_table
from skiplab.reproduction.store import Store, StudyRun
from skiplab.reproduction.study import SCALES, Study
from skiplab.studies import CATALOGUE

every_study = pytest.mark.parametrize("study", list(CATALOGUE), ids=lambda study: study.id)
SERIAL = Options(executor="serial")
SmokeRun = Callable[[Study], StudyRun]


def test_ids_are_unique_and_belong_to_papers() -> None:
    ids = [study.id for study in CATALOGUE]
    assert len(set(ids)) == len(ids)
    papers = [paper.id for paper in CATALOGUE.papers]
    assert len(set(papers)) == len(papers)
    assert {study.paper for study in CATALOGUE} == set(papers)
    assert any(study.in_tour for study in CATALOGUE)


@every_study
def test_the_id_is_well_formed(study: Study) -> None:
    assert re.fullmatch(r"[a-z]+\d{4}/[a-z]+(-[A-Za-z0-9.-]+)?", study.id)
    assert study.item.replace(" ", "-").lower() == study.id.split("/")[1].lower()


@every_study
def test_every_text_says_something(study: Study) -> None:
    assert study.title.strip()
    assert not study.title.endswith(".")
    assert study.caption.strip().endswith(".")
    for line in (*study.choices, *study.errata, *(claim.text for claim in study.claims)):
        assert line.strip().endswith("."), line
    assert study.claims
    claims = [claim.id for claim in study.claims]
    assert len(set(claims)) == len(claims)
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", claim) for claim in claims)


@every_study
def test_settings_are_frozen_hashable_and_of_one_kind(study: Study) -> None:
    assert tuple(study.settings) == SCALES
    kinds = {type(settings) for settings in study.settings.values()}
    assert len(kinds) == 1
    for settings in study.settings.values():
        assert dataclasses.is_dataclass(settings)
        hash(settings)
        name = dataclasses.fields(settings)[0].name
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(settings, name, getattr(settings, name))
        wanted = getattr(settings, "data", ())
        assert isinstance(wanted, tuple)
        assert set(wanted) <= set(data.NAMES)
    # A fresh machine has no image set, and smoke must run there.
    assert set(getattr(study.settings["smoke"], "data", ())) <= {"digits"}


@every_study
def test_costs_are_given(study: Study) -> None:
    assert {"quick", "paper"} <= set(study.cost) <= set(SCALES)
    assert all(cost > 0 for cost in study.cost.values())


@every_study
def test_quick_and_paper_name_distinct_trials(study: Study) -> None:
    """The first stage can be named without any table, and no two calls of it are the same."""
    for scale in ("quick", "paper"):
        calls = study.stages[0](Results(study.settings[scale]))
        assert calls
        assert len(set(calls)) == len(calls)
        assert all(call.label for call in calls)


@every_study
def test_smoke_leaves_figure_table_and_verdicts(study: Study, smoke_run: SmokeRun) -> None:
    run = drawn(study, smoke_run(study))
    assert (run.deviations, run.left_out) == ({}, [])
    svg, png = run.pictures
    assert png.read_bytes().startswith(b"\x89PNG")
    assert "<svg" in svg.read_text()
    assert len(study_table(study, run)) > 0
    assert {row.claim for row in run.verdicts} == {claim.id for claim in study.claims}
    rows = [(row.claim, row.condition) for row in run.verdicts]
    assert len(set(rows)) == len(rows), "two rows of a claim have the same condition"
    headlined = {row.claim for row in run.verdicts if row.headline}
    assert headlined == {claim.id for claim in study.claims}
    json.loads((run.folder / "run.json").read_text(), parse_constant=lambda word: pytest.fail(word))


@pytest.mark.slow
@every_study
def test_a_second_run_repeats_nothing_and_says_the_same(study: Study, smoke_run: SmokeRun) -> None:
    first = smoke_run(study)
    store = Store(first.folder.parents[3])  # root/studies/PAPER/ITEM/RUN

    def stamps() -> dict[Path, int]:
        # Its own trials: other workers of the test run write theirs into the same store meanwhile.
        folders = [store.trial_folder(each["key"]) for each in first.trials]
        return {path: path.stat().st_mtime_ns for folder in folders for path in folder.rglob("*")}

    before = stamps()
    assert before
    second = run_study(study, store, scale="smoke", options=SERIAL)
    assert stamps() == before
    assert [each["key"] for each in second.trials] == [each["key"] for each in first.trials]
    assert second.verdicts == first.verdicts


@pytest.mark.parametrize(
    "study",
    [pytest.param(each, marks=[] if each.in_tour else [pytest.mark.slow]) for each in CATALOGUE],
    ids=lambda study: study.id,
)
def test_another_store_gets_the_same_table(study: Study, smoke_run: SmokeRun, tmp_path: Path) -> None:
    first = smoke_run(study)
    other = run_study(study, Store(tmp_path), scale="smoke", options=SERIAL)
    assert [each["key"] for each in other.trials] == [each["key"] for each in first.trials]
    tables = [results_of(study, run).frame for run in (first, other)]
    pd.testing.assert_frame_equal(*tables, check_exact=True)


def test_declarations_import_nothing_heavy() -> None:
    code = (
        "import sys, skiplab.studies; "
        "print([name for name in ('torch', 'scipy', 'pandas', 'numpy', 'matplotlib') if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
