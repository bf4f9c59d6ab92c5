"""The item that compares bfloat16 with float32: whose networks it trains, and that its claim follows the numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pandas as pd
import pytest

from skiplab.experiments.networks import train
from skiplab.reproduction.results import Part, Results
from skiplab.reproduction.verdict import judge
from skiplab.studies.orhan2017 import figure_7, figure_7_bfloat16, figure_8

Make = Callable[..., pd.DataFrame]
PAPER = figure_7_bfloat16.STUDY.settings["paper"]
SETTINGS = dataclasses.replace(
    figure_7_bfloat16.STUDY.settings["smoke"],
    runs=6,
    gains=(0.3, 1.0),
    float32_gains=(0.3, 1.0),
    plain_at=1.0,
)


def test_networks_in_bfloat16_are_figure_7s_and_those_in_float32_figure_8s() -> None:
    mixed, single = (
        {call for call in figure_7_bfloat16.both_ways(Results(PAPER)) if call.stage == stage}
        for stage in (figure_7_bfloat16.BFLOAT16, figure_7_bfloat16.FLOAT32)
    )
    for calls, figure in ((mixed, figure_7), (single, figure_8)):
        settings = dataclasses.replace(figure.STUDY.settings["paper"], data=PAPER.data)
        free = figure.experiment(*figure_7_bfloat16.MODELS)
        theirs = {call.settings for call in free.train(Results(settings)) if call.stage == "decide"}
        assert {call.settings for call in calls} == theirs
    assert {call.settings.training.mixed for call in mixed} == {True}
    assert {call.settings.training.mixed for call in single} == {False}


@pytest.mark.parametrize(
    ("less", "verdict"), [(0.0, "holds"), (0.008, "holds"), (0.02, "contradicted"), (-0.02, "contradicted")]
)
def test_the_claim_follows_the_numbers(trained: Make, less: float, verdict: str) -> None:
    def table(shift: float) -> pd.DataFrame:
        return pd.concat(
            # Networks differ far more from seed to seed than the two ways do.
            trained(model, seed, [0.5 + seed / 20 - shift * (1 + seed / 50)], gain=gain)
            for model in ("plain", "residual")
            for gain in (0.3, 1.0)
            for seed in range(6)
        )

    parts = [
        Part(train.name, stage, table(shift))
        for stage, shift in ((figure_7_bfloat16.BFLOAT16, less), (figure_7_bfloat16.FLOAT32, 1e-4))
    ]
    found = judge(figure_7_bfloat16.STUDY, Results(SETTINGS, parts), "quick")
    headline = [row for row in found if row.headline]
    assert [row.condition for row in headline] == ["digits, plain, gain 1", "digits, residual, gain 0.3"]
    assert {row.verdict for row in headline} == {verdict}
    assert {row.source for row in found} == {"ours"}
    assert all(row.paired for row in headline)
