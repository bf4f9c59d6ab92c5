"""What figure 1 claims: which symmetries plain networks have, which skips break, and which stay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from skiplab.randomness import run_seeds
from skiplab.reproduction import Call, Claim, Exact, Greater, Results, Study, chunks, scales, subset
from skiplab.studies.orhan2017.figure_1.evidence import ROUNDING, broken, kept
from skiplab.studies.orhan2017.figure_1.trials import COMMON, OUTER, RandomNetworks, changed_networks

WITH_SKIPS = ("residual", "hyper-residual", "path-residual")
ONE_PERCENT = 0.01


@dataclass(frozen=True)
class Settings:
    """How many random networks of each kind, their size, and how often each is changed."""

    runs: int = 100
    seed: int = 0
    inputs: int = 20
    width: int = 32
    depth: int = 10
    outputs: int = 10
    samples: int = 200
    draws: int = 10
    factor: float = 10.0


def draws(results: Results) -> list[Call]:
    """Name the trials, some networks of every kind in each."""
    settings = results.settings
    return [
        changed_networks.of(subset(RandomNetworks, settings, seeds=some), f"networks {some[0]}–{some[-1]}")
        for some in chunks(run_seeds(settings.seed, settings.runs), 25)
    ]


def figure(results: Results) -> Any:
    """Draw the two changes, plain and with skips, and how far they move the outputs of random networks."""
    from skiplab.studies.orhan2017.figure_1.plot import symmetry_panels

    return symmetry_panels(results)


STUDY = Study(
    id="orhan2017/figure-1",
    words=__file__,
    settings=scales(
        Settings,
        quick={"runs": 25},
        smoke={"runs": 2, "inputs": 4, "width": 8, "depth": 3, "outputs": 3, "samples": 20, "draws": 3},
    ),
    stages=(draws,),
    figure=figure,
    claims=(
        Claim(
            "plain-permutation",
            "Permuting the units of a layer never changes a plain network's function, whatever its units.",
            kept("permutation", "plain", "plain, linear", "plain, tanh"),
            kind=Exact(rounding=ROUNDING),
            unit="largest relative change",
            source="section 2.1",
        ),
        Claim(
            "plain-rescaling",
            "Rescaling two layers against each other never changes a plain network's function if its units are "
            "ReLUs or linear.",
            kept("rescaling", "plain", "plain, linear"),
            kind=Exact(rounding=ROUNDING),
            unit="largest relative change",
            source="section 2.1",
        ),
        Claim(
            "skips-break-permutation",
            "Skips between layers break the permutation symmetry: outputs move by more than 1 %.",
            broken("permutation", "residual", "hyper-residual"),
            kind=Greater(margin=-ONE_PERCENT),
            unit="mean relative change",
            source="section 2.1",
        ),
        Claim(
            "skips-break-rescaling",
            "Skips between layers break the rescaling symmetry, adjacent ones too: outputs move by more than 1 %.",
            broken("rescaling", *WITH_SKIPS),
            kind=Greater(margin=-ONE_PERCENT),
            unit="mean relative change",
            source="sections 2.1 and 2.2",
        ),
        Claim(
            "path-residual-permutation",
            "Path-residual networks, whose units all get the same skips, keep the permutation symmetry.",
            kept("permutation", "path-residual"),
            kind=Exact(rounding=ROUNDING),
            unit="largest relative change",
            source="section 2.2",
        ),
        Claim(
            "common-permutation-stays",
            "Permuting all hidden layers alike survives identity skips.",
            kept(COMMON, "residual"),
            kind=Exact(rounding=ROUNDING),
            unit="largest relative change",
            source="ours",
        ),
        Claim(
            "far-skips-break-common-permutation",
            "Permuting all hidden layers alike does not survive the dense skips of hyper-residual networks: outputs "
            "move by more than 1 %.",
            broken(COMMON, "hyper-residual"),
            kind=Greater(margin=-ONE_PERCENT),
            unit="mean relative change",
            source="ours",
        ),
        Claim(
            "outer-rescaling-stays",
            "One rescaling survives the skips, that of the first matrix against the last.",
            kept(OUTER, *WITH_SKIPS),
            kind=Exact(rounding=ROUNDING),
            unit="largest relative change",
            source="ours",
        ),
        Claim(
            "rescaling-needs-homogeneous-units",
            "Rescaling needs units with f(gx) = g f(x); with tanh a plain network's outputs move by more "
            "than 1 %.",
            broken("rescaling", "plain, tanh"),
            kind=Greater(margin=-ONE_PERCENT),
            unit="mean relative change",
            source="ours",
        ),
    ),
    cost={"smoke": 0.5, "quick": 5.0, "paper": 15.0},
)
