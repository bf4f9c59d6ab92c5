"""Figure 6: phase portraits of three-layer modes, and how fast modes of ten layers are learned."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skiplab.randomness import run_seeds
from skiplab.reproduction.claim import Claim, Evidence, Exact, Greater
from skiplab.reproduction.study import Study
from skiplab.reproduction.trial import Call
from skiplab.studies.orhan2017.linear_panels import mode_figure
from skiplab.studies.orhan2017.mode_flows import (
    NETWORKS,
    PRINTED_LABELS,
    PRINTED_SADDLES,
    Contest,
    Matrices,
    Race,
    Saddles,
    matrices,
    race,
    raced,
    saddles,
)

if TYPE_CHECKING:
    import pandas as pd

DENSE = "dense-residual"


@dataclass(frozen=True)
class Settings:
    """How many random starts; the singular value learned, the starts' spreads (the first is judged), the depth."""

    runs: int = 20
    seed: int = 0
    s: float = 3.0
    others: tuple[float, ...] = (1.5, 6.0)
    spreads: tuple[float, ...] = (1e-4, 1e-2, 1e-1)
    layers: int = 10
    within: float = 0.05
    points: int = 200
    drawn: int = 5


def _judged(settings: Settings) -> Contest:
    """The race that the headline verdicts are about."""
    return Contest(settings.layers - 1, settings.spreads[0], settings.s)


def flows(settings: Settings, _: Sequence[pd.DataFrame]) -> list[Call]:
    """Name the trials: saddles, real networks, and races of ten layers and of three for every ten runs."""
    seeds = tuple(run_seeds(settings.seed, settings.runs))
    calls = [
        saddles.of(Saddles(seeds, settings.points), label="saddles"),
        matrices.of(Matrices(seeds, layers=settings.layers - 1), label="gradients of real networks"),
    ]
    judged = _judged(settings)
    contests = [Contest(judged.layers, spread, settings.s) for spread in settings.spreads]
    contests += [Contest(2, judged.spread, s) for s in (settings.s, *settings.others)]
    for i in range(0, len(seeds), 10):
        ten = seeds[i : i + 10]
        for contest in dict.fromkeys(contests):
            checked = contest == judged
            drawn = settings.drawn if checked and i == 0 else 0
            layers, spread, s = contest
            label = f"{layers + 1} layers, s = {s:g}, spread {spread:g}, starts {ten[0]}–{ten[-1]}"
            calls.append(
                race.of(Race(ten, layers, spread, s, settings.within, drawn, checked=checked), label=label)
            )
    return calls


