"""Figure 4: every configuration of four toy networks with binary weights, on random targets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from skiplab.reproduction import Call, Claim, Evidence, Results, Study, Value, scales
from skiplab.reproduction.trial import Trial
from skiplab.studies.orhan2017.landscapes.experiment import (
    DOMINATED,
    ORDER_CLAIMS,
    QUICK,
    SMOKE,
    LandscapeSettings,
    by_target,
    one_or_zero,
    targets,
)
from skiplab.studies.orhan2017.landscapes.trials import biased_landscape, landscape, sparse_landscape

PAPER_MINIMA = {"plain": 3.2e6, "path-residual": 505e3, "residual": 140e3, "hyper-residual": 54.0}


@dataclass(frozen=True)
class Settings(LandscapeSettings):
    """Those of both figures; the output's bias as a further parameter, too; targets of few points."""

    runs: int = 40  # with fewer, no value outside their range can contradict at .05
    output_bias: bool = True
    few_points: int | None = 8
    also_read: int = 20  # how many of the targets have the other readings, too


def readings(results: Results) -> list[Call]:
    """Name one trial per random target, one with the output's bias as a further parameter, and one of few points."""
    settings, calls = results.settings, targets(results)
    some, few = calls[: settings.also_read], settings.few_points
    biased = [biased_landscape.of(call.settings, f"{call.label}, output bias") for call in some]
    sparse = [
        sparse_landscape.of(replace(call.settings, points=few), f"{call.label}, {few} points")
        for call in (some if few else ())
    ]
    return calls + (biased if settings.output_bias else []) + sparse


def each_reading(results: Results) -> list[tuple[Trial, str]]:
    """The trials of every reading of the parameters and targets, and what is added to a condition's words."""
    settings, found = results.settings, [(landscape, "")]
    if settings.output_bias:
        found.append((biased_landscape, f", {settings.weights + 1} parameters, an output bias"))
    if settings.few_points:
        found.append((sparse_landscape, f", targets of {settings.few_points} points"))
    return found


def minima(results: Results) -> Iterator[Evidence]:
    """Numbers of local minima, one per target, beside the paper's of its one target."""
    for trial, reading in each_reading(results):
        counts = by_target(results, "minima", trial)
        for architecture, paper in PAPER_MINIMA.items():
            ours = counts[architecture]
            fewer = (
                f"{int((ours <= paper).sum())} of {len(ours)} targets have no more minima than the paper's"
            )
            words, own = f"{architecture}{reading}", not reading
            yield Evidence(words, [ours.tolist()], paper_value=paper, headline=own, detail=fewer)


def dominated(results: Results) -> Iterator[Evidence]:
    """The share of the plain network's configurations with one better neighbour or none, one number per target."""
    for trial, reading in each_reading(results):
        yield replace(one_or_zero(results, trial), condition=f"plain{reading}", headline=not reading)


def figure(results: Results) -> Any:
    """Draw the three distributions, with the paper's numbers of minima where ours can be compared with them."""
    from skiplab.studies.orhan2017.landscapes.plot import landscape_panels

    settings = results.settings
    comparable = settings.depth == LandscapeSettings.depth and not settings.biases
    return landscape_panels(results, PAPER_MINIMA if comparable else {})


STUDY = Study(
    id="orhan2017/figure-4",
    words=__file__,
    settings=scales(Settings, quick={**QUICK, "output_bias": False, "few_points": None}, smoke=SMOKE),
    stages=(readings,),
    figure=figure,
    source="section 2.2",
    claims=(
        Claim(
            "number-of-minima",
            "The paper's numbers of local minima, of one target, lie in our ranges over targets, give or take a "
            "tenth, if its network has the 22 weights that are described.",
            minima,
            kind=Value(tolerance=0.1, spread="range"),
            unit="local minima",
            source="ours",
        ),
        replace(DOMINATED, evidence=dominated),
        *ORDER_CLAIMS,
    ),
    cost={"smoke": 0.2, "quick": 12.0, "paper": 120.0},
    in_tour=True,
)
