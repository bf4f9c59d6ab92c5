"""What figure 3 claims: how many weights and skips the four networks have, where, and with which factors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from skiplab.randomness import run_seeds
from skiplab.reproduction import Call, Claim, Exact, Results, Study, scales
from skiplab.studies.orhan2017.figure_3 import evidence
from skiplab.studies.orhan2017.figure_3.trials import ARCHITECTURES, WIDTH, Probe, probe

EQUATIONS = {
    "plain": "$x_{l+1} = f(W_l x_l)$",
    "residual": r"$x_{l+1} = \frac{2}{3}\,[f(W_l x_l) + x_l]$",
    "hyper-residual": r"$x_{l+1} = \frac{2}{l+2}\,[f(W_l x_l) + x_l + \ldots + x_1]$",
    "path-residual": r"$x_{l+1} = \frac{2}{4}\,[f(W_l x_l) + \mathbf{1} x_l]$",
}
ROUNDING = 1e-15


@dataclass(frozen=True)
class Settings:
    """At how many random activities the connections are looked for, and the number of hidden layers."""

    runs: int = 20
    seed: int = 0
    depth: int = 5


def draws(results: Results) -> list[Call]:
    """Name the one trial."""
    seeds = tuple(run_seeds(results.settings.seed, results.settings.runs))
    return [probe.of(Probe(seeds, results.settings.depth), "connections of the four networks")]


def figure(results: Results) -> Any:
    """Draw the networks from the connections found at the first activities."""
    from skiplab.figures.network_diagrams import network_panels

    def edges(architecture: str, kind: str) -> list[evidence.Edge]:
        return evidence.edges(evidence.by_draw(results, architecture, kind)[0])

    networks = {name: (edges(name, "weight"), edges(name, "skip")) for name in ARCHITECTURES}
    return network_panels(networks, [WIDTH] * (results.settings.depth + 1) + [1], EQUATIONS)


STUDY = Study(
    id="orhan2017/figure-3",
    words=__file__,
    settings=scales(Settings, quick={"runs": 5}, smoke={"runs": 1}),
    stages=(draws,),
    figure=figure,
    claims=(
        Claim(
            "weights-printed",
            "Each network has 23 binary parameters, as the text counts.",
            evidence.weights_printed,
            kind=Exact(),
            unit="weights found − said",
            source="ours",
        ),
        Claim(
            "weights",
            "Each network has 5·4 + 2 = 22 weights.",
            evidence.weights,
            kind=Exact(),
            unit="weights found − said",
            source="ours",
        ),
        Claim(
            "skips",
            "Skips are where eqs 1 to 4 put them: none, 10, 30 and 20.",
            evidence.skips,
            kind=Exact(),
            unit="skips missing or too many",
            source="ours",
        ),
        Claim(
            "factors",
            "Connections carry the factors of eqs 1 to 4: 1, 2/3, 2/(l + 2) and 2/4.",
            evidence.factors,
            kind=Exact(rounding=ROUNDING),
            unit="deviation",
            source="ours",
        ),
        Claim(
            "equalised",
            "Normalisation gives every hidden unit the same total of incoming connections, two, in all four "
            "networks.",
            evidence.equalised,
            kind=Exact(rounding=ROUNDING),
            unit="total − 2",
            source="ours",
        ),
        Claim(
            "skips-after-the-units",
            "Weights act before the nonlinearity, skips after it: silent units leave the skips and nothing else.",
            evidence.after_the_units,
            kind=Exact(),
            unit="connections that differ",
            source="ours",
        ),
    ),
    cost={"smoke": 0.1, "quick": 1.5, "paper": 2.0},
)
