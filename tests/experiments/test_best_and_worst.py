"""Best against worst: who is chosen, which trials are named, and what claims say of tables of our choosing."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pytest
from scipy import stats

from skiplab.checks import Refused
from skiplab.experiments import best_and_worst
from skiplab.experiments import measured_networks as networks
from skiplab.experiments import networks as earlier
from skiplab.experiments.best_and_worst import NARROW, WIDE_UNITS, Settings
from skiplab.experiments.measured_networks import Measured, train_and_measure
from skiplab.experiments.networks import SQRT2, Member, Networks, Training
from skiplab.randomness import numpy_generator
from skiplab.reproduction.trial import Bench
from skiplab.reproduction.verdict import judge
from skiplab.studies.orhan2018 import figure_s2

FIGURES = [figure_s2]
SETTINGS = Settings(
    **figure_s2.SMOKE
    | {"runs": 16, "other_runs": 14, "wide_runs": 16, "extremes": 6, "gains": (0.3, SQRT2)}
    | {"shown_gains": (1.0,)}
)
Values = Mapping[str, float]


Network = tuple[
    int, Sequence[float], Sequence[Values]
]  # seed, accuracies, what was measured at epochs 0, 1, …


def table_of(part: str, gain: float, found: Sequence[Network]) -> pd.DataFrame:
    """The table that a trial leaves of these networks."""
    rows: list[dict[str, Any]] = []
    for member, (_, accuracies, values) in enumerate(found):
        common = {"member": member, "layer": 0}
        for epoch, accuracy in enumerate(accuracies, 1):
            rows.append(common | {"epoch": epoch, "quantity": "accuracy", "value": accuracy})
        for epoch, measured in enumerate(values):
            rows += [
                common | {"epoch": epoch, "quantity": name, "value": measured[name]} for name in measured
            ]
    seeds = tuple(seed for seed, _, _ in found)
    settings = Networks("digits", "plain", seeds, (gain,) * len(seeds), Training())
    frame = earlier.table(settings, rows, [False] * len(seeds))
    return frame if part == "wide" else frame.assign(part=part)


@functools.cache
def searched() -> pd.DataFrame:
    """Searches in which √2 is best for small networks and .3 at the paper's width."""
    small = {0.3: 0.1, SQRT2: 0.5}
    wide = {0.3: 0.6, SQRT2: 0.2}
    return networks.joined(
        [
            table_of(part, gain, [(500, [value], [])])
            for part, by_gain in ((NARROW, small), ("wide", wide))
            for gain, value in by_gain.items()
        ]
    )


def group(part: str, gain: float, count: int, sign: float) -> pd.DataFrame:
    """Networks whose accuracy grows with the seed; with sign 1 all else goes with it as the paper says."""
    found: list[Network] = []
    for seed in range(count):
        up = sign * seed / count
        wobble = 0.003 * (seed * 7 % 5)
        value = {
            "degenerate": 0.5 - 0.3 * up + wobble,
            "negative": 0.2 + 0.1 * up + wobble,
            "norm": 1.0 + up + wobble,
            "overlap": 0.2 - 0.1 * up + wobble,
            "dependence": 0.7 - 0.2 * up + wobble,
            "test_accuracy": 0.1 + 0.1 * up,
        }
        if part == WIDE_UNITS:
            value = {name: value[name] for name in ("norm", "overlap", "dependence")}
        found.append((seed, [0.1 + seed / 100], [value, value]))
    return table_of(part, gain, found)


@functools.cache
def whole_table(sign: float = 1.0) -> pd.DataFrame:
    conditions = [(NARROW, SQRT2, 16), (NARROW, 1.0, 14), (WIDE_UNITS, 0.3, 16), (WIDE_UNITS, 1.0, 16)]
    return networks.joined([searched(), *(group(*condition, sign) for condition in conditions)])


# Who is best and who is worst ----------------------------------------------------------------------------


@pytest.mark.parametrize("first", [0, 20, 40])
def test_the_study_finds_the_networks_that_the_trial_chose(first: int, tmp_path: Path) -> None:
    """With 30 images and two epochs many networks tie, or nearly, also where a group ends."""
    training = Training(depth=2, width=3, images=30, epochs=3, batch_size=30)
    members = [Member(seed, 1.0) for seed in range(first, first + 14)]
    named = earlier.together(training, "digits", "plain", members)
    frame = train_and_measure.function(Measured(named, NARROW, at=(0,), units=20, extremes=4), Bench())
    means = frame[frame["quantity"] == "accuracy"].groupby("seed")["value"].mean().round(6)
    assert means.nunique() < len(means), "no ties: this would not test what it is meant to"
    frame.to_parquet(tmp_path / "table.parquet")
    stored = pd.read_parquet(tmp_path / "table.parquet")
    best, worst = best_and_worst.groups(stored, dataclasses.replace(SETTINGS, extremes=4))
    measured = set(frame[frame["quantity"] == "norm"]["seed"])
    assert set(best["seed"]) | set(worst["seed"]) == measured
    assert (best["seed"].nunique(), worst["seed"].nunique()) == (4, 4)
    assert means[list(set(best["seed"]))].min() >= means[list(set(worst["seed"]))].max()


