"""Figure 2's trial, and its claims on tables with numbers of our choosing."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import pandas as pd
import pytest
import torch

from skiplab.experiments import networks
from skiplab.experiments.networks import Member, Networks, Training
from skiplab.measurements.symmetry import rescaling_symmetry
from skiplab.randomness import PLACES
from skiplab.reproduction.results import Part, Results
from skiplab.reproduction.trial import Bench
from skiplab.reproduction.verdict import judge
from skiplab.studies.orhan2017 import rescaled_networks
from skiplab.studies.orhan2017.figure_2 import STUDY
from skiplab.studies.orhan2017.figure_2 import study as figure_2
from skiplab.studies.orhan2017.rescaled_networks import Rescaled, train_and_rescale

MODELS = [model.name for model in figure_2.MODELS]
SETTINGS = dataclasses.replace(STUDY.settings["smoke"], runs=6, gains=(0.3, 1.0), other_runs=5)
TINY = Training(depth=4, width=8, images=60, epochs=2, batch_size=20)


def made(
    model: str, seed: int, ratio: float, *, gain: float = 1.0, accuracy: float = 0.9, change: float = 0.0
) -> pd.DataFrame:
    """The table of one network as the trial leaves it."""
    rows: list[dict[str, Any]] = [
        {"member": 0, "epoch": 1, "quantity": quantity, "layer": layer, "value": value}
        for quantity, layer, value in (
            ("accuracy", 0, accuracy),
            ("before", 0, accuracy),
            ("chance", 0, 0.1),
            ("rescaling", 0, ratio),
            ("rescaling_change", 0, change),
            ("rescaling_at_distance", 1, ratio),
            ("rescaling_at_distance", 3, ratio),
        )
    ]
    return networks.table(Networks("digits", model, (seed,), (gain,), Training(epochs=1)), rows, [False])


def stored(seed: int, table: pd.DataFrame) -> Part:
    """A table with the trial and stage to which its seed belongs."""
    if seed in PLACES["search"]:
        return Part(networks.train.name, "search", table)
    return Part(train_and_rescale.name, "decide", table)


def results_of(ratios: Sequence[float], gains: Sequence[float] = (0.3, 1.0), **changes: Any) -> Results:
    """All models, six runs at gain 1, the best, and five at the others."""
    parts = []
    for model, ratio in zip(MODELS, ratios, strict=True):
        for gain in gains:
            accuracy = 0.9 if gain == 1.0 else 0.5
            spread = 0.0 if model == "plain" else 0.001
            for seed in (*range(6 if gain == 1.0 else 5), 500):
                kept = ratio + spread * (seed % 500)
                parts.append(stored(seed, made(model, seed, kept, gain=gain, accuracy=accuracy, **changes)))
    return Results(SETTINGS, parts)


def test_every_claim_holds_where_the_paper_is_right() -> None:
    found = judge(STUDY, results_of((1.0, 0.7, 0.4), change=1e-15), "quick")
    assert {row.verdict for row in found} == {"holds"}
    best = {row.claim: row for row in found if row.headline}
    assert best["residual-less-than-plain"].condition == "digits, best gains (1)"
    assert best["residual-less-than-plain"].statistic == pytest.approx(0.3 - 0.0025, abs=1e-6)
    assert best["hyper-less-than-residual"].detail.startswith(
        "accuracies before: residual and hyper-residual 0.900 and 0.900"
    )
    # (.9 · ratio − .1)/.8, the mean ratios being .7025 and .4025.
    assert best["hyper-less-above-chance"].means == pytest.approx(
        ((0.9 * 0.7025 - 0.1) / 0.8, (0.9 * 0.4025 - 0.1) / 0.8), abs=1e-6
    )
    # Two gains more than the headline, each for every claim.
    assert len(found) == 3 * len(STUDY.claims)


def test_every_claim_falls_where_the_paper_is_wrong() -> None:
    found = judge(STUDY, results_of((0.99, 1.2, 1.4), change=1e-6), "quick")
    assert {row.verdict for row in found if row.headline} == {"contradicted"}


def test_the_papers_level_is_used() -> None:
    """A difference within seeds of p between .01 and .05 stays undecided."""
    assert STUDY.alpha == 0.01
    parts = [
        stored(seed, made(model, seed, base + spread * (seed % 3 - 1)))
        for model, base, spread in (
            ("plain", 1.0, 0.0),
            ("residual", 0.7, 0.04),
            ("hyper-residual", 0.65, -0.01),
        )
        for seed in (*range(6), 500)
    ]
    one = dataclasses.replace(SETTINGS, gains=(1.0,))
    found = judge(STUDY, Results(one, parts), "quick")
    row = next(row for row in found if row.claim == "hyper-less-than-residual" and row.headline)
    assert row.p is not None
    assert 0.01 < row.p < 0.05
    assert row.verdict == "undecided"


def test_runs_at_chance_have_nothing_to_keep() -> None:
    frame = pd.concat([made("residual", 0, 0.5), made("residual", 1, 1.0, accuracy=0.1)])
    assert rescaled_networks.above_chance(frame).tolist() == pytest.approx([(0.45 - 0.1) / 0.8], abs=1e-6)


def test_networks_that_never_learn_are_left_out_of_a_further_row() -> None:
    """Their ratio is 1 whatever their symmetry; the headline is over all networks, as the paper's mean is."""
    dead = {("hyper-residual", 0), ("residual", 1)}
    parts = [
        stored(
            seed,
            made(model, seed, 1.0 if (model, seed) in dead else base + seed % 500 / 1000,
                 accuracy=0.1 if (model, seed) in dead else 0.9),
        )
        for model, base in (("plain", 1.0), ("residual", 0.7), ("hyper-residual", 0.6))
        for seed in (*range(8), 500)
    ]  # fmt: skip
    one = dataclasses.replace(SETTINGS, gains=(1.0,))
    rows = {row.condition: row for row in judge(STUDY, Results(one, parts), "quick")
            if row.claim == "hyper-less-than-residual"}  # fmt: skip
    alive, every = (rows[f"digits, best gains (1){who}"] for who in (", those that learn", ", all networks"))
    assert (alive.headline, every.headline) == (False, True)
    assert (alive.runs, every.runs) == (6, 8)
    assert alive.statistic == pytest.approx(0.1, abs=1e-6)
    assert every.statistic == pytest.approx((6 * 0.1 - 0.3 + 0.399) / 8, abs=1e-6)
    assert "never learn: residual 1 of 8 (2 to 47 %), hyper-residual 1 of 8" in every.detail


