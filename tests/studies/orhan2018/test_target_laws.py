"""What BiasReg's accuracy follows: correlations over searched triples, and the control with constant targets."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats

from skiplab.experiments import networks
from skiplab.experiments.gains import WIDE
from skiplab.experiments.networks import Member, Training
from skiplab.reproduction.results import Part, Results
from skiplab.reproduction.verdict import Verdict, judge
from skiplab.studies.orhan2018 import figure_5
from skiplab.studies.orhan2018.target_laws import CONTROL, constant_targets, follows, spread_matters

SETTINGS = dataclasses.replace(
    figure_5.STUDY.settings["smoke"], runs=6, gains=(0.3, 1.0), triples=12, control_runs=5
)
TRIPLES = [(place / 12, 0.1 * (1 + place * 7 % 12), 0.01) for place in range(12)]


def trained(members: Sequence[Member], accuracy: Sequence[float], stage: str) -> Part:
    """BiasReg networks of a stage."""
    named = networks.together(Training(epochs=1), "digits", "bias-reg", members)
    rows = [
        {"member": number, "epoch": 1, "quantity": "accuracy", "layer": 0, "value": value}
        for number, value in enumerate(accuracy)
    ]
    return Part("", stage, networks.table(named, rows, [False] * len(members)))


def found(random: float, constant: float) -> Results:
    """A search in which accuracy grows with μ, better at gain 1; six runs with the best triple, five with σ = 0."""
    tried = [(gain, triple) for gain in SETTINGS.gains for triple in TRIPLES]
    searched = [Member(500, gain, sigma, strength, mean) for gain, (mean, sigma, strength) in tried]
    accuracy = [0.2 + mean / 2 + (gain == 1.0) / 10 for gain, (mean, _, _) in tried]
    mean, sigma, strength = TRIPLES[-1]
    decided = [Member(seed, 1.0, sigma, strength, mean) for seed in range(6)]
    control = [Member(seed, 1.0, 0.0, strength, mean) for seed in range(5)]
    parts = [trained(searched, accuracy, WIDE.search)]
    for members, middle, stage in ((decided, random, WIDE.decide), (control, constant, CONTROL)):
        parts.append(trained(members, [middle + member.seed / 100 for member in members], stage))
    return Results(SETTINGS, parts)


def judged(claim: str, results: Results) -> list[Verdict]:
    chosen = [each for each in figure_5.STUDY.claims if each.id == claim]
    return judge(dataclasses.replace(figure_5.STUDY, claims=chosen), results, "quick")


def test_correlations_are_over_triples_at_the_own_gain() -> None:
    rows = list(follows("sigma")(found(0.7, 0.7)))
    assert [(row.condition, row.headline) for row in rows] == [
        ("digits, 12 triples, gain 0.3", False),
        ("digits, 12 triples, gain 1", True),
    ]
    means, sigmas, _ = zip(*TRIPLES, strict=True)
    rho = stats.spearmanr(sigmas, means).statistic
    assert rows[1].detail.startswith(f"ρ = {rho:+.2f}; best μ = 0.92, σ = ")
    assert [len(row.samples[0]) for row in rows] == [12, 12]


def test_accuracy_that_grows_with_the_mean_says_so() -> None:
    (row,) = (row for row in judged("accuracy-follows-mean", found(0.7, 0.7)) if row.headline)
    assert (row.verdict, row.ours) == ("holds", True)
    (row,) = (row for row in judged("accuracy-follows-spread", found(0.7, 0.7)) if row.headline)
    assert row.verdict != "holds"


@pytest.mark.parametrize(("constant", "verdict"), [(0.6, "holds"), (0.7, "contradicted")])
def test_the_control_is_paired_by_seed(constant: float, verdict: str) -> None:
    (row,) = judged("spread-matters", found(0.7, constant))
    assert (row.verdict, row.runs, row.paired) == (verdict, 5, True)
    assert row.statistic == pytest.approx(0.7 - constant, abs=1e-6)


def test_without_a_control_nothing_is_said_of_it() -> None:
    none = Results(dataclasses.replace(SETTINGS, control_runs=0), found(0.7, 0.7).parts)
    assert list(spread_matters(none)) == []


def test_the_control_has_the_best_triples_mean_and_no_spread() -> None:
    named = constant_targets(found(0.7, 0.7), "digits").settings
    mean, _, strength = TRIPLES[-1]
    assert (set(named.means), set(named.sigmas), set(named.strengths)) == ({mean}, {0.0}, {strength})
    assert (set(named.gains), named.seeds) == ({1.0}, tuple(range(5)))
    assert np.all(np.equal(named.seeds, networks.final_seeds(SETTINGS.seed, 5)))
