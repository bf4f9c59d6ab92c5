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
Batches of B samples change all three numbers, the ½, the 1 − 1/π and the mean of 1/variance, see ``_of_batch``.

Every function counts modules. The paper's theorem 3 speaks of L where L − 1 modules are crossed; what it prints
is in ``printed``, with the paper's own L.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from skiplab.checks import require, whole_numbers
from skiplab.theory.shattering.moments import Moments, exp2, log2, log2_1p

CENTRED = 1 - 1 / math.pi  # 2 Var[ρ(z)] for z ~ N(0, 1); uncentred, 2 E[ρ(z)²] = 1


def plain(depth: int, *, cosine: float | None = None) -> Moments:
    """Theorem 1, feedforward nets: variance 1, covariance 2^−L.

    With ``cosine``, that of the two inputs as the first rectifier meets them, gates are those of real wide nets;
    None stands for typical inputs at every layer.
    """
    return Moments(0.0, _fall(depth, 1.0, cosine))


def residual(depth: int, alpha: float = 1.0, beta: float = 1.0, *, cosine: float | None = None) -> Moments:
    """Theorem 2 and section 3.3, resnets without batch normalisation, x ↦ α(x + β W ρ(x)).

    Variance (α²(1 + β²))^L, covariance (α²(1 + β²/2))^L; 2^L and (3/2)^L at α = β = 1, 1 and (3/4)^L at α = 1/√2.
    The mean is α^L.
    """
    sensible = math.isfinite(alpha) and alpha != 0
    require(sensible, f"alpha is {alpha}, but must be a finite number other than 0, where gradients vanish.")
    branch = _square(beta)
    fall = _fall(depth, branch / (1 + branch), cosine)
    mean = depth * math.log2(abs(alpha))
    variance = 2 * mean + depth * log2_1p(branch)
    return Moments(variance, fall, mean, -1 if alpha < 0 and depth % 2 else 1)


def highway(depth: int, gamma: float | None = None, *, cosine: float | None = None) -> Moments:
    """Corollary 1, x ↦ γ₁ x + γ₂ W ρ(x) with γ₁² + γ₂² = 1: variance 1, covariance (γ₁² + γ₂²/2)^L.

    ``gamma`` is γ₁; left out, √(1 − 1/L), for which the correlation (1 − 1/2L)^L tends to e^−½ = .607 (to .634 in
    real nets that start from ``cosine`` 0). About the mean γ₁^L it tends to (e^−½ − e^−1)/(1 − e^−1) = .378.
    """
    branch = branch_share(depth, gamma)
    mean = depth * (log2_1p(-branch) / 2 if gamma is None else log2(gamma))
    return Moments(0.0, _fall(depth, branch, cosine), mean)


def residual_batch_norm(
    depth: int, beta: float = 1.0, centred: bool = False, *, batch: int | None = None
) -> Moments:
    """Theorem 3, resnets x ↦ x + β W ρ(BN(x)): ∏ (1 + β²/u_l) and ∏ (1 + β²/2u_l) over l = 0 … L − 1.

    u_l is what BN divides by: 1 + β² l, by which the variance telescopes to β²L + 1, or 1 + β²(1 − 1/π) l with
    ``centred``, as in real nets. ``batch`` adds what B samples do, see ``_of_batch``.
    """
    whole_numbers(depth=depth)
    inverse, both, left = _of_batch(batch)
    branch = _square(beta)
    added = branch * (left if centred else 1.0)
    shares = [inverse * branch / (1 + added * layer) for layer in range(depth)]
    variance, covariance = (math.fsum(log2_1p(part * each) for each in shares) for part in (1.0, both))
    return Moments(variance, covariance - variance, 0.0)


def plain_batch_norm(depth: int, centred: bool = True, *, batch: int | None = None) -> Moments:
    """Feedforward nets x ↦ W ρ(BN(x)): gradients grow as (π/(π − 1))^(L−1), and correlations fall as 2^−L.

    Each BN but the first divides by the 1 − 1/π that the layer before left; uncentred, by 1.
    """
    whole_numbers(depth=depth)
    inverse, both, left = _of_batch(batch)
    variance = depth * math.log2(inverse) - (depth - 1) * math.log2(left if centred else 1.0)
    return Moments(variance, depth * math.log2(both))


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
    whole_numbers(depth=depth, width=width)
    size = math.hypot(skip, branch)
    require(
        0 < size < math.inf, f"skip is {skip} and branch {branch}, but one must be other than 0, both finite."
    )
    share = (branch / size) ** 2
    return exp2(depth * log2_1p(share * (share + 4) / width))


def branch_share(depth: int, gamma: float | None) -> float:
    """γ₂² = 1 − γ₁² of a highway net; γ₁ left out stands for √(1 − 1/L)."""
    whole_numbers(depth=depth)
    if gamma is None:
        return 1 / depth
    require(0 <= gamma <= 1, f"gamma is {gamma}, but γ₁² + γ₂² = 1 needs one between 0 and 1.")
    return (1 - gamma) * (1 + gamma)


def _fall(depth: int, share: float, cosine: float | None) -> float:
    """log₂ of the correlation after L modules, ``share`` of whose variance, b²/(a² + b²), is the branch's."""
    whole_numbers(depth=depth)
    if cosine is None:
        return depth * log2_1p(-share / 2)
    cosines = _cosines(depth, share, cosine)
    return math.fsum(log2_1p(-share * (1 - 2 * coactivation(each))) for each in cosines)


def _cosines(depth: int, share: float, cosine: float) -> Iterable[float]:
    for _ in range(depth):
        yield cosine
        cosine = (1 - share) * cosine + share * rectified_cosine(cosine)


def _of_batch(batch: int | None) -> tuple[float, float, float]:
    """What normalising over B samples makes of 1/u, of ½, the open gates that pairs share, and of 1 − 1/π.

    For N → ∞ a unit's B numbers are Gaussian; normalised, they are uniform on the sphere |z|² = B orthogonal to
    (1, …, 1), at every layer. Their variance is u χ²/B with B − 1 degrees, independent of z, and so
    E[1/variance] = B/((B − 3)u). Two samples have the cosine c = −1/(B − 1), by which pairs share fewer gates
    and 2 E[ρ(z_i)ρ(z_j)] = rectified_cosine(c), while 2 E[ρ(z_i)²] = 1: what a branch adds to u, the variance
    that dividing by B − 1 estimates, is the difference, 1 − 1/π + 1/2(B − 1) − …. All three are exact, and though
    they are O(1/B) from their limits they act at every layer.
    """
    if batch is None:
        return 1.0, 0.5, CENTRED
    whole_numbers(batch=batch)
    require(batch > 3, f"batch is {batch}, but 1/variance has no mean below 4 samples.")
    cosine = -1 / (batch - 1)
    return batch / (batch - 3), 2 * coactivation(cosine), 1 - rectified_cosine(cosine)


def _square(beta: float) -> float:
    require(abs(beta) <= 1e100, f"beta is {beta}, but must lie between −1e100 and 1e100.")
    return beta**2


def _cosine(cosine: float) -> float:
    # Rounding may carry a climbing cosine past 1; anything further is a mistake.
    require(abs(cosine) <= 1 + 1e-9, f"cosine is {cosine}, but must lie between −1 and 1.")
    return max(-1.0, min(1.0, cosine))
