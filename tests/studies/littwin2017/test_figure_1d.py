"""Figure 1d's study: made-up scales on which the paper is right or wrong, and real ones at smoke scale."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from skiplab.reproduction import Results
from skiplab.reproduction.judgement import judgements
from skiplab.reproduction.results import Part
from skiplab.reproduction.runner import results_of
from skiplab.reproduction.store import StudyRun
from skiplab.reproduction.study import Study
from skiplab.reproduction.verdict import judge
from skiplab.studies.littwin2017.figure_1d import STUDY
from skiplab.studies.littwin2017.figure_1d.evidence import UNIFORM, grow, in_the_others_direction
from skiplab.studies.littwin2017.figure_1d.study import RISING, STRIP, networks
from skiplab.studies.littwin2017.toy_settings import trend_epochs
from skiplab.studies.littwin2017.toys import Mixture, train


def made_up(
    skipped: float = 0.3,
    first: float = 0.6,
    *,
    late: float = 0.0,
    diverged: int = 0,
    at: tuple[int, ...] = (0, *trend_epochs(200)),
) -> Results:
    """Mean |λ| that moves by so much over training, ``late`` of it back in the second half."""
    settings = dataclasses.replace(STUDY.settings["paper"], strip=())
    rows = []
    for seed in range(settings.runs):
        wiggle = 0.01 * (seed % 5 - 2)
        for epoch in at:
            share = epoch / settings.epochs
            for layer in range(1, 11):
                moved = (first if layer == 1 else skipped) * share - late * max(0.0, share - 0.5) * 2
                value = 1 + moved + wiggle * share
                row = {"seed": seed, "epoch": epoch, "layer": layer, "diverged": seed < diverged}
                rows += [{**row, "quantity": each, "value": value} for each in ("scale", "scale_rms")]
            rows.append({**row, "layer": 0, "quantity": "test_error", "value": 0.1})
    return Results(settings, [Part(train.name, "headline", pd.DataFrame(rows))])


def verdicts(results: Results) -> dict[str, str]:
    return {row.claim: row.verdict for row in judge(STUDY, results, "paper") if row.headline}


def test_on_scales_as_the_paper_has_them_every_claim_holds() -> None:
    assert set(verdicts(made_up()).values()) == {"holds"}


@pytest.mark.parametrize(
    ("changes", "contradicted"),
    [
        ({"skipped": -0.1, "first": 0.3}, {"scales-grow", "scales-grow-steadily"}),
        ({"skipped": 0.0, "first": 0.3}, {"scales-grow"}),
        ({"first": 0.3}, {"first-layer-differs"}),
        ({"first": -0.1}, {"first-layer-grows"}),
        ({"first": 0.02}, {"first-layer-grows"}),  # less than is worth having
        ({"skipped": 0.3, "late": 0.28}, {"scales-grow"}),
    ],
)
def test_other_scales_contradict(changes: dict[str, float], contradicted: set[str]) -> None:
    found = verdicts(made_up(**changes))
    assert {claim for claim, verdict in found.items() if verdict == "contradicted"} == contradicted


@pytest.mark.parametrize("sign", [-1, 1])
def test_the_first_layer_may_differ_in_either_direction(sign: int) -> None:
    assert verdicts(made_up(skipped=0.3, first=0.3 + sign * 0.2))["first-layer-differs"] == "holds"


def test_the_direction_is_not_chosen_by_those_who_are_judged() -> None:
    """Without any difference the claim holds in no more than the level's share of cases, not in twice as many."""
    draws, held = np.random.default_rng(0), 0
    for _ in range(2000):
        sample = in_the_others_direction(draws.normal(size=20))
        held += sample.mean() / (sample.std(ddof=1) / np.sqrt(len(sample))) > 1.833  # t of 9 degrees at .95
    assert held / 2000 < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 2000)


def test_networks_that_diverged_are_left_out_and_counted() -> None:
    rows = judge(STUDY, made_up(diverged=2), "paper")
    row = next(row for row in rows if row.claim == "scales-grow" and row.headline)
    assert "2 of 20 diverged" in row.detail
    assert row.runs == 18


def test_the_caption_and_the_appendix_contradict_each_other() -> None:
    """Appendix C has 10 Gaussians, which is what decides; the caption has 50, a condition of the strip."""
    calls = {call.stage: call.settings for call in networks(Results(STUDY.settings["paper"]))}
    assert (calls["headline"].mixture.classes, calls["50 classes"].mixture.classes) == (10, 50)
    assert calls["headline"].mixture == Mixture()
    assert set(calls) == {"headline", *STRIP, "another mixture"}
    assert calls["another mixture"].mixture.draw != 0


def test_what_still_rose_is_trained_to_the_end_and_compared_at_the_strips_end_too() -> None:
    settings = STUDY.settings["paper"]
    calls = {call.stage: call.settings for call in networks(Results(settings))}
    whole = [stage for stage, each in calls.items() if each.training.epochs == settings.epochs]
    assert whole == ["headline", *RISING]
    assert len(calls["rate .5"].seeds) == settings.strip_runs
    assert {*trend_epochs(settings.strip_epochs), *trend_epochs(settings.epochs)} <= set(calls["rate .5"].at)
    made = made_up(at=calls["rate .5"].at)
    rising = dataclasses.replace(made.settings, strip=RISING)
    (own,) = made.parts
    rows = list(grow(Results(rising, [own, dataclasses.replace(own, stage="rate .5")])))
    lengths = {row.condition: float(np.mean(row.samples[0])) for row in rows if "rate .5" in row.condition}
    assert lengths == pytest.approx(
        {"rate .5, 50 epochs": 0.3 * 50 / 200, "rate .5, 200 epochs": 0.3}, abs=1e-9
    )


def test_rows_whose_scales_start_elsewhere_say_so() -> None:
    """Scales fall from 1 and rise from U(0, 1): the verdict depends on where they start."""
    settings = dataclasses.replace(STUDY.settings["paper"], strip=(UNIFORM,))
    at = tuple(sorted({0, *trend_epochs(50), *trend_epochs(200)}))
    own, other = made_up(-0.1, at=at).parts[0], made_up(0.3, at=at).parts[0]
    results = Results(settings, [own, dataclasses.replace(other, stage=UNIFORM)])
    for claim in STUDY.claims:
        rows = list(claim.evidence(results))
        marked = [row.condition for row in rows if row.other_scale]
        assert marked == [f"{UNIFORM}, 50 epochs", f"{UNIFORM}, 200 epochs"]
    found = {each.claim: each for each in judgements(judge(STUDY, results, "paper"))}
    assert found["scales-grow"].verdict == "contradicted"
    assert found["scales-grow"].depends.startswith("depends on the initial scale: holds in 2 of 2")


def test_the_smoke_run_has_its_three_panels(smoke_run: Callable[[Study], StudyRun]) -> None:
    figure: Any = STUDY.figure(results_of(STUDY, smoke_run(STUDY)))
    by_layer, over, strip = figure.axes
    assert [text.get_text() for text in over.get_legend().get_texts()] == ["first layer", "skipped layers"]
    assert by_layer.get_legend() is not None
    assert [text.get_text() for text in strip.get_yticklabels()] == [
        "λ = 1, rate .1", "rate .01", "BN before ReLU",
    ]  # fmt: skip
