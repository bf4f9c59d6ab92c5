"""The spectral density that orhan2018 likely fitted: a skew-normal and a narrow Gaussian at zero.

Four moments m_j = E[λʲ] of the eigenvalues determine the mixture

    p(λ) = w · SkewNormal(λ; ξ, ω, α) + (1 − w) · N(λ; 0, s²),   s = 10⁻³.

For a given w the first three moments fix (ξ, ω, α), unless they are too skewed; the fourth fixes w, though not
always uniquely. The fit breaks when an outlier dominates the moments: its kurtosis then asks for a tiny w,
whatever the bulk of the spectrum does. It is here to be compared with exact spectra, not to be trusted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from skiplab.checks import Refused, require

NARROW = 1e-3  # standard deviation of the component at zero
# A skew-normal's skewness stays below .9953 (α → ∞); beyond, the nearest one is taken.
LARGEST_SKEWNESS = 0.995
SMALLEST_WEIGHT = 1e-12
GRID = 600  # values of log w at which the fit looks for a sign change
_B = math.sqrt(2 / math.pi)
_C = (4 - math.pi) / 2


@dataclass(frozen=True)
class Mixture:
    """The fitted density; ``weight`` is w, so 1 − w is the paper's degenerate fraction."""

    weight: float
    location: float
    scale: float
    shape: float
    narrow: float = NARROW

    def below(self, point: float) -> float:
        """Mass of the broad component below a point, as a fraction of all eigenvalues."""
        from scipy import stats

        return self.weight * float(stats.skewnorm.cdf(point, self.shape, self.location, self.scale))

    def above(self, point: float) -> float:
        """Mass of the broad component above a point, as a fraction of all eigenvalues."""
        from scipy import stats

        return self.weight * float(stats.skewnorm.sf(point, self.shape, self.location, self.scale))

    def density(self, points: Sequence[float]) -> list[float]:
        """The density at points."""
        from scipy import stats

        broad = stats.skewnorm.pdf(points, self.shape, self.location, self.scale)
        zero = stats.norm.pdf(points, 0.0, self.narrow)
        return [float(value) for value in self.weight * broad + (1 - self.weight) * zero]

    def moments(self) -> tuple[float, float, float, float]:
        """The mixture's own four moments, by the closed forms the fit inverts."""
        delta = (
            self.shape / math.hypot(1.0, self.shape)
            if math.isfinite(self.shape)
            else math.copysign(1, self.shape)
        )
        mean = self.location + self.scale * delta * _B
        variance = self.scale**2 * (1 - (_B * delta) ** 2)
        ratio = _B * delta / math.sqrt(1 - (_B * delta) ** 2)
        third = _C * ratio**3 * variance**1.5
        fourth = (3 + 2 * (math.pi - 3) * ratio**4) * variance**2
        raw = (
            mean,
            variance + mean**2,
            third + 3 * mean * variance + mean**3,
            fourth + 4 * mean * third + 6 * mean**2 * variance + mean**4,
        )
        zero = (0.0, self.narrow**2, 0.0, 3 * self.narrow**4)
        first, second, third, fourth = (
            self.weight * r + (1 - self.weight) * z for r, z in zip(raw, zero, strict=True)
        )
        return first, second, third, fourth


def fit_mixture(moments: Sequence[float], narrow: float = NARROW) -> Mixture:
    """Fit the mixture to four moments: exactly where a mixture has them, else as nearly as one can.

    Where several mixtures have these moments, the one with the largest w is taken.
    """
    from scipy import optimize

    require(len(moments) == 4, f"{len(moments)} moments were given; the mixture needs the first four.")
    if not all(map(math.isfinite, moments)) or moments[1] <= 0:
        raise Refused(
            f"the moments {tuple(moments)} are not those of a spectrum; use more probes or float64."
        )

    def at(log_weight: float) -> Mixture:
        return _three_moments(moments, math.exp(log_weight), narrow)

    def misses(log_weight: float) -> tuple[float, float]:
        """How far the third and fourth moments are off, in units of the spectrum's own size."""
        _, _, third, fourth = at(log_weight).moments()
        return (moments[2] - third) / abs(moments[3]) ** 0.75, (moments[3] - fourth) / moments[3]

    # The broad component's variance is positive where s²w² + (m₂ − s²)w > m₁².
    rest = moments[1] - narrow**2
    least = 2 * moments[0] ** 2 / (rest + math.hypot(rest, 2 * narrow * moments[0])) if moments[0] else 0.0
    least = min(1.0, max(SMALLEST_WEIGHT, -rest / narrow**2, least) * (1 + 1e-9))
    grid = [math.log(least) * (1 - step / GRID) for step in range(GRID + 1)]
    found = [misses(point) for point in grid]
    for right in range(GRID, 0, -1):
        (skew_left, left), (skew_right, here) = found[right - 1], found[right]
        exact = abs(skew_left) < 1e-9 and abs(skew_right) < 1e-9  # both have the third moment
        if exact and left * here <= 0:
            ends = grid[right - 1], grid[right]
            return at(float(optimize.brentq(lambda point: misses(point)[1], *ends, xtol=1e-15, rtol=1e-15)))

    def cost(point: float) -> float:
        return math.hypot(*misses(point))

    best = min(range(GRID + 1), key=lambda index: math.hypot(*found[index]))
    around = grid[max(best - 1, 0)], grid[min(best + 1, GRID)]
    finer = optimize.minimize_scalar(cost, bounds=around, method="bounded", options={"xatol": 1e-12})
    return at(float(finer.x) if finer.fun < cost(grid[best]) else grid[best])


def _three_moments(moments: Sequence[float], weight: float, narrow: float) -> Mixture:
    """The mixture with this w whose first three moments are the ones given."""
    mean = moments[0] / weight
    second = (moments[1] - (1 - weight) * narrow**2) / weight
    third = moments[2] / weight
    variance = max(second - mean**2, 1e-100)  # rounding may take it below 0 at the least w
    skewness = (third - 3 * mean * variance - mean**3) / variance**1.5
    skewness = max(-LARGEST_SKEWNESS, min(LARGEST_SKEWNESS, skewness))
    power = abs(skewness) ** (2 / 3)
    delta = math.copysign(math.sqrt(math.pi / 2 * power / (power + _C ** (2 / 3))), skewness)
    delta = max(-1 + 1e-12, min(1 - 1e-12, delta))
    scale = math.sqrt(variance / (1 - (_B * delta) ** 2))
    return Mixture(weight, mean - scale * delta * _B, scale, delta / math.sqrt(1 - delta**2), narrow)
