"""How much changes of the weights move a recurrent network's outputs, and how many permutations there are."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from skiplab.reproduction import Evidence, Found, Results
from skiplab.studies.orhan2017.section_2_5.trials import ACTIVATIONS, CHANGES, MATRICES, classes, recurrent

if TYPE_CHECKING:
    import pandas as pd

ROUNDING = 1e-11  # relative; a few units of rounding at each of the steps, which growing states enlarge


def changes(results: Results, way: str, activation: str, matrix: str) -> pd.Series[float]:
    """How much outputs change, one number per network."""
    where = {"quantity": "change", "way": way, "activation": activation, "matrix": matrix}
    return results.rows(recurrent, **where)["value"]


def _each(
    results: Results, way: str, activations: Sequence[str], matrices: Sequence[str]
) -> Iterator[tuple[str, pd.Series[float]]]:
    for activation in activations:
        for matrix in matrices:
            yield f"{activation}, {matrix}", changes(results, way, activation, matrix)


def unchanged(
    way: str, *, activations: Sequence[str] = ACTIVATIONS, matrices: Sequence[str] = MATRICES
) -> Found:
    """Evidence of the changes themselves, which are 0 if the function is the same."""

    def found(results: Results) -> Iterator[Evidence]:
        for where, each in _each(results, way, activations, matrices):
            yield Evidence(where, [each.tolist()])

    return found


def broken(
    way: str, *, activations: Sequence[str] = ACTIVATIONS, matrices: Sequence[str] = MATRICES
) -> Found:
    """Evidence of networks whose function stays the same, none if the symmetry is broken."""

    def found(results: Results) -> Iterator[Evidence]:
        for where, each in _each(results, way, activations, matrices):
            same = (each <= ROUNDING).astype(float)
            count = f"{int(same.sum())} of {len(same)} networks"
            detail = f"{count}; the change is {each.min():.2g} to {each.max():.2g}"
            yield Evidence(where, [same.tolist()], detail=detail)

    return found


def for_changes(
    evidence: Callable[..., Found], *ways: str, besides: Sequence[str] = (), **chosen: Sequence[str]
) -> Found:
    """Evidence about changes of the weights, each row with its change; ``besides`` are not judged."""

    def found(results: Results) -> Iterator[Evidence]:
        for way in (*ways, *besides):
            for row in evidence(way, **chosen)(results):
                yield replace(row, condition=f"{row.condition}, {CHANGES[way]}", headline=way in ways)

    return found


def fewer(results: Results) -> Iterator[Evidence]:
    """Numbers of units and steps for which n! is not less than (n!)^T."""
    units, steps = results.settings.units, results.settings.steps
    wrong = [
        float(math.factorial(n) >= math.factorial(n) ** T)
        for n in range(2, units + 1)
        for T in range(2, steps + 1)
    ]
    digits = math.log10(math.factorial(units))
    counts = f"10^{digits:.0f} against 10^{steps * digits:.0f} permutations"
    detail = f"for {units} units and {steps} steps {counts}"
    yield Evidence(f"2 to {units} units, 2 to {steps} steps", [wrong], detail=detail)


def counted(quantity: str, up_to: str) -> Found:
    """Evidence of a quantity of all classes of equal size, up to the number of neurons in a field of settings."""

    def found(results: Results) -> Iterator[Evidence]:
        each = results.rows(classes, quantity=quantity)["value"]
        condition = f"all n = Kd up to {getattr(results.settings, up_to)}"
        yield Evidence(condition, [each.tolist()], detail=f"{len(each)} pairs (K, d)")

    return found


def class_counts(results: Results) -> Iterator[Evidence]:
    """Whether K!(d!)^K is less than n!; by how much it misses two counts of permutations are further rows.

    That it counts permutations which map classes onto classes is so by construction; if every neuron is to stay in
    its class, the number is (d!)^K.
    """
    yield from counted("violation", up_to="neurons")(results)
    onto = results.rows(classes, quantity="miscount")["value"]
    kept = results.rows(classes, quantity="miscount, each onto itself")
    number, size = kept["x"].astype(int), (kept["draw"] / kept["x"]).astype(int)
    # The trial has (d!)^K less the count; the paper's number is K! times as large.
    more = [(math.factorial(K) - 1) * math.factorial(d) ** K for K, d in zip(number, size, strict=True)]
    for words, missed in (
        ("maps classes onto classes", onto),
        ("keeps every neuron in its class", kept["value"] + more),
    ):
        condition = (
            f"K!(d!)^K less the permutations of which each {words}, n = Kd up to {results.settings.counted}"
        )
        yield Evidence(condition, [missed.tolist()], headline=False)
