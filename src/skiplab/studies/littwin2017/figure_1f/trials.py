"""Random mixtures of interactions beside the pure model, for theorem 5."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skiplab.reproduction import Bench, trial

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd


@dataclass(frozen=True)
class Mixtures:
    """Settings of one trial: random mixtures of interactions of 2 to ``depth`` spins."""

    depth: int
    mixtures: int
    seeds: tuple[int, ...]


@trial("littwin2017/random-mixtures", version=1)
def random_mixtures(settings: Mixtures, bench: Bench) -> pd.DataFrame:
    """Draw mixtures, even and sparse ones, climb θ from another, and compare with the pure model of that depth.

    One row per seed and quantity: ``above`` by how much a mixture's θ exceeds the pure model's at most, ``nearest``
    how far below it the largest is, ``ratio`` the same of v″/v′, ``summit`` 1 − ε_p² where the climb ends,
    ``variance`` |E[H²]/Λ − 1| and ``equation 48`` its difference from eq 33.
    """
    import numpy as np
    import pandas as pd

    from skiplab.randomness import numpy_generator
    from skiplab.theory.spin_glasses.mixtures import complexity, derivatives, pure, variance_by_index

    p, rows = settings.depth, []
    summit, r = float(complexity(pure(p))), np.arange(2, p + 1)
    for done, seed in enumerate(settings.seeds):
        bench.tell(done / len(settings.seeds), f"run {seed}")
        stream = numpy_generator(seed, "mixtures", p)
        # Concentrations from many equal shares to one or two interactions.
        shares = np.stack(
            [stream.dirichlet(np.full(p - 1, c)) for c in stream.choice((1.0, 0.1, 0.02), settings.mixtures)]
        )
        shares = shares[shares[:, -1] < 1 - 1e-9]  # the pure model itself is no mixture
        first, second = derivatives(shares)
        found, squares = complexity(shares), shares @ r**2
        printed = np.log((shares @ (r * (r - 1))) / (shares @ r)) / 2 - (shares @ (r * (r - 2))) / squares
        spins = stream.normal(size=3)
        spins *= np.sqrt(len(spins) / (spins @ spins))
        few = stream.dirichlet(np.ones(min(p - 1, 6)))
        numbers = {
            "above": max(0.0, float(found.max() - summit)),
            "nearest": float(summit - found.max()),
            "ratio": max(0.0, float((second / first).max() - (p - 1))),
            "summit": float(1 - _climbed(stream.dirichlet(np.ones(p - 1)))[-1]),
            "variance": abs(variance_by_index(few, spins) / len(spins) - 1),
            "equation 48": float(np.abs(printed - found).max()),
        }
        rows += [(seed, name, value) for name, value in numbers.items()]
    return pd.DataFrame(rows, columns=["seed", "quantity", "value"]).assign(p=p)


def _climbed(shares: np.ndarray, steps: int = 3000) -> np.ndarray:
    """Where ascent of θ from a mixture of all interactions ends, in logarithms of shares (mirror ascent)."""
    import numpy as np

    from skiplab.theory.spin_glasses.mixtures import complexity_slope, derivatives

    r, logs = np.arange(2, len(shares) + 2), np.log(shares)
    for _ in range(steps):
        first, second = derivatives(shares)
        slope = complexity_slope(second / first) * (r * (r - 1) - second / first * r) / first
        # Steps of one size, since θ gets flat near its summit.
        logs += slope / np.abs(slope).max()
        shares = np.exp(logs - logs.max())
        shares /= shares.sum()
    return shares
