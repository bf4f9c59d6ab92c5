"""What the paper claims of real nets, what theorems, corollary and lemmas claim of their own model, what is ours."""

from __future__ import annotations

import math

from skiplab.reproduction import Claim, Equivalent, Exact, Greater, Value
from skiplab.studies.balduzzi2017.theorems import evidence
from skiplab.studies.balduzzi2017.theorems.models import (
    HIGHWAY,
    NORMALISED,
    NORMALISED_TENTH,
    NORMALISED_THIRD,
    PLAIN,
    PLAIN_NORMALISED,
    RESCALED,
    RESIDUAL,
    Model,
)

ROUNDING = 1e-12
HALF_DIGIT = 0.05  # half a unit of the last digit of .1 and .7
PER_LAYER = Value(tolerance=0.03)  # 10 % per layer would be a factor of thousands at 100 layers
FACTOR = "factor per layer"


GATES = "if every gate is a coin of its own"
# What theorem 3's proof puts in the place of batch normalisation, which also centres.
NO_CENTRING = (
    "in the model: every gate a coin of its own, batch normalisation replaced by 1/√v_l, v_l = β²(l − 1) + 1"
)


def _theorem(part: str, source: str, words: str, quantity: str, *models: Model, model: str = GATES) -> Claim:
    """A part of a theorem in its own model, a coin for every gate."""
    return Claim(
        part,
        f"{words}, {model}.",
        evidence.under_gates(quantity, *models),
        kind=Value(),
        unit=quantity,
        source=source,
    )


def _hundred(key: str, source: str, model: Model, value: float) -> Claim:
    """A number that section 3.3 prints to one digit, within half a unit of it."""
    return Claim(
        key,
        f"The model predicts for a 100-layer resnet with batch normalisation correlation {value} at "
        f"β = {model.beta:g}.",
        evidence.at_hundred(model, value),
        kind=Value(tolerance=HALF_DIGIT / value),
        unit="correlation",
        source=source,
    )


def _nets(key: str, words: str, *models: Model) -> tuple[Claim, Claim]:
    """Our readings of a theorem in real nets: its numbers taken literally, and corrected."""
    return (
        Claim(
            f"{key}-nets",
            f"{words}, taken literally of real nets at initialisation.",
            evidence.on_nets(*models, correct=False),
            kind=Value(),
            source="ours",
        ),
        _corrected(key, words, *models),
    )


def _corrected(key: str, words: str, *models: Model) -> Claim:
    return Claim(
        f"{key}-nets-corrected",
        f"{words}, corrected for what real gates and batch normalisation do.",
        evidence.on_nets(*models, correct=True),
        kind=Value(),
        source="ours",
    )


def _lemma(key: str, source: str, words: str, *checks: str) -> Claim:
    return Claim(
        key,
        words,
        evidence.lemma(*checks),
        kind=Exact(rounding=ROUNDING),
        unit="largest deviation",
        source=source,
    )


