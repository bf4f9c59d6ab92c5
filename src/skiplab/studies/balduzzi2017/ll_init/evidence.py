"""How far networks are from linear, and how many are linear where none should be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from skiplab.reproduction import Evidence, Found, Results
from skiplab.studies.balduzzi2017.ll_init.trials import FAMILIES, LOOKS_LINEAR, starts

ROUNDING = 1e-12  # relative; float64 keeps 2e-16, and errors of some 200 layers of 64 terms add up


def linear(results: Results) -> Iterator[Evidence]:
    """How far networks are from linear, by their outputs and by their gradients, which a linear map has constant."""
    for quantity, words in (("departure", "outputs"), ("gradient", "gradient")):
        yield from zero(quantity, words=f", {words}")(results)


def zero(quantity: str, families: Sequence[str] = FAMILIES, words: str = "") -> Found:
    """Evidence that a quantity is 0: one row per family and start, with each depth's largest number beside it."""

    def found(results: Results) -> Iterator[Evidence]:
        for family, start in product(families, LOOKS_LINEAR):
            rows = results.rows(starts, quantity=quantity, family=family, network=start)
            worst = rows.groupby("depth")["value"].max()
            detail = ", ".join(f"{value:.1g} at depth {depth}" for depth, value in worst.items())
            yield Evidence(f"{family}, {start}{words}", [rows["value"].tolist()], detail=detail)

    return found


def bent(quantity: str, *networks: str) -> Found:
    """Evidence that counts linear networks, where none should be; a departure that is no number counts as linear."""

    def found(results: Results) -> Iterator[Evidence]:
        for family, start in product(FAMILIES, networks):
            values = results.rows(starts, quantity=quantity, family=family, network=start)["value"]
            linear = int((~(values > ROUNDING)).sum())
            detail = (
                f"{linear} of {len(values)} networks are linear; the smallest departure is {values.min():.2g}"
            )
            yield Evidence(f"{family}, {start}", [[float(linear)]], detail=detail)

    return found
