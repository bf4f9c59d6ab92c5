"""Table 3's study on made-up weights, on which the paper is right or wrong, and at smoke scale."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from oracles.made_up_networks import Row, results_with, rows_by_condition, rows_of, verdicts, wiggle
from skiplab.reproduction import Results
from skiplab.reproduction.results import Part
from skiplab.reproduction.runner import results_of
from skiplab.reproduction.store import StudyRun
from skiplab.reproduction.study import Study
from skiplab.studies.yu2019.networks import Training, train
from skiplab.studies.yu2019.pairs import PLAIN, RESIDUAL
from skiplab.studies.yu2019.table_1 import STUDY as TABLE_1
from skiplab.studies.yu2019.table_3 import STUDY
from skiplab.studies.yu2019.table_3.evidence import (
    AFTER,
    BEFORE,
    DEVIATIONS,
    MASSES,
    MEANS,
    OUTER,
    TRAINED,
    above,
    fullest,
    histogram,
    peaks,
    quantiles,
)
from skiplab.studies.yu2019.table_3.trials import drawn_weights
from skiplab.studies.yu2019.weights import EDGES

PAPER = STUDY.settings["paper"]
BINS = len(EDGES) - 1
NEAR_ONE, AT_ZERO = EDGES.index(0.7), EDGES.index(0.0)
RIGHT: dict[str, Any] = {
    "moved_rms": 0.06,
    "moved": 40.0,
    "cosine": 0.6,
    "apart": 56.4,
    "strangers": 67.4,
    "apart_id": 0.6,
}


def made_up(
    settings: Any = PAPER,
    *,
    before: float = 1.0,
    after: float = 1.0,
    above_near_one: tuple[int, int] = (1, 26),
    **changes: Any,
) -> Results:
    """Weights as the table prints them, masses times ``before`` and ``after``; ``t_…``, ``p_…`` are after training.

    Histograms have 1 and 26 weights above .7, less or more in some networks, and 10,000 near 0.
    """
    numbers = RIGHT | changes
    stages: dict[str, list[Row]] = {"before": [], "train_pairs": []}
    draws = [
        {
            "seed": seed,
            "mean": 1e-4 * wiggle(seed),
            "above": above_near_one[0] + seed % 3 - 1,
            "magnitude": 2 * above_near_one[0] + seed % 3 - 1,
        }
        for seed in range(settings.drawn_runs)
    ]
    for model, name in ((PLAIN, "p"), (RESIDUAL, "t")):
        for stage, epoch, runs, masses, scale, which in (
            ("before", 0, settings.untrained_runs, BEFORE, before, 0),
            ("train_pairs", settings.epochs, settings.deep_runs, AFTER, after, 1),
        ):
            if stage == "train_pairs" and not settings.trained:
                continue
            own = {quantity: scale * masses[model][place] for place, quantity in enumerate(MASSES)}
            own["mass_id_large"] = 0.9 * own["mass_id"]
            own |= {"std": DEVIATIONS[model][which], "mean": MEANS[model][which], **numbers}
            own |= {
                key.removeprefix(f"{name}_"): each
                for key, each in changes.items()
                if which and key[:2] == f"{name}_"
            }
            for quantity, number in own.items():
                spread = 0.003 * abs(number)
                if quantity == "mean" and model == PLAIN and not which:
                    spread = 1e-4
                values = [number + spread * wiggle(seed) for seed in range(runs)]
                stages[stage] += rows_of(model, 32, quantity, values, epoch=epoch)
            many = above_near_one[which]
            for number in range(BINS):
                zeros = 10_000 if number == AT_ZERO else 0
                counts = [many + seed % 3 - 1 if number == NEAR_ONE else zeros for seed in range(runs)]
                stages[stage] += rows_of(model, 32, "histogram", counts, epoch=epoch, layer=number)
                stages[stage] += rows_of(model, 32, "histogram_id", counts, epoch=epoch, layer=number)
    found = results_with(settings, stages)
    drawn = Part(drawn_weights.name, "draw_weights", pd.DataFrame(draws))
    return Results(settings, [*found.parts, drawn])


def test_on_the_papers_numbers_every_claim_holds() -> None:
    # Table 3 implies that training moves p by about .7 of ‖p₀ − t₀‖.
    held = {claim.id: "holds" for claim in STUDY.claims} | {"mode-stays-high": "undecided"}
    wrong = {"changes-below-half-the-distance": "contradicted"}
    assert verdicts(STUDY, made_up()) == held | wrong
    assert verdicts(STUDY, made_up(moved=20.0)) == held


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"before": 1.1}, {"masses-before"}),
        ({"before": 0.9}, {"masses-before"}),
        ({"after": 1.2}, {"masses-after"}),
        ({"after": 0.8}, {"masses-after"}),
        ({"t_mass_id": 900.0}, {"large-weights-are-id"}),
        ({"p_mass_id": 90.0}, {"masses-after", "plain-id-share"}),
        ({"moved_rms": 0.15}, {"changes-small-beside-one"}),
        ({"t_moved": 60.0}, {"changes-small-beside-distance", "changes-below-half-the-distance"}),
        ({"apart_id": 0.34}, {"separated-by-id"}),
        ({"strangers": 50.0}, {"strangers-farther"}),
        ({"moved": 40.0}, {"changes-below-half-the-distance"}),
        ({"above_near_one": (1, 400)}, {"outer-percents-stay"}),
    ],
)
def test_other_numbers_contradict(changes: dict[str, Any], wrong: set[str]) -> None:
    found = verdicts(STUDY, made_up(**{"moved": 20.0, **changes}))
    assert {claim for claim, verdict in found.items() if verdict == "contradicted"} == wrong


def test_the_mode_waits_for_the_papers_bins_and_is_shown_in_several() -> None:
    rows = rows_by_condition(STUDY, made_up(), "mode-stays-high")
    judged = [row for row in rows.values() if row.headline]
    assert [(row.missing, row.runs) for row in judged] == [("not said", 0)]
    assert "depends on their width" in judged[0].detail
    further = {name: row.statistic for name, row in rows.items() if not row.headline}
    assert list(further) == [
        "t after training, bins of .025",
        "t after training, bins of .05 around .9",
        "t after training, bins of .1 from tenth to tenth",
        "t after training, a Gaussian of deviation .1 for bins",
    ]


def test_the_fullest_bin_depends_on_the_bins() -> None:
    """A little more in one narrow bin than around it, and most of the rest below."""
    edges = np.asarray(EDGES)
    counts = np.zeros((1, BINS))
    for value, many in ((0.9, 8), (0.925, 8), (0.95, 8), (1.0, 11)):
        counts[0, EDGES.index(value)] = many
    assert fullest(counts, edges, 1, 0) == pytest.approx([1.0125])
    assert fullest(counts, edges, 2, 1) == pytest.approx([0.95])
    assert fullest(counts, edges, 4, 0) == pytest.approx([0.95])
    assert 0.93 < peaks(counts, edges)[0] < 0.97


def test_a_number_that_none_of_our_networks_has_does_not_hold() -> None:
    found = verdicts(STUDY, made_up(above_near_one=(30, 40)))
    assert found["one-of-ours-before"] == "contradicted"
    # A few networks cannot contradict that a further one is drawn from the same law.
    assert found["one-of-ours-after"] == "undecided"
    assert {claim.source for claim in STUDY.claims if claim.id == "one-of-ours-after"} == {"ours"}


def test_without_training_only_what_precedes_it_is_judged() -> None:
    found = verdicts(STUDY, made_up(dataclasses.replace(PAPER, trained=False)))
    assert {claim for claim, verdict in found.items() if verdict == "holds"} == {
        "masses-before",
        "moments-before",
        "one-of-ours-before",
        "separated-by-id",
        "strangers-farther",
    }
    assert set(found.values()) == {"holds", "undecided"}
    rows = rows_by_condition(STUDY, made_up(dataclasses.replace(PAPER, trained=False)), "masses-after")
    assert all("not trained here" in row.detail for row in rows.values())


def test_printed_numbers_after_training_are_judged_at_the_papers_length_alone() -> None:
    shorter = verdicts(STUDY, made_up(dataclasses.replace(PAPER, images=1000), after=2.0))
    assert shorter["masses-after"] == shorter["mode-stays-high"] == "undecided"
    assert shorter["masses-before"] == "holds"


def test_entries_above_seven_tenths_are_counted_from_the_histogram() -> None:
    results = made_up()
    assert above(results, TRAINED).tolist() == [25, 26, 27, 25, 26, 27]
    counts, edges = histogram(results, PLAIN, "histogram", TRAINED)
    assert counts.shape == (6, BINS)
    assert edges[NEAR_ONE] == 0.7


def test_draws_are_the_untrained_networks_of_the_same_seeds(smoke: Results) -> None:
    drawn = smoke.rows(drawn_weights)
    before = smoke.rows(train, stage="before", model=PLAIN, depth=8, quantity="mean")
    np.testing.assert_allclose(drawn["mean"], before["value"], rtol=1e-6)
    assert (drawn["magnitude"] >= drawn["above"]).all()


def test_quantiles_of_binned_weights_are_those_of_the_weights_up_to_a_bin() -> None:
    weights = np.random.default_rng(0).normal(0.2, 0.15, (2, 20_000))
    counts = np.stack([np.histogram(each, EDGES)[0] for each in weights])
    np.testing.assert_allclose(
        quantiles(counts, np.asarray(EDGES)), np.quantile(weights, OUTER, axis=1).T, atol=0.005
    )


def test_trained_networks_are_those_of_table_1() -> None:
    for scale in ("smoke", "quick", "paper"):
        before, _, pairs = (stage(Results(STUDY.settings[scale])) for stage in STUDY.stages)
        assert set(pairs) == set(TABLE_1.stages[0](Results(TABLE_1.settings[scale])))
        assert all(call.settings.training.epochs == 0 for call in before)
    untrained = {call.settings for call in STUDY.stages[0](Results(STUDY.settings["quick"]))}
    assert {(each.depth, each.filters) for each in untrained} == {(d, (16, 32, 64)) for d in (20, 32, 44)}
    assert {each.training for each in untrained} == {Training(images=32, epochs=0, drops=())}


@pytest.fixture
def smoke(smoke_run: Callable[[Study], StudyRun]) -> Results:
    return results_of(STUDY, smoke_run(STUDY))


def test_the_figure_has_histograms_and_masses(smoke: Results) -> None:
    figure = STUDY.figure(smoke)
    assert len(figure.axes) == 6
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == [
        "p (plain)",
        "t (residual)",
    ]
    assert figure.axes[5].get_yscale() == "log"
    bare = STUDY.figure(made_up(dataclasses.replace(PAPER, trained=False)))
    assert len(bare.axes) == 3
