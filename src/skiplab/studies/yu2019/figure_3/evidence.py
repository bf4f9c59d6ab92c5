"""Cushions of pairs: one number per network, the median over training images unless a row says otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from skiplab.reproduction import Evidence, Results
from skiplab.studies.yu2019.measured import TENTH
from skiplab.studies.yu2019.pairs import both

if TYPE_CHECKING:
    import numpy as np

ALLOWED = 2  # layers in which the paper's residual networks do not have the larger cushion
# Further rows at the tenth layer: which cushion, and at which epoch where it is not the last.
CONTROLS: dict[str, tuple[str, int | None]] = {
    "without the 1 in A x too": ("cushion_bare", None),
    "before training": ("cushion", 0),
    "least of the images": ("cushion_least", None),
}


def log_cushions(
    results: Results, depth: int, layer: int, quantity: str, epoch: int | None
) -> list[np.ndarray]:
    """ln of the cushions of residual and of plain networks, pair by pair."""
    import numpy as np

    plain, residual = both(results, depth, quantity, layer=layer, epoch=epoch)
    return [np.log(residual), np.log(plain)]


def tenth_layer(results: Results) -> Iterator[Evidence]:
    """The tenth layer in the paper's norm; further rows for its neighbours and for other cushions."""
    for depth in results.settings.depths:
        middle = min(TENTH, depth)
        own: dict[str, Any] = {"quantity": "cushion", "epoch": None}
        for layer in (middle, middle - 1, middle + 1):
            if layer <= depth:
                pair = log_cushions(results, depth, layer, **own)
                yield Evidence(f"{depth} layers, layer {layer}", pair, headline=layer == middle, paired=True)
        for words, (quantity, epoch) in CONTROLS.items():
            pair = log_cushions(results, depth, middle, quantity, epoch)
            yield Evidence(f"{depth} layers, layer {middle}, {words}", pair, headline=False, paired=True)


def identity_in_norm(results: Results) -> Iterator[Evidence]:
    """The tenth layer with the 1 of identity connections in A x and in ‖A‖; before training as a further row."""
    for depth in results.settings.depths:
        layer = min(TENTH, depth)
        for words, epoch in (("", None), (", before training", 0)):
            pair = log_cushions(results, depth, layer, "cushion_kept", epoch)
            yield Evidence(f"{depth} layers, layer {layer}{words}", pair, headline=not words, paired=True)


def larger(results: Results, depth: int, quantity: str = "cushion") -> np.ndarray:
    """Whether the residual network of a pair has the larger cushion, (pairs, layers)."""
    import numpy as np

    pairs = [both(results, depth, quantity, layer=layer) for layer in range(1, depth + 1)]
    return np.stack([residual > plain for plain, residual in pairs], axis=1)


def exceptions(results: Results) -> Iterator[Evidence]:
    """3 less the number of layers in which a pair's plain network has the cushion that is as large or larger."""
    for depth in results.settings.depths:
        for words, quantity in (("", "cushion"), (", 1 in the norm too", "cushion_kept")):
            found = larger(results, depth, quantity)
            left = ALLOWED + 1 - (~found).sum(1)
            named = ", ".join(names(found))
            detail = f"exceptions in most pairs: {named or 'none'}"
            yield Evidence(f"{depth} layers{words}", [left], headline=not words, detail=detail)


def names(found: np.ndarray) -> list[str]:
    """The layers that are exceptions in more than half of the pairs; the first and the last have no identity."""
    usual = (~found).mean(0) > 0.5
    ends = {1: "1 (stem)", len(usual): f"{len(usual)} (output)"}
    return [ends.get(layer, str(layer)) for layer, is_one in enumerate(usual.tolist(), 1) if is_one]
