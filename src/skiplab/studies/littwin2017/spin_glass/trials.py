"""Mean numbers of minima of four spin glasses by Kac and Rice's formula, at one number of spins per trial."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skiplab.reproduction import Bench, trial

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

# ε_r² by the number r of spins.
MODELS: dict[str, dict[int, float]] = {
    "3": {3: 1.0},
    "4": {4: 1.0},
    "2 + 6": {2: 0.5, 6: 0.5},
    "3 + 10": {3: 0.5, 10: 0.5},
}


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
            found = log_minima(*derivatives_of(name), settings.size, smallest)
            rows.append((seed, name, found.log_mean / settings.size, found.effective))
    return pd.DataFrame(rows, columns=["seed", "model", "value", "effective"]).assign(size=settings.size)


def shares_of(name: str) -> np.ndarray:
    """ε_r² of a model, r = 2 …"""
    import numpy as np

    shares = np.zeros(max(MODELS[name]) - 1)
    for spins, share in MODELS[name].items():
        shares[spins - 2] = share
    return shares


def derivatives_of(name: str) -> tuple[float, float]:
    """v′ and v″ of a model."""
    from skiplab.theory.spin_glasses.mixtures import derivatives

    first, second = derivatives(shares_of(name))
    return float(first), float(second)


def theta_of(name: str) -> float:
    """Eq 33's θ."""
    from skiplab.theory.spin_glasses.mixtures import complexity

    return float(complexity(shares_of(name)))