def test_rounding_in_the_table_does_not_change_the_choice() -> None:
    """Sums of thirtieths tie often; in which order they come must not hang on digits the table does not keep."""
    generator = numpy_generator("ties")
    for _ in range(20):
        hits = generator.integers(0, 4, size=(5, 14))
        curves = [(hits[:, member] / 30).tolist() for member in range(14)]
        rows = [
            {"member": member, "quantity": "accuracy", "value": curve[epoch]}
            for epoch in range(5)
            for member, curve in enumerate(curves)
        ]
        measured = networks.chosen(rows, 14, 4)
        frame = table_of(NARROW, 1.0, [(seed, curve, []) for seed, curve in enumerate(curves)])
        best, worst = best_and_worst.groups(frame, dataclasses.replace(SETTINGS, extremes=4))
        assert (set(best["seed"]), set(worst["seed"])) == (set(measured[:4]), set(measured[4:]))


def test_groups_are_by_accuracy_averaged_over_epochs() -> None:
    curves = [(0.1, 0.9), (0.6, 0.6), (0.2, 0.3), (0.3, 0.4)]
    frame = table_of(NARROW, 1.0, [(seed, both, []) for seed, both in enumerate(curves)])
    best, worst = best_and_worst.groups(frame, dataclasses.replace(SETTINGS, extremes=1))
    assert (set(best["seed"]), set(worst["seed"])) == ({1}, {2})
    # Of four networks no more than two can be best without being worst as well.
    best, worst = best_and_worst.groups(frame, dataclasses.replace(SETTINGS, extremes=3))
    assert (set(best["seed"]), set(worst["seed"])) == ({0, 1}, {2, 3})


# Trials --------------------------------------------------------------------------------------------------


def test_each_size_is_trained_at_its_best_gain_and_at_the_shown_ones() -> None:
    calls = [call.settings for call in best_and_worst.decide(SETTINGS, [searched()])]
    named = {(each.part, each.networks.gains[0]): each for each in calls}
    assert set(named) == {(NARROW, SQRT2), (NARROW, 1.0), (WIDE_UNITS, 0.3), (WIDE_UNITS, 1.0)}
    assert len(calls) == len(named)
    assert {key: len(each.networks.seeds) for key, each in named.items()} == {
        (NARROW, SQRT2): 16,
        (NARROW, 1.0): 14,
        (WIDE_UNITS, 0.3): 16,
        (WIDE_UNITS, 1.0): 16,
    }
    for (part, _), each in named.items():
        small = part == NARROW
        assert each.networks.training == (SETTINGS.narrow_training if small else SETTINGS.training)
        assert (each.exact, each.extremes) == ((40, 6) if small else (0, 0))
        assert (each.units, each.at) == (40, (0, 1))
        assert each.networks.seeds[0] == 0


def test_what_is_left_out_is_not_trained() -> None:
    found = [searched()]

    def parts(**changes: Any) -> list[tuple[str, float, int]]:
        calls = best_and_worst.decide(dataclasses.replace(SETTINGS, **changes), found)
        return [
            (call.settings.part, call.settings.networks.gains[0], len(call.settings.networks.seeds))
            for call in calls
        ]

    assert parts(wide_runs=0, other_runs=0) == [(NARROW, SQRT2, 16)]
    assert parts(wide_runs=0, shown_gains=()) == [(NARROW, SQRT2, 16)]
    assert parts(wide_runs=0, shown_gains=(SQRT2,)) == [(NARROW, SQRT2, 16)]
    assert parts(wide_runs=0, shown_gains=(), narrow_runs=8) == [(NARROW, SQRT2, 8)]
    assert len(best_and_worst.search(dataclasses.replace(SETTINGS, wide_runs=0), [])) == 1
    with pytest.raises(Refused, match="is 1, but must be at least 2"):
        parts(runs=1)


def test_no_network_is_both_best_and_worst_whatever_the_overrides() -> None:
    few = dataclasses.replace(SETTINGS, runs=5, shown_gains=(), wide_runs=0)
    (call,) = best_and_worst.decide(few, [searched()])
    assert call.settings.extremes == 2


# Claims --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.STUDY.id)
@pytest.mark.parametrize(("sign", "verdict"), [(1.0, "holds"), (-1.0, "contradicted")])
def test_claims_follow_the_groups(figure: ModuleType, sign: float, verdict: str) -> None:
    rows = judge(figure.STUDY, whole_table(sign), SETTINGS, "quick")
    assert {row.claim for row in rows} == {claim.id for claim in figure.STUDY.claims}
    assert {row.verdict for row in rows} == {verdict}
    assert {row.runs for row in rows} == {6}
    headlines = {row.condition for row in rows if row.headline}
    assert headlines == {"epoch 1, digits, best gain 1.41"}


