"""Mixtures of interactions and the complexity of their critical points: littwin2017, eqs 28–35.

A spherical spin glass with interactions of r = 2 … p spins has shares ε_r² that sum to 1. Its critical points of
finite index number e^{θΛ} in the mean (eq 33), where θ depends on v′ = Σ ε_r² r and v″ = Σ ε_r² r(r − 1) through
x = v″/v′ alone:

    θ(x) = ½ log x − (x − 1)/(x + 1),    dθ/dx = (x − 1)²/(2x(x + 1)²) ≥ 0.

x is a mean of r − 1 with weights ε_r² r, so x ≤ p − 1 with equality for the pure p-spin glass only: theorem 5, for
which the paper's own proof (eq 50) does not do.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skiplab.checks import require, whole_numbers
from skiplab.theory.path_ensembles.multipliers import log_multipliers

Array = NDArray[np.float64]


def shares_of(p: int, beta: float) -> Array:
    """ε_r² of eq 17 for r = 2 … p, shape (p − 1,), scaled to sum 1: eq 28 has no interaction of one spin."""
    require(p >= 2, f"p is {p}, but interactions have at least 2 spins.")
    shares = np.exp(2 * (log_multipliers(p, beta)[1:] - log_multipliers(p, beta)[1:].max()))
    return np.asarray(shares / shares.sum())


def pure(p: int) -> Array:
    """ε_r² of the model with interactions of p spins only, shape (p − 1,)."""
    whole_numbers(p=p)
    return np.eye(p - 1)[-1]


def derivatives(shares: ArrayLike) -> tuple[Array, Array]:
    """v′ and v″ of eq 31 for shares ε_r², r = 2 …, of mixtures (…, p − 1)."""
    shares = np.asarray(shares, dtype=np.float64)
    r = np.arange(2, shares.shape[-1] + 2)
    return np.asarray(shares @ r), np.asarray(shares @ (r * (r - 1.0)))


def alpha_squared(shares: ArrayLike) -> Array:
    """α² = v″ + v′ − v′² of eq 31: the variance of r, and so 0 for one interaction."""
    first, second = derivatives(shares)
    return np.asarray(second + first - first**2)


def complexity(shares: ArrayLike) -> Array:
    """θ_k of eq 33, the same for every finite index k, of mixtures (…, p − 1).

    >>> round(float(complexity(pure(100))), 3), round(float(complexity(shares_of(100, 0.5))), 3)
    (1.318, 0.81)
    """
    first, second = derivatives(shares)
    return complexity_at(second / first)


def complexity_at(ratio: ArrayLike) -> Array:
    """θ(x) = ½ log x − (x − 1)/(x + 1) for x = v″/v′ ≥ 1."""
    x = np.asarray(ratio, dtype=np.float64)
    require(
        bool((x >= 1 - 1e-12).all()), f"v″/v′ is {x.min()}, but interactions of r ≥ 2 spins have at least 1."
    )
    return np.asarray(np.log(x) / 2 - (x - 1) / (x + 1))


def complexity_slope(ratio: ArrayLike) -> Array:
    """dθ/dx = (x − 1)²/(2x(x + 1)²), which is never negative."""
    x = np.asarray(ratio, dtype=np.float64)
    return np.asarray((x - 1) ** 2 / (2 * x * (x + 1) ** 2))


def bound_of_equation_50(p: int) -> float:
    """What eq 50's middle line comes to, ½ log(p − 1): the largest first term less the least second one, 0 at r = 2.

    The paper takes 1 − 2/p, the largest second term, for the least.
    """
    return math.log(p - 1) / 2


def variance_by_index(shares: ArrayLike, spins: ArrayLike) -> float:
    """E[H²] of eq 30, from all products of spins: Σ_r ε_r² Λ^(1−r) Σ_{i₁ … i_r} (w_{i₁} ⋯ w_{i_r})²."""
    squares = np.asarray(spins, dtype=np.float64) ** 2
    products, found = squares, 0.0
    for r, share in enumerate(np.asarray(shares, dtype=np.float64), 2):
        products = np.multiply.outer(products, squares)
        found += float(share) * len(squares) ** (1.0 - r) * float(products.sum())
    return found
