"""Figure 10's study on gradients whose mean and spread are known."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from oracles.made_up_networks import Row, results_with, rows_by_condition, rows_of, verdicts, wiggle
from skiplab.reproduction import Results
from skiplab.reproduction.runner import results_of
from skiplab.reproduction.store import StudyRun
from skiplab.reproduction.study import Study
from skiplab.studies.yu2019.figure_10 import STUDY, pooled
from skiplab.studies.yu2019.pairs import PLAIN, RESIDUAL, train_pairs
from skiplab.studies.yu2019.table_1 import STUDY as TABLE_1


def made_up(mean: float, *, plain: float = 0.0, runs: int = 13) -> Results:
    """Gradients of deviation 1 to 3 over the epochs, with a mean so many times the pooled deviation."""
    settings = dataclasses.replace(STUDY.settings["paper"], runs=runs)
    rows: list[Row] = []
    for model, own in ((RESIDUAL, mean), (PLAIN, plain)):
        for epoch, std in enumerate((1.0, 1.5, 2.0, 2.5, 3.0)):
            means = [own * 2.12 + 0.02 * wiggle(seed) for seed in range(runs)]
            rows += rows_of(model, 20, "final_mean", means, epoch=epoch)
            rows += rows_of(model, 20, "final_std", [std] * runs, epoch=epoch)
    return results_with(settings, {train_pairs.__name__: rows})


@pytest.mark.parametrize(
    ("mean", "verdict"),
    [
        (0.013, "holds"),
        (-0.02, "holds"),
        (0.08, "contradicted"),
        (-0.08, "contradicted"),
        (0.05, "undecided"),
    ],
)
def test_a_mean_is_small_beside_the_deviation(mean: float, verdict: str) -> None:
    assert verdicts(STUDY, made_up(mean)) == {"mean-near-zero": verdict}


def test_the_paper_shows_residual_networks() -> None:
    rows = rows_by_condition(STUDY, made_up(0.0, plain=0.3), "mean-near-zero")
    assert rows["residual networks"].verdict == "holds"
    assert not rows["plain networks"].headline
    assert rows["plain networks"].statistic == pytest.approx(0.3, rel=0.02)


def test_epochs_are_pooled_as_one_sample() -> None:
    """Mean and deviation of numbers from several epochs together, against the numbers themselves."""
    stream = np.random.default_rng(0)
    numbers = stream.normal(size=(2, 5, 4000)) * np.arange(1, 6)[:, None] + np.arange(5)[:, None]
    rows: list[Row] = []
    for epoch in range(5):
        rows += rows_of(RESIDUAL, 20, "final_mean", numbers[:, epoch].mean(1), epoch=epoch)
        rows += rows_of(RESIDUAL, 20, "final_std", numbers[:, epoch].std(1), epoch=epoch)
    mean, std = pooled(results_with(STUDY.settings["paper"], {train_pairs.__name__: rows}), RESIDUAL)
    assert mean == pytest.approx(numbers.reshape(2, -1).mean(1))
    assert std == pytest.approx(numbers.reshape(2, -1).std(1))


def test_networks_are_those_of_table_1() -> None:
    for scale, settings in STUDY.settings.items():
        assert set(train_pairs(Results(settings))) <= set(TABLE_1.stages[0](Results(TABLE_1.settings[scale])))


def test_the_figure_compares_with_a_normal_law(smoke_run: Callable[[Study], StudyRun]) -> None:
    histogram, quantiles = STUDY.figure(results_of(STUDY, smoke_run(STUDY))).axes
    assert [text.get_text() for text in histogram.get_legend().get_texts()] == [
        "Plain",
        "Residual",
        "normal law",
    ]
    assert quantiles.get_xlabel() == "quantile of a normal law (std)"
    assert all((np.diff(line.get_ydata()) >= 0).all() for line in quantiles.get_lines()[:2])
