from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from skiplab.reproduction.results import Part, Results
from skiplab.reproduction.verdict import Verdict, judge
from skiplab.studies.orhan2017.notes import derivatives
from skiplab.studies.orhan2017.notes.exchanges import exchangeable, exchanges
from skiplab.studies.orhan2017.notes.study import STUDY, Settings
from skiplab.studies.orhan2017.notes.trials import SHAPES


@pytest.fixture(scope="module")
def results(carried_out: Callable[..., Results]) -> Results:
    return carried_out(STUDY, Settings(runs=2, samples=100, ratios=(0.5, 1.0)))


@pytest.fixture(scope="module")
def verdicts(results: Results) -> list[Verdict]:
    return judge(STUDY, results, "quick")


def of(verdicts: list[Verdict], claim: str) -> dict[str, str]:
    return {each.condition: each.verdict for each in verdicts if each.claim == claim}


def test_every_corrected_statement_holds(verdicts: list[Verdict]) -> None:
    against = [(each.claim, each.condition) for each in verdicts if each.verdict != "holds"]
    assert {claim for claim, _ in against} == {
        "overlap-singular-printed",
        "single-zero",
        "note-2-residual-printed",
        "note-3-hyper",
    }


def test_the_printed_ones_fail_where_they_should(verdicts: list[Verdict]) -> None:
    printed = of(verdicts, "overlap-singular-printed")
    assert {where for where, verdict in printed.items() if verdict == "holds"} == {
        "note 1, smallest eigenvalue, tanh, fewer inputs",
        "note 3, columns, u = s",
        "note 3, smallest eigenvalue, u = 0.429 s",
        "note 3, smallest eigenvalue, u = s",
    }
    assert sum(where.startswith("note 2") for where in printed) == 6
    residual = of(verdicts, "note-2-residual-printed")
    assert {name for name, verdict in residual.items() if verdict != "holds"} == {
        f"{case}, optimum" for case in SHAPES
    }
    assert of(verdicts, "note-3-hyper") == {"u = 0.429 s": "contradicted", "u = s": "contradicted"}
    assert set(of(verdicts, "note-3-columns").values()) == {"holds"}


def test_identical_columns_of_one_hyper_residual_network_contradict_ours(
    results: Results, with_rows: Callable[..., Results]
) -> None:
    changed = results.frame.copy()
    rows = (changed["network"] == "hyper-residual") & (changed["quantity"] == "rows") & (changed["draw"] == 1)
    assert rows.any()
    changed.loc[rows, "value"] = 0.0
    found = judge(STUDY, with_rows(results, changed), "quick")
    assert set(of(found, "note-3-columns").values()) == {"contradicted"}


@pytest.mark.parametrize(
    ("quantity", "value", "claims"),
    [
        ("flat", 1e-6, {"flat"}),
        ("along", 1e-6, {"not-curved"}),
        ("push", 0.0, {"pushed"}),
        ("gauss-newton", 10.0, {"gauss-newton-gains", "zeros-by-rank"}),
        ("a-block", 1.0, {"block-gains", "zeros-by-rank"}),
        ("eq 30", 1e-6, {"note-2-derivatives"}),
    ],
)
def test_one_network_that_disobeys_contradicts_its_claims(
    results: Results,
    with_rows: Callable[..., Results],
    verdicts: list[Verdict],
    quantity: str,
    value: float,
    claims: set[str],
) -> None:
    table = results.frame
    changed = table.copy()
    rows = (table["network"] == "plain") & (table["case"] == "n = m") & (table["point"] == "b overlaps")
    changed.loc[rows & (table["quantity"] == quantity) & (table["draw"] == 1), "value"] = value
    before = {(each.claim, each.condition) for each in verdicts if each.verdict == "contradicted"}
    after = {
        (each.claim, each.condition)
        for each in judge(STUDY, with_rows(results, changed), "quick")
        if each.verdict == "contradicted"
    }
    assert {claim for claim, _ in after - before} == claims


@pytest.mark.parametrize(
    ("quantity", "claim"),
    [
        ("eq 27", "note-1-derivatives"),
        ("eq 28", "note-2-first-derivatives"),
        ("eq 35", "note-3-first-derivatives"),
    ],
)
def test_a_derivative_that_is_off_contradicts_its_equation(
    results: Results, with_rows: Callable[..., Results], quantity: str, claim: str
) -> None:
    changed = results.frame.copy()
    rows = (changed["quantity"] == quantity) & (changed["draw"] == 1)
    assert rows.any()
    changed.loc[rows, "value"] = 1e-6
    found = judge(STUDY, with_rows(results, changed), "quick")
    assert {each.verdict for each in found if each.claim == claim} == {"contradicted"}


def test_derivatives_are_compared_with_finite_differences_too() -> None:
    """Eq 28 and eq 35 at one point, by hand; a wrong sign of a cross term would be seen."""
    a = torch.tensor([[1.0, 2.0], [0.5, -1.0]], dtype=torch.float64)
    b = torch.tensor([[0.5, 1.0], [-1.0, 1.5]], dtype=torch.float64)
    s = torch.tensor([3.0, 1.5], dtype=torch.float64)
    assert derivatives._eq_28(a, b, s) < 1e-14
    step = torch.zeros_like(a)
    step[0, 1] = 1e-6
    slope = (derivatives._energy(a + step, b, s) - derivatives._energy(a - step, b, s)) / 2e-6
    # a²·b² = .5, a²·b¹ = 2: −(1.5 − .5)·1 + 2·.5 = 0 in unit 1.
    assert float(slope) == pytest.approx(0.0, abs=1e-8)
    assert derivatives._eq_35(torch.tensor([0.5, -0.2, 1.0], dtype=torch.float64), 3.0) < 1e-14
    assert derivatives._apart(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0])) == 0.5


def test_the_figure_has_two_panels_per_note(results: Results) -> None:
    figure = STUDY.figure(results)
    assert len(figure.axes) == 6
    written = [text.get_text() for text in figure.axes[2].texts]
    assert written.count("17") == 1  # both overlap, plain, n = m
    assert len(written) == 31  # six networks at five points, and the panel's letter


def test_layers_may_be_exchanged_in_residual_networks_alone(results: Results) -> None:
    rows = results.rows(exchanges)
    extremes = rows.groupby(["network", "quantity"])["value"].agg(["min", "max"])
    assert extremes.loc[("plain", "most"), "max"] < 1e-12
    assert extremes.loc[("residual", "most"), "max"] < 1e-12
    assert extremes.loc[("hyper-residual", "least"), "min"] > 1e-4
    assert {row.condition: row.samples for row in exchangeable(results)} == {
        "residual": [[0.0, 0.0]],
        "hyper-residual": [[0.0, 0.0]],
    }
    table = rows.assign(value=0.0)  # as if nothing ever changed
    constant = Results(results.settings, [Part(exchanges.name, "draws", table)])
    assert {row.condition: sum(row.samples[0]) for row in exchangeable(constant)} == {
        "residual": 0,
        "hyper-residual": 2,
    }


def test_trials_hold_ten_networks_of_each_note() -> None:
    calls = STUDY.stages[0](Results(Settings(runs=25, seed=3)))
    assert len(calls) == 11
    assert calls[-3].settings.seeds == tuple(range(3_000_020, 3_000_025))
    assert [len(call.settings.seeds) for call in calls[-2:]] == [25, 25]
