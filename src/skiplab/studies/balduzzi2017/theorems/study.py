"""The theorems' settings, trials and declaration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from skiplab.checks import at_least, require
from skiplab.randomness import run_seeds
from skiplab.reproduction import Call, Results, Study, scales, subset
from skiplab.studies.balduzzi2017.theorems.claims import CLAIMS
from skiplab.studies.balduzzi2017.theorems.models import (
    GATED,
    NORMALISED,
    NORMALISED_TENTH,
    PLAIN_NORMALISED,
    REAL,
    RESCALED,
    RESIDUAL,
    Model,
    is_wide_enough,
)
from skiplab.studies.balduzzi2017.theorems.trials import (
    GatedNets,
    OutputNets,
    PathLemmas,
    RealNets,
    WideNets,
    gated,
    lemmas,
    outputs,
    real,
    weightless,
)

DEEPEST = 1000  # beyond, 2^L is past the floats


@dataclass(frozen=True)
class Settings:
    """How many nets, how wide and how deep; a run is a mean over ``nets`` nets of its own.

    ``gated_*`` is the theorems' own model with independent gates, the rest are real nets; ``wide_*`` are those too
    wide for their weights to be stored, at the same depths (no width: none).
    """

    runs: int = 20
    nets: int = 1
    width: int = 1000
    batch: int = 500
    depths: tuple[int, ...] = (10, 30, 100)
    shallow_depths: tuple[int, ...] = (2, 5, 10)
    gated_runs: int = 100
    gated_nets: int = 10
    gated_width: int = 1000
    gated_samples: int = 8
    gated_depths: tuple[int, ...] = (2, 5, 10, 20, 50, 100)
    wide_width: int = 0
    wide_samples: int = 16
    output_layers: int = 50
    output_width: int = 500
    layers: tuple[int, ...] = (2, 3, 4)
    cases: int = 50
    seed: int = 0


QUICK = {
    "width": 256,
    "batch": 64,
    "shallow_depths": (2, 4, 6),
    "gated_runs": 50,
    "gated_nets": 4,
    "gated_width": 512,
    "gated_samples": 4,
    "wide_width": 5000,
    "wide_samples": 8,
    "output_width": 256,
    "layers": (2, 3),
    "cases": 10,
}
SMOKE = {
    "runs": 2,
    "width": 16,
    "batch": 8,
    "depths": (2, 3, 20),
    "shallow_depths": (2, 3, 4),
    "gated_runs": 3,
    "gated_nets": 2,
    "gated_width": 16,
    "gated_samples": 2,
    "gated_depths": (2, 20),
    "wide_width": 64,
    "wide_samples": 4,
    "output_layers": 4,
    "output_width": 16,
    "layers": (2,),
    "cases": 2,
}


def trials(results: Results) -> list[Call]:
    """Name a trial per model and depth, and one per size of the tiny nets; the long ones first."""
    settings = results.settings
    _check(settings)
    first = run_seeds(settings.seed, max(settings.runs, settings.gated_runs))[0]
    calls = []
    for L in sorted(settings.depths, reverse=True):
        for model in real_models(settings, L):
            wanted = subset(RealNets, settings, model=model.name, L=L, seed=first)
            calls.append(real.of(wanted, f"{model.name} nets, L = {L}"))
    calls += [
        real.of(
            subset(RealNets, settings, model=PLAIN_NORMALISED.name, L=L, seed=first),
            f"{PLAIN_NORMALISED.name} nets, L = {L}",
        )
        for L in sorted({*settings.shallow_depths} - {*settings.depths}, reverse=True)
    ]
    sizes = (settings.gated_runs, settings.gated_nets, settings.gated_width, settings.gated_samples)
    for L in sorted(settings.gated_depths, reverse=True):
        calls += [
            gated.of(GatedNets(model.name, L, *sizes, first), f"{model.name} gates, L = {L}")
            for model in GATED
        ]
    size = (settings.runs, settings.wide_width, settings.wide_samples)
    calls += [
        weightless.of(
            WideNets(RESIDUAL.name, L, *size, first), f"{RESIDUAL.name} nets of {size[1]} units, L = {L}"
        )
        for L in sorted(settings.depths, reverse=True)
        if settings.wide_width
    ]
    spread = (settings.output_layers, settings.runs, settings.output_width, settings.batch, first)
    calls += [
        outputs.of(OutputNets(model.name, *spread), f"{model.name} outputs")
        for model in (NORMALISED, NORMALISED_TENTH)
    ]
    return calls + [
        lemmas.of(PathLemmas(layers, settings.cases, first), f"paths of {layers} layers")
        for layers in settings.layers
    ]


def _check(settings: Settings) -> None:
    """Refuse before the first trial what no row of the table could be made of."""
    for name in ("depths", "shallow_depths", "gated_depths"):
        for L in getattr(settings, name):
            require(
                2 <= L <= DEEPEST,
                f"{name} has {L}, but must lie between 2 (theorem 3 crosses L − 1 modules) and {DEEPEST} "
                "(2^L must be a float).",
            )
    for layers in settings.layers:
        require(
            2 <= layers <= 4,
            f"layers has {layers}, but must lie between 2 (lemma A1 needs two) and 4 (all nets of ±σ are listed).",
        )
    require(settings.batch >= 4, f"batch is {settings.batch}, but 1/variance has no mean below 4 samples.")
    at_least("gated_samples", settings.gated_samples, 2)
    at_least("the number of shallow_depths", len({*settings.shallow_depths}), 3)


def real_models(settings: Settings, L: int) -> list[Model]:
    """The models whose real nets are wide enough for this depth.

    α-rescaled nets are residual ones times a number, so they are built at the smallest depth alone.
    """
    return [
        model
        for model in REAL
        if is_wide_enough(model, L, settings.width) and not (model is RESCALED and min(settings.depths) < L)
    ]


def figure(results: Results) -> Any:
    """Variance and correlation against L: exact, asymptotic and corrected curves, Monte Carlo points."""
    from skiplab.studies.balduzzi2017.theorems.plot import draw

    return draw(results)


STUDY = Study(
    id="balduzzi2017/theorems",
    words=__file__,
    settings=scales(Settings, quick=QUICK, smoke=SMOKE, wide_width=50_000),
    stages=(trials,),
    figure=figure,
    claims=CLAIMS,
    cost={"smoke": 1.0, "quick": 47.0, "paper": 600.0},
    paper_device="one H200",
)
