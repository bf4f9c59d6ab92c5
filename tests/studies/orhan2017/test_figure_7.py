"""Figure 7's stages and claims, on tables with numbers of our choosing."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from skiplab.experiments import networks
from skiplab.randomness import PLACES
from skiplab.reproduction.results import Part, Results
from skiplab.reproduction.verdict import judge
from skiplab.studies.orhan2017 import figure_7
from skiplab.studies.orhan2017.tied_sigmas import TIED, init_at_ties, tied_sigmas

Make = Callable[..., pd.DataFrame]
AsResults = Callable[[Any, pd.DataFrame], Results]
MODELS = [model.name for model in figure_7.EXPERIMENT.models]
SETTINGS = dataclasses.replace(
    figure_7.STUDY.settings["smoke"],
    runs=6,
    gains=(1.0,),
    search_runs=3,
    sigmas=(0.0, 0.1, 0.5, 1.0),
    strengths=(0.01,),
)


def search_table(trained: Make, accuracy: dict[float, float]) -> pd.DataFrame:
    """The search of the regularised models, with a little difference between seeds."""
    rows = [
        trained("bias-symm-break", 500 + seed, [value + seed / 1000], sigma=sigma, strength=0.01)
        for sigma, value in accuracy.items()
        for seed in range(3)
    ]
    return pd.concat(rows)


@pytest.fixture
def as_the_paper_says(trained: Make) -> pd.DataFrame:
    """Residual > BiasSymmBreak > BiasInit > BiasL2Reg ≈ plain, and σ = .5 is best."""
    means = {
        "plain": 0.40,
        "residual": 0.90,
        "bias-symm-break": 0.60,
        "bias-l2-reg": 0.402,
        "bias-init": 0.50,
    }
    rows = [search_table(trained, {0.0: 0.4, 0.1: 0.5, 0.5: 0.7, 1.0: 0.3})]
    for model, mean in means.items():
        seeds = [*range(6), *([500] if model in ("plain", "residual", "bias-init") else [])]
        rows += [trained(model, seed, [mean + (seed % 500) / 1000]) for seed in seeds]
    return pd.concat(rows)


def verdicts(results: Results) -> dict[str, Any]:
    rows = judge(figure_7.STUDY, results, "quick")
    return {row.claim: row for row in rows if row.headline}


def test_every_claim_holds_where_the_paper_is_right(
    as_the_paper_says: pd.DataFrame, by_stage: AsResults
) -> None:
    found = verdicts(by_stage(SETTINGS, as_the_paper_says))
    undecided = {"interior-sigma"}  # three search seeds are too few
    assert {claim: row.verdict for claim, row in found.items() if claim not in undecided} == {
        claim.id: "holds" for claim in figure_7.STUDY.claims if claim.id not in undecided
    }
    assert found["residual-best"].detail.startswith("against bias-symm-break")
    assert found["residual-best"].statistic == pytest.approx(0.3, abs=1e-6)
    assert found["plain-worst"].detail.startswith("against bias-l2-reg")
    assert found["interior-sigma"].verdict == "undecided"
    assert found["interior-sigma"].statistic == pytest.approx(0.3, abs=1e-6)


def test_no_sigma_is_called_intermediate_where_the_largest_is_as_good(
    trained: Make, by_stage: AsResults, as_the_paper_says: pd.DataFrame
) -> None:
    decided = as_the_paper_says[as_the_paper_says["seed"] < PLACES["search"].start]
    others = as_the_paper_says[
        (as_the_paper_says["seed"] >= PLACES["search"].start)
        & (as_the_paper_says["model"] != "bias-symm-break")
    ]
    search = search_table(trained, {0.0: 0.4, 0.1: 0.5, 0.5: 0.7, 1.0: 0.695})
    results = by_stage(SETTINGS, pd.concat([decided, others, search]))
    assert tied_sigmas(results, "digits", 1.0) == pytest.approx({0.5: 0.701, 1.0: 0.696})
    rows = [row for row in judge(figure_7.STUDY, results, "quick") if row.claim == "interior-sigma"]
    (headline,) = [row for row in rows if row.headline]
    assert (headline.condition, headline.verdict) == ("digits, a longer grid", "undecided")
    assert headline.detail.startswith("σ = 0.5 is best; σ = 1, where the grid ends, is as good")


def test_every_claim_falls_where_the_paper_is_wrong(trained: Make, by_stage: AsResults) -> None:
    means = {"plain": 0.90, "residual": 0.40, "bias-symm-break": 0.50, "bias-l2-reg": 0.95, "bias-init": 0.7}
    rows = [search_table(trained, {0.0: 0.7, 0.1: 0.5, 0.5: 0.3, 1.0: 0.4})]
    for model, mean in means.items():
        seeds = [*range(6), *([500] if model in ("plain", "residual", "bias-init") else [])]
        rows += [trained(model, seed, [mean + (seed % 500) / 1000]) for seed in seeds]
    found = verdicts(by_stage(SETTINGS, pd.concat(rows)))
    assert {row.verdict for claim, row in found.items() if claim != "interior-sigma"} == {"contradicted"}
    assert found["interior-sigma"].statistic == pytest.approx(-0.2, abs=1e-6)


def test_a_grid_that_ends_at_its_best_leaves_open_what_it_might_change(
    trained: Make, by_stage: AsResults
) -> None:
    means = {"plain": 0.52, "residual": 0.90, "bias-symm-break": 0.50, "bias-l2-reg": 0.4, "bias-init": 0.7}
    rows = [search_table(trained, {0.0: 0.2, 0.1: 0.3, 0.5: 0.45, 1.0: 0.5})]
    for model, mean in means.items():
        seeds = [*range(6), *([500] if model in ("plain", "residual", "bias-init") else [])]
        rows += [trained(model, seed, [mean + (seed % 500) / 1000]) for seed in seeds]
    found = verdicts(by_stage(SETTINGS, pd.concat(rows)))
    # The last step of σ brought .05: with as much again BiasSymmBreak would beat plain nets, but not the others.
    assert found["symm-break-beats-plain"].verdict == "undecided"
    assert found["residual-beats-symm-break"].verdict == "holds"
    assert found["init-is-not-enough"].verdict == "contradicted"


@pytest.mark.parametrize(
    ("at_tie", "verdict"),
    [
        (None, "undecided"),  # not run
        (0.55, "holds"),
        (0.75, "undecided"),  # better than BiasSymmBreak: σ decides
        (0.2, "holds"),  # worse than plain, which is said of models whose biases start at zero
    ],
)
def test_where_sigmas_tie_biasinit_is_judged_only_if_all_say_the_same(
    trained: Make,
    by_stage: AsResults,
    as_the_paper_says: pd.DataFrame,
    at_tie: float | None,
    verdict: str,
) -> None:
    searched = as_the_paper_says["seed"] >= PLACES["search"].start
    others = as_the_paper_says[~(searched & (as_the_paper_says["model"] == "bias-symm-break"))]
    search = search_table(trained, {0.0: 0.4, 0.1: 0.5, 0.5: 0.7, 1.0: 0.695})
    results = by_stage(SETTINGS, pd.concat([others, search]))
    (call,) = init_at_ties(results)
    assert (call.stage, set(call.settings.sigmas), len(call.settings.seeds)) == (TIED, {1.0}, 6)
    assert init_at_ties(dataclasses.replace(results, settings=without_ties())) == []
    if at_tie is not None:
        tables = [trained("bias-init", seed, [at_tie + seed / 1000], sigma=1.0) for seed in range(6)]
        results = results.and_then([Part(networks.train.name, TIED, pd.concat(tables))])
    found = verdicts(results)
    init = found["init-is-not-enough"]
    assert init.verdict == verdict
    assert found["plain-worst"].verdict == "holds"
    assert found["symm-break-beats-plain"].verdict == "holds"
    if at_tie is None:
        assert init.detail.startswith("BiasInit to be trained at each tied σ (0.5, 1")


def without_ties() -> Any:
    return dataclasses.replace(SETTINGS, init_at_ties=False)


@pytest.mark.parametrize(
    ("plain", "residual", "own", "verdict"),
    [
        (0.5, 0.9, 0.6, "holds"),
        (0.5, 0.9, 0.8, "contradicted"),  # worse than residual, but nearly as good
        (0.9, 0.7, 0.6, "holds"),  # worse than either
        (0.9, 0.5, 0.6, "contradicted"),  # better than residual
    ],
)
def test_not_nearly_as_well_is_less_than_half_of_the_way(
    trained: Make, by_stage: AsResults, plain: float, residual: float, own: float, verdict: str
) -> None:
    means = {
        "plain": plain,
        "residual": residual,
        "bias-symm-break": own,
        "bias-l2-reg": 0.5,
        "bias-init": 0.5,
    }
    rows = [search_table(trained, {0.0: 0.2, 0.1: 0.3, 0.5: own, 1.0: 0.4})]
    for model, mean in means.items():
        seeds = [*range(6), *([500] if model in ("plain", "residual", "bias-init") else [])]
        rows += [trained(model, seed, [mean + (seed % 500) / 1000]) for seed in seeds]
    found = verdicts(by_stage(SETTINGS, pd.concat(rows)))
    assert found["residual-beats-symm-break"].verdict == verdict


def test_the_interior_sigma_is_chosen_on_the_other_seeds(trained: Make, by_stage: AsResults) -> None:
    # σ = .1 is best on seed 500 alone, so chosen by the others it is σ = .5 that seed 500 is judged at.
    values = {0.0: (0.1, 0.1, 0.1), 0.1: (1.0, 0.2, 0.2), 0.5: (0.3, 0.4, 0.4), 1.0: (0.2, 0.2, 0.2)}
    frame = pd.concat(
        trained("bias-symm-break", 500 + seed, [value], sigma=sigma, strength=0.01)
        for sigma, by_seed in values.items()
        for seed, value in enumerate(by_seed)
    )
    (row,) = figure_7.interior_sigma(by_stage(SETTINGS, frame))
    # The others see means (σ=.1: 1 and .2, σ=.5: .3 and .4), which favour σ = .1.
    np.testing.assert_allclose(row.samples[0], [0.3 - 0.2, 0.2 - 0.2, 0.2 - 0.2], atol=1e-6)
    assert row.condition == "digits, gain 1"


def test_the_end_of_the_grid_is_chosen_on_the_other_seeds_too(trained: Make, by_stage: AsResults) -> None:
    # σ = 0 is best on seed 500 alone, so seed 500 is compared with σ = 1, which the others prefer.
    values = {0.0: (0.9, 0.1, 0.1), 0.5: (0.6, 0.6, 0.6), 1.0: (0.3, 0.4, 0.5)}
    frame = pd.concat(
        trained("bias-symm-break", 500 + seed, [value], sigma=sigma, strength=0.01)
        for sigma, by_seed in values.items()
        for seed, value in enumerate(by_seed)
    )
    (row,) = figure_7.interior_sigma(by_stage(SETTINGS, frame))
    np.testing.assert_allclose(row.samples[0], [0.6 - 0.3, 0.6 - 0.1, 0.6 - 0.1], atol=1e-6)


def test_a_grid_that_ends_at_its_best_sigma_says_nothing(trained: Make, by_stage: AsResults) -> None:
    frame = search_table(trained, {0.0: 0.1, 0.1: 0.2, 0.5: 0.3, 1.0: 0.4})
    (row,) = figure_7.interior_sigma(by_stage(SETTINGS, frame))
    assert (row.condition, row.missing, len(row.samples[0])) == ("digits, a longer grid", "not run", 0)
    assert row.detail.startswith("σ = 1 is best, where the grid ends; ")


def test_headlines_say_which_sigma_and_lambda_were_found(
    as_the_paper_says: pd.DataFrame, by_stage: AsResults
) -> None:
    found = verdicts(by_stage(SETTINGS, as_the_paper_says))
    assert found["symm-break-beats-plain"].detail == "σ = 0.5, λ = 0.01 found, where the grid of λ ends"
    wider = dataclasses.replace(SETTINGS, strengths=(0.01, 0.1))
    found = verdicts(by_stage(wider, as_the_paper_says))
    assert found["init-is-not-enough"].detail == "σ = 0.5, λ = 0.01 found"
    assert found["l2-does-not-help"].detail == ""


def test_without_an_interior_there_is_no_evidence(trained: Make, by_stage: AsResults) -> None:
    frame = search_table(trained, {0.0: 0.1, 0.1: 0.2})
    (row,) = figure_7.interior_sigma(by_stage(SETTINGS, frame))
    assert len(row.samples[0]) == 0


def test_the_second_stage_takes_what_the_search_found(trained: Make, by_stage: AsResults) -> None:
    found = search_table(trained, {0.0: 0.9, 0.1: 0.5, 0.5: 0.7})
    calls = {
        (call.settings.model, call.settings.seeds[0] >= 500): call.settings
        for call in figure_7.EXPERIMENT.decide(by_stage(SETTINGS, found))
    }
    assert set(calls) == {*((model, False) for model in MODELS), ("bias-init", True)}
    assert set(calls["bias-symm-break", False].sigmas) == {0.5}
    assert set(calls["bias-l2-reg", False].sigmas) == {0.0}
    assert set(calls["bias-init", True].sigmas) == {0.5}
    assert calls["bias-init", True].seeds == (500, 501, 502)
    assert calls["plain", False].sigmas == ()
    assert all(calls[model, False].seeds == tuple(range(6)) for model in MODELS)


def test_quick_and_paper_settings_fit_their_grids() -> None:
    for settings in figure_7.STUDY.settings.values():
        assert settings.sigmas[0] == 0.0
        assert settings.runs <= len(PLACES["decide"])
