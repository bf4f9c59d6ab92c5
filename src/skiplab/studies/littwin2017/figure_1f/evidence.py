"""θ of eq 33 along β, against the pure model, and in random mixtures."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from skiplab.reproduction import Evidence, Found, Results
from skiplab.studies.littwin2017.figure_1f.trials import random_mixtures

if TYPE_CHECKING:
    import numpy as np

VALUES = {0.1: 0.306, 0.5: 0.810, 1.0: 0.993, 2.0: 1.126, 5.0: 1.232}  # θ at p = 100, found by us beforehand
PURE = 1.318
FROM, TO = 0.01, 1000.0  # of β: from networks of next to no paths but the shortest to nearly pure ones


def grid(count: int = 601) -> np.ndarray:
    """The β at which θ is computed, equally far apart in the logarithm."""
    import numpy as np

    return np.geomspace(FROM, TO, count)


@functools.cache
def along(p: int) -> tuple[np.ndarray, np.ndarray]:
    """v′ and v″ for every β of the grid."""
    import numpy as np

    from skiplab.theory.spin_glasses.mixtures import derivatives, shares_of

    first, second = derivatives(np.stack([shares_of(p, float(beta)) for beta in grid()]))
    return first, second


def steps_down(results: Results) -> Iterator[Evidence]:
    """By how much θ falls between neighbouring β; the headline is 100 layers, since the paper names no depth."""
    import numpy as np

    from skiplab.theory.spin_glasses.mixtures import complexity_at

    for p in results.settings.depths:
        first, second = along(p)
        theta = complexity_at(second / first)
        detail = f"{theta[0]:.3f} to {theta[-1]:.3f}"
        falls = np.maximum(0.0, -np.diff(theta))
        yield Evidence(f"p = {p}", [falls], headline=p == results.settings.depths[0], detail=detail)


def above_pure(results: Results) -> Iterator[Evidence]:
    """By how much θ exceeds, or equals, the pure model's."""
    import numpy as np

    from skiplab.theory.spin_glasses.mixtures import complexity, complexity_at, pure

    for p in results.settings.depths:
        first, second = along(p)
        away = complexity_at(second / first) - float(complexity(pure(p)))
        yield Evidence(f"p = {p}", [np.maximum(0.0, away)], headline=p == results.settings.depths[0])


def mixtures(*quantities: str) -> Found:
    """Evidence on random mixtures, one row per depth."""

    def found(results: Results) -> Iterator[Evidence]:
        for p in results.settings.mixed_depths:
            samples = [_sample(results, quantity, p) for quantity in quantities]
            nearest = _sample(results, "nearest", p).min()
            detail = f"the largest θ found is {nearest:.2g} below" if "above" in quantities else ""
            yield Evidence(f"p = {p}", samples, detail=detail)

    return found


def _sample(results: Results, quantity: str, p: int) -> np.ndarray:
    return results.sample(random_mixtures, quantity=quantity, p=p)


def alpha(results: Results) -> Iterator[Evidence]:
    """α² of pure models, which is whole numbers all through."""
    from skiplab.theory.spin_glasses.mixtures import alpha_squared, pure

    yield Evidence("2 to 100 spins", [[float(alpha_squared(pure(p))) for p in range(2, 101)]])


def values(results: Results) -> Iterator[Evidence]:
    """θ at 100 layers less the values that we had found by other means."""
    from skiplab.theory.spin_glasses.mixtures import complexity, pure, shares_of

    for beta, known in VALUES.items():
        theta = float(complexity(shares_of(100, beta)))
        yield Evidence(f"β = {beta:g}", [[theta - known]], detail=f"θ = {theta:.4f}")
    theta = float(complexity(pure(100)))
    yield Evidence("pure", [[theta - PURE]], detail=f"θ = {theta:.4f}")


def mended(results: Results) -> Iterator[Evidence]:
    """Both steps of the mended proof: ratios above p − 1, and the slope against differences of θ."""
    import numpy as np

    from skiplab.theory.spin_glasses.mixtures import (  # fmt: skip
        bound_of_equation_50,
        complexity,
        complexity_at,
        complexity_slope,
        pure,
    )

    yield Evidence("v″/v′ ≤ p − 1", [_sample(results, "ratio", p) for p in results.settings.mixed_depths])
    x, h = np.geomspace(1.01, 999, 400), 1e-5
    differences = (complexity_at(x * (1 + h)) - complexity_at(x * (1 - h))) / (2 * h * x)
    yield Evidence("slope of θ", [complexity_slope(x) - differences])
    p = 100
    bound, theta = bound_of_equation_50(p), float(complexity(pure(p)))
    detail = f"eq 50’s middle line is {bound:.3f} at p = {p}, and θ {theta:.3f}"
    yield Evidence("eq 50 as printed", [[bound - theta]], headline=False, detail=detail)


def below_mean_depth(results: Results) -> Iterator[Evidence]:
    """By how much θ falls short of the pure model whose number of spins is the mixture's mean, v′."""
    import numpy as np

    from skiplab.theory.spin_glasses.mixtures import complexity_at

    for p in results.settings.depths:
        first, second = along(p)
        theta, same = complexity_at(second / first), complexity_at(np.maximum(first - 1, 1.0))
        at = int(np.abs(grid() - 0.1).argmin())
        detail = f"{theta[at]:.3f} and {same[at]:.3f} at β = {grid()[at]:.3g}"
        yield Evidence(f"p = {p}", [np.maximum(0.0, same - theta)], detail=detail)
