"""A study's seed names a stream of runs: two seeds share none, and seed 0 has the runs that are published."""

from __future__ import annotations

import dataclasses
from itertools import combinations
from typing import Any

import pandas as pd
import pytest

from skiplab.randomness import SEEDS_PER_STREAM
from skiplab.reproduction.runner import Options, run_study
from skiplab.reproduction.settings import settings_of
from skiplab.reproduction.store import Store, StudyRun, published
from skiplab.reproduction.study import SCALES, Study
from skiplab.reproduction.trial import Call
from skiplab.studies import CATALOGUE

SEEDS = (0, 1, 2, 7)
STUDIES = {study.id: study for study in CATALOGUE}
every_study = pytest.mark.parametrize("study", list(CATALOGUE), ids=lambda study: study.id)
every_run = pytest.mark.parametrize("run", published().runs(), ids=lambda run: f"{run.study}/{run.name}")


def drawn(settings: Any) -> set[int]:
    """The seeds of all runs in a trial's settings: ``seeds``, or ``runs`` of them from ``seed`` on."""
    found: set[int] = set()
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if field.name == "seeds":
            found |= set(value)
        elif field.name == "seed":
            found |= set(range(value, value + getattr(settings, "runs", 1)))
        for part in value if isinstance(value, tuple) else (value,):
            if dataclasses.is_dataclass(part):
                found |= drawn(part)
    return found


def assert_apart(calls: dict[int, list[Call]]) -> None:
    """Calls by study seed name the same runs, each seed in a stream of its own."""
    by_seed = {seed: [drawn(call.settings) for call in named] for seed, named in calls.items()}
    assert any(by_seed[0]), "no call names a run"
    for one, other in combinations(by_seed.values(), 2):
        assert set().union(*one).isdisjoint(set().union(*other))
    for seed, found in by_seed.items():
        assert found == [{SEEDS_PER_STREAM * seed + run for run in runs} for runs in by_seed[0]]


@every_study
@pytest.mark.parametrize("scale", SCALES)
def test_the_first_stage_of_two_seeds_has_no_run_in_common(study: Study, scale: str) -> None:
    chosen = study.settings[scale]
    assert chosen.seed == 0
    assert_apart({seed: study.stages[0](dataclasses.replace(chosen, seed=seed), []) for seed in SEEDS})


@every_run
def test_seed_0_names_what_is_published_and_other_seeds_other_runs_at_every_stage(run: StudyRun) -> None:
    study, store = STUDIES[run.study], published()
    settings = settings_of(study, run)
    assert settings.seed == 0
    tables: list[pd.DataFrame] = []
    for number, stage in enumerate(study.stages):
        # What a later stage decides from: the published tables, as if another seed's runs had come out the same.
        calls = {
            seed: stage(dataclasses.replace(settings, seed=seed), [moved(table, seed) for table in tables])
            for seed in SEEDS
        }
        assert_apart(calls)
        keys = [each["key"] for each in run.trials if each["stage"] == number]
        assert [call.key(run.provenance["data"].__getitem__) for call in calls[0]] == keys
        if number + 1 < len(study.stages):
            tables.append(pd.concat([store.table(key) for key in keys], ignore_index=True))


def moved(table: pd.DataFrame, seed: int) -> pd.DataFrame:
    """A stage's table with its runs moved from seed 0's stream to another one's."""
    return table.assign(seed=table["seed"] + SEEDS_PER_STREAM * seed)


@pytest.mark.slow
@every_study
def test_another_seed_gives_a_table_of_the_same_kind(
    study: Study, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Evidence and figures find the runs of any stream, seeds of more than 32 bits included."""
    monkeypatch.setattr("skiplab.reproduction.store.PUBLISHED", tmp_path / "published")
    monkeypatch.setenv("SKIPLAB_DATA", str(tmp_path / "no sets"))
    serial = Options(executor="serial")
    first, other = (
        run_study(study, Store(tmp_path), scale="smoke", overrides={"seed": seed}, options=serial)
        for seed in (0, 12_345_678)
    )
    tables = [pd.read_parquet(run.folder / "table.parquet") for run in (first, other)]
    assert tables[0].dtypes.equals(tables[1].dtypes)
    rows = [[(row["claim"], row["headline"]) for row in run.verdicts] for run in (first, other)]
    assert rows[0] == rows[1]
