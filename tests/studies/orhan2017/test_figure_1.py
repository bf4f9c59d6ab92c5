"""Figure 1's networks and claims: what the trial measures, and which number would contradict which claim."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pandas as pd
import pytest
import torch

from skiplab.reproduction.results import Results
from skiplab.reproduction.trial import Bench
from skiplab.reproduction.verdict import judge
from skiplab.studies.orhan2017.figure_1.study import STUDY, Settings, draws
from skiplab.studies.orhan2017.figure_1.trials import (
    COMMON,
    NETWORKS,
    OUTER,
    SYMMETRIES,
    RandomNetworks,
    changed_networks,
    random_network,
)

SMALL = Settings(runs=6, inputs=4, width=8, depth=4, outputs=3, samples=30, draws=4)


Judge = Callable[[pd.DataFrame], dict[tuple[str, str], str]]


@pytest.fixture(scope="module")
def results(carried_out: Callable[..., Results]) -> Results:
    return carried_out(STUDY, SMALL)


@pytest.fixture(scope="module")
def table(results: Results) -> pd.DataFrame:
    return results.frame


@pytest.fixture(scope="module")
def verdicts(results: Results, with_rows: Callable[..., Results]) -> Judge:
    """Judge the claims on a changed table."""
    return lambda frame: {
        (row.claim, row.condition): row.verdict for row in judge(STUDY, with_rows(results, frame), "quick")
    }


def test_every_network_is_changed_in_every_way(table: pd.DataFrame) -> None:
    counts = table.groupby(["network", "symmetry"]).size()
    assert set(counts.index) == {(name, way) for name in NETWORKS for way in (*SYMMETRIES, OUTER, COMMON)}
    assert all(counts[name, way] == 6 * 4 for name in NETWORKS for way in SYMMETRIES)
    assert all(counts[name, way] == 6 for name in NETWORKS for way in (OUTER, COMMON))
    rescaled = table[table["symmetry"] == "rescaling"]
    assert (rescaled["first"] < rescaled["last"]).all()
    assert rescaled["last"].max() <= SMALL.depth
    # Each run draws its own pairs.
    pairs = rescaled[rescaled["network"] == "plain"].groupby("seed")[["first", "last"]].agg(tuple)
    assert pairs.drop_duplicates().shape[0] > 1


def test_every_claim_holds(table: pd.DataFrame, verdicts: Judge) -> None:
    assert set(verdicts(table).values()) == {"holds"}


@pytest.mark.parametrize(
    ("network", "symmetry", "claim"),
    [
        ("plain, tanh", "permutation", "plain-permutation"),
        ("plain, linear", "rescaling", "plain-rescaling"),
        ("path-residual", "permutation", "path-residual-permutation"),
        ("residual", COMMON, "common-permutation-stays"),
        ("hyper-residual", OUTER, "outer-rescaling-stays"),
    ],
)
def test_one_output_that_moves_contradicts_a_symmetry(
    table: pd.DataFrame, verdicts: Judge, network: str, symmetry: str, claim: str
) -> None:
    changed = table.copy()
    rows = table.index[(table["network"] == network) & (table["symmetry"] == symmetry)]
    changed.loc[rows[1], "change"] = 1e-9
    assert {key for key, found in verdicts(changed).items() if found != "holds"} == {(claim, network)}


@pytest.mark.parametrize(
    ("network", "symmetry", "claim"),
    [
        ("residual", "permutation", "skips-break-permutation"),
        ("residual, linear", "rescaling", "skips-break-rescaling"),
        ("residual, skip from input", COMMON, "skip-from-input-orders-units"),
        ("residual, skip from input", OUTER, "skip-from-input-breaks-outer-rescaling"),
        ("path-residual", "rescaling", "skips-break-rescaling"),
        ("hyper-residual", COMMON, "far-skips-break-common-permutation"),
        ("plain, tanh", "rescaling", "rescaling-needs-homogeneous-units"),
    ],
)
def test_outputs_that_hardly_move_contradict_a_broken_symmetry(
    table: pd.DataFrame, verdicts: Judge, network: str, symmetry: str, claim: str
) -> None:
    changed = table.copy()
    rows = (table["network"] == network) & (table["symmetry"] == symmetry)
    changed.loc[rows, "change"] = 1e-3 * (1 + table.loc[rows, "seed"] / 100)
    assert {key for key, found in verdicts(changed).items() if found == "contradicted"} == {(claim, network)}


def test_networks_have_biases_and_do_not_depend_on_their_company() -> None:
    settings = RandomNetworks((0, 1), inputs=4, width=8, depth=3, outputs=2, samples=10, draws=2)
    first = random_network(settings, "residual", "relu", 1)
    assert all(bool((layer.linear.bias != 0).all()) for layer in first.hidden)
    assert next(first.parameters()).dtype == torch.float64
    both = changed_networks.function(settings, Bench())
    alone = changed_networks.function(dataclasses.replace(settings, seeds=(1,)), Bench())
    columns = ["network", "symmetry", "draw", "first", "last", "change"]
    mine = both.loc[both["seed"] == 1, columns].reset_index(drop=True)
    pd.testing.assert_frame_equal(mine, alone[columns].reset_index(drop=True), rtol=1e-9, atol=1e-14)


def test_trials_hold_all_runs_once() -> None:
    calls = draws(Results(dataclasses.replace(SMALL, runs=60)))
    assert [seed for call in calls for seed in call.settings.seeds] == list(range(60))
    assert [len(call.settings.seeds) for call in calls] == [25, 25, 10]


def test_the_figure_draws_both_changes_and_every_network(results: Results) -> None:
    axes = STUDY.figure(results).axes
    assert len(axes) == 6
    assert [tick.get_text() for tick in axes[4].get_yticklabels()] == [
        "Plain",
        "Plain, linear",
        "Plain, tanh",
        "Residual",
        "Residual, linear",
        "Residual, skip from input",
        "Hyper-residual",
        "Path-residual",
    ]
    for ax in axes[4:]:
        assert [len(line.get_xdata()) for line in ax.get_lines()][:8] == [6] * 8