# What the paper says of nets, tested on nets; "hundred-layers-feedforward" also under gates.
OF_NETS = (
    Claim(
        "theorem-1-nets-bn",
        "In feedforward nets correlations of gradients decay exponentially with depth: in real nets with batch "
        "normalisation, in which gates are as assumption 1 has them, as fast per layer in deeper as in shallower "
        "nets.",
        evidence.exponential,
        kind=Value(),
        unit="rate per layer over that of shallower nets",
        source="abstract",
    ),
    Claim(
        "hundred-layers-feedforward",
        "A 100-layer feedforward net has correlation indistinguishable from zero.",
        evidence.nothing_left(PLAIN, PLAIN_NORMALISED),
        kind=Equivalent(margin=0.01),  # a tenth of the resnet's .1, with which the sentence compares
        unit="correlation",
        source="section 3.3",
    ),
    Claim(
        "variance-grows-in-nets",
        "That the variance of resnets’ gradients doubles with every layer, and so stays 1 at α = 1/√2, is visible "
        "empirically.",
        evidence.factors({RESIDUAL: 2.0, RESCALED: 1.0}),
        kind=PER_LAYER,
        unit=FACTOR,
        source="sections 3.2 and 3.3",
    ),
    Claim(
        "rescaling-leaves-decay",
        "“Both theoretical predictions hold empirically”: without batch normalisation, at α = 1/√2 and so at every "
        "α, the correlation of real resnets’ gradients decays exponentially; by a measure of ours, per layer in "
        "deeper nets at least half as fast as in those of 10 layers.",
        evidence.decays_on,
        kind=Greater(worth=math.log(4 / 3) / 10),  # a tenth of the rate that theorem 2 predicts
        unit="−ln correlation per layer",
        source="sections 3.2 and 3.3",
    ),
    Claim(
        "outputs-grow-linearly",
        "With batch normalisation the variance of the outputs of a resnet's layers grows linearly: it rises as much "
        "in the second half of the layers as in the first.",
        evidence.linear_growth,
        kind=Value(),
        unit="rise in the second half over the first's",
        source="section 3.3",
    ),
    Claim(
        "sublinear-in-nets",
        "In resnets with batch normalisation correlations of gradients decay sublinearly with depth: in real nets, "
        "β = 1, as a power of L between 0 and −1.",
        evidence.sublinear,
        kind=Equivalent(margin=0.5),
        unit="power of 1/L, less ½",
        source="abstract",
    ),
    Claim(
        "highway-limit",
        "With γ₁² = 1 − 1/L the correlation of highway nets’ gradients does not decay with depth: in real nets it is "
        "the same in the deepest as in the shallowest.",
        evidence.level,
        kind=Equivalent(margin=0.06),  # a tenth of e^−½
        unit="correlation",
        source="corollary 1",
    ),
)

# What it says of its own model. That these hold says that its arithmetic is right, not that nets obey it.
OF_THE_MODEL = (
    _theorem("theorem-1a", "theorem 1", "Feedforward nets have gradients of variance 1", "variance", PLAIN),
    _theorem("theorem-1b", "theorem 1", "Feedforward nets have covariance 2^−L", "covariance", PLAIN),
    _theorem(
        "theorem-2a",
        "theorem 2",
        "Resnets have gradients of variance 2^L, and at α = 1/√2 of variance 1",
        "variance",
        *(RESIDUAL, RESCALED),
    ),
    _theorem(
        "theorem-2b",
        "theorem 2",
        "Resnets have covariance (3/2)^L, and at α = 1/√2 covariance and correlation (3/4)^L",
        "covariance",
        *(RESIDUAL, RESCALED),
    ),
    _theorem(
        "theorem-3a",
        "theorem 3",
        "Resnets with batch normalisation have variance β²(L − 1) + 1",
        "variance",
        *(NORMALISED, NORMALISED_THIRD, NORMALISED_TENTH),
        model=NO_CENTRING,
    ),
    Claim(
        "theorem-3-asymptotic",
        f"With batch normalisation covariances of resnets’ gradients grow as √L and correlations fall as 1/√L, "
        f"{NO_CENTRING}.",
        evidence.exponents,
        kind=Exact(rounding=0.01),
        unit="|exponent of L − ½|",
        source="theorem 3",
    ),
    _hundred("hundred-layers-tenth", "section 3.3", NORMALISED_TENTH, 0.7),
    _theorem("corollary-1a", "corollary 1", "Highway nets have variance 1", "variance", HIGHWAY),
    _theorem(
        "corollary-1b", "corollary 1", "Highway nets have correlation (γ₁² + γ₂²/2)^L", "correlation", HIGHWAY
    ),
    Claim(
        "mean-zero",
        "Gradients have mean zero since weights do (definition 1).",
        evidence.means,
        kind=Equivalent(margin=0.1),
        unit="mean over root mean square",
        source="section 3",
    ),
)

