"""Figure 11's trials, networks and claim."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
import torch

from skiplab import data
from skiplab.architectures.fully_connected import HyperResidualNet
from skiplab.experiments import building
from skiplab.reproduction.results import Results
from skiplab.reproduction.verdict import judge
from skiplab.studies.orhan2017 import figure_11

Make = Callable[..., pd.DataFrame]
AsResults = Callable[[Any, pd.DataFrame], Results]
SETTINGS = dataclasses.replace(figure_11.STUDY.settings["smoke"], runs=6, gains=(0.3, 1.0))


def frame_of(trained: Make, hyper: float, residual: float) -> pd.DataFrame:
    """Both models are better at gain .3, by the numbers given."""
    return pd.concat(
        trained(model, seed, [value * gain_factor + (seed % 500) / 10000], gain=gain)
        for model, value in (("hyper-residual", hyper), ("residual", residual))
        for gain, gain_factor in ((0.3, 1.0), (1.0, 0.5))
        for seed in (*range(6), 500)
    )


def test_both_models_are_searched_and_decided_at_every_gain() -> None:
    calls = [call.settings for call in figure_11.EXPERIMENT.train(Results(SETTINGS))]
    assert [(call.model, call.seeds[0] >= 500) for call in calls] == [
        (model, search) for model in ("residual", "hyper-residual") for search in (False, True)
    ]
    assert {call.gains[-1] for call in calls} == {1.0}
    assert all(len(call.seeds) == 12 for call in calls if call.seeds[0] < 500)


@pytest.mark.parametrize("scale", ["quick", "paper"])
def test_networks_have_twenty_layers_and_both_sets(scale: str) -> None:
    settings = figure_11.STUDY.settings[scale]
    assert (settings.depth, settings.data) == (20, ("cifar10", "cifar100-coarse"))
    assert figure_11.STUDY.settings["paper"].runs == 10


def test_far_skips_are_folded_twice_and_adjacent_ones_are_identities() -> None:
    settings = figure_11.EXPERIMENT.train(Results(figure_11.Settings(data=("digits",))))[2].settings
    network = building.build(settings, data.tensors("digits", images=10), 0, 0.3)
    assert isinstance(network, HyperResidualNet)
    assert len(network.hidden) == 20
    assert all(isinstance(layer.skip, torch.nn.Identity) for layer in network.hidden[1:])
    assert len(network.far) == 18  # from layers 1 … 18, each to all from the second above it on
    for connection in network.far:
        assert len(torch.unique(connection.matrix, dim=1).T) == 32
    assert not torch.equal(network.far[0].matrix, network.far[1].matrix)


@pytest.mark.parametrize(
    ("hyper", "residual", "verdict"),
    [(0.8, 0.7, "holds"), (0.804, 0.8, "contradicted"), (0.7, 0.8, "contradicted")],
)
def test_the_claim_follows_the_numbers(
    trained: Make, by_stage: AsResults, hyper: float, residual: float, verdict: str
) -> None:
    results = by_stage(SETTINGS, frame_of(trained, hyper, residual))
    found = judge(figure_11.STUDY, results, "quick")
    assert [(row.condition, row.headline, row.verdict) for row in found] == [
        ("digits, best gains (0.3)", True, verdict),
        ("digits, gain 0.3", False, verdict),
        ("digits, gain 1", False, verdict),
    ]
    assert found[0].statistic == pytest.approx(hyper - residual, abs=1e-6)


def test_the_figure_shows_curves_and_gains(trained: Make, by_stage: AsResults) -> None:
    figure = figure_11.STUDY.figure(by_stage(SETTINGS, frame_of(trained, 0.8, 0.7)))
    above, below = figure.axes
    assert [line.get_label() for line in above.get_lines()] == [
        "Residual, g = 0.3",
        "Hyper-residual, g = 0.3",
    ]
    assert [text.get_text() for text in below.get_xticklabels()] == ["0.3", "1"]
