"""Figure S3's points and claims, on tables with numbers of our choosing."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from skiplab.experiments import networks
from skiplab.experiments.networks import Member, Training
from skiplab.reproduction.results import Part, Results, matching
from skiplab.reproduction.scales import subset
from skiplab.reproduction.verdict import judge
from skiplab.studies.orhan2018 import figure_s3
from skiplab.studies.orhan2018.figure_s3.evidence import FRACTIONS, limits_hold, points
from skiplab.studies.orhan2018.figure_s3.trials import measure

SETTINGS = dataclasses.replace(
    figure_s3.STUDY.settings["smoke"], runs=6, gains=(0.3, 1.0), at=(0, 1, 2), epochs=2
)


def found(estimates: tuple[float, float, float], *, resolved: float = 1.0) -> Results:
    """Networks whose mixture answers a + b·exact + noise for degenerate, and its mirror for negative fractions.

    Estimates are (a, b, sign of the deviation); Lanczos is right to .01 within limits of ±.02.
    """
    offset, slope, sign = estimates
    parts = []
    for gain in SETTINGS.gains:
        members = [Member(seed, gain) for seed in range(SETTINGS.runs)]
        named = networks.together(subset(Training, SETTINGS, width=4), "digits", "plain", members)
        rows: list[dict[str, Any]] = []
        for member in range(SETTINGS.runs):
            for epoch in SETTINGS.at:
                exact = 0.3 + 0.05 * member + 0.02 * epoch + (0.1 if gain == 1.0 else 0.0)
                noise = 0.004 * ((3 * member + 2 * epoch) % 5 - 2)
                values = {
                    "degenerate": exact,
                    "negative": (1 - exact) / 2,
                    "mixture_degenerate": offset + slope * exact + noise,
                    "mixture_negative": (1 - exact) / 2 * slope + sign * 0.05 - noise,
                    "lanczos_resolved": resolved,
                }
                for fraction in FRACTIONS:
                    values[f"lanczos_{fraction}"] = values[fraction] + 0.01
                    values[f"lanczos_{fraction}_low"] = values[fraction] - 0.01
                    values[f"lanczos_{fraction}_high"] = values[fraction] + 0.03
                common = {"member": member, "epoch": epoch, "layer": 0}
                rows += [common | {"quantity": name, "value": value} for name, value in values.items()]
                rows.append(common | {"epoch": epoch + 1, "quantity": "accuracy", "value": 0.5})
        parts.append(Part("", "4 units", networks.table(named, rows, [False] * SETTINGS.runs)))
    return Results(SETTINGS, parts)


def verdicts(results: Results) -> list[Any]:
    return judge(figure_s3.STUDY, results, "quick")


@pytest.mark.parametrize(
    ("estimates", "verdict"), [((-0.05, 1.0, 1.0), "holds"), ((0.9, -0.4, -1.0), "contradicted")]
)
def test_claims_follow_the_numbers(estimates: tuple[float, float, float], verdict: str) -> None:
    rows = [row for row in verdicts(found(estimates)) if row.headline]
    assert {row.claim: row.verdict for row in rows} == {claim.id: verdict for claim in figure_s3.STUDY.claims}
    assert {row.condition for row in rows} == {"digits, 3×4, all gains"}
    assert {row.runs for row in rows} == {12}, "networks, not points, are counted"


def test_estimates_that_never_move_contradict_a_relation_and_nothing_counts_for_the_paper() -> None:
    rows = [row for row in verdicts(found((0.9, 0.0, 1.0))) if row.headline]
    relations = [row for row in rows if row.claim.endswith("-linear")]
    assert [(row.verdict, row.reason) for row in relations] == [
        ("contradicted", "no difference worth having")
    ] * 2
    assert all(row.ours for row in rows)


def test_the_relation_is_the_slope() -> None:
    rows = verdicts(found((-0.05, 0.7, 1.0)))
    row = next(row for row in rows if row.claim == "degenerate-linear")
    assert row.statistic == pytest.approx(0.7, abs=0.05)


def test_differences_are_means_over_a_networks_epochs() -> None:
    row = next(row for row in verdicts(found((-0.05, 1.0, 1.0))) if row.claim.endswith("degenerate"))
    assert row.statistic == pytest.approx(0.05, abs=0.01)
    assert row.detail.startswith("estimated 0.44")


def test_gains_and_lanczos_are_further_rows() -> None:
    rows = verdicts(found((-0.05, 1.0, 1.0)))
    further = {row.condition for row in rows if row.claim == "degenerate-linear" and not row.headline}
    where = "digits, 3×4"
    assert further == {f"{where}, all gains, Lanczos (ours)", f"{where}, gain 0.3", f"{where}, gain 1"}
    biased = {row.condition for row in rows if row.claim == "mixture-overestimates-negative"}
    assert biased == {f"{where}, all gains", f"{where}, gain 0.3", f"{where}, gain 1"}


@pytest.mark.parametrize(
    ("resolved", "words"), [(1.0, "36 resolved with mean |error| 0.0100"), (0.0, "0 resolved")]
)
def test_details_say_slope_and_how_often_the_limits_hold(resolved: float, words: str) -> None:
    results = found((-0.05, 1.0, 1.0), resolved=resolved)
    each = points(results, "digits", 4)
    assert limits_hold(each, "negative") == f"[low, high] holds the exact value at 36 points; {words}"
    each.loc[each.index[:3], "lanczos_negative_low"] = 0.99
    assert "at 33 points" in limits_hold(each, "negative")
    row = next(row for row in verdicts(results) if row.condition.endswith("Lanczos (ours)"))
    assert "slope 1.000 ± 0.000 (95 %), 36 points of 12 networks" in row.detail


def test_points_need_both_an_exact_spectrum_and_an_estimate() -> None:
    results = found((-0.05, 1.0, 1.0))
    assert len(points(results, "digits", 4)) == 36  # and not the epochs with an accuracy alone
    first, second = results.parts
    lost = (first.table["seed"] == 0) & (first.table["quantity"] == "degenerate")
    fewer = Results(SETTINGS, [dataclasses.replace(first, table=first.table[~lost]), second])
    assert len(points(fewer, "digits", 4)) == 33
    assert len(matching(points(results, "digits", 4), gain=1.0)) == 18


def test_one_trial_per_width_and_gain_measures_everything_on_the_same_samples() -> None:
    settings = dataclasses.replace(figure_s3.STUDY.settings["paper"], widths=(16, 32))
    calls = [call.settings for call in measure(Results(settings))]
    assert [(call.part, call.networks.gains[0]) for call in calls] == [
        (f"{width} units", gain) for width in (16, 32) for gain in settings.gains
    ]
    assert {(call.exact, call.limits) for call in calls} == {(2000, 2000)}
    for call, parameters in ((calls[0], 4852), (calls[-1], 14292)):
        common = call.networks.training
        n, m = common.width, common.components
        assert n * (m + 1) + (common.depth - 1) * (n * n + n) + 20 * (n + 1) == parameters


def test_the_figure_has_a_row_of_panels_for_each_method() -> None:
    figure = figure_s3.STUDY.figure(found((-0.05, 1.0, 1.0), resolved=0.0))
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    assert titles == ["Mixture, 3 × 4 units"] * 2 + ["Lanczos (ours), 3 × 4 units"] * 2
    assert figure.axes[3].get_xlabel() == "exact negative fraction"
