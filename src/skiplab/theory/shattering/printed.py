"""Balduzzi et al. (2017), theorem 3 as printed, with the paper's own L: its asymptotic forms.

The exact products, to which its footnote sends, are in ``covariances``; these are for showing how the two part.
"""

from __future__ import annotations

import math

from skiplab.checks import require, whole_numbers
from skiplab.theory.shattering.moments import Moments, log2


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


def _check(layers: int, beta: float) -> None:
    whole_numbers(layers=layers)
    require(0 < beta <= 1e100, f"beta is {beta}, but the printed forms need a positive one of at most 1e100.")
