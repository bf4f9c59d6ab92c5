"""Section 4.1's study: its streams against real networks, its predictions, and what would contradict each claim."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from skiplab.architectures.path_toys import BlockToy
from skiplab.randomness import torch_generator
from skiplab.reproduction import Results
from skiplab.reproduction.runner import results_of
from skiplab.reproduction.store import StudyRun
from skiplab.reproduction.study import Study
from skiplab.reproduction.trial import Bench
from skiplab.reproduction.verdict import judge
from skiplab.studies.littwin2017.bn_start import STUDY, evidence
from skiplab.studies.littwin2017.bn_start.evidence import half_gains, harmonic
from skiplab.studies.littwin2017.bn_start.trials import (
    BEFORE,
    BY_UNIT,
    DEVIATION,
    MOMENT,
    ONE,
    PRINTED,
    Streams,
    normalised,
    streams,
)
from skiplab.studies.littwin2017.path_measures import DEPTH
from skiplab.studies.littwin2017.start_paths import StartPaths, network, start_paths
from skiplab.subjects import Subject

WithRows = Callable[[Results, pd.DataFrame], Results]


@pytest.fixture
def results(smoke_run: Callable[[Study], StudyRun]) -> Results:
    return results_of(STUDY, smoke_run(STUDY))


@pytest.mark.parametrize(("variant", "norm"), [(BY_UNIT, "after"), (BEFORE, "before")])
def test_streams_are_those_of_real_networks(variant: str, norm: str) -> None:
    settings = Streams(seeds=(3,), variant=variant, width=8, layers=5, samples=30)
    frame = streams.function(settings, Bench())
    net = BlockToy(50, 10, 8, 5, generator=torch_generator(3, "network"), norm=norm, dtype=torch.float64)
    inputs = torch.randn(30, 50, generator=torch_generator(3, "inputs"), dtype=torch.float64)
    activities = Subject.of(net, train_mode=True).activities(inputs)
    expected = [activity.square().mean().item() for activity in activities.values()]
    assert frame[frame["quantity"] == MOMENT]["value"].tolist() == pytest.approx(expected, rel=1e-9)


def test_one_deviation_per_layer_and_equation_22_to_the_letter() -> None:
    field = torch.randn(500, 6, generator=torch_generator(0), dtype=torch.float64) * torch.arange(1, 7)
    active = torch.relu(field)
    mean_deviation = active.std(0, unbiased=False).mean()
    centred, sigma = normalised(field, ONE)
    assert sigma.item() == pytest.approx(mean_deviation.item(), rel=1e-4)
    torch.testing.assert_close(centred, (active - active.mean(0)) / mean_deviation, rtol=1e-4, atol=1e-4)
    printed, _ = normalised(field, PRINTED)
    torch.testing.assert_close(printed, active / mean_deviation, rtol=1e-4, atol=1e-4)


def test_predictions_have_their_known_values() -> None:
    assert harmonic(10) == pytest.approx(2.929, abs=5e-4)
    assert half_gains(10, 1.0) == pytest.approx(4.0)
    assert half_gains(10, 2**0.5) == pytest.approx(5.5)  # He's weights: (p + 1)/2


@pytest.mark.parametrize(("norm", "predicted"), [(None, half_gains(5, 1.0)), ("after", harmonic(5))])
def test_wide_networks_are_near_the_predictions(norm: str | None, predicted: float) -> None:
    settings = StartPaths(seeds=(0, 1), norm=norm, blocks=5, width=300, samples=64)
    frame = start_paths.function(settings, Bench())
    assert frame[frame["quantity"] == DEPTH]["value"].mean() == pytest.approx(predicted, rel=0.12)


def test_scales_of_skipped_layers_or_of_all_are_multiplied() -> None:
    usual = {"seeds": (0,), "norm": "after", "blocks": 3, "width": 4}
    skipped = network(StartPaths(scale=2.0, **usual), 0).scales()  # type: ignore[arg-type]
    assert [scale.mean().item() for scale in skipped.values()] == [1.0, 2.0, 2.0]
    one, three = (network(StartPaths(every_scale=s, **usual), 0) for s in (1.0, 3.0))  # type: ignore[arg-type]
    for before, after in zip(one.blocks, three.blocks, strict=True):
        torch.testing.assert_close(after.norm.weight, 3 * before.norm.weight)
        torch.testing.assert_close(after.norm.bias, 3 * before.norm.bias)
        assert before.norm.bias.abs().min() > 0


def test_the_same_seed_has_the_same_weights_with_and_without_normalisation() -> None:
    nets = [network(StartPaths(seeds=(1,), norm=norm, blocks=3, width=4), 1) for norm in (None, "after")]
    for one, other in zip(nets[0].blocks, nets[1].blocks, strict=True):
        assert torch.equal(one.linear.weight, other.linear.weight)


def decided(results: Results, with_rows: WithRows, change: Callable[[pd.DataFrame], None]) -> dict[str, str]:
    """Verdicts by claim of six networks with made-up values: everything as the paper has it, then changed."""
    frame = pd.concat([results.frame.assign(seed=results.frame["seed"] + 10 * k) for k in range(3)])
    frame = frame.reset_index(drop=True)
    noise = np.random.default_rng(0).normal(0, 1e-3, len(frame))
    blocks, gains = frame["blocks"].fillna(1).astype(int), frame["gain"].fillna(1)
    predicted = [
        harmonic(p) if norm in ("after", "before") else half_gains(p, g)
        for norm, p, g in zip(frame["norm"], blocks, gains, strict=True)
    ]
    by_layer = frame["quantity"].isin([MOMENT, DEVIATION])
    frame["value"] = np.where(by_layer, frame["layer"].fillna(0), predicted) + noise
    change(frame)
    found: dict[str, set[str]] = {}
    for row in judge(STUDY, with_rows(results, frame), "quick"):
        if row.headline:
            found.setdefault(row.claim, set()).add(row.verdict)
    return {claim: "contradicted" if "contradicted" in each else each.pop() for claim, each in found.items()}


def test_all_claims_hold_of_networks_as_the_paper_describes_them(
    results: Results, with_rows: WithRows
) -> None:
    found = decided(results, with_rows, lambda frame: None)
    assert found == dict.fromkeys([claim.id for claim in STUDY.claims], "holds")


def _where(**values: Any) -> Callable[[pd.DataFrame], pd.Series]:
    def mask(frame: pd.DataFrame) -> pd.Series:
        chosen = pd.Series(True, index=frame.index)
        for column, value in values.items():
            chosen &= frame[column] == value
        return chosen

    return mask


@pytest.mark.parametrize(
    ("where", "factor", "claims"),
    [
        ({"quantity": DEVIATION, "variant": PRINTED}, -1.0, {"deviations-rise"}),
        ({"quantity": MOMENT, "layer": 7}, 1.2, {"second-moment-adds-one"}),
        (
            {"quantity": DEPTH, "norm": "after", "blocks": 10, "width": 20},
            1.5,
            {"bn-starts-shorter", "depths-as-predicted"},
        ),
    ],
)
def test_networks_that_differ_contradict(
    results: Results, with_rows: WithRows, where: dict[str, Any], factor: float, claims: set[str]
) -> None:
    def change(frame: pd.DataFrame) -> None:
        frame.loc[_where(**where)(frame), "value"] *= factor

    found = decided(results, with_rows, change)
    assert {claim for claim, verdict in found.items() if verdict == "contradicted"} == claims


def test_the_recursion_is_judged_in_ten_layers_of_the_largest_networks(results: Results) -> None:
    settings = results.settings
    large = settings.large
    rows = list(evidence.adds_one(results))
    judged = [row.condition for row in rows if row.headline]
    assert judged == [f"{large} units, {large} inputs, layer {layer}" for layer in range(2, 11)]
    seeds = sorted(set(results.rows(streams)["seed"]))
    made = streams.function(
        Streams(tuple(seeds), BY_UNIT, large, 10, settings.samples, inputs=large), Bench()
    )
    moments = made[made["quantity"] == MOMENT].pivot_table(index="seed", columns="layer", values="value")
    last = next(row for row in rows if row.condition == judged[-1])
    assert last.samples[0].tolist() == pytest.approx((moments[10] - moments[9]).tolist())


def test_sizes_between_show_the_trend_unjudged() -> None:
    paper = STUDY.settings["paper"]
    assert list(evidence.sizes(paper)) == [
        "200 units, 1,000 inputs", "1,000 units, 50 inputs", "1,000 units, 1,000 inputs",
    ]  # fmt: skip
    named = {call.stage: call.settings for call in STUDY.stages[0](Results(paper)) if call.stage}
    assert {stage: (each.width, each.inputs, each.layers) for stage, each in named.items()} == {
        stage: (*size, 30) for stage, size in evidence.sizes(paper).items()
    }


def test_rows_at_another_scale_of_weights_say_so(results: Results) -> None:
    rows = list(evidence.shorter_with_bn(results))
    assert {row.condition for row in rows if row.other_scale} == {*evidence.GAINS.values()}


def test_the_predictions_and_the_recursion_whose_limits_the_paper_leaves_open_are_ours() -> None:
    assert [claim.id for claim in STUDY.claims if claim.source == "ours"] == [
        "second-moment-adds-one",
        "depths-as-predicted",
    ]
    assert {claim.source for claim in STUDY.claims} == {"section 4.1", "ours"}


def test_the_figure_draws_four_ways_of_normalising_and_four_sizes(results: Results) -> None:
    deviations, _, added, depths = STUDY.figure(results).axes
    assert [text.get_text() for text in added.get_legend().get_texts()] == [
        "30 × 50", "30 × 40", "40 × 50", "40 × 40",
    ]  # fmt: skip
    assert len(deviations.get_legend().get_texts()) == 4
    assert [text.get_text() for text in depths.get_legend().get_texts()] == ["p/2", "no BN", "BN"]
