"""Figure 1e's study: made-up norms on which the paper is right or wrong, and real ones at smoke scale."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from skiplab.reproduction import Results
from skiplab.reproduction.results import Part
from skiplab.reproduction.runner import results_of
from skiplab.reproduction.store import StudyRun
from skiplab.reproduction.study import Study
from skiplab.reproduction.verdict import judge
from skiplab.studies.littwin2017.figure_1e import STUDY
from skiplab.studies.littwin2017.figure_1e.evidence import HEADLINE, grows, shares
from skiplab.studies.littwin2017.figure_1e.study import networks
from skiplab.studies.littwin2017.toy_settings import trend_epochs
from skiplab.studies.littwin2017.toys import train

START = 15.0


def made_up(growth: float = 0.2, force: float = 0.3, jump: float = 0.0) -> Results:
    """‖w‖ that grows by so much, ``jump`` of it in the first epoch, by a force that adds so much to ‖w‖²."""
    settings = dataclasses.replace(STUDY.settings["paper"], strip=())
    rows = []
    for seed in range(settings.runs):
        wiggle = 0.01 * (seed % 5 - 2)
        for epoch in (0, *trend_epochs(settings.epochs)):
            share = epoch / settings.epochs
            value = START * (1 + (jump if epoch else 0.0) + (growth + wiggle - jump) * share)
            row = {"seed": seed, "epoch": epoch, "layer": 0, "diverged": False}
            rows += [{**row, "quantity": each, "value": value} for each in ("weight_norm", "hidden_norm")]
            rows.append({**row, "quantity": "test_error", "value": 0.1})
        for epoch in range(1, settings.epochs + 1):
            row = {"seed": seed, "epoch": epoch, "layer": 0, "diverged": False}
            parts = {"force": force + wiggle, "noise": 0.1}
            rows += [
                {**row, "quantity": name, "value": START**2 * value / settings.epochs}
                for name, value in parts.items()
            ]
    return Results(settings, [Part(train.name, HEADLINE, pd.DataFrame(rows))])


def verdicts(results: Results) -> dict[str, str]:
    return {row.claim: row.verdict for row in judge(STUDY, results, "paper") if row.headline}


def test_on_norms_as_the_paper_has_them_every_claim_holds() -> None:
    assert set(verdicts(made_up()).values()) == {"holds"}


@pytest.mark.parametrize(
    ("changes", "contradicted"),
    [
        ({"growth": -0.2}, {"norm-grows", "norm-grows-steadily"}),
        ({"growth": 0.03}, {"norm-grows"}),
        ({"growth": 0.1, "jump": 0.2}, {"norm-grows-steadily"}),
        ({"force": -0.2}, {"force-grows-the-norm"}),
    ],
)
def test_other_norms_contradict(changes: dict[str, float], contradicted: set[str]) -> None:
    found = verdicts(made_up(**changes))
    assert {claim for claim, verdict in found.items() if verdict == "contradicted"} == contradicted


def test_shares_are_sums_in_units_of_the_start() -> None:
    results = made_up(force=0.4)
    assert shares(results, HEADLINE, "force").mean() == pytest.approx(0.4)
    assert shares(results, HEADLINE, "force", since=101).mean() == pytest.approx(0.2)
    assert shares(results, HEADLINE, "force", until=50).mean() == pytest.approx(0.1)
    assert shares(results, HEADLINE, "noise").tolist() == pytest.approx([0.1] * 20)


def test_the_deciding_networks_stand_beside_the_strip_at_its_length() -> None:
    """‖w‖ grows on a straight line, so that after 50 of 200 epochs a quarter of its growth is there."""
    rows = {row.condition: row for row in grows(made_up(growth=0.2))}
    short = rows["gain 1, 50 epochs"]
    assert not short.headline
    assert float(np.mean(short.samples[0])) == pytest.approx(np.log(1.05), abs=1e-4)


def test_only_smaller_weights_are_another_initial_scale(smoke_run: Callable[[Study], StudyRun]) -> None:
    results = results_of(STUDY, smoke_run(STUDY))
    rows = [row for claim in STUDY.claims for row in claim.evidence(results)]
    assert {row.condition for row in rows if row.other_scale} == {"gain .3", "gain .3, from epoch 2"}


def test_the_networks_have_no_normalisation_and_the_scale_of_section_3() -> None:
    calls = {call.stage: call.settings for call in networks(Results(STUDY.settings["paper"]))}
    assert all(settings.norm is None and settings.forces for settings in calls.values())
    assert (calls["gain 1"].gain, calls["gain .3"].gain) == (1.0, 0.3)
    assert len(calls["gain 1"].seeds) == 20
    assert calls["rate .1"].training.rate == 0.1


def test_the_smoke_run_has_its_three_panels(smoke_run: Callable[[Study], StudyRun]) -> None:
    figure: Any = STUDY.figure(results_of(STUDY, smoke_run(STUDY)))
    norms, parts, sums = figure.axes
    assert [text.get_text() for text in norms.get_legend().get_texts()] == ["gain 1", "gain .3"]
    assert len(parts.get_legend().get_texts()) == 2
    assert [text.get_text() for text in sums.get_yticklabels()] == ["gain 1", "gain .3"]


def test_iterations_beyond_16_bits_are_drawn_where_they_belong() -> None:
    results = made_up()
    (part,) = results.parts
    table = part.table.astype({"epoch": "int16", "layer": "int16"})  # as the trial has it
    figure: Any = STUDY.figure(Results(results.settings, [dataclasses.replace(part, table=table)]))
    line = figure.axes[0].get_lines()[0]
    assert list(line.get_xdata())[-1] == 200 * 200
