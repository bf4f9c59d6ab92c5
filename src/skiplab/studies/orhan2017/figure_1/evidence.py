"""Evidence that a symmetry holds, or is broken: how far a change of the weights moves a network's outputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from skiplab.reproduction import Evidence, Found, Results
from skiplab.studies.orhan2017.figure_1.trials import changed_networks

if TYPE_CHECKING:
    import pandas as pd

ROUNDING = 1e-12  # relative; float64 keeps 2e-16, and a few hundred terms are added in each layer


def changes(results: Results, network: str, symmetry: str) -> pd.Series[float]:
    """Relative changes of the outputs, one row per draw, with the networks' seeds."""
    return results.rows(changed_networks, network=network, symmetry=symmetry).set_index("seed")["change"]


def mean_changes(results: Results, network: str, symmetry: str) -> pd.Series[float]:
    """Mean relative change of the outputs, one number per network."""
    return changes(results, network, symmetry).groupby(level=0).mean()


def kept(symmetry: str, *networks: str) -> Found:
    """Evidence of all changes of the outputs, which are 0 up to rounding if the symmetry holds."""

    def found(results: Results) -> Iterator[Evidence]:
        for network in networks:
            each = changes(results, network, symmetry)
            yield Evidence(network, [each.tolist()], detail=f"{each.index.nunique()} networks")

    return found


def broken(symmetry: str, *networks: str) -> Found:
    """Evidence of the mean change of each network's outputs, which is far from 0 if the symmetry is broken."""

    def found(results: Results) -> Iterator[Evidence]:
        for network in networks:
            each = changes(results, network, symmetry)
            unmoved = f"{int((each <= ROUNDING).sum())} of {len(each)} changes left the outputs as they were"
            detail = f"{unmoved}; the least {each.min():.2g}"
            yield Evidence(network, [mean_changes(results, network, symmetry).tolist()], detail=detail)

    return found
