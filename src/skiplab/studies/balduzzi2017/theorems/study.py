"""Theorems 1–3 and corollary 1: how gradients at two inputs vary together, in theory, under coins, and in nets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skiplab.checks import at_least, require
from skiplab.randomness import run_seeds
from skiplab.reproduction.claim import Claim, Equivalent, Exact, Value
from skiplab.reproduction.study import Study
from skiplab.reproduction.trial import Call
from skiplab.studies.balduzzi2017.theorems import evidence
from skiplab.studies.balduzzi2017.theorems.models import (
    GATED,
    HIGHWAY,
    NORMALISED,
    NORMALISED_TENTH,
    PLAIN,
    REAL,
    RESCALED,
    RESIDUAL,
    Model,
    is_wide_enough,
)
from skiplab.studies.balduzzi2017.theorems.trials import Gated, Lemmas, Real, gated, lemmas, real

if TYPE_CHECKING:
    import pandas as pd

ROUNDING = 1e-12
HALF_DIGIT = 0.05  # half a unit of the last digit of .1 and .7
DEEPEST = 1000  # beyond, 2^L is past the floats


@dataclass(frozen=True)
class Settings:
    """How many nets, how wide and how deep; a run is a mean over ``nets`` nets of its own.

    ``gated_*`` is the theorems' own model with independent gates, the rest are real nets.
    """

    runs: int
    nets: int = 1
    width: int = 256
    batch: int = 64
    depths: tuple[int, ...] = (10, 30, 100)
    gated_runs: int = 50
    gated_nets: int = 4
    gated_width: int = 512
    gated_samples: int = 4
    gated_depths: tuple[int, ...] = (2, 5, 10, 20, 50, 100)
    layers: tuple[int, ...] = (2, 3)
    cases: int = 10
    seed: int = 0


def trials(settings: Settings, _: Sequence[pd.DataFrame]) -> list[Call]:
    """Name a trial a model and depth, and one a size of the tiny nets; the long ones first."""
    _check(settings)
    first = run_seeds(settings.seed, max(settings.runs, settings.gated_runs))[0]
    calls = []
    for L in sorted(settings.depths, reverse=True):
        for model in real_models(settings, L):
            wanted = Real(model.name, L, settings.runs, settings.nets, settings.width, settings.batch, first)
            calls.append(real.of(wanted, f"{model.name} nets, L = {L}"))
    for L in sorted(settings.gated_depths, reverse=True):
        for model in GATED:
            sizes = (settings.gated_runs, settings.gated_nets, settings.gated_width, settings.gated_samples)
            calls.append(gated.of(Gated(model.name, L, *sizes, first), f"{model.name} gates, L = {L}"))
    return calls + [
        lemmas.of(Lemmas(layers, settings.cases, first), f"paths of {layers} layers")
        for layers in settings.layers
    ]


def _check(settings: Settings) -> None:
    """Refuse before the first trial what no row of the table could be made of."""
    for name in ("depths", "gated_depths"):
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


def real_models(settings: Settings, L: int) -> list[Model]:
    """The models whose real nets are wide enough for this depth.

    α-rescaled nets are residual ones times a number, so they are built at the smallest depth alone.
    """
    return [
        model
        for model in REAL
        if is_wide_enough(model, L, settings.width) and not (model is RESCALED and min(settings.depths) < L)
    ]


def table(settings: Settings, tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the trials' rows as they are: law is gates, nets or paths."""
    return tables[0]


def figure(frame: pd.DataFrame, settings: Settings) -> Any:
    """Draw variance and correlation against L: printed, exact and corrected curves, Monte Carlo points."""
    from skiplab.studies.balduzzi2017.theorems.plot import draw

    return draw(frame, settings)


def _theorem(key: str, words: str, models: Sequence[Model]) -> tuple[Claim, Claim, Claim]:
    """Two verdicts on a theorem, under independent gates and on real nets, and one on our correction."""
    return (
        Claim(
            key,
            f"{words}: Monte Carlo with independent gates is within 3 standard errors.",
            lambda frame, settings: evidence.within(frame, models),
            Exact(),
            "standard errors beyond 3",
        ),
        Claim(
            f"{key}-nets",
            f"“Holds empirically”: {words}, in real nets at initialisation.",
            lambda frame, settings: evidence.on_nets(frame, settings, models, correct=False),
            Value(),
        ),
        Claim(
            f"{key}-nets-corrected",
            f"Ours: {words[0].lower() + words[1:]}, corrected for what real gates and batch normalisation do.",
            lambda frame, settings: evidence.on_nets(frame, settings, models, correct=True),
            Value(),
        ),
    )


def _hundred(key: str, model: Model, value: float) -> Claim:
    """A number that section 3.3 prints to one digit, within half a unit of it."""
    return Claim(
        key,
        f"A 100-layer resnet with batch normalisation has correlation {value} at β = {model.beta:g}.",
        lambda frame, settings: evidence.concrete(frame, settings, model, value),
        Value(tolerance=HALF_DIGIT / value),
        "correlation",
    )


