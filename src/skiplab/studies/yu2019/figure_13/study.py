"""Figure 13's trial, claims and declaration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skiplab.randomness import run_seeds
from skiplab.reproduction import (
    Bench,
    Call,
    Claim,
    Equivalent,
    Evidence,
    Exact,
    Results,
    Study,
    scales,
    subset,
    trial,
)

if TYPE_CHECKING:
    import pandas as pd

ROUNDING = 1e-12
BARELY_VISIBLE = 0.01  # a line's width in the paper's figure
BEST_EXPONENT = 1.213  # ours: the largest error over r is least there


@dataclass(frozen=True)
class Settings:
    """How many pairs of Gaussian variables a run draws, and the ratios of their deviations."""

    runs: int = 10
    draws: int = 100_000
    seed: int = 0
    ratios: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3, 0.5, 1.0, 2.0, 3.0, 10.0, 30.0, 100.0)


@dataclass(frozen=True)
class Pairs:
    """Settings of one trial: pairs of their own for every ratio, so that its rows are independent."""

    seeds: tuple[int, ...]
    draws: int
    ratios: tuple[float, ...]


@trial("yu2019/gaussian-exceedance", version=1)
def exceeding(settings: Pairs, bench: Bench) -> pd.DataFrame:
    """Count pairs with |X| > |Y|, σ_X/σ_Y being a ratio; one row per ratio and seed."""
    import numpy as np
    import pandas as pd

    from skiplab.randomness import numpy_generator

    rows = []
    for done, seed in enumerate(settings.seeds):
        bench.tell(done / len(settings.seeds), f"run {seed}")
        for ratio in settings.ratios:
            stream = numpy_generator(seed, "exceedance", f"{ratio:g}")
            x, y = np.abs(stream.normal(size=(2, settings.draws)))
            rows.append((ratio, seed, float((ratio * x > y).mean())))
    return pd.DataFrame(rows, columns=["ratio", "seed", "value"])


def draw_pairs(results: Results) -> list[Call]:
    """Name the one trial."""
    settings = results.settings
    seeds = tuple(run_seeds(settings.seed, settings.runs))
    return [exceeding.of(subset(Pairs, settings, seeds=seeds), f"{settings.runs} runs of pairs")]


def simulated(results: Results) -> Iterator[Evidence]:
    """The share of pairs minus eq 14's integral."""
    from skiplab.theory.dominant_flow.gaussian_ratio import integrated_exceedance

    for ratio in results.settings.ratios:
        found, integral = results.sample(exceeding, ratio=ratio), integrated_exceedance(ratio)
        detail = f"share {found.mean():.4f}, integral {integral:.4f}"
        yield Evidence(f"r = {ratio:g}", [found - integral], detail=detail)


def closed_form(results: Results) -> Iterator[Evidence]:
    """Eq 14's integral minus (2/π) arctan r."""
    from skiplab.theory.dominant_flow.gaussian_ratio import exceedance, integrated_exceedance

    apart = [integrated_exceedance(ratio) - float(exceedance(ratio)) for ratio in results.settings.ratios]
    yield Evidence("all r", [apart])


def a_half(results: Results) -> Iterator[Evidence]:
    """Eq 14's integral at r = 1, minus ½, and what eq 15 gives there."""
    from skiplab.theory.dominant_flow.gaussian_ratio import approximate_exceedance, integrated_exceedance

    yield Evidence("eq 14", [[integrated_exceedance(1.0) - 0.5]])
    yield Evidence("eq 15", [[float(approximate_exceedance(1.0)) - 0.5]], headline=False)


def approximation(results: Results) -> Iterator[Evidence]:
    """The largest error of eq 15 over all r, for the paper's exponent and others."""
    from skiplab.theory.dominant_flow.gaussian_ratio import EXPONENT, largest_error

    for exponent in (EXPONENT, BEST_EXPONENT, 1.0):
        most, at = largest_error(exponent)
        detail = f"at r = {at:.3g} and 1/{at:.3g}"
        yield Evidence(f"c = {exponent:g}", [[most]], headline=exponent == EXPONENT, detail=detail)


def figure(results: Results) -> Any:
    """φ and its approximation, and the approximation's error, against r."""
    from skiplab.studies.yu2019.figure_13.plot import draw

    return draw(results)


STUDY = Study(
    id="yu2019/figure-13",
    words=__file__,
    settings=scales(
        Settings, quick={"draws": 20_000}, smoke={"runs": 2, "draws": 200, "ratios": (0.3, 1.0, 3.0)}
    ),
    stages=(draw_pairs,),
    figure=figure,
    unit="φ",
    claims=(
        Claim(
            "integral",
            "Eq 14’s integral is the probability that |X| exceeds |Y|.",
            simulated,
            kind=Equivalent(margin=BARELY_VISIBLE / 2),
            source="equation 14",
        ),
        Claim(
            "a-half-at-one",
            "φ(1) = ½.",
            a_half,
            kind=Exact(rounding=ROUNDING),
            source="ours",
        ),
        Claim(
            "approximation",
            "1/(1 + r^−c) with c = 1.2 can hardly be told from φ: it errs by less than .01 everywhere.",
            approximation,
            kind=Exact(rounding=BARELY_VISIBLE),
            unit="largest error of φ",
            source="equation 15",
        ),
        Claim(
            "arctangent",
            "The integral is (2/π) arctan r, in closed form.",
            closed_form,
            kind=Exact(rounding=ROUNDING),
            source="ours",
        ),
    ),
    cost={"quick": 1.0, "paper": 2.0},
)
