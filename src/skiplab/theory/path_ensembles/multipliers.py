"""How much paths of each length weigh in the loss of a residual network: littwin2017, eq 17.

Paths of length r = 1 … p have the multiplier ε_r = C(p − 1, r − 1) βʳ/z with Σ ε_r² = 1 and β = ρnC/√Λ, where ρ is
the share of open gates, n the width, Λ the number of unique weights and C their root mean square. The ratio of
neighbours,

    ε_{r+1}/ε_r = β(p − r)/r,

falls with r and passes 1 at r = pβ/(1 + β). So the largest multiplier is at ⌊pβ/(1 + β)⌋ + 1, and where pβ/(1 + β)
is whole, as theorems 1 and 2 assume, at pβ/(1 + β) too.

A depth of 10⁶ takes a fraction of a second: logarithms of multipliers are sums of the ratios' from the peak
outwards, which are most accurate where the multipliers matter.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from skiplab.checks import require, whole_numbers

if TYPE_CHECKING:
    from numbers import Rational

Array = NDArray[np.float64]


def log_multipliers(p: int, beta: float) -> Array:
    """log ε_r for r = 1 … p, shape (p,)."""
    _check(p, beta)
    lengths = np.arange(1, p, dtype=np.float64)
    steps = math.log(beta) + np.log(p - lengths) - np.log(lengths)
    top = int(np.count_nonzero(steps > 0))
    logs = np.concatenate((-np.cumsum(steps[:top][::-1])[::-1], [0.0], np.cumsum(steps[top:])))
    return np.asarray(logs - _log_sum(2 * logs) / 2)


def multipliers(p: int, beta: float) -> Array:
    """ε_r for r = 1 … p, shape (p,).

    >>> int(multipliers(100, 0.5).argmax()) + 1
    34
    """
    return np.asarray(np.exp(log_multipliers(p, beta)))


def peaks(p: int, beta: Rational) -> tuple[int, ...]:
    """The lengths with the largest multiplier, one or two neighbours, from all ratios of neighbours in whole numbers.

    β is a fraction, so that no comparison is rounded.

    >>> peaks(100, Fraction(1, 2)), peaks(99, Fraction(1, 2))
    ((34,), (33, 34))
    """
    _check(p, beta)
    lengths = np.arange(1, p, dtype=np.int64)
    over, under = int(beta.numerator), int(beta.denominator)
    require(p * max(over, under) < 2**62, f"p is {p} and β {beta}, too large for whole numbers of 64 bits.")
    first = 1 + int(np.count_nonzero(over * (p - lengths) > under * lengths))
    equal = int(np.count_nonzero(over * (p - lengths) == under * lengths))
    return tuple(range(first, first + equal + 1))


def predicted_peaks(p: int, beta: Rational) -> tuple[int, ...]:
    """⌊pβ/(1 + β)⌋ + 1, and pβ/(1 + β) too where that is whole: theorem 1 at finite depth."""
    share = p * Fraction(beta) / (1 + Fraction(beta))
    last = math.floor(share) + 1
    return (last - 1, last) if share.denominator == 1 else (last,)


def betas_of_peak(p: int, length: int) -> tuple[Fraction, Fraction | float]:
    """The closed range of β in which ε_r is largest at a length k, (k − 1)/(p − k + 1) to k/(p − k): lemma 4.

    >>> betas_of_peak(100, 34)
    (Fraction(33, 67), Fraction(17, 33))
    """
    whole_numbers(p=p, length=length)
    require(length <= p, f"length is {length}, but paths have at most p = {p} layers.")
    most = Fraction(length, p - length) if length < p else math.inf
    return Fraction(length - 1, p - length + 1), most


def beta_of(rho: float, n: float, C: float, unique: float) -> float:
    """β = ρnC/√Λ of eq 17."""
    return rho * n * C / math.sqrt(unique)


def mass_outside(p: int, beta: float, low: float, high: float) -> float:
    """Σ ε_r² over lengths below ``low`` or above ``high``: what theorem 2 says vanishes, also where it is 10⁻³⁰⁰."""
    doubled, lengths = 2 * log_multipliers(p, beta), np.arange(1, p + 1)
    outside = doubled[(lengths < low) | (lengths > high)]
    return math.exp(_log_sum(outside)) if outside.size else 0.0


def mean_and_deviation(p: int, beta: float) -> tuple[float, float]:
    """Mean and standard deviation of the path length, paths of length r counting ε_r²."""
    weights, lengths = np.exp(2 * log_multipliers(p, beta)), np.arange(1, p + 1)
    mean = float(weights @ lengths)
    return mean, math.sqrt(float(weights @ (lengths - mean) ** 2))


def band(p: int, beta: float) -> float:
    """√(p α(1 − α)/2), α = β/(1 + β): the standard deviation of the path length in deep networks.

    ε_r² is a binomial distribution squared, which halves its variance.
    """
    share = beta / (1 + beta)
    return math.sqrt(p * share * (1 - share) / 2)


def squared_binomials(p: int, beta: float) -> float:
    """Σ_{r=0}^p C(p, r)² β^2r by its Legendre polynomial, (1 − β²)^p P_p((1 + β²)/(1 − β²)): eq 39, β ≠ 1.

    The paper's sum starts at r = 1 and is 1 less.
    """
    from scipy.special import eval_legendre

    _check(p, beta)
    require(beta != 1, "β is 1, where eq 39 divides 0 by 0; the sum is C(2p, p).")
    return float((1 - beta**2) ** p * eval_legendre(p, (1 + beta**2) / (1 - beta**2)))


def _log_sum(logs: Array) -> float:
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()))


def _check(p: int, beta: float | Rational) -> None:
    whole_numbers(p=p)
    require(0 < float(beta) < math.inf, f"β is {beta}, but must be a finite number above 0.")