STUDY = Study(
    id="balduzzi2017/theorems",
    words=__file__,
    settings={
        "smoke": Settings(
            runs=2,
            width=16,
            batch=8,
            depths=(2, 20),
            gated_runs=3,
            gated_nets=2,
            gated_width=16,
            gated_samples=2,
            gated_depths=(2, 20),
            layers=(2,),
            cases=2,
        ),
        "quick": Settings(runs=20),
        "paper": Settings(
            runs=20,
            width=1000,
            batch=500,
            gated_runs=100,
            gated_nets=10,
            gated_width=1000,
            gated_samples=8,
            layers=(2, 3, 4),
            cases=50,
        ),
    },
    stages=(trials,),
    table=table,
    figure=figure,
    claims=(
        *_theorem("theorem-1", "Feedforward nets have variance 1 and covariance 2^−L", (PLAIN,)),
        Claim(
            "theorem-1-printed",
            "As printed, feedforward nets have covariance 1/(2L).",
            lambda frame, settings: evidence.in_print(frame, "gates", (PLAIN,)),
            Value(),
            "correlation",
        ),
        *_theorem("theorem-2", "Resnets have variance 2^L and covariance (3/2)^L", (RESIDUAL,)),
        *_theorem("rescaling", "At α = 1/√2 resnets have variance 1 and correlation (3/4)^L", (RESCALED,)),
        Claim(
            "rescaling-exact",
            "Ours: an α-rescaled net has α^L times the gradients of the unscaled one, whatever the gates.",
            evidence.same,
            Exact(rounding=1e-3),
            "relative difference",
        ),
        *_theorem(
            "theorem-3",
            "With batch normalisation variance is ∏(1 + β²/v_l) and covariance ∏(1 + β²/2v_l), v_l = β²(l − 1) + 1",
            (NORMALISED, NORMALISED_TENTH),
        ),
        Claim(
            "theorem-3-printed",
            "As printed, with batch normalisation the correlation is ∼ 1/(β√L); taken at its word.",
            lambda frame, settings: evidence.in_print(frame, "gates", (NORMALISED, NORMALISED_TENTH)),
            Value(),
            "correlation",
        ),
        _hundred("hundred-layers", NORMALISED, 0.1),
        _hundred("hundred-layers-tenth", NORMALISED_TENTH, 0.7),
        *_theorem("corollary-1", "Highway nets have variance 1 and covariance (γ₁² + γ₂²/2)^L", (HIGHWAY,)),
        Claim(
            "corollary-1-printed",
            "As printed in the proof, highway nets have covariance ∏(γ₁ + γ₂/2).",
            evidence.highway_product,
            Value(),
            "covariance",
        ),
        Claim(
            "highway-limit",
            "With γ₁² = 1 − 1/L the correlation of highway nets’ gradients tends to e^−½.",
            evidence.limit,
            Value(),
            "correlation",
        ),
        Claim(
            "plain-growth",
            "Ours: with batch normalisation feedforward nets’ gradient variance grows as (π/(π − 1))^L.",
            evidence.growth,
            Value(tolerance=0.03),
            "factor a layer",
        ),
        Claim(
            "mean-zero-printed",
            "As definition 1 says, gradients have mean zero since weights have.",
            evidence.means,
            Equivalent(margin=0.1),
            "mean over root mean square",
        ),
        Claim(
            "lemma-a1",
            "Lemma A1: path sums have mean 0 and covariance |A ∩ B| σ^(2(L−1)).",
            lambda frame, settings: evidence.lemma(frame, ("A1, listed", "A1, orthogonal", "A1, mean")),
            Exact(rounding=ROUNDING),
            "largest deviation",
        ),
        Claim(
            "lemma-a2",
            "Lemma A2: a gradient is the sum of the weights of all active paths.",
            lambda frame, settings: evidence.lemma(
                frame, ("A2", "A2, plain of eq 2", "A2, residual of eq 2")
            ),
            Exact(rounding=ROUNDING),
            "largest deviation",
        ),
        Claim(
            "lemma-a3-printed",
            "Lemma A3 as printed: residual path sums have covariance Σ_F |A ∩ B|_F σ^(2(|F|−1)).",
            lambda frame, settings: evidence.lemma(frame, ("A3 printed, listed", "A3 printed, orthogonal")),
            Exact(rounding=ROUNDING),
            "largest deviation",
        ),
        Claim(
            "lemma-a3",
            "Lemma A3 mended: residual path sums have covariance Σ_F |A ∩ B|_F σ^(2|F|).",
            lambda frame, settings: evidence.lemma(frame, ("A3, listed", "A3, orthogonal")),
            Exact(rounding=ROUNDING),
            "largest deviation",
        ),
    ),
    cost={"smoke": 1.0, "quick": 40.0, "paper": 600.0},
    paper_device="one H200",
)
