"""Figure 11's settings, claims and declaration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from skiplab.randomness import run_seeds
from skiplab.reproduction import Call, Claim, Equivalent, Exact, Greater, Ordered, Results, Study, scales
from skiplab.studies.yu2019.figure_11 import evidence
from skiplab.studies.yu2019.figure_11.trials import PANELS, Panel, shares

COINCIDE = 0.01  # a line's width in the paper's figure
WORTH = 0.059  # a tenth of E[σ] where all panels meet, .590
PLAIN_WORTH = 0.012  # a tenth of a plain network's, .118
NORMAL_WORTH = 0.014  # a tenth of what normal entries would give, .144


@dataclass(frozen=True)
class Settings:
    """How many draws, and the values along each panel's axis; a run has its own ``draws`` at every point."""

    runs: int = 10
    draws: int = 50_000
    seed: int = 0
    n: tuple[int, ...] = (5, 10, 20, 50, 100)
    layer: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8, 9)
    sigma_a: tuple[float, ...] = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
    sigma_v: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3, 1.0)
    p: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    epsilon: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3, 1.0)


def simulate(results: Results) -> list[Call]:
    """Name a trial per panel and kind of network; plain networks have no ε."""
    settings = results.settings
    seeds = tuple(run_seeds(settings.seed, settings.runs))
    panels = [
        shares.of(
            Panel(kind, parameter, getattr(settings, parameter), seeds, settings.draws),
            f"{kind}, panel {letter}",
        )
        for parameter, (letter, _) in PANELS.items()
        for kind in ("residual", "plain")
        if (kind, parameter) != ("plain", "epsilon")
    ]
    given = Panel("residual", "sigma_a", settings.sigma_a, seeds, settings.draws, open_path=True)
    return [*panels, shares.of(given, "residual with open paths, panel c")]


def figure(results: Results) -> Any:
    """E[σ] in six panels, and below each what the formulas miss."""
    from skiplab.studies.yu2019.figure_11.plot import draw

    return draw(results)


STUDY = Study(
    id="yu2019/figure-11",
    words=__file__,
    settings=scales(
        Settings,
        quick={"draws": 10_000},
        smoke={
            "runs": 2,
            "draws": 200,
            "n": (5, 20),
            "layer": (5, 9),
            "sigma_a": (0.01, 0.3),
            "sigma_v": (0.1, 1.0),
            "p": (0.0, 0.3, 0.5, 0.9, 1.0),
            "epsilon": (0.1, 1.0),
        },
    ),
    stages=(simulate,),
    figure=figure,
    unit="E[σ]",
    source="supplement D.4.1",
    claims=(
        Claim(
            "formula-coincides",
            "In panels (a) to (d) simulated and approximate E[σ] of residual networks coincide within .01.",
            evidence.coincide("n", "layer", "sigma_a", "sigma_v"),
            kind=Equivalent(margin=COINCIDE),
            source="figure 11",
        ),
        Claim(
            "formula-is-close",
            "In panels (e) and (f), too, the two curves of residual networks are very close: within .059 of E[σ].",
            evidence.coincide("p", "epsilon"),
            kind=Equivalent(margin=WORTH),
            source="ours",
        ),
        Claim(
            "falls-with-noise",
            "E[σ] of residual networks rises as ε, n or σ_A decreases, in the simulation too.",
            evidence.ordered(*evidence.FALLING, falling=True),
            kind=Ordered(),
            unit="P(later > earlier)",
            source="ours",
        ),
        Claim(
            "rises-with-layer-and-gates",
            "Simulated E[σ] of residual networks rises with l and with p.",
            evidence.ordered(*evidence.RISING),
            kind=Ordered(),
            unit="P(later > earlier)",
        ),
        Claim(
            "formula-is-monotone",
            "The approximate E[σ] rises as ε, n or σ_A decreases, and with l and p.",
            evidence.formula_steps,
            kind=Exact(),
            unit="step the wrong way",
        ),
        Claim(
            "last-gradients-cancel",
            "σ_V has no effect on E[σ] of residual networks.",
            evidence.without_effect(("residual", "sigma_v")),
            kind=Exact(),
            unit="difference for equal random numbers",
            source="ours",
        ),
        Claim(
            "plain-scales-cancel",
            "Neither σ_V nor the scale σ′_A of plain weights has an effect on E[σ] of plain networks.",
            evidence.without_effect(("plain", "sigma_v"), ("plain", "sigma_a")),
            kind=Exact(),
            unit="difference for equal random numbers",
            source="ours",
        ),
        Claim(
            "residual-above-plain",
            "Residual networks have more dominant flows than plain ones: in panels (a) to (d), and p ≥ .7.",
            evidence.residual_above_plain,
            kind=Greater(worth=WORTH),
        ),
        Claim(
            "not-obvious-at-small-p",
            "With p below .6 residual networks do not have noticeably more dominant flows than plain ones.",
            evidence.not_obvious,
            kind=Greater(margin=WORTH),
        ),
        Claim(
            "plain-depends-on-p",
            "E[σ] of plain networks depends on p: with few gates open it is lower.",
            evidence.plain_by_p,
            kind=Greater(worth=PLAIN_WORTH),
        ),
        Claim(
            "plain-not-normal",
            "Entries of a plain network’s Θ are not normal: with open gates E[σ] is not φ(1/√(n − 1)) but lower.",
            evidence.not_normal,
            kind=Greater(worth=NORMAL_WORTH),
        ),
        Claim(
            "no-gate-open",
            "With p = 0 no gradient arrives, and there is no dominant flow.",
            evidence.at_p(least=False),
            kind=Exact(),
            source="ours",
        ),
        Claim(
            "all-gates-open",
            "With p = 1 the approximation φ(r) without gates holds within .01.",
            evidence.all_open,
            kind=Equivalent(margin=COINCIDE),
        ),
        Claim(
            "few-gates-near-zero",
            "With small p, .1, E[σ] of both kinds is close to zero.",
            evidence.at_p(least=True),
            kind=Equivalent(margin=WORTH),
        ),
        Claim(
            "coincides-everywhere",
            "In panels (e) and (f), too, simulated and approximate E[σ] of residual networks coincide within .01.",
            evidence.coincide("p", "epsilon"),
            kind=Equivalent(margin=COINCIDE),
            source="ours",
        ),
        Claim(
            "mixture-is-nearer",
            "Given an open path, Σp^k, the variance of a mixture, is nearer to the simulation than eq 11’s p′.",
            evidence.mixture_is_nearer,
            kind=Greater(worth=COINCIDE / 2),
            unit="distance of E[σ]",
            source="ours",
        ),
        Claim(
            "shut-paths-count",
            "At p of .3 to .6 even the corrected formula is low, since it leaves out units with a shut gate.",
            evidence.shut_paths,
            kind=Greater(worth=COINCIDE),
            source="ours",
        ),
    ),
    cost={"smoke": 0.5, "quick": 12.0, "paper": 40.0},
)
