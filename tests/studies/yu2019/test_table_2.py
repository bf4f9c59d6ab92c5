"""Table 2's study: real pairs at smoke scale, and made-up ones on which the paper is right or wrong."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from skiplab.data import TensorSet
from skiplab.ensembles import Ensemble
from skiplab.reproduction import Bench, Results
from skiplab.reproduction.results import Part, matching
from skiplab.reproduction.runner import results_of
from skiplab.reproduction.store import StudyRun
from skiplab.reproduction.study import Study
from skiplab.reproduction.verdict import judge
from skiplab.studies.yu2019.table_2 import STUDY, trials
from skiplab.studies.yu2019.table_2.evidence import BIT, PRINTED, decades, divergence, ends
from skiplab.studies.yu2019.table_2.trials import FIRST, SECOND, Pairs, Training, train_pairs

TINY = Training(images=30, epochs=2, drops=(1,), batch_size=10, padding=1)
PAIRS = Pairs("digits", 5, (0, 1), TINY, filters=(4, 8, 8), test=True)
RIGHT: dict[str, Any] = {
    "growth": 3.0,
    "layer": 1e-16,
    "loss": 0.0,
    "error": 0.0,
    "level": 0.0,
    "spread": 0.3,
}


def made_up(runs: int = 20, scale: str = "paper", **changes: Any) -> Results:
    """Results as the paper's: |ΔL| grows over 390 iterations, ends as printed but for what is changed.

    ``growth`` decades of |ΔL|, the ``layer``'s differences, plain less residual ln L (``loss``) and ``error``, how
    far both are from the printed ``level`` (in ln L, and a tenth of it in error), and the ``spread`` of seeds.
    """
    own = RIGHT | changes
    settings = dataclasses.replace(STUDY.settings[scale], runs=runs)
    rounding, training = [], []
    for depth in settings.depths:
        loss, error = PRINTED[SECOND].get(depth, (1.0, 0.5))
        for seed in range(runs):
            row = {"depth": depth, "seed": seed, "layer": ""}
            wiggle = (seed % 5 - 2) / 2
            for step in range(0, 391, 10):
                apart = 1e-15 * 10 ** ((own["growth"] + 0.1 * wiggle) * step / 390)
                for kind, value in ((FIRST, 2.0), (SECOND, 2.0 + apart)):
                    rounding.append({**row, "kind": kind, "step": step, "quantity": "loss", "value": value})
            layer = own["layer"] * 10 ** (0.1 * wiggle)
            moved = {"kind": "difference", "step": 1, "quantity": "activity", "layer": trials.SECOND_LAYER}
            rounding.append({**row, **moved, "value": layer})
            for kind, sign in ((FIRST, -0.5), (SECOND, 0.5)):
                own_loss = own["level"] + sign * (own["loss"] + 0.01 * wiggle) + own["spread"] * wiggle / 2
                own_error = 0.1 * own["level"] + sign * (own["error"] + 0.001 * wiggle) + 0.001 * wiggle
                found = {"epoch_loss": loss * np.exp(own_loss), "test_error": error + own_error}
                training += [
                    {**row, "kind": kind, "step": 200, "quantity": quantity, "value": value}
                    for quantity, value in found.items()
                ]
    tables = {"rounding": rounding, "training": training}
    return Results(
        settings, [Part(train_pairs.name, stage, pd.DataFrame(rows)) for stage, rows in tables.items()]
    )


def verdicts(results: Results) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for row in judge(STUDY, results, "paper"):
        found.setdefault(row.claim, set()).add(row.verdict)
    return found


def test_on_the_papers_numbers_every_claim_holds() -> None:
    assert verdicts(made_up()) == {claim.id: {"holds"} for claim in STUDY.claims}


@pytest.mark.parametrize(
    ("changes", "claim"),
    [
        ({"growth": 0.0}, "rounding-grows"),
        ({"growth": -2.0}, "rounding-grows"),
        ({"layer": 1e-14}, "second-layer"),
        ({"layer": 1e-18}, "second-layer"),
        ({"loss": 0.15}, "same-loss"),
        ({"loss": -0.15}, "same-loss"),
        ({"error": 0.015}, "same-error"),
        ({"error": -0.015}, "same-error"),
    ],
    ids=str,
)
def test_other_numbers_contradict(changes: dict[str, float], claim: str) -> None:
    found, ours = verdicts(made_up(**changes)), {each.id for each in STUDY.claims if each.source == "ours"}
    assert [each for each, rows in found.items() if "contradicted" in rows and each not in ours] == [claim]


def test_levels_are_judged_beside_the_printed_ones() -> None:
    found = verdicts(made_up(level=0.4))
    contradicted = [each for each, rows in found.items() if rows == {"contradicted"}]
    assert contradicted == ["printed-losses", "printed-errors"]
    # At other depths and lengths the paper prints no numbers.
    shorter = verdicts(made_up(level=0.4, scale="quick"))
    assert shorter["printed-losses"] == shorter["printed-errors"] == {"undecided"}


def test_pairs_no_nearer_than_strangers_contradict_our_claim() -> None:
    found = verdicts(made_up(runs=100, spread=0.0))
    assert [each for each, rows in found.items() if "contradicted" in rows] == ["nearer-than-strangers"]


def test_growth_is_the_rise_of_the_fitted_line() -> None:
    results = made_up(growth=3.0)
    # A sum with 2 keeps 1e-15 to a last bit of 4e-16, so the line is met only nearly.
    assert decades(results, 20).mean() == pytest.approx(3.0 * 380 / 390, abs=0.1)


def test_no_difference_at_all_counts_as_half_of_the_last_bit() -> None:
    rows = [
        {"depth": 20, "seed": 0, "kind": kind, "step": step, "quantity": "loss", "value": 2.0}
        for kind in (FIRST, SECOND)
        for step in (1, 2)
    ]
    results = Results(STUDY.settings["paper"], [Part(train_pairs.name, "rounding", pd.DataFrame(rows))])
    assert divergence(results, 20).to_numpy().tolist() == [[2 * BIT], [2 * BIT]]
    assert decades(results, 20).tolist() == pytest.approx([0.0])


def test_the_tables_numbers_are_within_what_is_asked_of_ours() -> None:
    """Losses of the paper's pairs differ by at most 4 %, errors by at most .6 points."""
    for depth, (loss, error) in PRINTED[SECOND].items():
        other_loss, other_error = PRINTED[FIRST][depth]
        assert abs(loss / other_loss - 1) < 0.04
        assert abs(error - other_error) < 0.006


