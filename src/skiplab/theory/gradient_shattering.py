"""How gradients at two inputs vary together in deep rectifier nets: Balduzzi et al. (2017), theorems 1–3.

∇ is the derivative of the sum of a net's L-th layer in a neuron L modules before it, and

    C(i) = E[∇_i²],   C(i, j) = E[∇_i ∇_j],   R(i, j) = C(i, j)/C(i)

over weights of variance 2/N. Resnets' gradients have mean 1, so that "variance" and "covariance" are second
moments about 0. One module x ↦ a x + b W ρ(x/s) multiplies them by

    C(i) ↦ (a² + b²/s²) C(i),   C(i, j) ↦ (a² + 2p b²/s²) C(i, j),

p being the share of units that are active for both inputs; assumption 1 ("typical" inputs) is ½ active, p = ¼.
If every unit and input has a gate of its own, open with probability ½, these products are exact at any width N:
each W is met once, so E over W leaves only equal paths, and E over gates is ½ a unit for one input and ¼ for two.

Real nets differ in two ways, which the corrections here follow for N → ∞. Without batch normalisation the cosine c
of two inputs climbs, and p = (π − arccos c)/2π with it. With batch normalisation c stays 0, but centring takes
the mean of ρ off: the branch adds 1 − 1/π of its second moment to the variance that the next layer divides by.

Every function counts modules. The paper's theorem 3 speaks of L where L − 1 modules are crossed; what it prints
is under ``printed_*``, with the paper's own L.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from skiplab.checks import Refused, require

CENTRED = 1 - 1 / math.pi  # 2 Var[ρ(z)] for z ~ N(0, 1); uncentred, 2 E[ρ(z)²] = 1


@dataclass(frozen=True)
class Moments:
    """E[∇_i²] and E[∇_i ∇_j] of a pair of inputs as the paper writes them, about 0, and E[∇_i] beside them."""

    variance: float
    covariance: float
    mean: float = 0.0

    @property
    def correlation(self) -> float:
        """R(i, j) of definition 1, the two inputs having the same variance."""
        return self.covariance / self.variance

    @property
    def centred_correlation(self) -> float:
        """The correlation about the mean, for which the paper's would be taken by name."""
        return (self.covariance - self.mean**2) / (self.variance - self.mean**2)


def plain(depth: int, *, cosine: float | None = None) -> Moments:
    """Theorem 1, feedforward nets: variance 1, covariance 2^−L.

    With ``cosine``, that of the two inputs as the first rectifier meets them, gates are those of real wide nets;
    None stands for typical inputs at every layer.
    """
    return _unrolled(depth, 0.0, 1.0, cosine)


def residual(depth: int, alpha: float = 1.0, beta: float = 1.0, *, cosine: float | None = None) -> Moments:
    """Theorem 2 and section 3.3, resnets without batch normalisation, x ↦ α(x + β W ρ(x)).

    Variance (α²(1 + β²))^L, covariance (α²(1 + β²/2))^L; 2^L and (3/2)^L at α = β = 1, 1 and (3/4)^L at α = 1/√2.
    """
    return _unrolled(depth, alpha**2, (alpha * beta) ** 2, cosine)


def highway(depth: int, gamma: float | None = None, *, cosine: float | None = None) -> Moments:
    """Corollary 1, x ↦ γ₁ x + γ₂ W ρ(x) with γ₁² + γ₂² = 1: variance 1, covariance (γ₁² + γ₂²/2)^L.

    ``gamma`` is γ₁; left out, √(1 − 1/L), for which the correlation (1 − 1/2L)^L tends to e^−½ = .607.
    About the mean γ₁^L it tends to (e^−½ − e^−1)/(1 − e^−1) = .378.
    """
    kept = _kept(depth, gamma)
    return _unrolled(depth, kept, 1 - kept, cosine)


def residual_batch_norm(
    depth: int, beta: float = 1.0, centred: bool = False, *, batch: int | None = None
) -> Moments:
    """Theorem 3, resnets x ↦ x + β W ρ(BN(x)): ∏ (1 + β²/u_l) and ∏ (1 + β²/2u_l) over l = 0 … L − 1.

    u_l is what BN divides by: 1 + β² l, by which the variance telescopes to β²L + 1, or 1 + β²(1 − 1/π) l with
    ``centred``, as in real nets. ``batch`` adds what B samples do, see ``_of_batch``.
    """
    _check(depth)
    added = beta**2 * (CENTRED if centred else 1.0)
    inverse, both = _of_batch(batch)
    shares = [inverse * beta**2 / (1 + added * layer) for layer in range(depth)]
    return Moments(math.prod(1 + each for each in shares), math.prod(1 + both * each for each in shares), 1.0)


def plain_batch_norm(depth: int, centred: bool = True, *, batch: int | None = None) -> Moments:
    """Feedforward nets x ↦ W ρ(BN(x)): gradients grow as (π/(π − 1))^(L−1), and correlations fall as 2^−L.

    Each BN but the first divides by the 1 − 1/π that the layer before left; uncentred, by 1.
    """
    _check(depth)
    inverse, both = _of_batch(batch)
    growth = inverse**depth / (CENTRED if centred else 1.0) ** (depth - 1)
    return Moments(growth, growth * both**depth)


