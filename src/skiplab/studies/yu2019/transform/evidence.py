"""Largest differences within pairs, one row per kind of network and depth."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, Any

from skiplab.reproduction import Evidence, Found, Results
from skiplab.studies.yu2019.transferred import USUAL
from skiplab.studies.yu2019.transform.trials import CONVOLUTIONAL, FAMILIES, INITS, same_function, same_steps

if TYPE_CHECKING:
    import numpy as np

EQUAL = 1e-9  # after some steps parameters count as equal up to here, relative to their norm


def where(results: Results) -> Iterator[tuple[str, str, int]]:
    """Every kind of network and depth: the words of its row, and both."""
    for family, depth in product(FAMILIES, results.settings.depths):
        yield f"{family}, {depth} layers", family, depth


def before(*quantities: str) -> Found:
    """Evidence on some quantities before training, with both initialisations."""

    def found(results: Results) -> Iterator[Evidence]:
        for condition, family, depth in where(results):
            own: dict[str, Any] = {"family": family, "depth": depth}
            samples = [
                results.sample(same_function, quantity=quantity, init=init, **own)
                for quantity, init in product(quantities, INITS)
            ]
            yield Evidence(condition, samples)

    return found


def blocks(results: Results) -> Iterator[Evidence]:
    """Every block's outputs, those that stride or change the number of channels by themselves."""
    for family, resizes in product(FAMILIES, (False, True)):
        changed = "stride and widen" if family == CONVOLUTIONAL else "narrow"
        words = f"blocks that {changed}" if resizes else "blocks of one size"
        rows = results.rows(same_function, quantity="block", family=family, resizes=resizes)
        yield Evidence(f"{family}, {words}", [rows["value"].to_numpy()])


def at_end(results: Results, decay: str, family: str, depth: int, quantity: str) -> np.ndarray:
    """One number per pair after the last step."""
    rows = results.rows(same_steps, decay=decay, family=family, depth=depth, quantity=quantity)
    return results.sample(
        same_steps, decay=decay, family=family, depth=depth, quantity=quantity, step=rows["step"].max()
    )


def stays(decay: str) -> Found:
    """Evidence on the largest difference of parameters and losses at any step of training."""

    def found(results: Results) -> Iterator[Evidence]:
        for condition, family, depth in where(results):
            own: dict[str, Any] = {"decay": decay, "family": family, "depth": depth}
            rows = results.rows(same_steps, quantity=("parameters", "loss", "output"), **own)
            yield Evidence(condition, [rows["value"].to_numpy()], detail=f"{rows['step'].max()} steps")

    return found


def parts(results: Results) -> Iterator[Evidence]:
    """By how many decades the parameters of pairs under the usual decay differ by more than counts as equal."""
    import numpy as np

    for condition, family, depth in where(results):
        away = at_end(results, USUAL, family, depth, "parameters")
        yield Evidence(condition, [np.log10(away / EQUAL)], detail=f"parameters differ by {away.mean():.2g}")
