"""The theorems' study: what its trials measure, and how claims follow from the table."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.stats
import torch

from skiplab.checks import Refused
from skiplab.measurements.gradient_shattering import gradient_shattering
from skiplab.randomness import numpy_generator, torch_generator
from skiplab.reproduction.trial import Bench
from skiplab.reproduction.verdict import Verdict, judge
from skiplab.studies.balduzzi2017.theorems import models
from skiplab.studies.balduzzi2017.theorems.evidence import errors_apart, sample
from skiplab.studies.balduzzi2017.theorems.study import STUDY, Settings, real_models
from skiplab.studies.balduzzi2017.theorems.trials import Gated, Lemmas, Real, build, gated, lemmas, real


def run(settings: Settings) -> pd.DataFrame:
    calls = STUDY.stages[0](settings, [])
    tables = [call.trial.function(call.settings, Bench()) for call in calls]
    return STUDY.table(settings, [pd.concat(tables, ignore_index=True)])


@pytest.fixture(scope="module")
def settings() -> Settings:
    return Settings(
        runs=6,
        width=48,
        batch=32,
        depths=(2, 8),
        gated_runs=20,
        gated_nets=10,
        gated_width=64,
        gated_depths=(2, 6),
        layers=(2,),
        cases=3,
    )


@pytest.fixture(scope="module")
def table(settings: Settings) -> pd.DataFrame:
    return run(settings)


@pytest.fixture(scope="module")
def verdicts(table: pd.DataFrame, settings: Settings) -> list[Verdict]:
    return judge(STUDY, table, settings, "quick")


def said(verdicts: list[Verdict], claim: str) -> dict[str, str]:
    return {each.condition: each.verdict for each in verdicts if each.claim == claim}


@pytest.mark.parametrize("claim", ["theorem-1", "theorem-2", "rescaling", "theorem-3", "corollary-1"])
def test_theorems_hold_under_independent_gates(verdicts: list[Verdict], claim: str) -> None:
    found = said(verdicts, claim)
    assert len(found) == (4 if claim == "theorem-3" else 2)
    assert set(found.values()) == {"holds"}


def test_misprints_are_contradicted(verdicts: list[Verdict]) -> None:
    assert said(verdicts, "theorem-1-printed")["theorem 1, L = 6"] == "contradicted"
    assert set(said(verdicts, "corollary-1-printed").values()) == {"contradicted"}
    assert said(verdicts, "theorem-3-printed")["theorem 3, β = .1, L = 6"] == "contradicted"
    means = said(verdicts, "mean-zero-printed")
    assert means.pop("theorem 1, L = 2") == "holds"
    assert set(means.values()) == {"contradicted"}


def test_lemmas(verdicts: list[Verdict]) -> None:
    for claim in ("lemma-a1", "lemma-a2", "lemma-a3", "rescaling-exact"):
        assert set(said(verdicts, claim).values()) == {"holds"}, claim
    assert set(said(verdicts, "lemma-a3-printed").values()) == {"contradicted"}


@pytest.mark.parametrize("quantity", ["variance", "covariance"])
def test_a_theory_off_by_five_errors_is_contradicted(
    table: pd.DataFrame, settings: Settings, quantity: str
) -> None:
    changed = table.copy()
    rows = (table["law"] == "gates") & (table["model"] == "residual") & (table["L"] == 6)
    rows &= table["quantity"] == quantity
    values = table.loc[rows, "value"]
    expected = getattr(models.theory(models.RESIDUAL, 6), quantity)
    error = values.std() / math.sqrt(len(values))
    changed.loc[rows, "value"] = values - values.mean() + expected + 5 * error
    found = said(judge(STUDY, changed, settings, "quick"), "theorem-2")
    assert found == {"theorem 2, L = 2": "holds", "theorem 2, L = 6": "contradicted"}


def test_a_path_sum_that_disobeys_contradicts_its_lemma(table: pd.DataFrame, settings: Settings) -> None:
    for name, claim in (("A1, listed", "lemma-a1"), ("A2", "lemma-a2"), ("A3, listed", "lemma-a3")):
        changed = table.copy()
        changed.loc[(table["model"] == name) & (table["run"] == 1), "value"] = 1e-3
        assert "contradicted" in said(judge(STUDY, changed, settings, "quick"), claim).values()


def test_ratios_of_means_with_the_delta_methods_error(table: pd.DataFrame) -> None:
    covariance, variance, ratios = (
        np.array(sample(table, "gates", models.NORMALISED, 6, name))
        for name in ("covariance", "variance", "correlation")
    )
    ratio = covariance.mean() / variance.mean()
    assert ratios.mean() == pytest.approx(ratio)
    # Student's error of the linearised sample against a bootstrap of the ratio of means.
    picks = numpy_generator(0, "bootstrap").integers(0, len(ratios), size=(20_000, len(ratios)))
    resampled = covariance[picks].mean(1) / variance[picks].mean(1)
    assert ratios.std(ddof=1) / math.sqrt(len(ratios)) == pytest.approx(resampled.std(), rel=0.15)


def test_errors_apart() -> None:
    assert errors_apart([1.0, 3.0], 3.0) == pytest.approx(1.0)
    assert errors_apart([2.0, 2.0], 2.0) == 0
    assert errors_apart([2.0, 2.0], 2.1) == math.inf
    assert errors_apart([1e300, 3e300], 3e300) == pytest.approx(1.0)
    assert math.isnan(errors_apart([1.0, math.inf], 1.0))


def test_runs_that_overflow_do_not_hold(table: pd.DataFrame, settings: Settings) -> None:
    changed = table.copy()
    rows = (
        (table["law"] == "gates") & (table["model"] == "residual") & (table["L"] == 6) & (table["run"] == 3)
    )
    changed.loc[rows, "value"] = math.inf
    found = said(judge(STUDY, changed, settings, "quick"), "theorem-2")
    assert found == {"theorem 2, L = 2": "holds", "theorem 2, L = 6": "contradicted"}


def test_no_correlation_where_all_gradients_are_0(table: pd.DataFrame) -> None:
    changed = table.assign(value=0.0)
    assert all(map(math.isnan, sample(changed, "gates", models.PLAIN, 6, "correlation")))


def test_one_printed_digit_is_met_within_half_a_unit(table: pd.DataFrame, settings: Settings) -> None:
    """R = .113 and .709 round to the printed .1 and .7; .16 does not."""

    def judged(beta_one: float) -> dict[str, str]:
        changed = table[table["law"] != "paths"].copy()
        changed["L"] = changed["L"].replace({6: 100, 8: 100})
        for name, value in (("batch norm 1", beta_one), ("batch norm .1", 0.709)):
            rows = changed["model"] == name
            noise = 1 + 0.001 * np.cos(changed["run"])
            changed.loc[rows & (changed["quantity"] == "variance"), "value"] = 1.0
            changed.loc[rows & (changed["quantity"] == "covariance"), "value"] = value * noise
        rows = pd.concat([changed, table[table["law"] == "paths"]], ignore_index=True)
        verdicts = judge(STUDY, rows, settings, "quick")
        return said(verdicts, "hundred-layers") | said(verdicts, "hundred-layers-tenth")

    assert set(judged(0.1127).values()) == {"holds"}
    found = judged(0.16)
    assert found["β = 1, independent gates, L = 100"] == "contradicted"
    assert found["β = 0.1, independent gates, L = 100"] == "holds"


def test_what_chance_does_to_three_standard_errors() -> None:
    """The figures among the choices: Student's t of 100 and 50 runs, and log-normal runs of deep plain nets."""
    said_so = next(line for line in STUDY.choices if line.startswith("Three standard errors"))
    comparisons = 2 * len(models.GATED) * len(STUDY.settings["paper"].gated_depths)
    assert comparisons == 72
    for scale in ("paper", "quick"):
        settings = STUDY.settings[scale]
        p = 2 * scipy.stats.t.sf(3, settings.gated_runs - 1)
        for words in (
            f".{1e4 * p:.0f} %",
            f".{1e2 * comparisons * p:.0f}",
            f"{100 * (1 - (1 - p) ** comparisons):.0f} %",
        ):
            assert words in said_so
        stream = numpy_generator(0, "log-normal", scale)
        sigma = math.sqrt(100 * math.log1p(5 / settings.gated_width))  # of log v at L = 100
        v = np.exp(
            stream.normal(-(sigma**2) / 2, sigma, size=(10_000, settings.gated_runs, settings.gated_nets))
        ).mean(2)
        t = (v.mean(1) - 1) / (v.std(1, ddof=1) / math.sqrt(settings.gated_runs))
        expected = {"paper": 0.004, "quick": 0.015}[scale]
        assert (abs(t) > 3).mean() == pytest.approx(expected, abs=0.003)


