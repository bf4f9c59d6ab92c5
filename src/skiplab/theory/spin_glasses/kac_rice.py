"""The mean number of local minima of a spherical spin glass, at finite Λ and in the limit.

Kac and Rice's formula in the form of Auffinger & Ben Arous (2013) counts points of index 0 exactly:

    E Crt₀ = 2 √(2v′/(v′ + v″)) (v″/v′)^(Λ/2) E exp(−a λ_min²/4),    a = (v″ − v′)/(v″ + v′),

λ_min the smallest eigenvalue of a GOE matrix of size Λ, whose spectrum ends near ±2√Λ. log(E Crt₀)/Λ tends to eq 33's
θ, but slowly: a smaller |λ_min| than usual counts for much more than it costs. With the large deviations of λ_min,

    log(E Crt₀)/Λ = θ + (4√2/3) a^(3/2) Λ^(−1/2) − (√2/6)(8a)^(3/4) Λ^(−3/4) + ((23/96) ln Λ + d)/Λ + …,

where d does not depend on Λ. At Λ = 80 the terms after θ are several times θ in the 3-spin glass.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """log E Crt₀ from sampled matrices, and how many equally weighted matrices would tell as much."""

    log_mean: float
    effective: float


def log_minima(first: float, second: float, size: int, smallest: ArrayLike) -> Estimate:
    """log E Crt₀ for v′, v″ and Λ = ``size`` from smallest eigenvalues of GOE matrices of that size."""
    exponents = -_a(first, second) / 4 * np.asarray(smallest, dtype=np.float64) ** 2
    top = float(exponents.max())
    weights = np.exp(exponents - top)
    before = math.log(2) + math.log(2 * first / (first + second)) / 2 + size / 2 * math.log(second / first)
    effective = float(weights.sum()) ** 2 / float((weights**2).sum())
    return Estimate(before + top + math.log(float(weights.mean())), effective)


def corrections(first: float, second: float, size: ArrayLike) -> Array:
    """The known terms after θ in log(E Crt₀)/Λ, all but d/Λ."""
    a, size = _a(first, second), np.asarray(size, dtype=np.float64)
    halves = 4 * math.sqrt(2) / 3 * a**1.5 * size**-0.5
    quarters = math.sqrt(2) / 6 * (8 * a) ** 0.75 * size**-0.75
    return np.asarray(halves - quarters + 23 / 96 * np.log(size) / size)


def fitted_complexity(
    first: float, second: float, sizes: Sequence[int], rates: ArrayLike
) -> tuple[float, float]:
    """θ and d by least squares from log(E Crt₀)/Λ at several Λ: what remains after the known terms is θ + d/Λ."""
    sizes_ = np.asarray(sizes, dtype=np.float64)
    known = np.asarray(rates, dtype=np.float64) - corrections(first, second, sizes_)
    slope, limit = np.polyfit(1 / sizes_, known, 1)
    return float(limit), float(slope)


def minima_on_a_circle(first: float, second: float) -> float:
    """E Crt₀ for Λ = 2 by Rice's formula, √((3v″ + v′)/v′): half the zeros of a stationary process's derivative."""
    return math.sqrt((3 * second + first) / first)


def _a(first: float, second: float) -> float:
    return (second - first) / (second + first)