def residual_batch_norm_asymptote(depth: int, beta: float = 1.0, centred: bool = False) -> Moments:
    """The leading power of L of ``residual_batch_norm`` at fixed β, from Γ(L + x)/Γ(L) ~ L^x.

    With κ = 1 (1 − 1/π if centred) and a = 1/κβ²: variance L^(1/κ) Γ(a)/Γ(a + 1/κ) and covariance
    L^(1/2κ) Γ(a)/Γ(a + 1/2κ). So √(4L/π) at β = 1 uncentred, and centring steepens the fall of the correlation
    from L^−½ to L^−π/(2π−2) = L^−.733. The powers are reached for L ≫ 1/β².
    """
    _check(depth)
    require(beta > 0, f"beta is {beta}, but the asymptote needs a positive one.")
    kappa = CENTRED if centred else 1.0
    a = 1 / (kappa * beta**2)

    def power(of: float) -> float:
        return math.exp(of * math.log(depth) + math.lgamma(a) - math.lgamma(a + of))

    return Moments(power(1 / kappa), power(0.5 / kappa))


def printed_plain(depth: int) -> Moments:
    """Theorem 1 as printed: covariance 1/(2L). The proof gives 2^−L, which is the same up to L = 2."""
    _check(depth)
    return Moments(1.0, 1 / (2 * depth))


def printed_rescaled(depth: int) -> Moments:
    """Section 3.3 with the subscript α = √2 taken at its word: variance 4^L. The text means α = 1/√2."""
    return residual(depth, alpha=math.sqrt(2.0))


def printed_residual_batch_norm(layers: int, beta: float = 1.0) -> Moments:
    """Theorem 3 as printed: variance β²(L − 1) + 1 and covariance β√L, so that R is β√L over the variance.

    R is printed as 1/(β√L), see ``printed_correlation``; for β²L ≫ 1 the two agree.
    """
    _check(layers)
    return Moments(beta**2 * (layers - 1) + 1, beta * math.sqrt(layers))


def printed_correlation(layers: int, beta: float = 1.0) -> float:
    """Theorem 3's correlation as printed, 1/(β√L); it exceeds 1 where β²L < 1."""
    _check(layers)
    return 1 / (beta * math.sqrt(layers))


def printed_highway(depth: int, gamma: float | None = None) -> Moments:
    """The proof of corollary 1 as printed, covariance ∏ (γ₁ + γ₂/2), where both γ want squares."""
    kept = _kept(depth, gamma)
    return Moments(1.0, (math.sqrt(kept) + math.sqrt(1 - kept) / 2) ** depth, kept ** (depth / 2))


def coactivation(cosine: float) -> float:
    """The share of units active for both of two inputs of that cosine, in a wide layer: (π − arccos c)/2π."""
    return (math.pi - math.acos(_cosine(cosine))) / (2 * math.pi)


def rectified_cosine(cosine: float) -> float:
    """The cosine of two inputs after a wide rectifier layer: (√(1 − c²) + c(π − arccos c))/π (Cho & Saul 2009)."""
    c = _cosine(cosine)
    return (math.sqrt(max(0.0, 1 - c**2)) + c * (math.pi - math.acos(c))) / math.pi


def spread(depth: int, width: int, skip: float = 0.0, branch: float = 1.0) -> float:
    """E[v²]/E[v]² of v, the mean of ∇² over the N units of the first layer, for modules a x + b W ρ(x).

    (1 + (5b⁴ + 4a²b²)/((a² + b²)² N))^L, from |a∇ + b D Wᵀ∇|² with independent gates D and Gaussian W, each of
    whose three parts is a sum of N terms; exact at every N. It says how wide a net must be for a mean over
    nets to be any good: plain nets want N ≫ 5L, since v is nearly log-normal.
    """
    _check(depth)
    a, b = skip**2, branch**2
    return (1 + (5 * b**2 + 4 * a * b) / ((a + b) ** 2 * width)) ** depth


def _unrolled(depth: int, skip: float, branch: float, cosine: float | None) -> Moments:
    """Multiply L modules with weights a² = skip and b² = branch, by the gates of typical or of real inputs."""
    _check(depth)
    together, mean = skip + branch, skip ** (depth / 2)
    if cosine is None:
        return Moments(together**depth, (skip + branch / 2) ** depth, mean)
    covariance = math.prod(skip + branch * 2 * coactivation(c) for c in _cosines(depth, skip, branch, cosine))
    return Moments(together**depth, covariance, mean)


def _cosines(depth: int, skip: float, branch: float, cosine: float) -> Iterable[float]:
    for _ in range(depth):
        yield cosine
        cosine = (skip * cosine + branch * rectified_cosine(cosine)) / (skip + branch)


def _of_batch(batch: int | None) -> tuple[float, float]:
    """What normalising over B samples does to 1/u and to ½, the share of a unit's open gates that pairs share.

    A Gaussian unit's variance over B samples is u χ²/B with B − 1 degrees, so E[1/variance] = B/((B − 3)u). Two
    samples of one centred batch have the cosine −1/(B − 1). Both are 1 + O(1/B), but act at every layer.
    """
    if batch is None:
        return 1.0, 0.5
    require(batch > 3, f"batch is {batch}, but 1/variance has no mean below 4 samples.")
    return batch / (batch - 3), 2 * coactivation(-1 / (batch - 1))


def _kept(depth: int, gamma: float | None) -> float:
    """γ₁²."""
    _check(depth)
    if gamma is None:
        return 1 - 1 / depth
    require(0 <= gamma <= 1, f"gamma is {gamma}, but γ₁² + γ₂² = 1 needs one between 0 and 1.")
    return gamma**2


def _cosine(cosine: float) -> float:
    # Rounding may carry a climbing cosine past 1; anything further is a mistake.
    require(abs(cosine) <= 1 + 1e-9, f"cosine is {cosine}, but must lie between −1 and 1.")
    return max(-1.0, min(1.0, cosine))


def _check(depth: int) -> None:
    if depth < 1:
        raise Refused(f"depth is {depth}, but a net has at least 1 module.")
