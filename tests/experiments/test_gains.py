"""Choosing gains on separate seeds, the samples that claims compare, and the trials that are named."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from skiplab.experiments import networks
from skiplab.experiments.gain_experiment import GainExperiment, gain_search
from skiplab.experiments.gains import (
    PLAIN,
    RESIDUAL,
    WIDE,
    Gains,
    Model,
    accuracies,
    against_strongest,
    against_weakest,
    beyond_the_grid,
    compare,
    last_step,
    nearer,
)
from skiplab.experiments.networks import GainSettings, Networks, Training
from skiplab.reproduction.claim import Evidence
from skiplab.reproduction.results import Part, Results

SETTINGS = GainSettings(data=("digits",), gains=(0.3, 1.0), runs=2, search_runs=3)


def made(
    model: str | Model, seed: int, accuracy: Sequence[float], gain: float = 1.0, sigma: float = 0.0
) -> Part:
    """One network; its seed says whether it searches or decides."""
    name, skip = (model, "identity") if isinstance(model, str) else model
    settings = Networks(
        "digits", name, (seed,), (gain,), Training(), skip=skip, sigmas=(sigma,), strengths=(0.1,)
    )
    rows = [
        {"member": 0, "epoch": epoch, "quantity": "accuracy", "layer": 0, "value": value}
        for epoch, value in enumerate(accuracy, 1)
    ]
    return Part("", "search" if seed >= 500 else "decide", networks.table(settings, rows, [False]))


# Choosing ------------------------------------------------------------------------------------------------


def test_a_search_trains_every_gain_on_search_seeds() -> None:
    call = gain_search(SETTINGS, "digits", PLAIN)
    assert list(zip(call.settings.gains, call.settings.seeds, strict=True)) == [
        (gain, seed) for gain in (0.3, 1.0) for seed in (500, 501, 502)
    ]
    assert call.stage == "search"


def test_deciding_runs_take_no_part_in_choosing_a_gain() -> None:
    folded = Model("residual", "folded-1")
    results = Results(
        SETTINGS,
        [
            made("plain", 500, [0.5], gain=0.3),
            made("plain", 500, [0.4], gain=1.0),
            made("plain", 0, [0.1], gain=0.3),
            made("plain", 0, [0.9], gain=1.0),
            made(folded, 500, [0.9], gain=1.0),
            made(folded, 500, [0.8], gain=0.3),
        ],
    )
    assert WIDE.best_gain(results, "digits", PLAIN) == 0.3
    assert WIDE.best_gain(results, "digits", folded) == 1.0


def test_regularised_models_share_a_search() -> None:
    found = {(0.3, 0.0): 0.9, (1.0, 0.0): 0.2, (0.3, 0.5): 0.3, (1.0, 0.5): 0.6}
    parts = [
        made("bias-symm-break", 500, [value], gain, sigma=sigma) for (gain, sigma), value in found.items()
    ]
    results = Results(SETTINGS, parts)
    assert WIDE.best_gain(results, "digits", Model("bias-l2-reg")) == 0.3
    assert WIDE.best_gain(results, "digits", Model("bias-symm-break")) == 1.0


# Comparing -----------------------------------------------------------------------------------------------


def two_models() -> Results:
    """Plain nets are best at gain 1, residual ones at .3."""
    accuracy = {("plain", 0.3): 0.2, ("plain", 1.0): 0.6, ("residual", 0.3): 0.8, ("residual", 1.0): 0.4}
    parts = [
        made(model, seed, [value - 0.1, value + seed / 10000], gain)
        for (model, gain), value in accuracy.items()
        for seed in (1, 0, 500)
    ]
    return Results(SETTINGS, parts)


def rows_of(found: Any, results: Results) -> list[Evidence]:
    return list(found(results))


def test_comparisons_have_a_headline_at_best_gains_and_rows_at_each() -> None:
    rows = rows_of(compare(RESIDUAL, PLAIN), two_models())
    assert [(row.condition, row.headline) for row in rows] == [
        ("digits, best gains (0.3/1)", True),
        ("digits, gain 0.3", False),
        ("digits, gain 1", False),
    ]
    expected = [
        [[0.8, 0.8001], [0.6, 0.6001]],
        [[0.8, 0.8001], [0.2, 0.2001]],
        [[0.4, 0.4001], [0.6, 0.6001]],
    ]
    for row, samples in zip(rows, expected, strict=True):
        np.testing.assert_allclose(row.samples, samples, atol=1e-6)


def test_evidence_about_one_model() -> None:
    rows = rows_of(WIDE.each([PLAIN], accuracies), two_models())
    assert [(row.condition, row.headline, row.paired) for row in rows] == [
        ("digits, common gain 1", True, False),
        ("digits, gain 0.3", False, False),
    ]
    np.testing.assert_allclose(rows[0].samples, [[0.6, 0.6001]], atol=1e-6)


def test_quantities_other_than_accuracy_are_compared_at_a_common_gain() -> None:
    rows = rows_of(compare(RESIDUAL, PLAIN, accuracies), two_models())
    assert [(row.condition, row.headline) for row in rows] == [
        ("digits, common gain 1", True),
        ("digits, gain 0.3", False),
        ("digits, best gains (0.3/1)", False),
    ]
    np.testing.assert_allclose(rows[0].samples, [[0.4, 0.4001], [0.6, 0.6001]], atol=1e-6)
    own = rows_of(compare(RESIDUAL, PLAIN, accuracies, common=False), two_models())
    assert (own[0].condition, own[0].headline) == ("digits, best gains (0.3/1)", True)


def searched(plain: dict[float, float], residual: dict[float, float]) -> Results:
    """Models with these mean accuracies on search seeds, and runs that decide at every gain."""
    settings = dataclasses.replace(SETTINGS, gains=tuple(plain))
    pairs = [("plain", plain), ("residual", residual)]
    parts = [
        made(name, seed, [value], gain)
        for name, means in pairs
        for gain, value in means.items()
        for seed in (0, 1, 500)
    ]
    return Results(settings, parts)


@pytest.mark.parametrize(
    ("plain", "residual", "expected"),
    [
        # Glorot's where both learn (digits have ten classes: .15 and more), though another be better.
        ({0.3: 0.9, 1.0: 0.16}, {0.3: 0.9, 1.0: 0.9}, 1.0),
        # Otherwise where the worse of them learns best.
        ({0.1: 0.2, 0.3: 0.5, 1.0: 0.14}, {0.1: 0.9, 0.3: 0.4, 1.0: 0.9}, 0.3),
        ({0.1: 0.2, 0.3: 0.5}, {0.1: 0.9, 0.3: 0.1}, 0.1),
    ],
)
def test_the_common_gain(plain: dict[float, float], residual: dict[float, float], expected: float) -> None:
    assert WIDE.common_gain(searched(plain, residual), "digits", [PLAIN, RESIDUAL]) == expected


def test_gains_within_a_point_are_tied_and_the_one_nearest_to_glorots_is_taken() -> None:
    means = {0.1: 0.505, 0.3: 0.5, 1.414: 0.4951, 3.0: 0.48}
    results = searched(means, means)
    assert WIDE.best_gain(results, "digits", PLAIN) == 0.1
    # .4951 is tied with .505, .48 is not; the logarithm of 1.414 is nearer to that of 1 than .3's.
    assert WIDE.own_gain(results, "digits", PLAIN) == 1.414


@pytest.mark.parametrize(
    ("means", "gain", "expected"),
    [
        ({0.1: 0.5, 0.3: 0.4, 1.0: 0.3}, 0.1, 0.1),
        ({0.1: 0.3, 0.3: 0.4, 1.0: 0.6}, 1.0, 0.2),
        ({0.1: 0.3, 0.3: 0.4, 1.0: 0.2}, 0.3, 0.0),  # inside the grid
        ({0.1: 0.4, 0.3: 0.405, 1.0: 0.2}, 0.1, 0.0),  # tied: the last step brought nothing
        ({0.3: 0.4, 1.0: 0.6}, 1.0, 0.0),  # two gains have nothing between them
    ],
)
def test_what_the_last_step_of_a_grid_brought(
    means: dict[float, float], gain: float, expected: float
) -> None:
    assert last_step(means, gain) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("means", "gain", "expected"),
    [
        ({0.1: 0.505, 0.3: 0.5, 1.0: 0.3}, 0.3, 0.01),  # tied with the end, which is better by .005
        ({0.1: 0.5, 0.3: 0.4, 1.0: 0.3}, 0.1, 0.1),
        ({0.1: 0.3, 0.3: 0.505, 1.0: 0.5}, 1.0, 0.0),  # the best is inside: a tie is a tie
        ({0.3: 0.4, 1.0: 0.6}, 1.0, 0.0),
    ],
)
def test_a_tie_with_the_end_of_a_grid_is_not_bracketed(
    means: dict[float, float], gain: float, expected: float
) -> None:
    assert beyond_the_grid(means, gain) == pytest.approx(expected)


def test_a_model_is_nearer_to_another_than_to_a_third() -> None:
    """Its accuracy stands against the middle of theirs; what searches might bring is weighed alike."""
    hyper = Model("hyper-residual")
    more = [
        made(hyper, seed, [0.5 + 0.2 * (gain == 1.0)], gain) for gain in (0.3, 1.0) for seed in (0, 1, 500)
    ]
    results = Results(SETTINGS, [*two_models().parts, *more])
    best, *others = rows_of(nearer(hyper, RESIDUAL, PLAIN), results)
    assert (best.paired, best.headline, best.to_gain) == (True, True, (0.0, 0.0))
    own, middle = best.samples
    assert own == pytest.approx([0.7, 0.7], abs=1e-6)
    assert middle == pytest.approx([0.7, 0.7001], abs=1e-6)
    assert best.detail == "hyper-residual 0.700, residual 0.800, plain 0.600"
    assert not any(row.headline or row.to_gain for row in others)


def test_comparisons_at_best_gains_know_what_a_longer_search_might_bring() -> None:
    plain, residual = {0.1: 0.2, 0.3: 0.4, 1.0: 0.6}, {0.1: 0.9, 0.3: 0.8, 1.0: 0.4}
    results = searched(plain, residual)
    best, *others = rows_of(compare(RESIDUAL, PLAIN), results)
    assert best.to_gain == pytest.approx((0.1, 0.2), abs=1e-6)
    assert all(row.to_gain == () for row in others)
    strongest = rows_of(against_strongest(PLAIN, [PLAIN, RESIDUAL]), results)[0]
    assert strongest.to_gain == pytest.approx((0.2, 0.1), abs=1e-6)


def test_runs_are_paired_by_the_seeds_that_all_models_share() -> None:
    more = [made("plain", seed, [0.7], 1.0) for seed in (7, 3)]
    rows = rows_of(compare(RESIDUAL, PLAIN), two_models().and_then(more))
    assert all(row.paired for row in rows)
    np.testing.assert_allclose(rows[0].samples, [[0.8, 0.8001], [0.6, 0.6001]], atol=1e-6)
    left_out = rows_of(compare(RESIDUAL, PLAIN, accuracies, paired=False), two_models())
    assert not any(row.paired for row in left_out)


def test_networks_that_never_learn_are_counted_and_left_out_beside() -> None:
    dead = [made("residual", seed, [0.14], 0.3) for seed in (7, 8)]
    alive = [made("plain", seed, [0.6], 1.0) for seed in (7, 8)]
    rows = rows_of(compare(RESIDUAL, PLAIN), two_models().and_then([*dead, *alive]))
    every, learned = rows[:2]
    assert every.headline
    assert every.detail == "never learn: residual 2 of 4 (15 to 85 %); the mean is over all networks"
    np.testing.assert_allclose(every.samples[0], [0.8, 0.8001, 0.14, 0.14], atol=1e-6)
    assert (learned.condition, learned.headline) == ("digits, best gains (0.3/1), those that learn", False)
    np.testing.assert_allclose(learned.samples, [[0.8, 0.8001], [0.6, 0.6001]], atol=1e-6)


def test_the_strongest_and_the_weakest_rival_are_found_anew_in_every_condition() -> None:
    third = Model("hyper-residual")
    parts = [
        made(third.name, seed, [value], gain)
        for gain, value in ((0.3, 0.1), (1.0, 0.7))
        for seed in (0, 1, 500)
    ]
    results, models = two_models().and_then(parts), (PLAIN, RESIDUAL, third)
    strongest = rows_of(against_strongest(PLAIN, models), results)
    assert [row.detail for row in strongest] == [
        "against residual",
        "against residual",
        "against hyper-residual",
    ]
    weakest = rows_of(against_weakest(PLAIN, models), results)
    assert [row.detail for row in weakest] == [
        "against hyper-residual",
        "against hyper-residual",
        "against residual",
    ]
    np.testing.assert_allclose(weakest[0].samples, [[0.7, 0.7], [0.6, 0.6001]], atol=1e-6)


def test_gains_without_runs_of_all_models_are_passed_over_where_runs_are_sparse() -> None:
    whole = two_models()
    fewer = Results(SETTINGS, [part for part in whole.parts if not _decides_plain_at_one(part)])
    sparse = Gains(sparse=True)
    conditions = [each.words for each in sparse.conditions(fewer, [RESIDUAL, PLAIN])]
    assert conditions == ["digits, best gains (0.3/1)", "digits, gain 0.3"]
    assert len(list(WIDE.conditions(whole, [RESIDUAL, PLAIN]))) == 3


def _decides_plain_at_one(part: Part) -> bool:
    first = part.table.iloc[0]
    return part.stage == "decide" and (first["model"], first["gain"]) == ("plain", 1.0)


# Trials --------------------------------------------------------------------------------------------------


def test_without_tuning_one_stage_names_searches_and_deciding_runs() -> None:
    experiment = GainExperiment(PLAIN, RESIDUAL)
    (stage,) = experiment.stages
    calls = stage(Results(dataclasses.replace(SETTINGS, norms_at=(0, 2))))
    assert [(call.settings.model, call.stage) for call in calls] == [
        (model, stage) for model in ("plain", "residual") for stage in ("decide", "search")
    ]
    decide = calls[0].settings
    assert list(zip(decide.gains, decide.seeds, strict=True)) == [
        (gain, seed) for gain in (0.3, 1.0) for seed in (0, 1)
    ]
    assert (decide.norms_at, calls[1].settings.norms_at) == ((0, 2), ())