OURS = (
    Claim(
        "theorem-1-halves",
        "Feedforward nets’ correlations halve with every layer, taken literally of real nets with batch "
        "normalisation.",
        evidence.halving,
        kind=PER_LAYER,
        unit=FACTOR,
        source="ours",
    ),
    Claim(
        "theorem-3-nets-bn",
        "In resnets with batch normalisation the variance of gradients grows as L and their correlation falls as "
        "1/√L, theorem 3's powers taken literally of real nets, β = 1.",
        evidence.powers,
        kind=Value(),
        unit="exponent of L",
        source="ours",
    ),
    _theorem(
        "theorem-3b",
        "ours",
        "Resnets with batch normalisation have covariance ∏(1 + β²/2v_l), the product in the proof of theorem 3",
        "covariance",
        *(NORMALISED, NORMALISED_THIRD, NORMALISED_TENTH),
        model=NO_CENTRING,
    ),
    # Theorem 3's 1/(β√L) at L = 100; at β = .1, where the paper prints .7, that would be 1.
    _hundred("hundred-layers", "ours", NORMALISED, 0.1),
    _lemma(
        "lemma-a1",
        "ours",
        "Lemma A1: path sums have mean 0 and covariance |A ∩ B| σ^(2(L−1)).",
        *("A1, listed", "A1, orthogonal", "A1, mean"),
    ),
    _lemma(
        "lemma-a2",
        "ours",
        "Lemma A2: a gradient is the sum of the weights of all active paths.",
        *("A2", "A2, plain of eq 2", "A2, residual of eq 2"),
    ),
    _lemma(
        "lemma-a3",
        "ours",
        "Corrected to what the proof of theorem 2 uses, lemma A3 holds: residual path sums have covariance "
        "Σ_F |A ∩ B|_F σ^(2|F|).",
        *("A3, listed", "A3, orthogonal"),
    ),
    Claim(
        "correlation-decays-in-nets",
        "Without batch normalisation the correlation of real resnets’ gradients decays with depth, exponentially or "
        "not.",
        evidence.decaying,
        kind=Greater(worth=0.01),  # a hundredth of full correlation
        unit="correlation",
        source="ours",
    ),
    *_nets("theorem-1", "Feedforward nets have variance 1 and correlation 2^−L", PLAIN),
    *_nets("theorem-2", "Resnets have variance 2^L and correlation (3/4)^L", RESIDUAL),
    *_nets("rescaling", "At α = 1/√2 resnets have variance 1 and correlation (3/4)^L", RESCALED),
    *_nets(
        "theorem-3",
        "With batch normalisation variance is ∏(1 + β²/v_l) and covariance ∏(1 + β²/2v_l), v_l = β²(l − 1) + 1",
        *(NORMALISED, NORMALISED_TENTH),
    ),
    *_nets("corollary-1", "Highway nets have variance 1 and correlation (γ₁² + γ₂²/2)^L", HIGHWAY),
    Claim(
        "power-law-without-bn",
        "Without batch normalisation correlations of real feedforward nets fall as a power of depth, L^−3 in wide "
        "nets, and so stay above theorem 1's 2^−L.",
        evidence.above_halving,
        kind=Greater(worth=0.001),  # 2^−10, the largest that is compared, is as much
        unit="correlation − 2^−L",
        source="ours",
    ),
    Claim(
        "rescaling-exact",
        "An α-rescaled net has α^L times the gradients of the unscaled one, whatever the gates.",
        evidence.rescaled_alike,
        kind=Exact(rounding=1e-3),
        unit="relative difference",
        source="ours",
    ),
    Claim(
        "plain-growth",
        "With batch normalisation feedforward nets’ gradient variance grows as (π/(π − 1))^L.",
        evidence.growth,
        kind=PER_LAYER,
        unit=FACTOR,
        source="ours",
    ),
)

CLAIMS = OF_NETS + OF_THE_MODEL + OURS
