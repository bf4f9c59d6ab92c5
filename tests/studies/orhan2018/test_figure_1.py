from __future__ import annotations

from collections.abc import Callable

import pytest

from skiplab.reproduction.results import Results
from skiplab.reproduction.verdict import judge
from skiplab.studies.orhan2018.figure_1.evidence import values
from skiplab.studies.orhan2018.figure_1.study import STUDY, Settings
from skiplab.studies.orhan2018.figure_1.trials import KINDS, NETWORKS
from skiplab.theory.singular import layers as theory


@pytest.fixture(scope="module")
def results(carried_out: Callable[..., Results]) -> Results:
    return carried_out(STUDY, Settings(runs=5, units=4, samples=30, steps=5))


def test_kinds_are_those_of_the_theory() -> None:
    assert theory.KINDS == KINDS


def test_every_layer_is_measured_in_every_way(results: Results) -> None:
    counts = results.frame.groupby(["kind", "network", "quantity"]).size()
    assert len(counts) == len(KINDS) * len(NETWORKS) * 7
    assert (counts.xs("loss", level="quantity") == 5 * 5).all()
    assert (counts.xs("eigenvalue", level="quantity") == 5 * 16).all()
    assert (counts.xs("curvature", level="quantity") == 5).all()


def test_every_claim_holds_on_these_layers(results: Results) -> None:
    verdicts = judge(STUDY, results, "quick")
    assert len(verdicts) == 6 * len(KINDS)
    assert {verdict.verdict for verdict in verdicts} == {"holds"}


@pytest.mark.parametrize(
    ("network", "quantity", "value", "claim"),
    [
        ("plain", "deviation", 1e-9, "plain-flat"),
        ("plain", "curvature", 1e-9, "plain-not-curved"),
        ("plain", "extra_zeros", 3.0, "plain-extra-zeros"),
        ("residual", "deviation", 1e-15, "skip-not-flat"),
        ("residual", "curvature", 1e-15, "skip-curved"),
        ("residual", "extra_zeros", 1.0, "skip-no-extra-zeros"),
    ],
)
def test_one_layer_that_disobeys_contradicts_its_claim(
    results: Results,
    with_rows: Callable[..., Results],
    network: str,
    quantity: str,
    value: float,
    claim: str,
) -> None:
    table = results.frame
    changed = table.copy()
    rows = (table["kind"] == "overlap") & (table["network"] == network) & (table["quantity"] == quantity)
    changed.loc[rows & (table["draw"] == 3), "value"] = value
    verdicts = judge(STUDY, with_rows(results, changed), "quick")
    against = [(v.claim, v.condition) for v in verdicts if v.verdict == "contradicted"]
    assert against == [(claim, "overlap")]


def test_off_an_optimum_the_hessian_pushes(results: Results) -> None:
    """The erratum: flat, yet no null vector of the Hessian."""
    assert (values(results, "overlap", "plain", "push") > 1e-4).all()


def test_the_figure_has_a_column_per_kind(results: Results) -> None:
    figure = STUDY.figure(results)
    titles = [ax.get_title(loc="left") or ax.get_title() for ax in figure.axes[:4]]
    assert [title.lower() for title in titles] == list(KINDS)
    assert len(figure.axes) == 12


def test_trials_hold_ten_layers_each() -> None:
    calls = STUDY.stages[0](Results(Settings(runs=25, seed=3)))
    assert [len(call.settings.seeds) for call in calls] == [10, 10, 5]
    assert calls[-1].settings.seeds[-1] == 3_000_024