def test_a_diverged_network_leaves_its_seed_out_of_a_pair() -> None:
    whole = results_of((1.0, 0.7, 0.4))
    parts = [
        dataclasses.replace(part, table=part.table[part.table["quantity"] == "accuracy"])
        if part.table["model"].iloc[0] == "residual" and part.table["seed"].iloc[0] == 2
        else part
        for part in whole.parts
    ]
    rows = judge(STUDY, Results(SETTINGS, parts), "quick")
    assert {row.runs for row in rows if row.claim.startswith("hyper-less-than") and row.headline} == {5}


def test_most_runs_are_at_the_best_gain() -> None:
    found = [
        stored(500, made(model, 500, 1.0, gain=gain, accuracy=0.9 if gain == best else 0.3))
        for model, best in zip(MODELS, (1.0, 0.3, 0.3), strict=True)
        for gain in (0.3, 1.0)
    ]
    named = figure_2.decide(Results(SETTINGS, found))
    calls = {call.settings.networks.model: call.settings for call in named}
    counts = {
        model: {gain: settings.networks.gains.count(gain) for gain in (0.3, 1.0)}
        for model, settings in calls.items()
    }
    assert counts == {
        "plain": {0.3: 5, 1.0: 6},
        "residual": {0.3: 6, 1.0: 5},
        "hyper-residual": {0.3: 6, 1.0: 5},
    }
    assert all(settings.networks.training.depth == SETTINGS.depth for settings in calls.values())
    searched = figure_2.search(Results(SETTINGS))
    assert [call.settings.model for call in searched] == MODELS
    assert all(seed in PLACES["search"] for call in searched for seed in call.settings.seeds)


