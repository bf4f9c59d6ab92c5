"""The probability that one centred Gaussian variable exceeds another in size (yu2019, supplement E, figure 13).

For independent X ~ N(0, σ_X²), Y ~ N(0, σ_Y²) and r = σ_X/σ_Y, X/Y is Cauchy, so that P[|X| > |Y|] = (2/π) arctan r.
The paper leaves it as an integral (eq 14) and approximates it by 1/(1 + r^−1.2) (eq 15).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skiplab.checks import require

Array = NDArray[np.float64]
EXPONENT = 1.2  # c of eq 15


def exceedance(ratio: ArrayLike) -> Array:
    """φ(r) = (2/π) arctan r, exactly; φ(1) = ½ and φ(1/r) = 1 − φ(r)."""
    return np.asarray(2 / math.pi * np.arctan(_checked(ratio)))


def approximate_exceedance(ratio: ArrayLike, exponent: float = EXPONENT) -> Array:
    """Eq 15, 1/(1 + r^−c)."""
    with np.errstate(divide="ignore"):
        return np.asarray(1 / (1 + _checked(ratio) ** -exponent))


def integrated_exceedance(ratio: float) -> float:
    """Eq 14 by numerical integration: 4 ∫₀^∞ g_r(u) G(u) du − 1, g_r the density N(0, r²) and G the normal CDF.

    Our text of the paper has √(2πσ) below g_σ; the density needs √(2π)·σ, as its proof has it.
    """
    from scipy import integrate, stats

    # In units of r, so that the integrand does not get narrow.
    value, _ = integrate.quad(
        lambda t: stats.norm.pdf(t) * stats.norm.cdf(ratio * t), 0, math.inf, epsabs=1e-13
    )
    return float(4 * value - 1)


def largest_error(exponent: float = EXPONENT) -> tuple[float, float]:
    """The largest |1/(1 + r^−c) − φ(r)|, and the r ≥ 1 where it is; 1/r has the same with the other sign."""
    logs = np.linspace(0, 12, 200_001)
    away = np.abs(approximate_exceedance(np.exp(logs), exponent) - exceedance(np.exp(logs)))
    place = int(away.argmax())
    return float(away[place]), float(np.exp(logs[place]))


def _checked(ratio: ArrayLike) -> Array:
    values = np.asarray(ratio, dtype=np.float64)
    require(
        bool((values >= 0).all()), f"ratio is {values}, but a ratio of deviations is a number of at least 0."
    )
    return values
