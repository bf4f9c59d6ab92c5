"""Figure S2's networks are the paper's, and test accuracies are asked for where there are test images."""

from __future__ import annotations

import dataclasses

import pandas as pd
import pytest
import torch

from skiplab.data import TensorSet
from skiplab.experiments import best_and_worst, building
from skiplab.experiments import networks as earlier
from skiplab.experiments.networks import Member
from skiplab.studies.orhan2018 import figure_s2


@pytest.mark.parametrize(("scale", "count"), [("paper", 4852), ("quick", 1092)])
def test_the_networks_have_as_many_parameters_as_the_caption_says(scale: str, count: int) -> None:
    settings = figure_s2.STUDY.settings[scale]
    named = earlier.together(settings.narrow_training, "cifar100-coarse", "plain", [Member(0, 1.0)])
    inputs = torch.zeros(1, settings.narrow_components)
    samples = TensorSet(inputs, torch.zeros(1, dtype=torch.int64), 20, "cifar100-coarse", "")
    network = building.build(named, samples, 0, 1.0)
    assert sum(tensor.numel() for tensor in network.parameters()) == count
    assert f"{count:,}" in figure_s2.STUDY.caption


def test_the_paper_scale_is_the_papers() -> None:
    paper = figure_s2.STUDY.settings["paper"]
    assert (paper.runs, paper.extremes, paper.wide_runs) == (400, 40, 0)


@pytest.mark.parametrize("present", [True, False])
def test_test_accuracy_needs_test_images(present: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(best_and_worst, "has_split", lambda name, split: present)
    settings = dataclasses.replace(figure_s2.STUDY.settings["smoke"], shown_gains=())
    row = {"quantity": "accuracy", "epoch": 1, "value": 0.5, "data": "digits", "model": "plain"}
    row |= {"skip": "identity", "seed": 500, "gain": 1.0, "sigma": 0.0, "strength": 0.0, "part": "narrow"}
    (call,) = best_and_worst.decide(settings, [pd.DataFrame([row | {"network_id": "a"}])])
    assert call.settings.test is present
    assert call.settings.exact == settings.samples
