"""Figure S1 is figure 3 with two models of ten layers; its claims are tested there."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from skiplab.experiments import networks
from skiplab.experiments.narrow_networks import NARROW
from skiplab.reproduction.results import Part, Results
from skiplab.reproduction.runner import results_of
from skiplab.reproduction.store import StudyRun
from skiplab.reproduction.study import Study
from skiplab.reproduction.verdict import Verdict, judge
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


def degenerate(plain: Sequence[float], residual: Sequence[float], *, further: int) -> Results:
    """Five narrow networks per model and the further ones, with these degenerate fractions by epoch."""
    settings = dataclasses.replace(
        figure_s1.STUDY.settings["smoke"],
        gains=(1.0,), at=(0, 1, 3), narrow_runs=5, further_runs=further, runs=5,
    )  # fmt: skip
    parts = []
    for model, fractions in (("plain", plain), ("residual", residual)):
        for stage, seeds in (
            (NARROW.search, [500]),
            (NARROW.decide, range(5)),
            (NARROW.decide, range(5, 5 + further)),
            ("search", [500]),
            ("decide", range(5)),
        ):
            named = networks.Networks("digits", model, tuple(seeds), (1.0,) * len(seeds), networks.Training())
            rows = [
                {
                    "member": member,
                    "epoch": epoch,
                    "quantity": quantity,
                    "layer": 0,
                    "value": value + seed / 10000,
                }
                for member, seed in enumerate(seeds)
                for epoch, fraction in zip(settings.at, fractions, strict=True)
                for quantity, value in (("degenerate", fraction), ("negative", 0.2), ("accuracy", 0.5))
            ]
            if rows:
                parts.append(Part("", stage, networks.table(named, rows, [False] * len(seeds))))
    return Results(settings, parts)


def judged(results: Results) -> list[Verdict]:
    """The judged rows of the claim about degenerate eigenvalues."""
    rows = judge(figure_s1.STUDY, results, "quick")
    return [row for row in rows if row.claim == "plain-more-degenerate-than-residual" and row.headline]


def test_every_measured_epoch_is_judged_by_all_networks_that_there_are() -> None:
    """At the start of training plain networks are far more degenerate, at its end less."""
    rows = judged(degenerate((0.1, 0.9, 0.3), (0.9, 0.3, 0.4), further=25))
    assert [(row.condition, row.verdict, row.runs) for row in rows] == [
        ("epoch 1, digits, common gain 1", "holds", 30),
        ("epoch 3, digits, common gain 1", "contradicted", 30),
    ]
    assert not any("not run" in row.detail for row in rows)


def test_a_run_without_the_further_networks_says_so() -> None:
    for row in judged(degenerate((0.1, 0.9, 0.3), (0.9, 0.3, 0.2), further=0)):
        assert (row.verdict, row.runs) == ("holds", 5)
        assert "25 further networks per model, declared for the paper's scale, are not run here" in row.detail
    assert figure_s1.STUDY.settings["paper"].further_runs == 25
