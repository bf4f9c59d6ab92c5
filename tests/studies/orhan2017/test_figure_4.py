from __future__ import annotations

import dataclasses
import math
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from skiplab.checks import Refused
from skiplab.reproduction.results import Part, Results
from skiplab.reproduction.study import Study
from skiplab.reproduction.trial import Bench
from skiplab.reproduction.verdict import judge
from skiplab.studies.orhan2017 import figure_4, figure_s1
from skiplab.studies.orhan2017.landscapes.experiment import by_target, largest_basins, smallest_basins
from skiplab.studies.orhan2017.landscapes.trials import ARCHITECTURES, Target, landscape, sparse_landscape

STUDIES = (figure_4.STUDY, figure_s1.STUDY)


QUANTITIES = (
    ("minima", 0),
    ("mean_walk_length", 0),
    ("mean_basin_size", 0),
    ("basin_size_log2", 0),
    *(("better_neighbours", count) for count in range(3)),
)
CarryOut = Callable[[Study, Any], Results]


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.id)
def test_smoke_tables_are_complete(study: Study, carried_out: CarryOut) -> None:
    table = carried_out(study, study.settings["smoke"]).rows(landscape)
    assert set(table["target"]) == {0, 1}
    assert tuple(table["architecture"].unique()) == ARCHITECTURES
    sums = table.groupby(["target", "architecture", "quantity"])["value"].sum().unstack()
    assert (sums["configurations"] == 2**10).all()
    assert (sums["better_neighbours"] == 2**10).all()
    assert (sums["walk_length"] == 2**10).all()
    assert (sums["basin_size_log2"] == sums["minima"]).all()
    assert sums["mean_basin_size"].tolist() == pytest.approx(
        (sums["configurations"] / sums["minima"]).tolist()
    )


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.id)
def test_claims_can_be_judged_and_the_figure_drawn(study: Study, carried_out: CarryOut) -> None:
    results = carried_out(study, dataclasses.replace(study.settings["smoke"], runs=6))
    verdicts = judge(study, results, "smoke")
    assert {verdict.claim for verdict in verdicts} == {claim.id for claim in study.claims}
    told = [verdict for verdict in verdicts if verdict.condition != "the paper's 23 parameters"]
    assert all(verdict.runs == 6 for verdict in told)
    figure = study.figure(results)
    assert [ax.get_xlabel() for ax in figure.axes] == [
        "better neighbours",
        "steps of the steepest walk",
        "basin size (configurations)",
    ]


def numbers(**values: list[float]) -> Results:
    """Results with given minima, walk lengths and basin sizes, one number per architecture and target."""
    rows = [
        (target, architecture.replace("_", "-"), quantity, place, value)
        for architecture, sample in values.items()
        for target, value in enumerate(sample)
        for quantity, place in QUANTITIES
    ]
    return results_of(pd.DataFrame(rows, columns=["target", "architecture", "quantity", "bin", "value"]))


def results_of(table: pd.DataFrame) -> Results:
    settings = dataclasses.replace(figure_4.STUDY.settings["smoke"], output_bias=False, few_points=None)
    return Results(settings, [Part(landscape.name, "targets", table)])


def test_evidence_compares_within_targets() -> None:
    results = numbers(
        plain=[9.0, 9.0, 1.0],
        path_residual=[8.0, 5.0, 2.0],
        residual=[7.0, 6.0, 3.0],
        hyper_residual=[1, 1, 4],
    )
    evidence = {claim.id: list(claim.evidence(results)) for claim in figure_4.STUDY.claims}
    steps = evidence["order-of-minima"]
    assert [row.condition for row in steps] == [
        "plain above path-residual",
        "path-residual above residual",
        "residual above hyper-residual",
    ]
    assert steps[1].samples == [[7.0, 6.0, 3.0], [8.0, 5.0, 2.0]]
    assert [row.detail for row in steps] == [f"in {right} of 3 targets" for right in (2, 1, 2)]
    assert all(row.paired and row.headline for row in steps)
    (walks,) = evidence["shortest-walks-plain"]
    assert walks.samples[0] == pytest.approx([math.log10(1 / 9), math.log10(1 / 9), math.log10(2)])
    minima = {row.condition: (row.samples, row.paper_value) for row in evidence["number-of-minima"]}
    assert minima["plain"] == ([[9.0, 9.0, 1.0]], 3.2e6)
    assert minima["hyper-residual"] == ([[1.0, 1.0, 4.0]], 54.0)


def test_basins_are_compared_by_random_minima_and_not_by_their_mean() -> None:
    """Three of four plain basins are smaller than any other, and one is so large that their mean is largest."""
    octaves = {
        "plain": {0: 3, 9: 1},
        "path-residual": {1: 2, 2: 2},
        "residual": {2: 4},
        "hyper-residual": {3: 1, 9: 1},
    }
    rows = [
        (target, name, "basin_size_log2", octave, float(count))
        for name, counts in octaves.items()
        for octave, count in counts.items()
        for target in range(6)
    ]
    results = results_of(pd.DataFrame(rows, columns=["target", "architecture", "quantity", "bin", "value"]))
    found = {row.condition: row.samples[0] for row in (*smallest_basins(results), *largest_basins(results))}
    assert found["plain below path-residual"] == pytest.approx([0.75 - 0.5] * 6)
    # The largest plain basin and one hyper-residual one lie in one octave: half of that pair.
    assert found["plain below hyper-residual"] == pytest.approx([0.75 + 0.25 * 0.5 * 0.5 - 0.5] * 6)
    assert found["hyper-residual above residual"] == pytest.approx([1 - 0.5] * 6)


