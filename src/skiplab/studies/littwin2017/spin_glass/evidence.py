"""Limits that rates fit, rates at finite Λ, minima on a circle and effective samples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from skiplab.reproduction import Evidence, Results
from skiplab.studies.littwin2017.spin_glass.trials import MODELS, derivatives_of, minima, theta_of

if TYPE_CHECKING:
    import numpy as np

TOLERANCE = 0.003  # of θ
ENOUGH = 500  # effectively equal matrices
CIRCLE = 2  # Λ at which Rice's formula is closed


def rates(results: Results, name: str) -> np.ndarray:
    """log(E Crt₀)/Λ by run and Λ, (runs, sizes)."""
    import numpy as np

    return np.stack(
        [results.sample(minima, model=name, size=size) for size in results.settings.sizes], axis=1
    )


def fits(results: Results, name: str) -> list[tuple[float, float]]:
    """θ and d that each run's rates fit best."""
    from skiplab.theory.spin_glasses.kac_rice import fitted_complexity

    own = derivatives_of(name)
    return [fitted_complexity(*own, results.settings.sizes, run) for run in rates(results, name)]


def limits(results: Results) -> Iterator[Evidence]:
    """The θ that runs fit, less eq 33's."""
    for name in MODELS:
        theta, found = theta_of(name), [fit for fit, _ in fits(results, name)]
        mean = sum(found) / len(found)
        effective = min(pooled(results, name, size) for size in results.settings.sizes)
        detail = f"fitted {mean:.4f}, eq 33 {theta:.4f}, of which the tolerance is {TOLERANCE / theta:.1%}; "
        detail += f"least effective sample {effective:.0f}"
        yield Evidence(f"spins {name}", [[fit - theta for fit in found]], detail=detail)


def finite(results: Results) -> Iterator[Evidence]:
    """The rate at the largest Λ less θ, which is no test of eq 33."""
    size = max(results.settings.sizes)
    for name in MODELS:
        found, theta = results.sample(minima, model=name, size=size), theta_of(name)
        detail = f"rate {found.mean():.4f}, θ {theta:.4f}"
        yield Evidence(f"spins {name}, Λ = {size}", [found - theta], detail=detail)


def on_a_circle(results: Results) -> Iterator[Evidence]:
    """The mean number of minima for Λ = 2 relative to Rice's, less 1."""
    import numpy as np

    from skiplab.theory.spin_glasses.kac_rice import minima_on_a_circle

    for name in MODELS:
        known = minima_on_a_circle(*derivatives_of(name))
        found = np.exp(CIRCLE * results.sample(minima, model=name, size=CIRCLE))
        detail = f"{found.mean():.4f} minima, Rice’s formula {known:.4f}"
        yield Evidence(f"spins {name}", [found / known - 1], detail=detail)


def pooled(results: Results, name: str, size: int) -> float:
    """The effective sample of all runs together."""
    return float(results.rows(minima, model=name, size=size)["effective"].sum())


def enough(results: Results) -> Iterator[Evidence]:
    """By how many matrices an effective sample falls short."""
    for name in MODELS:
        found = [pooled(results, name, size) for size in results.settings.sizes]
        detail = f"{min(found):.0f} of {results.settings.runs * results.settings.matrices:,} matrices"
        yield Evidence(f"spins {name}", [[max(0.0, ENOUGH - each) for each in found]], detail=detail)
