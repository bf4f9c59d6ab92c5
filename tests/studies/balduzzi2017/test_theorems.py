"""The theorems' study: what its trials measure, and how claims follow from the table."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest
import torch

from skiplab.measurements.gradient_shattering import gradient_shattering
from skiplab.randomness import numpy_generator, torch_generator
from skiplab.reproduction.trial import Bench
from skiplab.reproduction.verdict import Verdict, judge
from skiplab.studies.balduzzi2017 import theorem_models as models
from skiplab.studies.balduzzi2017.theorem_evidence import errors_apart, sample
from skiplab.studies.balduzzi2017.theorem_trials import Gated, Lemmas, Real, build, gated, lemmas, real
from skiplab.studies.balduzzi2017.theorems import STUDY, Settings, real_models


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
    expected = dict(zip(("variance", "covariance"), models.theory(models.RESIDUAL, 6), strict=True))[quantity]
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


@pytest.mark.parametrize("model", models.REAL, ids=lambda model: model.name)
def test_real_nets_obey_the_correction(model: models.Model) -> None:
    """Ten nets at L = 4: within 4 standard errors of wide nets' moments, and their batch's statistics."""
    wanted = Real(model.name, 4, runs=12, nets=1, width=150, batch=64)
    frame = real.function(wanted, Bench())
    for quantity, expected in zip(("variance", "covariance"), models.corrected(model, 4, 64), strict=True):
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
    assert models.theory(models.NORMALISED, 100)[0] == pytest.approx(100.0)
    assert models.printed(models.NORMALISED, 100) == pytest.approx((100.0, 0.1))
    assert models.printed(models.NORMALISED_TENTH, 100)[1] == pytest.approx(1.0)
    assert models.corrected(models.NORMALISED, 100, None)[0] == pytest.approx(408, abs=0.5)
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