def test_differences_are_those_of_the_groups() -> None:
    rows = judge(figure_s2.STUDY, whole_table(), SETTINGS, "quick")
    (norm,) = (row for row in rows if row.headline and row.claim == "best-larger-norms")
    # Seeds 10–15 against 0–5 of 16, and the wobbles 0, 6, 12, 3, 9 thousandths of seeds 0–4, in turn.
    wobble = (0.0 + 6 + 12 + 3 + 9 + 0) / 6000
    assert norm.means == pytest.approx((1 + 12.5 / 16 + wobble, 1 + 2.5 / 16 + wobble), abs=1e-6)
    further = {row.condition for row in rows if row.claim == "best-larger-norms" and not row.headline}
    assert further == {
        "epoch 0, digits, best gain 1.41",
        *(f"epoch {epoch}, digits, gain 1" for epoch in (0, 1)),
        *(f"epoch {epoch}, digits, full width, best gain 0.3" for epoch in (0, 1)),
        *(f"epoch {epoch}, digits, full width, gain 1" for epoch in (0, 1)),
    }
    spectra = {row.condition for row in rows if row.claim == "best-less-degenerate"}
    assert not any("full width" in condition for condition in spectra)


def test_a_network_that_diverged_is_missed_by_name() -> None:
    frame = whole_table()
    lost = (frame["seed"] == 2) & (frame["quantity"] == "norm") & (frame["part"] == NARROW)
    rows = judge(figure_s2.STUDY, frame[~lost], SETTINGS, "quick")
    (norm,) = (row for row in rows if row.headline and row.claim == "best-larger-norms")
    assert norm.runs == 5
    assert norm.detail == "1 of these networks diverged and was not measured"


# Rank correlations ---------------------------------------------------------------------------------------


def correlated(values: Sequence[float], accuracies: Sequence[float]) -> tuple[float, float, float]:
    pairs = enumerate(zip(values, accuracies, strict=True))
    found = [(seed, [accuracy], [{"norm": value}]) for seed, (value, accuracy) in pairs]
    return best_and_worst.rank_correlation(table_of(WIDE_UNITS, 1.0, found), "norm", 0)


def test_rank_correlations_are_spearmans_ties_included() -> None:
    values, accuracies = [3.0, 1.0, 2.0, 2.0, 5.0, 4.0], [0.3, 0.1, 0.4, 0.2, 0.6, 0.4]
    rho, low, high = correlated(values, accuracies)
    assert rho == pytest.approx(float(stats.spearmanr(values, accuracies).statistic), abs=1e-12)
    reach = 1.959963984540054 * math.sqrt((1 + rho**2 / 2) / 3)
    assert (math.atanh(low), math.atanh(high)) == pytest.approx(
        (math.atanh(rho) - reach, math.atanh(rho) + reach), abs=1e-9
    )


def test_rank_correlations_at_their_ends() -> None:
    assert correlated([1, 2, 3, 4], [0.1, 0.2, 0.3, 0.4]) == (1, 1, 1)
    assert correlated([1, 2, 3, 4], [0.4, 0.3, 0.2, 0.1]) == (-1, -1, -1)
    assert all(math.isnan(each) for each in correlated([2, 2, 2, 2], [0.4, 0.3, 0.2, 0.1]))
    assert all(math.isnan(each) for each in correlated([1, 2, 3], [0.1, 0.2, 0.3]))


def test_rows_at_full_width_give_the_correlation_over_all_networks() -> None:
    rows = list(best_and_worst.compared(whole_table(), SETTINGS, "norm", "best", "worst"))
    wide = [row for row in rows if "full width" in row.condition]
    assert len(wide) == 4
    assert all(
        row.detail == "rank correlation with accuracy over all 16: +1.00 [+1.00, +1.00] (ours)"
        for row in wide
    )


# Figures -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("figure", [figure_s2], ids=lambda figure: figure.STUDY.id)
def test_figures_have_a_row_a_condition(figure: ModuleType) -> None:
    drawn = figure.STUDY.figure(whole_table(), SETTINGS)
    rows = [ax.get_ylabel().replace("\n", ", ") for ax in drawn.axes[::5]]
    assert rows == [
        "Digits, 3 × 4 units, best gain 1.41",
        "Digits, 3 × 4 units, gain 1",
        "Digits, 4 × 8 units, best gain 0.3",
        "Digits, 4 × 8 units, gain 1",
    ]
    for ax in drawn.axes[:5]:
        best, worst = (line.get_ydata() for line in ax.get_lines())
        assert (best != worst).all()
    (legend,) = drawn.legends
    words = [text.get_text() for text in legend.get_texts()]
    assert words == ["Best 6", "Worst 6", "ρ of norm", "ρ of overlap", "ρ of dependence"]
