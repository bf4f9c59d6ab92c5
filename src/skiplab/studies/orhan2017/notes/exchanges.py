"""Section 2.3.2: whether mode strengths of different layers may be exchanged, a symmetry that skips make or break."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from skiplab.reproduction import Evidence, Results
from skiplab.reproduction.trial import Bench, trial
from skiplab.studies.orhan2017.notes.trials import NETWORKS, ZERO, Table

if TYPE_CHECKING:
    import pandas as pd

RESIDUAL, HYPER = NETWORKS[1:]


@dataclass(frozen=True)
class Exchanges:
    """Which random strengths, and how many layers."""

    seeds: tuple[int, ...]
    depth: int = 4


@trial("orhan2017/exchanged-strengths", version=1)
def exchanges(settings: Exchanges, bench: Bench) -> pd.DataFrame:
    """How much E of eqs 22 and 23 changes if a_i and a_j change places, relative to E, for every pair of layers.

    Strengths are uniform in ½ to 1½, s = 2u; ``least`` and ``most`` are over the pairs.
    """
    import torch

    from skiplab.randomness import torch_generator
    from skiplab.theory.singular.hessians import reduced_factors

    table = Table(3)
    for done, seed in enumerate(settings.seeds):
        bench.tell(done / len(settings.seeds), f"network {seed}")
        draw = torch_generator(seed, "exchanged strengths")
        strengths = 0.5 + torch.rand(settings.depth, generator=draw, dtype=torch.float64)
        for network in NETWORKS:
            u = float(reduced_factors(network, strengths).prod())
            changes = []
            for i, j in combinations(range(settings.depth), 2):
                order = list(range(settings.depth))
                order[i], order[j] = j, i
                exchanged = float(reduced_factors(network, strengths[order]).prod())
                changes.append(abs((2 * u - exchanged) ** 2 / u**2 - 1))
            numbers = {"least": min(changes), "most": max(changes)}
            table.add(seed, network, f"{settings.depth} layers", "generic", numbers)
    return table.frame()


def exchangeable(results: Results) -> Iterator[Evidence]:
    """Networks that disagree: residual ones whose energy changes, hyper-residual ones in which a pair does not."""
    for network, quantity, disagrees in (
        (RESIDUAL, "most", lambda change: change > ZERO),
        (HYPER, "least", lambda change: change <= ZERO),
    ):
        changes = results.rows(exchanges, network=network, quantity=quantity)["value"]
        words = "at most" if quantity == "most" else "at least"
        limit = changes.max() if quantity == "most" else changes.min()
        detail = f"E changes by {words} {limit:.2g}, relative, over {len(changes)} networks and all pairs of layers"
        yield Evidence(network, [[float(disagrees(change)) for change in changes]], detail=detail)
