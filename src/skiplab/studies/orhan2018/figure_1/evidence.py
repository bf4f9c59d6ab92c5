"""What is 0 at singular points of a plain layer, and is not with skips."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from skiplab.reproduction import Evidence, Found, Results
from skiplab.studies.orhan2018.figure_1.trials import KINDS, layers

if TYPE_CHECKING:
    import pandas as pd

ROUNDING = 1e-12  # relative; float64 keeps 2e-16, and a few hundred terms are added


def values(results: Results, kind: str, network: str, quantity: str) -> pd.Series[float]:
    """A quantity at one kind of singular point, one number per layer."""
    return results.rows(layers, kind=kind, network=network, quantity=quantity)["value"]


def plain_is_zero(quantity: str) -> Found:
    """Evidence of a quantity of plain layers."""

    def found(results: Results) -> Iterator[Evidence]:
        for kind in KINDS:
            yield Evidence(kind, [values(results, kind, "plain", quantity).tolist()])

    return found


def skip_is_not(quantity: str) -> Found:
    """Evidence of layers with skips in which a quantity is 0 but for rounding."""

    def found(results: Results) -> Iterator[Evidence]:
        for kind in KINDS:
            each = values(results, kind, "residual", quantity)
            detail = f"the smallest of {len(each)} layers is {each.min():.2g}"
            yield Evidence(kind, [(each <= ROUNDING).astype(float).tolist()], detail=detail)

    return found


def plain_zeros_gained(results: Results) -> Iterator[Evidence]:
    """Zeros that plain layers' Gauss–Newton block gains, less one per predicted direction."""
    yield from _zeros_gained(results, "plain", results.settings.units)


def skip_zeros_gained(results: Results) -> Iterator[Evidence]:
    """Zeros that the Gauss–Newton block gains with skips."""
    yield from _zeros_gained(results, "residual", 0)


def _zeros_gained(results: Results, network: str, predicted: int) -> Iterator[Evidence]:
    for kind in KINDS:
        each = values(results, kind, network, "extra_zeros")
        found = ", ".join(f"{count:g}" for count in sorted(each.unique()))
        detail = f"{found} more zeros than beside the point, {predicted} predicted"
        yield Evidence(kind, [(each - predicted).tolist()], detail=detail)