def table(settings: Settings, tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the trials' rows as they are."""
    return tables[0]


def _saddles(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    for network in NETWORKS:
        rows = frame[(frame["part"] == "saddles") & (frame["network"] == network)]
        wide = rows.pivot(index="run", columns="quantity", values="value")
        # A wrong place and a wrong kind of point both count, and so does a task in which none was found.
        off = wide["from printed"] + wide["not a saddle"] + (wide["found"] == 0)
        a, b = PRINTED_SADDLES[network]
        place = f"({a:g}, {b:g})".replace("-", "−")
        detail = f"Newton's method ended in it from {int(wide['found'].sum())} random points"
        name = f"{network} at {place}"
        if network == DENSE:
            name, detail = f"true dense skips at {place}", "they have it at (−1, −1)"
        yield Evidence(name, [off.tolist()], headline=network != DENSE, detail=detail)


def _order(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    import numpy as np

    judged = _judged(settings)
    shallow = judged._replace(layers=2)
    races = [(judged._replace(spread=spread), "time") for spread in settings.spreads]
    races += [(shallow, "time"), (judged, "steps"), (shallow, "steps")]
    for contest, quantity in dict.fromkeys(races):
        times = {network: raced(frame, quantity, network, contest) for network in NETWORKS}
        what = "" if quantity == "time" else ", time × sharpest curvature"
        headline = (contest, quantity) == (judged, "time")
        for slow, fast in (("plain", "residual"), ("residual", "hyper-residual"), ("residual", DENSE)):
            detail = f"medians {times[slow].median():.3g} and {times[fast].median():.3g}"
            name = "true dense skips" if fast == DENSE else fast
            condition = f"{slow} − {name}, {contest.layers + 1} layers, spread {contest.spread:g}{what}"
            gap = np.log10(times[slow] / times[fast]).tolist()
            yield Evidence(condition, [gap], headline=headline and fast != DENSE, detail=detail)


def _far_above(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    start = math.factorial(settings.layers - 1)
    u = raced(frame, "initial answer", "hyper-residual", _judged(settings))
    detail = f"{settings.layers - 1}! = {start:,}; s = {settings.s:g}"
    yield Evidence(f"{settings.layers} layers", [(u / start - 1).tolist()], detail=detail)


def _moved(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    for network in ("residual", "hyper-residual"):
        yield Evidence(network, [raced(frame, "moved start", network, _judged(settings)).tolist()])


def _solver(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    for network in NETWORKS[:3]:
        yield Evidence(network, [raced(frame, "time from quadrature", network, _judged(settings)).tolist()])


def _gradients(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    for network in NETWORKS:
        for quantity in ("gradient", "gradient, printed label"):
            if quantity != "gradient" and network not in PRINTED_LABELS:
                continue
            rows = frame[(frame["quantity"] == quantity) & (frame["network"] == network)]
            name = network if quantity == "gradient" else f"{network}, labels as printed"
            yield Evidence(name, [rows["value"].tolist()], headline=quantity == "gradient")


def _speed(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    for s in (settings.s, *settings.others):
        contest = Contest(2, settings.spreads[0], s)
        speeds = {network: raced(frame, "initial speed", network, contest) for network in NETWORKS}
        for fast, slow in (("residual", "plain"), ("hyper-residual", "residual")):
            detail = f"means {speeds[fast].mean():.3g} and {speeds[slow].mean():.3g}"
            gap = (speeds[fast] - speeds[slow]).tolist()
            yield Evidence(f"{fast} − {slow}, s = {s:g}", [gap], headline=s == settings.s, detail=detail)


STUDY = Study(
    id="orhan2017/figure-6",
    words=__file__,
    settings={
        "smoke": Settings(runs=2, others=(1.5,), spreads=(1e-4,), points=40, drawn=1),
        "quick": Settings(),
        "paper": Settings(runs=100),
    },
    stages=(flows,),
    table=table,
    figure=mode_figure,
    claims=(
        Claim(
            "saddles",
            "In three layers the saddle is at (0, 0) in the plain network, (−1, −1) in the residual one and (−1, "
            "−2) in the hyper-residual one.",
            _saddles,
            Exact(1e-12),
            "distance",
        ),
        Claim(
            "order-of-times",
            "Ten-layer networks learn fastest with hyper-residual skips, then residual ones, then none.",
            _order,
            Greater(),
            "powers of ten",
        ),
        Claim(
            "faster-at-the-origin",
            "Skips speed up the dynamics around the origin, residual ones less than hyper-residual ones.",
            _speed,
            Greater(),
            "speed",
        ),
        Claim(
            "modes-are-descent",
            "Eqs 21–23, labels corrected, are gradient descent on the weight matrices of real networks with "
            "aligned modes, rectangular ones included.",
            _gradients,
            Exact(1e-10),
            "largest relative difference",
        ),
        Claim(
            "starts-far-above",
            "By eq 23 the hyper-residual answer u starts near 1·2·…·9, far above s (ours).",
            _far_above,
            Exact(0.01),
            "u over 9!, less 1",
        ),
        Claim(
            "skip-is-a-start",
            "In eqs 21–23 a skip only moves the start: plain modes from a + 1 or a + l take the same time (ours).",
            _moved,
            Exact(1e-6),
            "relative difference",
        ),
        Claim(
            "solver",
            "The solver's times are those of the exact integral, though they span forty powers of ten (ours).",
            _solver,
            Exact(1e-6),
            "relative difference",
        ),
    ),
    cost={"smoke": 1.5, "quick": 15.0, "paper": 80.0},
)
