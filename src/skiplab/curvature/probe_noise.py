"""What the randomness of the probes does to a fraction of the spectrum: intervals."""

from __future__ import annotations

from torch import Tensor

LEVEL = 0.99  # of the intervals; chosen by us, since the quadrature's limits and the noise add up


def with_noise(low: Tensor, high: Tensor, dimension: int) -> tuple[Tensor, Tensor]:
    """Bound a fraction f (E,) by limits (E, k) of the masses of k probes: Wilson's score interval (1927).

    A Rademacher probe's mass on any r of P eigenvectors has mean f = r/P and variance at most 2f(1 − f)/P, so those f
    are kept for which some mean mass within the limits has (mass − f)² ≤ z²·2f(1 − f)/(kP). Student's interval would
    add the scatter of the limits, which is no noise of the mass, and is too short where a handful of eigenvalues lie
    beyond t: a few probes may all see little of them and agree.
    """
    from scipy import stats

    share = 2 * float(stats.norm.ppf(0.5 + LEVEL / 2)) ** 2 / (low.shape[-1] * dimension)

    def root(mass: Tensor, sign: int) -> Tensor:
        inner = share * (share + 4 * mass * (1 - mass))
        return (2 * mass + share + sign * inner.sqrt()) / (2 * (1 + share))

    return root(low.mean(-1), -1).clamp(0, 1), root(high.mean(-1), 1).clamp(0, 1)
