"""What figure 6 claims: where saddles are, and that skips learn faster, around the origin and in ten layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from skiplab.randomness import run_seeds
from skiplab.reproduction import Call, Claim, Exact, Greater, Results, Study, chunks, scales
from skiplab.studies.orhan2017.figure_6 import evidence
from skiplab.studies.orhan2017.figure_6.evidence import Contest
from skiplab.studies.orhan2017.figure_6.trials import (
    AlignedNetworks,
    Race,
    RandomStrengths,
    matrices,
    race,
    saddles,
)
from skiplab.studies.orhan2017.smallest_effects import POWERS_OF_TEN, TEN_PERCENT


@dataclass(frozen=True)
class Settings:
    """How many random starts; the singular value learned, the starts' spreads (the first is judged), the depth."""

    runs: int = 100
    seed: int = 0
    s: float = 3.0
    others: tuple[float, ...] = (1.5, 6.0)
    spreads: tuple[float, ...] = (1e-4, 1e-2, 1e-1)
    layers: int = 10
    within: float = 0.05
    points: int = 200
    drawn: int = 5


def flows(results: Results) -> list[Call]:
    """Name the trials: saddles, real networks, and races of ten layers and of three for every ten runs."""
    settings = results.settings
    seeds = tuple(run_seeds(settings.seed, settings.runs))
    calls = [
        saddles.of(RandomStrengths(seeds, settings.points), "saddles"),
        matrices.of(AlignedNetworks(seeds, layers=settings.layers - 1), "gradients of real networks"),
    ]
    judged = evidence.judged(results)
    contests = [judged._replace(spread=spread) for spread in settings.spreads]
    contests += [Contest(2, judged.spread, s) for s in (settings.s, *settings.others)]
    for number, ten in enumerate(chunks(seeds, 10)):
        for contest in dict.fromkeys(contests):
            checked = contest == judged
            drawn = settings.drawn if checked and number == 0 else 0
            layers, spread, s = contest
            label = f"{layers + 1} layers, s = {s:g}, spread {spread:g}, starts {ten[0]}–{ten[-1]}"
            run = Race(ten, layers, spread, s, settings.within, drawn, checked=checked)
            calls.append(race.of(run, label))
    return calls


def figure(results: Results) -> Any:
    """Draw four phase portraits, u(t), and the race's results."""
    from skiplab.studies.orhan2017.figure_6.plot import mode_panels

    return mode_panels(results)


STUDY = Study(
    id="orhan2017/figure-6",
    words=__file__,
    settings=scales(
        Settings,
        quick={"runs": 20},
        smoke={"runs": 2, "others": (1.5,), "spreads": (1e-4,), "points": 40, "drawn": 1},
    ),
    stages=(flows,),
    figure=figure,
    claims=(
        Claim(
            "saddles",
            "In three layers the saddle is at (0, 0) in the plain network and at (−1, −1) in the residual one.",
            evidence.saddle_points,
            kind=Exact(rounding=1e-12),
            unit="distance",
            source="section 2.3.2",
        ),
        Claim(
            "equation-7",
            "With identity skips from each layer to all above it, a linear network computes (W_{L−1} + (L − 1)I) … "
            "(W_1 + I)x, eq 7.",
            evidence.true_skips,
            kind=Exact(rounding=1e-12),
            unit="u of the network over that of eq 7, less 1",
            source="section 2.1",
        ),
        Claim(
            "order-of-times",
            "In time of the gradient flow, by eqs 21–23, ten-layer networks learn fastest with hyper-residual skips, "
            "then residual ones, then none.",
            evidence.order,
            kind=Greater(worth=TEN_PERCENT),
            unit=POWERS_OF_TEN,
            source="section 2.3.2",
        ),
        Claim(
            "more-in-deeper-networks",
            "What skips gain, in time of the gradient flow, is more in deeper networks: in ten layers than in three.",
            evidence.deeper,
            kind=Greater(worth=TEN_PERCENT),
            unit=POWERS_OF_TEN,
            source="section 2.3.2",
        ),
        Claim(
            "faster-at-the-origin",
            "Skips speed up the dynamics around the origin.",
            evidence.speed,
            kind=Greater(worth=TEN_PERCENT),
            unit=POWERS_OF_TEN,
            source="section 2.3.2",
        ),
        Claim(
            "hyper-faster-at-the-origin",
            "Residual skips speed up the dynamics around the origin “not as much as” hyper-residual ones.",
            evidence.hyper_speed,
            kind=Greater(worth=TEN_PERCENT),
            unit=POWERS_OF_TEN,
            source="section 2.3.2",
        ),
        Claim(
            "residual-faster-for-some-s",
            "Residual skips speed up the origin more than hyper-residual ones if 1.61 < s < 3.72, and less if not.",
            evidence.interval_of_s,
            kind=Exact(),
            unit="starts for which it is not so",
            source="ours",
        ),
        Claim(
            "modes-are-descent",
            "Eqs 21 and 22, the residual label corrected, are gradient descent on the weight matrices of real "
            "networks with aligned modes, rectangular ones included.",
            evidence.gradients,
            kind=Exact(rounding=1e-10),
            unit="largest relative difference",
            source="equations 21 and 22",
        ),
        Claim(
            "starts-far-above",
            "By eq 23 the hyper-residual answer u starts near 1·2·…·9, far above s.",
            evidence.far_above,
            kind=Exact(rounding=0.01),
            unit="u over 9!, less 1",
            source="ours",
        ),
        Claim(
            "skip-is-a-start",
            "In eqs 21–23 a skip only moves the start: plain modes from a + 1 or a + l take the same time.",
            evidence.moved_starts,
            kind=Exact(rounding=1e-6),
            unit="relative difference",
            source="ours",
        ),
        Claim(
            "solver",
            "The solver's times are those of the exact integral, though they span forty powers of ten.",
            evidence.solver,
            kind=Exact(rounding=1e-6),
            unit="relative difference",
            source="ours",
        ),
    ),
    cost={"smoke": 1.5, "quick": 15.0, "paper": 80.0},
)
