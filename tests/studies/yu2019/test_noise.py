"""The noise study on made-up changes, on which its claims are right or wrong; doses that never learn."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from oracles.made_up_networks import Row, results_with, rows_by_condition, rows_of, verdicts, wiggle
from skiplab.reproduction import Results
from skiplab.reproduction.study import stage_name
from skiplab.studies.yu2019.measured import NOISE
from skiplab.studies.yu2019.noise import STUDY
from skiplab.studies.yu2019.noise.evidence import DOSES, means_over_layers
from skiplab.studies.yu2019.pairs import PLAIN, RESIDUAL, train_pairs
from skiplab.studies.yu2019.table_1 import STUDY as TABLE_1

HELD = dict.fromkeys([claim.id for claim in STUDY.claims], "holds")
RIGHT: dict[str, Any] = {
    "absolute": 0.4,
    "relative": 1.0,
    "lost": 0.05,
    "dose": 1.0,
    "cushion": 1.0,
    "shuffled": 0.0,
    "worse": 0.0,
    "link": 1.0,
    "dead": (),
}


def made_up(pairs: int = 13, **changes: Any) -> Results:
    """Networks as the claims say but for what is changed.

    By how much less (ln) residual networks change under "absolute" and "relative" noise and how much less accuracy
    they have "lost"; how strongly a "dose" lowers noise, error and loss and raises the "cushion"; by how much
    networks with "shuffled" ones differ in noise, and are "worse" in error; the sign of the "link" of cushion and
    error.
    """
    own = RIGHT | changes
    settings = dataclasses.replace(STUDY.settings["paper"], runs=pairs, epochs=30, noise_at=(0, 30))
    rows: list[Row] = []
    small = np.array([wiggle(seed) for seed in range(pairs)])
    for model, is_residual in ((PLAIN, 0), (RESIDUAL, 1)):
        other = np.roll(small, 1 + is_residual)
        for layer in range(1, 21):
            for name in ("absolute", "relative") + (("relative_kept",) if is_residual else ()):
                gain = own["relative" if name == "relative" else "absolute"] * is_residual
                for size in NOISE[name.partition("_")[0]]:
                    for epoch in (0, 30):
                        changed = np.log(size) + 0.1 * layer - gain + 0.05 * other
                        where: dict[str, Any] = {"epoch": epoch, "layer": layer}
                        rows += rows_of(model, 20, f"noise_{name}_{size:g}", changed, **where)
                        lost = 0.2 - own["lost"] * is_residual + 0.005 * other
                        rows += rows_of(model, 20, f"lost_{name}_{size:g}", lost, **where)
        rows += rows_of(model, 20, "cushion_kept", np.exp(0.1 * small), epoch=30, layer=10)
        for epoch in range(31):
            risk = np.full(pairs, 2.0 * 0.9**epoch)
            error = 0.3 * 0.97**epoch - own["link"] * 0.01 * small + 0.001 * other
            rows += rows_of(model, 20, "loss", risk, epoch=epoch)
            rows += rows_of(model, 20, "test_error", error, epoch=epoch)
    doses: list[Row] = []
    spread = np.array([wiggle(seed) for seed in range(6)])
    kinds = [(share, False) for share in settings.doses] + [(1.0, True)]
    for share, shuffled in kinds:
        up = own["dose"] * share
        found = {
            "error": np.full(6, 0.9 if share in own["dead"] else 0.3),
            "test_error": 0.4 - 0.1 * up + own["worse"] * shuffled + 0.002 * spread,
            "loss": np.exp(-up + 0.02 * spread),
        }
        where = {"share": share, "shuffled": shuffled, "epoch": settings.dose_epochs}
        for quantity, values in found.items():
            doses += rows_of("dosed", 20, quantity, values, **where)
        for layer in range(1, 21):
            cushion = np.exp(own["cushion"] * share + 0.02 * spread)
            noise = 1.0 - up + own["shuffled"] * shuffled + 0.02 * spread
            doses += rows_of("dosed", 20, "cushion_kept", cushion, layer=layer, **where)
            doses += rows_of("dosed", 20, "noise_absolute_0.01", noise, layer=layer, **where)
    return results_with(settings, {train_pairs.__name__: rows, DOSES: doses})


def test_on_networks_as_claimed_every_claim_holds() -> None:
    assert verdicts(STUDY, made_up()) == HELD


@pytest.mark.parametrize(
    ("changes", "claims"),
    [
        ({"absolute": 0.0}, ["same-noise"]),
        ({"absolute": 0.05}, ["same-noise"]),  # less than is worth having
        ({"absolute": -0.4}, ["same-noise"]),
        ({"relative": -0.4}, ["relative-noise"]),
        ({"lost": 0.0}, ["less-accuracy-lost"]),
        ({"lost": -0.05}, ["less-accuracy-lost"]),
        ({"cushion": -1.0}, ["dose-raises-cushion"]),
        ({"dose": -1.0}, ["dose-lowers-noise", "dose-lowers-error", "dose-lowers-loss"]),
        ({"shuffled": 0.3}, ["shuffled-as-stable"]),
        ({"shuffled": -0.3}, ["shuffled-as-stable"]),
        ({"worse": 0.03}, ["shuffled-as-good"]),
        ({"worse": -0.03}, ["shuffled-as-good"]),
        ({"link": -1.0}, ["cushion-goes-with-error"]),
    ],
)
@pytest.mark.slow
def test_other_networks_contradict(changes: dict[str, float], claims: list[str]) -> None:
    assert verdicts(STUDY, made_up(**changes)) == HELD | dict.fromkeys(claims, "contradicted")


@pytest.mark.slow
def test_doses_that_never_learn_do_not_decide_about_noise() -> None:
    rows = rows_by_condition(STUDY, made_up(dead=(0.25, 0.5)), "dose-lowers-noise")
    assert [name for name, row in rows.items() if row.headline] == ["doses at which all learn"]
    assert "never learnt: 6 of 6 at 0.25, 6 of 6 at 0.5" in rows["all doses"].detail
    assert verdicts(STUDY, made_up(dead=(0.25, 0.5, 0.75)))["dose-lowers-noise"] == "undecided"
    errors = rows_by_condition(STUDY, made_up(dead=(0.25, 0.5)), "dose-lowers-error")
    assert [name for name, row in errors.items() if row.headline] == ["all doses"]


def test_a_norm_with_the_1_is_compared_with_plain_networks_own() -> None:
    plain, residual = means_over_layers(made_up(), "relative_kept_0.1")
    assert plain.mean() == pytest.approx(np.log(0.1) + 1.05, abs=0.02)
    assert (plain - residual).mean() == pytest.approx(0.4, abs=0.02)
    rows = rows_by_condition(STUDY, made_up(), "relative-noise")
    assert rows["0.1 of ‖A‖, with the 1"].headline is False
    assert rows["0.1 of ‖A‖, without the 1, before training"].headline is False


def test_the_sentence_is_about_all_three_sizes() -> None:
    rows = rows_by_condition(STUDY, made_up(), "same-noise")
    assert sum(row.headline for row in rows.values()) == 3
    row = rows["deviation 0.01 of every weight"]
    assert row.statistic == pytest.approx(0.4, abs=0.02)
    less = 1 - np.exp(-row.statistic)
    assert row.detail == (
        f"residual networks change {less:.1%} less in the mean over layers; less in 18 of 18 layers"
    )


def test_stem_and_output_which_have_no_identity_do_not_decide() -> None:
    results = made_up()
    table = results.parts[0].table.copy()
    ends = table["layer"].isin([1, 20]) & (table["model"] == RESIDUAL)
    table.loc[ends & table["quantity"].str.startswith("noise_absolute"), "value"] += 4.0
    changed = Results(
        results.settings, [dataclasses.replace(results.parts[0], table=table), *results.parts[1:]]
    )
    rows = rows_by_condition(STUDY, changed, "same-noise")
    assert rows["deviation 0.01 of every weight"].statistic == pytest.approx(0.4, abs=0.02)
    further = rows["deviation 0.01 of every weight, stem and output too"]
    assert (further.headline, further.statistic) == (False, pytest.approx(0.0, abs=0.02))


def test_only_equal_noise_is_the_papers() -> None:
    assert [claim.id for claim in STUDY.claims if claim.source != "ours"] == ["same-noise"]


def test_pairs_are_those_of_table_1_and_doses_differ_in_one_thing() -> None:
    for scale, settings in STUDY.settings.items():
        assert set(train_pairs(Results(settings))) <= set(TABLE_1.stages[0](Results(TABLE_1.settings[scale])))
    assert [stage_name(stage) for stage in STUDY.stages] == [train_pairs.__name__, DOSES]
    calls = [call.settings for call in STUDY.stages[1](Results(STUDY.settings["paper"]))]
    assert [(each.share, each.shuffled) for each in calls] == [
        (0.25, False), (0.5, False), (0.75, False), (1.0, False), (1.0, True),
    ]  # fmt: skip
    alike = {dataclasses.replace(each, share=0.0, shuffled=False) for each in calls}
    assert len(alike) == 1
    (one,) = alike
    assert (one.model, one.depth, len(one.seeds), one.rate) == ("dosed", 20, 6, 0.01)
    assert (one.training.epochs, one.training.drops) == (100, (60, 80))