def test_an_order_that_a_step_reverses_does_not_hold() -> None:
    right = {"plain": [9.0] * 20, "path_residual": [8.0] * 20, "hyper_residual": [1.0] * 20}

    def found(residual: list[float]) -> list[str]:
        rows = judge(figure_s1.STUDY, numbers(**right, residual=residual), "quick")
        return [row.verdict for row in rows if row.claim == "order-of-minima"]

    assert found([7.0] * 20) == ["holds"] * 3
    assert found([7.0] * 15 + [8.5] * 5) == ["holds"] * 3  # 15 of 20: sign test, p = .04
    assert found([7.0] * 10 + [8.5] * 10) == ["holds", "undecided", "holds"]
    assert found([8.5] * 20) == ["holds", "contradicted", "holds"]


def test_a_paper_value_below_all_of_20_targets_stays_undecided() -> None:
    table = {"plain": [3.2e6] * 20, "path_residual": [505e3] * 20, "residual": [140e3] * 20}
    rows = judge(figure_4.STUDY, numbers(**table, hyper_residual=[*range(70, 90)]), "quick")
    (hyper,) = [row for row in rows if row.condition == "hyper-residual" and row.claim == "number-of-minima"]
    assert (hyper.verdict, hyper.p) == ("undecided", pytest.approx(2 / 21))


def test_an_output_bias_and_few_points_are_readings_of_their_own(carried_out: CarryOut) -> None:
    settings = dataclasses.replace(figure_4.STUDY.settings["smoke"], runs=6)
    rows = judge(figure_4.STUDY, carried_out(figure_4.STUDY, settings), "smoke")
    for claim, architectures in (
        ("number-of-minima", list(figure_4.PAPER_MINIMA)),
        ("one-or-zero", ["plain"]),
    ):
        found = [(row.condition, row.headline) for row in rows if row.claim == claim]
        readings = (", 11 parameters, an output bias", ", targets of 8 points")
        further = [(f"{name}{reading}", False) for reading in readings for name in architectures]
        assert found == [(name, True) for name in architectures] + further


def test_targets_of_few_points_are_other_landscapes(carried_out: CarryOut) -> None:
    results = carried_out(figure_4.STUDY, figure_4.STUDY.settings["smoke"])
    few = by_target(results, "minima", sparse_landscape)
    direct = landscape.function(Target(seed=0, depth=2, points=8, weights=10), Bench())
    assert few.loc[0].tolist() == by_target(results_of(direct), "minima").loc[0].tolist()
    assert not few.equals(by_target(results, "minima"))


def test_the_share_with_one_or_no_better_neighbour_is_judged() -> None:
    def verdict(*counts: float) -> str:
        rows = [
            (target, "plain", "better_neighbours", number, count + target * (number == 2))
            for target in range(6)
            for number, count in enumerate(counts)
        ]
        table = pd.DataFrame(rows, columns=["target", "architecture", "quantity", "bin", "value"])
        claim = next(claim for claim in figure_4.STUDY.claims if claim.id == "one-or-zero")
        only = dataclasses.replace(figure_4.STUDY, claims=(claim,))
        (row,) = judge(only, results_of(table), "quick")
        return row.verdict

    assert verdict(50, 20, 30) == "holds"
    assert verdict(20, 20, 60) == "contradicted"


def test_an_output_sign_doubles_the_plain_minima() -> None:
    def minima(weights: int) -> float:
        table = landscape.function(Target(seed=0, depth=2, points=16, weights=weights), Bench())
        return float(by_target(results_of(table), "minima")["plain"].iloc[0])

    assert minima(11) == 2 * minima(10)


def test_weights_that_do_not_fit_the_depth_are_refused() -> None:
    with pytest.raises(Refused, match="weights is 22, but 3 hidden layers have 14 weights, or 15"):
        landscape.function(Target(seed=0, depth=3), Bench())


def test_figures_4_and_s1_see_the_same_targets_but_share_no_trial() -> None:
    calls = [study.stages[0](Results(study.settings["quick"])) for study in STUDIES]
    keys = [{call.key(str) for call in named} for named in calls]
    assert [call.settings.seed for call in calls[0]] == [call.settings.seed for call in calls[1]]
    assert not keys[0] & keys[1]


def test_the_declaration_is_light() -> None:
    """`skiplab list` must answer within a second, so declaring imports none of the heavy packages."""
    code = (
        "import sys; import skiplab.studies.orhan2017.figure_s1; "
        "sys.exit(', '.join({'torch', 'numpy', 'scipy', 'pandas'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