def test_depths_in_any_order_say_the_same(verdicts: list[Verdict], settings: Settings) -> None:
    turned = dataclasses.replace(settings, depths=(8, 2), gated_depths=(6, 2))
    assert judge(STUDY, run(turned), turned, "quick") == verdicts


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"depths": (10, 1)}, "depths has 1"),
        ({"gated_depths": (2000,)}, "gated_depths has 2000"),
        ({"batch": 3}, "batch is 3"),
        ({"gated_samples": 1}, "gated_samples is 1"),
        ({"layers": (1,)}, "layers has 1"),
        ({"layers": (5,)}, "layers has 5"),
    ],
)
def test_settings_without_a_meaning_are_refused_before_any_trial(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(Refused, match=words):
        STUDY.stages[0](dataclasses.replace(Settings(runs=5), **changes), [])


@pytest.mark.parametrize("model", models.REAL, ids=lambda model: model.name)
def test_real_nets_obey_the_correction(model: models.Model) -> None:
    """Ten nets at L = 4: within 4 standard errors of wide nets' moments, and their batch's statistics."""
    wanted = Real(model.name, 4, runs=12, nets=1, width=150, batch=64)
    frame = real.function(wanted, Bench())
    for quantity in ("variance", "covariance"):
        expected = getattr(models.corrected(model, 4, 64), quantity)
        found = sample(frame, "nets", model, 4, quantity)
        assert errors_apart(found, expected) < 4
        assert np.mean(found) == pytest.approx(expected, rel=0.25)


def test_a_trial_is_the_mean_over_its_nets() -> None:
    frame = real.function(Real("residual", 3, runs=1, nets=2, width=10, batch=5, seed=4), Bench())
    expected = []
    for net in range(2):
        parts = (4, "real nets", 3, net)
        module = build(models.RESIDUAL, 3, 10, torch_generator(*parts))
        x = torch.randn(5, 10, generator=torch_generator(*parts, "inputs")) * 0.5**0.5
        hidden = module.first(x).detach().requires_grad_()
        at = hidden
        for block in module.blocks:
            at = block(at)
        (gradient,) = torch.autograd.grad(at.sum(), hidden)
        expected.append(float(gradient.double().square().mean()))
        via = gradient_shattering(module, x, wrt="first")
        assert float(via.mean_square) == pytest.approx(expected[-1], rel=1e-5)
    assert sample(frame, "nets", models.RESIDUAL, 3, "variance") == pytest.approx(
        [np.mean(expected)], rel=1e-5
    )


def test_theorem_3_crosses_one_module_less() -> None:
    assert models.theory(models.NORMALISED, 100).variance == pytest.approx(100.0)
    assert models.printed(models.NORMALISED, 100) == pytest.approx((100.0, 0.1))
    assert models.printed(models.NORMALISED_TENTH, 100)[1] == pytest.approx(1.0)
    assert models.corrected(models.NORMALISED, 100, None).variance == pytest.approx(408, abs=0.5)
    assert models.NORMALISED.modules(100) == 99
    assert models.RESIDUAL.modules(100) == 100


def test_depths_at_which_a_mean_would_mislead_are_left_out() -> None:
    settings = Settings(runs=5)
    assert models.PLAIN in real_models(settings, 30)
    assert models.PLAIN not in real_models(settings, 100)
    assert {models.NORMALISED, models.HIGHWAY, models.RESIDUAL} <= set(real_models(settings, 100))
    wide = dataclasses.replace(settings, width=1000)
    assert models.PLAIN in real_models(wide, 100)


def test_runs_are_independent_and_seeded() -> None:
    wanted = Gated("plain", 2, runs=3, nets=30, width=8, samples=2)
    one, two = (gated.function(wanted, Bench()) for _ in range(2))
    pd.testing.assert_frame_equal(one, two)
    other = gated.function(dataclasses.replace(wanted, seed=1), Bench())
    first = sample(one, "gates", models.PLAIN, 2, "variance")
    assert len(set(first)) == 3
    assert sample(other, "gates", models.PLAIN, 2, "variance")[:2] == first[1:]


def test_lemmas_at_three_layers() -> None:
    frame = lemmas.function(Lemmas(3, 1), Bench())
    wrong = frame["model"].isin(("A3 printed, listed", "A3 printed, orthogonal"))
    assert frame.loc[~wrong, "value"].max() < 1e-12
    assert frame.loc[wrong, "value"].min() > 0.1


def test_the_figure_has_six_panels(table: pd.DataFrame, settings: Settings) -> None:
    assert len(STUDY.figure(table, settings).axes) == 6
