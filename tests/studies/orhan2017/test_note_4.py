from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pytest

from skiplab.reproduction.results import Results
from skiplab.reproduction.trial import Bench
from skiplab.reproduction.verdict import judge
from skiplab.studies.orhan2017.note_4.study import STUDY, Settings
from skiplab.studies.orhan2017.tau_matrices import TauMatrices, matrices, values


@pytest.fixture(scope="module")
def results(carried_out: Callable[..., Results]) -> Results:
    return carried_out(STUDY, Settings(runs=5, width=24, taus=(0.0, 0.1, 0.4, 2.0)))


@pytest.fixture(scope="module")
def table(results: Results) -> pd.DataFrame:
    return results.frame


def test_a_tau_too_large_fails_and_is_counted(table: pd.DataFrame) -> None:
    assert values(table, 2.0, "failed").tolist() == [1.0] * 5
    assert len(values(table, 2.0, "norm")) == 0
    assert values(table, 0.4, "failed").tolist() == [0.0] * 5


def test_verdicts(results: Results) -> None:
    verdicts = judge(STUDY, results, "quick")
    printed = {"correlation-as-prescribed", "skip-vectors-printed", "overlaps-of-eigenvectors"}
    for each in verdicts:
        at_zero = each.condition == "τ = 0"
        unconjugated = each.condition.endswith("as our text reads")
        assert not (unconjugated and each.headline)
        wrong = unconjugated or (each.claim in printed and not at_zero)
        wrong |= each.claim == "factor-exists" and each.condition == "τ = 2"
        assert each.verdict == ("contradicted" if wrong else "holds"), (each.claim, each.condition)
    headlines = {each.condition: each.headline for each in verdicts if each.claim == "factor-exists"}
    assert headlines == {"τ = 0": True, "τ = 0.1": True, "τ = 0.4": True, "τ = 2": False}


@pytest.mark.parametrize(
    ("quantity", "claim"),
    [
        ("deviation", "unit-circle"),
        ("angle", "spectrum-of-o"),
        ("U L Uᴴ", "diagonal"),
        ("imaginary", "real"),
        ("covariance of eigenvectors", "covariance-of-eigenvectors"),
    ],
)
def test_one_matrix_that_disobeys_contradicts_its_claim(
    results: Results, with_rows: Callable[..., Results], quantity: str, claim: str
) -> None:
    table = results.frame
    changed = table.copy()
    rows = (table["tau"] == 0.1) & (table["quantity"] == quantity) & (table["draw"] == 2)
    assert rows.sum() == 1
    changed.loc[rows, "value"] = 0.1
    verdicts = judge(STUDY, with_rows(results, changed), "quick")
    assert "contradicted" in {each.verdict for each in verdicts if each.claim == claim}


def test_numbers_at_the_papers_size() -> None:
    """‖Σ‖₂ and the eigenvalues' moduli that the errata give, for 128 units."""
    for tau, norm, deviation in ((0.01, 1.6, 1e-13), (0.05, 13.0, 1e-12), (0.1, 222.0, 1e-11)):
        frame = matrices.function(TauMatrices(tau, (0,)), Bench()).assign(tau=tau)
        assert values(frame, tau, "norm").item() == pytest.approx(norm, rel=0.25)
        assert values(frame, tau, "deviation").item() < deviation
    frame = matrices.function(TauMatrices(0.2, (0,)), Bench())
    assert 3e4 < values(frame, 0.2, "norm").item() < 3e5
    assert 1e-10 < values(frame, 0.2, "deviation").item() < 1e-6


def test_spectra_are_whole_and_traces_are_kept(table: pd.DataFrame) -> None:
    correlation = table[(table["tau"] == 0.4) & (table["quantity"] == "correlation R")]
    assert correlation.groupby("draw")["value"].sum().to_numpy() == pytest.approx([24.0] * 5)
    prescribed = table[(table["tau"] == 0.4) & (table["quantity"] == "prescribed")]
    assert prescribed.groupby("draw")["value"].max().tolist() == [1.0] * 5


def test_the_figure_has_six_panels(results: Results) -> None:
    assert len(STUDY.figure(results).axes) == 6
