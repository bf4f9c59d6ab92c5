"""Proposition A1's settings, claims and declaration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from skiplab.randomness import run_seeds
from skiplab.reproduction import Call, Claim, Equivalent, Exact, Results, Study, Value, scales, subset
from skiplab.studies.balduzzi2017.proposition_a1 import evidence
from skiplab.studies.balduzzi2017.proposition_a1.trials import OneLayerNets, gradients

ROUNDING = 1e-12
CORRELATION = 0.01  # components count as uncorrelated if the root mean square of their correlations is below


@dataclass(frozen=True)
class Settings:
    """How many nets and neurons; a run is a mean over ``nets`` nets of its own."""

    runs: int = 50
    nets: int = 2000
    neurons: int = 2000
    points: int = 8  # fractions t = 1/8, 2/8 …, a multiple of 4
    components: int = 8
    inputs: int = 256
    seed: int = 0


def trials(results: Results) -> list[Call]:
    """Name a trial per law of the weights."""
    settings = results.settings
    first = run_seeds(settings.seed, settings.runs)[0]
    return [
        gradients.of(subset(OneLayerNets, settings, law=law, seed=first), f"{law}, {settings.runs} runs")
        for law in evidence.LAWS
    ]


def figure(results: Results) -> Any:
    """Walks, covariance, eigenvalues, eigenfunctions, and the gradient against x for two spreads of biases."""
    from skiplab.studies.balduzzi2017.proposition_a1.plot import draw

    return draw(results)


STUDY = Study(
    id="balduzzi2017/proposition-A1",
    words=__file__,
    settings=scales(
        Settings,
        quick={"runs": 20, "nets": 1000, "neurons": 200},
        smoke={"runs": 2, "nets": 50, "neurons": 20, "points": 4, "components": 3, "inputs": 16},
    ),
    stages=(trials,),
    figure=figure,
    source="proposition A1",
    claims=(
        Claim(
            "brownian-motion",
            "Against the fraction of active neurons the gradient of many neurons is Brownian motion: it has "
            "covariance min(s, t), and the mean of its largest value is √(2/π).",
            evidence.brownian,
            kind=Value(),
            unit="ratio to Brownian motion's",
        ),
        Claim(
            "derivative",
            "The derivative of the net is the sum of the weights of active neurons, equation A2.",
            evidence.derivative,
            kind=Exact(rounding=ROUNDING),
            unit="largest deviation",
            source="ours",
        ),
        Claim(
            "eigenvalues",
            "The variances of the gradient’s Karhunen–Loève components are 1/((k − ½)²π²).",
            evidence.variances,
            kind=Value(),
            unit="Var F_k",
            source="ours",
        ),
        Claim(
            "uncorrelated",
            "The gradient’s components along √2 sin((k − ½)πt) are uncorrelated.",
            evidence.uncorrelated,
            kind=Equivalent(margin=CORRELATION**2),
            unit="mean of r² − 1/n",
            source="ours",
        ),
        Claim(
            "in-x",
            "Against the input the gradient has covariance min(F(x), F(y)), F the biases’ distribution function.",
            evidence.covariances_in_x,
            kind=Value(),
            unit="mean of E[f′(x) f′(y)]/min(F(x), F(y))",
            source="ours",
        ),
    ),
    cost={"smoke": 0.3, "quick": 10.0, "paper": 120.0},
)
