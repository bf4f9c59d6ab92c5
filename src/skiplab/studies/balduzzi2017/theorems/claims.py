"""What the theorems, corollary and lemmas claim: as printed, put right, and corrected for real nets."""

from __future__ import annotations

from skiplab.reproduction import Claim, Equivalent, Exact, Value
from skiplab.studies.balduzzi2017.theorems import evidence
from skiplab.studies.balduzzi2017.theorems.models import (
    HIGHWAY,
    NORMALISED,
    NORMALISED_TENTH,
    PLAIN,
    RESCALED,
    RESIDUAL,
    Model,
)

ROUNDING = 1e-12
HALF_DIGIT = 0.05  # half a unit of the last digit of .1 and .7


def _theorem(key: str, words: str, *models: Model) -> tuple[Claim, Claim, Claim]:
    """Two verdicts on a theorem, under independent gates and on real nets, and one on our correction."""
    return (
        Claim(
            key,
            f"{words}: Monte Carlo with independent gates is within 3 standard errors.",
            evidence.within(*models),
            kind=Exact(),
            unit="standard errors beyond 3",
        ),
        Claim(
            f"{key}-nets",
            f"“Holds empirically”: {words}, in real nets at initialisation.",
            evidence.on_nets(*models, correct=False),
            kind=Value(),
        ),
        Claim(
            f"{key}-nets-corrected",
            f"Ours: {words[0].lower() + words[1:]}, corrected for what real gates and batch normalisation do.",
            evidence.on_nets(*models, correct=True),
            kind=Value(),
        ),
    )


def _hundred(key: str, model: Model, value: float) -> Claim:
    """A number that section 3.3 prints to one digit, within half a unit of it."""
    return Claim(
        key,
        f"A 100-layer resnet with batch normalisation has correlation {value} at β = {model.beta:g}.",
        evidence.at_hundred(model, value),
        kind=Value(tolerance=HALF_DIGIT / value),
        unit="correlation",
    )


CLAIMS = (
    *_theorem("theorem-1", "Feedforward nets have variance 1 and covariance 2^−L", PLAIN),
    Claim(
        "theorem-1-printed",
        "As printed, feedforward nets have covariance 1/(2L).",
        evidence.in_print(PLAIN),
        kind=Value(),
        unit="correlation",
    ),
    *_theorem("theorem-2", "Resnets have variance 2^L and covariance (3/2)^L", RESIDUAL),
    *_theorem("rescaling", "At α = 1/√2 resnets have variance 1 and correlation (3/4)^L", RESCALED),
    Claim(
        "rescaling-exact",
        "Ours: an α-rescaled net has α^L times the gradients of the unscaled one, whatever the gates.",
        evidence.rescaled_alike,
        kind=Exact(rounding=1e-3),
        unit="relative difference",
    ),
    *_theorem(
        "theorem-3",
        "With batch normalisation variance is ∏(1 + β²/v_l) and covariance ∏(1 + β²/2v_l), v_l = β²(l − 1) + 1",
        NORMALISED,
        NORMALISED_TENTH,
    ),
    Claim(
        "theorem-3-printed",
        "As printed, with batch normalisation the correlation is ∼ 1/(β√L); taken at its word.",
        evidence.in_print(NORMALISED, NORMALISED_TENTH),
        kind=Value(),
        unit="correlation",
    ),
    _hundred("hundred-layers", NORMALISED, 0.1),
    _hundred("hundred-layers-tenth", NORMALISED_TENTH, 0.7),
    *_theorem("corollary-1", "Highway nets have variance 1 and covariance (γ₁² + γ₂²/2)^L", HIGHWAY),
    Claim(
        "corollary-1-printed",
        "As printed in the proof, highway nets have covariance ∏(γ₁ + γ₂/2).",
        evidence.highway_product,
        kind=Value(),
        unit="covariance",
    ),
    Claim(
        "highway-limit",
        "With γ₁² = 1 − 1/L the correlation of highway nets’ gradients tends to e^−½.",
        evidence.limit,
        kind=Value(),
        unit="correlation",
    ),
    Claim(
        "plain-growth",
        "Ours: with batch normalisation feedforward nets’ gradient variance grows as (π/(π − 1))^L.",
        evidence.growth,
        kind=Value(tolerance=0.03),
        unit="factor a layer",
    ),
    Claim(
        "mean-zero-printed",
        "As definition 1 says, gradients have mean zero since weights have.",
        evidence.means,
        kind=Equivalent(margin=0.1),
        unit="mean over root mean square",
    ),
    Claim(
        "lemma-a1",
        "Lemma A1: path sums have mean 0 and covariance |A ∩ B| σ^(2(L−1)).",
        evidence.lemma("A1, listed", "A1, orthogonal", "A1, mean"),
        kind=Exact(rounding=ROUNDING),
        unit="largest deviation",
    ),
    Claim(
        "lemma-a2",
        "Lemma A2: a gradient is the sum of the weights of all active paths.",
        evidence.lemma("A2", "A2, plain of eq 2", "A2, residual of eq 2"),
        kind=Exact(rounding=ROUNDING),
        unit="largest deviation",
    ),
    Claim(
        "lemma-a3-printed",
        "Lemma A3 as printed: residual path sums have covariance Σ_F |A ∩ B|_F σ^(2(|F|−1)).",
        evidence.lemma("A3 printed, listed", "A3 printed, orthogonal"),
        kind=Exact(rounding=ROUNDING),
        unit="largest deviation",
    ),
    Claim(
        "lemma-a3",
        "Lemma A3 mended: residual path sums have covariance Σ_F |A ∩ B|_F σ^(2|F|).",
        evidence.lemma("A3, listed", "A3, orthogonal"),
        kind=Exact(rounding=ROUNDING),
        unit="largest deviation",
    ),
)
