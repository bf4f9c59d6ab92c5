"""Equation 26's networks and its one claim."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from skiplab import data
from skiplab.architectures.fully_connected import HyperResidualNet
from skiplab.experiments import building
from skiplab.reproduction.results import Results
from skiplab.reproduction.verdict import judge
from skiplab.studies.orhan2017 import equation_26, figure_11

Make = Callable[..., pd.DataFrame]
AsResults = Callable[[Any, pd.DataFrame], Results]
SETTINGS = dataclasses.replace(equation_26.STUDY.settings["smoke"], runs=6, gains=(1.0,))


@pytest.mark.parametrize("scale", ["smoke", "quick", "paper"])
def test_divided_networks_are_figure_11s(scale: str) -> None:
    """At every gain, the smaller ones included."""
    ours, theirs = (
        set(study.stages[0](Results(study.settings[scale]))) for study in (equation_26.STUDY, figure_11.STUDY)
    )
    assert {call.settings.model for call in ours & theirs} == {"hyper-residual"}
    assert theirs - ours == {call for call in theirs if call.settings.model == "residual"}
    assert not [call for call in ours - theirs if call.settings.model == "hyper-residual"]
    gains = {gain for call in theirs for gain in call.settings.gains}
    assert ({0.01, 0.03} <= gains) == (scale == "paper")


def test_only_the_division_differs() -> None:
    calls = equation_26.EXPERIMENT.train(Results(SETTINGS))
    samples = data.tensors("digits", images=10)
    nets = [building.build(call.settings, samples, 0, 1.0) for call in calls[::2]]
    assert all(isinstance(net, HyperResidualNet) for net in nets)
    assert [net.normalised for net in nets] == [True, False]
    assert all((one == two).all() for one, two in zip(*(net.parameters() for net in nets), strict=True))


def test_an_accuracy_that_still_rises_at_the_grids_end_leaves_the_claim_open(
    trained: Make, by_stage: AsResults
) -> None:
    """However far the two are apart: no one knows where the rise ends."""

    def verdicts(steps: tuple[float, ...]) -> dict[str, str]:
        frame = pd.concat(
            trained(model, seed, [value + (seed % 500) / 10000], gain=gain)
            for model, values in (("hyper-residual", (0.9, 0.9, 0.9)), ("hyper-residual-sums", steps))
            for gain, value in zip((0.1, 0.3, 1.0), values, strict=True)
            for seed in (*range(6), 500)
        )
        settings = dataclasses.replace(SETTINGS, gains=(0.1, 0.3, 1.0))
        found = judge(equation_26.STUDY, by_stage(settings, frame), "quick")
        return {row.condition: row.verdict for row in found if row.headline}

    assert verdicts((0.4, 0.3, 0.2)) == {"digits, a longer grid": "undecided"}
    assert verdicts((0.3, 0.4, 0.2)) == {"digits, best gains (1/0.3)": "holds"}


@pytest.mark.parametrize(
    ("divided", "verdict"), [(0.8, "holds"), (0.704, "contradicted"), (0.6, "contradicted")]
)
def test_the_claim_follows_the_numbers(
    trained: Make, by_stage: AsResults, divided: float, verdict: str
) -> None:
    frame = pd.concat(
        trained(model, seed, [value + (seed % 500) / 10000])
        for model, value in (("hyper-residual", divided), ("hyper-residual-sums", 0.7))
        for seed in (*range(6), 500)
    )
    found = judge(equation_26.STUDY, by_stage(SETTINGS, frame), "quick")
    assert [row.verdict for row in found if row.headline] == [verdict]
    assert {row.source for row in found} == {"section 2.4"}
