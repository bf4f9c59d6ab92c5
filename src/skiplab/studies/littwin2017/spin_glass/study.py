"""The spin glass's trial, claims and declaration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skiplab.randomness import run_seeds
from skiplab.reproduction import (
    Bench,
    Call,
    Claim,
    Equivalent,
    Evidence,
    Exact,
    Greater,
    Results,
    Study,
    scales,
    subset,
    trial,
)

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

TOLERANCE = 0.003  # of θ
ENOUGH = 500  # effectively equal matrices
CIRCLE = 2  # Λ at which Rice's formula is closed
# ε_r² by the number r of spins.
MODELS: dict[str, dict[int, float]] = {
    "3": {3: 1.0},
    "4": {4: 1.0},
    "2 + 6": {2: 0.5, 6: 0.5},
    "3 + 10": {3: 0.5, 10: 0.5},
}


@dataclass(frozen=True)
class Settings:
    """Numbers of spins Λ, and how many random matrices a run draws at each."""

    runs: int = 10
    seed: int = 0
    matrices: int = 100_000
    sizes: tuple[int, ...] = (10, 14, 20, 28, 40, 57, 80)


@dataclass(frozen=True)
class Minima:
    """Settings of one trial: runs at one Λ."""

    size: int
    matrices: int
    seeds: tuple[int, ...]


@trial("littwin2017/kac-rice", version=1)
def minima(settings: Minima, bench: Bench) -> pd.DataFrame:
    """Estimate log(E Crt₀)/Λ of all models from the same matrices; one row per run and model."""
    import pandas as pd

    from skiplab.randomness import numpy_generator
    from skiplab.theory.spin_glasses.kac_rice import log_minima
    from skiplab.theory.spin_glasses.smallest_eigenvalues import smallest_eigenvalues

    rows = []
    for done, seed in enumerate(settings.seeds):
        bench.tell(done / len(settings.seeds), f"Λ = {settings.size}, run {seed}")
        stream = numpy_generator(seed, "GOE", settings.size)
        smallest = smallest_eigenvalues(settings.size, settings.matrices, stream)
        for name in MODELS:
            found = log_minima(*_derivatives(name), settings.size, smallest)
            rows.append((seed, name, found.log_mean / settings.size, found.effective))
    return pd.DataFrame(rows, columns=["seed", "model", "value", "effective"]).assign(size=settings.size)


def shares_of(name: str) -> np.ndarray:
    """ε_r² of a model, r = 2 …"""
    import numpy as np

    shares = np.zeros(max(MODELS[name]) - 1)
    for spins, share in MODELS[name].items():
        shares[spins - 2] = share
    return shares


def _derivatives(name: str) -> tuple[float, float]:
    from skiplab.theory.spin_glasses.mixtures import derivatives

    first, second = derivatives(shares_of(name))
    return float(first), float(second)


def theta_of(name: str) -> float:
    """Eq 33's θ."""
    from skiplab.theory.spin_glasses.mixtures import complexity

    return float(complexity(shares_of(name)))


def draw_matrices(results: Results) -> list[Call]:
    """Name a trial per Λ, large ones first."""
    settings = results.settings
    seeds = tuple(run_seeds(settings.seed, settings.runs))
    return [
        minima.of(subset(Minima, settings, size=size, seeds=seeds), f"Λ = {size}")
        for size in (*sorted(settings.sizes, reverse=True), CIRCLE)
    ]


def rates(results: Results, name: str) -> np.ndarray:
    """log(E Crt₀)/Λ by run and Λ, (runs, sizes)."""
    import numpy as np

    return np.stack(
        [results.sample(minima, model=name, size=size) for size in results.settings.sizes], axis=1
    )


def fits(results: Results, name: str) -> list[tuple[float, float]]:
    """θ and d that each run's rates fit best."""
    from skiplab.theory.spin_glasses.kac_rice import fitted_complexity

    own = _derivatives(name)
    return [fitted_complexity(*own, results.settings.sizes, run) for run in rates(results, name)]


def limits(results: Results) -> Iterator[Evidence]:
    """The θ that runs fit, less eq 33's."""
    for name in MODELS:
        theta, found = theta_of(name), [fit for fit, _ in fits(results, name)]
        mean = sum(found) / len(found)
        effective = min(pooled(results, name, size) for size in results.settings.sizes)
        detail = f"fitted {mean:.4f}, eq 33 {theta:.4f}, least effective sample {effective:.0f}"
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
        known = minima_on_a_circle(*_derivatives(name))
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


def figure(results: Results) -> Any:
    """Rates against Λ, what remains after the known corrections, and effective samples."""
    from skiplab.studies.littwin2017.spin_glass.plot import draw

    return draw(results)


STUDY = Study(
    id="littwin2017/spin-glass",
    words=__file__,
    settings=scales(
        Settings, quick={"matrices": 15_000}, smoke={"runs": 2, "matrices": 500, "sizes": (10, 14, 20)}
    ),
    stages=(draw_matrices,),
    figure=figure,
    unit="θ",
    claims=(
        Claim(
            "equation-33",
            "The logarithm of the mean number of minima, per spin, tends to eq 33’s θ, for pure models and mixtures.",
            limits,
            kind=Equivalent(margin=TOLERANCE),
            source="equation 33",
        ),
        Claim(
            "far-from-the-limit",
            "At the largest Λ the rate itself is above θ by more than the tolerance, so that comparing the two says "
            "nothing of eq 33.",
            finite,
            kind=Greater(worth=TOLERANCE),
            source="ours",
        ),
        Claim(
            "minima-on-a-circle",
            "For Λ = 2 the formula with random matrices gives the minima that Rice’s formula has in closed form.",
            on_a_circle,
            kind=Equivalent(margin=0.01),
            unit="relative difference",
            source="ours",
        ),
        Claim(
            "enough-matrices",
            f"Every mean is that of at least {ENOUGH} effectively equal matrices.",
            enough,
            kind=Exact(),
            unit="matrices that lack",
            source="ours",
        ),
    ),
    cost={"smoke": 0.3, "quick": 20.0, "paper": 130.0},
)