def test_tables_4_and_5_repeat_the_plain_column() -> None:
    """Table 4's and Table 5's losses of "ResNets" after training are those of Table 2's plain networks."""
    printed_as_residual = {20: 0.04132, 32: 0.04880, 44: 0.07345}
    assert {depth: loss for depth, (loss, _) in PRINTED[SECOND].items()} == printed_as_residual
    assert all(PRINTED[FIRST][depth][0] != loss for depth, loss in printed_as_residual.items())


# Trials --------------------------------------------------------------------------------------------------------


@pytest.fixture
def smoke(smoke_run: Callable[[Study], StudyRun]) -> Results:
    return results_of(STUDY, smoke_run(STUDY))


def test_real_pairs_differ_by_rounding_alone(smoke: Results) -> None:
    double = smoke.rows(train_pairs, stage="rounding", kind="difference")
    assert matching(double, quantity="output")["value"].max() < 1e-14
    assert 0 < matching(double, quantity="activity")["value"].max() < 1e-14
    assert divergence(smoke, 5).to_numpy().max() < 1e-14
    for quantity in ("epoch_loss", "test_error"):
        plain, residual = (ends(smoke, kind, 5, quantity) for kind in (SECOND, FIRST))
        assert len(plain) == 2
        assert plain.tolist() == pytest.approx(residual.tolist(), abs=1e-4)


def test_a_pair_does_not_depend_on_its_company() -> None:
    together = train_pairs.function(PAIRS, Bench())
    alone = train_pairs.function(dataclasses.replace(PAIRS, seeds=(1,)), Bench())
    kept = together[together["seed"] == 1].sort_values(["quantity", "kind", "step"])
    alone = alone.sort_values(["quantity", "kind", "step"])
    assert kept["value"].tolist() == pytest.approx(alone["value"].tolist(), rel=1e-5)
    assert set(kept["quantity"]) == {"epoch_loss", "epoch_accuracy", "test_error"}
    assert kept["epoch"].max() == 2


def test_errors_are_those_of_the_networks_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "TEST_CHUNK", 7)
    samples = trials._samples(PAIRS, "test", "cpu")
    samples = TensorSet(samples.inputs[:20], samples.labels[:20], 10, "digits", "")
    nets = trials._residual(PAIRS, samples, (0, 1), "cpu")
    assert isinstance(nets, Ensemble)
    with torch.no_grad():
        answers = [member(samples.inputs).argmax(1) for member in nets.members()]
    expected = [float((answer != samples.labels).double().mean()) for answer in answers]
    assert trials.errors(nets, samples) == pytest.approx(expected)


def test_paper_scale_is_the_papers() -> None:
    calls = {call.label: call.settings for call in STUDY.stages[0](Results(STUDY.settings["paper"]))}
    assert set(calls) == {
        f"{depth} layers, {kind}" for depth in (20, 32, 44) for kind in ("float32", "float64")
    }
    whole, double = calls["44 layers, float32"], calls["44 layers, float64"]
    assert whole.training == Training()  # at the rate 1e-2 for 44 layers too
    assert (whole.precision, whole.test, whole.every) == ("float32", True, 0)
    assert (double.precision, double.training.epochs, double.training.images) == ("float64", 1, None)
    assert -(-50_000 // double.training.batch_size) == 391
    assert whole.seeds == double.seeds == (0, 1, 2, 3, 4)


def test_memory_is_counted_in_the_precision_of_the_pairs() -> None:
    assert train_pairs.memory is not None
    single = train_pairs.memory(PAIRS, "cpu")
    double = train_pairs.memory(dataclasses.replace(PAIRS, precision="float64"), "cpu")
    assert 1.5 * single < double < 2.5 * single


def test_the_figure_has_figure_6_and_the_ends_with_the_papers_numbers(smoke: Results) -> None:
    losses, apart, loss, error = STUDY.figure(smoke).axes
    assert [text.get_text() for text in losses.get_legend().get_texts()] == ["Plain", "Residual"]
    assert (losses.get_xlabel(), apart.get_xlabel()) == ("epoch", "iteration")
    assert [text.get_text() for text in apart.get_legend().get_texts()] == ["5 layers", "float64", "float32"]
    for ax in (loss, error):
        assert [text.get_text() for text in ax.get_legend().get_texts()] == ["Plain", "Residual"]
    made = dataclasses.replace(STUDY.settings["paper"], epochs=1)
    printed = STUDY.figure(Results(made, made_up(runs=5).parts)).axes[2]
    assert printed.get_legend().get_texts()[-1].get_text() == "paper"
    stars = [line for line in printed.get_lines() if line.get_marker() == "*"]
    assert sorted(float(line.get_ydata()[0]) for line in stars) == sorted(
        pair[0] for by_depth in PRINTED.values() for pair in by_depth.values()
    )
