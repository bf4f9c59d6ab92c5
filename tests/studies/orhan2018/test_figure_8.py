"""Figure 8's trials and claims, on tables with numbers of our choosing."""

from __future__ import annotations

import dataclasses
from itertools import product
from typing import Any

import numpy as np
import pytest

from skiplab.experiments import networks
from skiplab.experiments.networks import Member
from skiplab.experiments.skip_networks import skip_of
from skiplab.reproduction.results import Part, Results
from skiplab.reproduction.trial import Bench
from skiplab.reproduction.verdict import judge
from skiplab.studies.orhan2018.figure_8 import STUDY
from skiplab.studies.orhan2018.figure_8.study import train

TAUS = (0.0, 0.2, 0.4)
SETTINGS = dataclasses.replace(STUDY.settings["smoke"], runs=6, gains=(1.0,), taus=TAUS, depth=5)


def results_of(accuracy: tuple[float, ...], slopes: tuple[float, ...], factor: float = 1.5) -> Results:
    """One accuracy and one slope of log gradient norms per τ; slopes > 0 shrink gradients on their way down.

    Mean norms are ``factor`` times larger with each τ.
    """
    matrices = train(Results(SETTINGS))[0]
    parts = [Part(matrices.trial.name, matrices.stage, matrices.trial.function(matrices.settings, Bench()))]
    conditions = product(zip(TAUS, accuracy, slopes, strict=True), (("decide", range(6)), ("search", [500])))
    for (tau, reached, slope), (stage, seeds) in conditions:
        members = [Member(seed, 1.0) for seed in seeds]
        rows: list[dict[str, Any]] = []
        for number, member in enumerate(members):
            shift = (member.seed % 500) / 1000
            common = {"member": number, "layer": 0}
            rows.append(common | {"epoch": 1, "quantity": "accuracy", "value": reached + shift})
            layers = np.arange(SETTINGS.depth) - (SETTINGS.depth - 1) / 2
            norms = factor ** TAUS.index(tau) * np.exp((slope + shift) * layers)
            rows += [
                common | {"epoch": 0, "quantity": "gradient_norm", "layer": layer, "value": norm}
                for layer, norm in enumerate(norms.tolist(), 1)
            ]
        named = networks.together(SETTINGS.training, "digits", "residual", members, skip=skip_of(tau))
        table = networks.table(named, rows, [False] * len(members))
        parts.append(Part(networks.train.name, stage, table))
    return Results(SETTINGS, parts)


@pytest.mark.parametrize(
    ("accuracy", "slopes", "verdict"),
    [
        ((0.9, 0.7, 0.5), (0.0, 0.3, -0.5), "holds"),  # over four layers .3 is less than ln 10
        ((0.5, 0.7, 0.9), (0.0, 0.8, 1.5), "contradicted"),
    ],
)
def test_claims_follow_the_numbers(
    accuracy: tuple[float, ...], slopes: tuple[float, ...], verdict: str
) -> None:
    factor = 1.5 if verdict == "holds" else 0.8
    rows = [row for row in judge(STUDY, results_of(accuracy, slopes, factor), "quick") if row.headline]
    circle = [row for row in rows if row.claim == "unit-circle"]
    assert [(row.condition, row.verdict) for row in circle] == [(f"τ = {tau:g}", "holds") for tau in TAUS]
    rows = [row for row in rows if row not in circle]
    assert [(row.claim, row.condition, row.verdict) for row in rows] == [
        ("gradients-do-not-vanish", "tau-0.2, digits, common gain 1", verdict),
        ("gradients-do-not-vanish", "tau-0.4, digits, common gain 1", verdict),
        ("norms-are-larger", "tau-0.2, digits, common gain 1", verdict),
        ("norms-are-larger", "tau-0.4, digits, common gain 1", verdict),
        ("accuracy-falls-with-tau", "digits, best gains (1)", verdict),
    ]
    assert rows[3].statistic == pytest.approx(2 * np.log(factor), abs=1e-4)
    assert rows[0].statistic == pytest.approx(4 * (slopes[0] - slopes[1]), abs=1e-4)
    assert rows[4].statistic == (1.0 if verdict == "holds" else 0.0)


def test_a_matrix_that_leaves_the_circle_contradicts_it() -> None:
    results = results_of((0.9, 0.7, 0.5), (0.0, 0.3, -0.5))
    table = results.parts[0].table
    first = table.index[(table["quantity"] == "modulus") & (table["skip"] == "tau-0.2")][0]
    table.loc[first, "value"] = 1.0001
    rows = [row for row in judge(STUDY, results, "quick") if row.claim == "unit-circle"]
    assert [row.verdict for row in rows] == ["holds", "contradicted", "holds"]
    # No distance is told that float32 cannot resolve.
    assert rows[0].statistic is not None
    assert 2**-24 <= rows[0].statistic < 1e-6


def test_every_tau_is_searched_and_decided_and_its_matrices_are_those_of_the_networks_width() -> None:
    matrices, *rest = train(Results(SETTINGS))
    assert (matrices.settings.taus, matrices.settings.width) == (TAUS, SETTINGS.width)
    assert [(call.settings.skip, call.stage, call.settings.seeds[0]) for call in rest] == [
        (skip, *stage)
        for skip in ("tau-0.4", "tau-0.2", "tau-0")
        for stage in (("decide", 0), ("search", 500))
    ]
    assert {call.settings.norms_at for call in rest if call.stage == "decide"} == {(0,)}


@pytest.mark.parametrize("scale", ["quick", "paper"])
def test_the_construction_exists_at_every_declared_tau(scale: str) -> None:
    """Names are read back as the same numbers, and no correlation matrix is singular at the scale's width."""
    settings = STUDY.settings[scale]
    call = train(Results(dataclasses.replace(settings, draws=1)))[0]
    frame = call.trial.function(call.settings, Bench())
    assert frame["value"].notna().all()
    assert [float(str(skip).removeprefix("tau-")) for skip in frame["skip"].unique()] == list(settings.taus)


def test_the_figure_shows_spectra_above_and_networks_below() -> None:
    figure = STUDY.figure(results_of((0.9, 0.7, 0.5), (0.0, 0.3, -0.5)))
    shown = [ax for ax in figure.axes if ax.get_visible()]
    assert len(shown) == 5  # one data set here
    assert [line.get_label() for line in shown[4].get_lines()] == [
        f"τ = {tau}, g = 1" for tau in ("0", "0.2", "0.4")
    ]
    assert shown[3].get_ylabel() == "gradient norm over that at τ = 0"
