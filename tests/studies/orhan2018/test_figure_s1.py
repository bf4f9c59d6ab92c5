"""Figure S1 is figure 3 with two models of ten layers; its claims are tested there."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from skiplab.experiments import networks
from skiplab.experiments.narrow_networks import NARROW
from skiplab.reproduction.results import Results
from skiplab.reproduction.runner import results_of
from skiplab.reproduction.store import StudyRun
from skiplab.reproduction.study import Study
from skiplab.studies.orhan2018 import figure_3, figure_s1
from skiplab.studies.orhan2018.spectra_over_training import Settings


def parameters(settings: Settings, classes: int = 20) -> int:
    """Weights and biases of a narrow network."""
    width, depth = settings.narrow, settings.narrow_depth
    return (
        width * (settings.narrow_components + 1) + (depth - 1) * width * (width + 1) + classes * (width + 1)
    )


def test_narrow_networks_have_the_sizes_the_paper_prints() -> None:
    assert parameters(figure_s1.STUDY.settings["paper"]) == 4852
    assert parameters(figure_3.STUDY.settings["paper"]) == 10_292


def test_all_networks_have_ten_layers() -> None:
    for scale in ("quick", "paper"):
        settings = figure_s1.STUDY.settings[scale]
        calls = figure_s1.TWO.search(Results(settings))
        trainings = [getattr(call.settings, "networks", call.settings).training for call in calls]
        assert {training.depth for training in trainings} == {10}
        assert {training.width for training in trainings} == {settings.width, settings.narrow}


def test_claims_are_those_of_figure_3_about_its_models() -> None:
    theirs = {claim.id: claim.text for claim in figure_3.STUDY.claims}
    ours = {claim.id: claim.text for claim in figure_s1.STUDY.claims}
    assert ours == {name: text for name, text in theirs.items() if "hyper" not in name}
    assert len(ours) == 3


def test_further_networks_are_as_many_of_each_model_at_the_common_gain_with_seeds_of_their_own(
    smoke_run: Callable[[Study], StudyRun],
) -> None:
    results = results_of(figure_s1.STUDY, smoke_run(figure_s1.STUDY))
    settings = results.settings
    calls = figure_s1.more_at_the_common_gain(results)
    gain = NARROW.common_gain(results, settings.data[0], figure_s1.TWO.models)
    first = min(networks.final_seeds(settings.seed, 1))
    for call, model in zip(calls, figure_s1.TWO.models, strict=True):
        named = call.settings.networks
        assert (named.model, set(named.gains), call.stage) == (model.name, {gain}, NARROW.decide)
        assert named.seeds == (first + settings.narrow_runs,)
        assert set(named.seeds) <= set(NARROW.at(results, settings.data[0], model, gain)["seed"])
    assert figure_s1.more_at_the_common_gain(Results(dataclasses.replace(settings, further_runs=0))) == []
