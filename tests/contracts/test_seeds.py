"""A study's seed names a stream of runs: two seeds share none, and the declared one has what is published."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from skiplab.randomness import SEEDS_PER_STREAM
from skiplab.reproduction.results import Part, Results
from skiplab.reproduction.runner import Options, results_of, run_study
from skiplab.reproduction.store import Store, StudyRun, published
from skiplab.reproduction.study import SCALES, Study, stage_name
from skiplab.reproduction.trial import Call
from skiplab.studies import CATALOGUE

LATER = (0, 1, 2, 7)  # how far a seed is from the declared one
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
    """Calls by distance from the declared seed name the same runs, each seed in a stream of its own."""
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
    assert_apart({later: calls_of(study, 0, Results(moved_on(chosen, later))) for later in LATER})


@pytest.mark.slow
@every_run
def test_the_declared_seed_names_what_is_published_and_others_other_runs(run: StudyRun) -> None:
    study = STUDIES[run.study]
    stored = results_of(study, run)
    for number, stage in enumerate(study.stages):
        before = [part for part in stored.parts if part.named_in in names_before(study, number)]
        # What a later stage decides from: the published tables, as if another seed's runs had come out the same.
        calls = {
            later: calls_of(
                study,
                number,
                Results(moved_on(stored.settings, later), [moved(part, later) for part in before]),
            )
            for later in LATER
        }
        if any(calls.values()):  # a stage may have nothing to do, such as a search that is left out
            assert_apart(calls)
        keys = {each["key"] for each in run.trials if each["named_in"] == stage_name(stage)}
        assert {call.key(run.provenance["data"].__getitem__) for call in calls[0]} == keys


def names_before(study: Study, number: int) -> set[str]:
    """The names of the stages before one."""
    return {stage_name(stage) for stage in study.stages[:number]}


def calls_of(study: Study, number: int, results: Results) -> list[Call]:
    """The calls that a stage names."""
    return list(study.stages[number](results))


def moved_on(settings: Any, later: int) -> Any:
    """The settings with a seed so much later than the declared one."""
    return dataclasses.replace(settings, seed=settings.seed + later)


def moved(part: Part, later: int) -> Part:
    """A trial's table with its runs moved to a later seed's stream."""
    if "seed" not in part.table:
        return part
    return dataclasses.replace(
        part, table=part.table.assign(seed=part.table["seed"] + SEEDS_PER_STREAM * later)
    )


@pytest.mark.slow
@every_study
def test_another_seed_gives_a_table_of_the_same_kind(
    study: Study, smoke_run: Callable[[Study], StudyRun], tmp_path: Path
) -> None:
    """Evidence and figures find the runs of any stream, seeds of more than 32 bits included."""
    first = smoke_run(study)
    seed = {"seed": 12_345_678}
    other = run_study(
        study, Store(tmp_path), scale="smoke", overrides=seed, options=Options(executor="serial")
    )
    tables = [results_of(study, run).frame for run in (first, other)]
    assert tables[0].dtypes.astype(str).equals(tables[1].dtypes.astype(str))
    # Which conditions decide may depend on the numbers (networks that learn, say); the claims do not.
    claims = [{row.claim for row in run.verdicts} for run in (first, other)]
    assert claims[0] == claims[1]
    assert claims[0]
