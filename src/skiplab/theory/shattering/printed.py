"""Balduzzi et al. (2017), theorems 1 and 3, section 3.3 and corollary 1 as printed, with the paper's own L.

What is right is in ``covariances``; these are for showing where the two part.
"""

from __future__ import annotations

import math

from skiplab.checks import require, whole_numbers
from skiplab.theory.shattering.covariances import branch_share
from skiplab.theory.shattering.moments import Moments, log2


def printed_plain(depth: int) -> Moments:
    """Theorem 1 as printed: covariance 1/(2L). The proof gives 2^−L, which is the same up to L = 2."""
    whole_numbers(depth=depth)
    return Moments(0.0, log2(1 / (2 * depth)))


def printed_residual_batch_norm(layers: int, beta: float = 1.0) -> Moments:
    """Theorem 3 as printed: variance β²(L − 1) + 1 and covariance β√L, so that R is β√L over the variance.

    R is printed as 1/(β√L), see ``printed_correlation``; for β²L ≫ 1 the two agree. The mean, of which the paper
    does not speak, is 1.
    """
    _check(layers, beta)
    variance = beta**2 * (layers - 1) + 1
    return Moments(log2(variance), log2(beta * math.sqrt(layers) / variance), 0.0)


def printed_correlation(layers: int, beta: float = 1.0) -> float:
    """Theorem 3's correlation as printed, 1/(β√L); it exceeds 1 where β²L < 1."""
    _check(layers, beta)
    return 1 / (beta * math.sqrt(layers))


def printed_highway(depth: int, gamma: float | None = None) -> Moments:
    """The proof of corollary 1 as printed, covariance ∏ (γ₁ + γ₂/2), where both γ want squares."""
    branch = branch_share(depth, gamma)
    kept = math.sqrt(1 - branch)
    return Moments(0.0, depth * log2(kept + math.sqrt(branch) / 2), depth * log2(kept))


def _check(layers: int, beta: float) -> None:
    whole_numbers(layers=layers)
    require(0 < beta <= 1e100, f"beta is {beta}, but the printed forms need a positive one of at most 1e100.")