@pytest.mark.parametrize("model", MODELS)
def test_the_trial_rescales_what_it_trained(model: str) -> None:
    named = networks.together(TINY, "digits", model, [Member(seed, 1.0) for seed in (3, 4)])
    settings = Rescaled(named, samples=50, pairs=4)
    table = train_and_rescale.function(settings, Bench())
    trained = networks.train_members(named, Bench())
    batch = (trained.samples.inputs[:50].double(), trained.samples.labels[:50])
    for member, seed in enumerate((3, 4)):
        network = trained.ensemble.member(member).double()
        found = rescaling_symmetry(network, batch, draws=4, seed=seed)
        rows = table[(table["seed"] == seed) & (table["epoch"] == 2)]
        own = rows[rows["layer"] == 0].set_index("quantity")["value"]
        assert own["before"] == pytest.approx(float(found.accuracy_before), rel=1e-6)
        assert own["rescaling"] == pytest.approx(float(found.score), rel=1e-6)
        assert own["rescaling_mean_change"] == pytest.approx(float(found.mean_change), rel=1e-4, abs=1e-15)
        assert own["rescaling_change"] == pytest.approx(float(found.change.max()), rel=1e-4, abs=1e-15)
        assert own["chance"] == pytest.approx(0.1)
        near = rows[rows["quantity"] == "rescaling_at_distance"].set_index("layer")["value"]
        distance = found.changed[0, :, 1] - found.changed[0, :, 0]
        assert sorted(near.index) == sorted(set(distance.tolist()))
        for each, value in near.items():
            assert value == pytest.approx(float(found.ratio[0][distance == each].mean()), rel=1e-6)
    accuracy = table[table["quantity"] == "accuracy"]
    assert sorted(accuracy["epoch"].unique()) == [1, 2]


def test_a_diverged_network_is_not_rescaled() -> None:
    named = networks.together(TINY, "digits", "plain", [Member(seed, 1.0) for seed in (0, 1)])
    trained = networks.train_members(named, Bench())
    trained.ensemble.rows[0] = torch.nan
    lost = dataclasses.replace(trained, diverged=[True, False])
    rows = rescaled_networks.rescaled_rows(Rescaled(named, samples=20, pairs=2), lost)
    assert {row["member"] for row in rows} == {1}
    nothing = dataclasses.replace(trained, diverged=[True, True])
    assert rescaled_networks.rescaled_rows(Rescaled(named, samples=20, pairs=2), nothing) == []


@pytest.mark.slow
def test_a_gain_without_runs_gives_no_evidence() -> None:
    few = results_of((1.0, 0.7, 0.4))
    at_best = [part for part in few.parts if part.stage == "search" or part.table["gain"].eq(1.0).all()]
    found = judge(STUDY, Results(SETTINGS, at_best), "quick")
    assert {row.runs for row in found if row.condition == "digits, gain 0.3"} == {0}
    assert {row.verdict for row in found if row.headline} == {"holds"}
    figure_2.figure(Results(SETTINGS, at_best))


def test_the_figure_has_three_rows_per_data_set() -> None:
    axes = STUDY.figure(results_of((1.0, 0.7, 0.4))).axes
    assert len(axes) == 3
    ticks = [tick.get_text().split("\n") for tick in axes[0].get_xticklabels()]
    assert [name for name, _ in ticks] == ["Plain", "Residual", "Hyper-residual"]
    assert all(words.startswith("g = ") for _, words in ticks)  # the gain of the networks drawn
    assert [tick.get_text() for tick in axes[1].get_xticklabels()] == ["0.3", "1"]
