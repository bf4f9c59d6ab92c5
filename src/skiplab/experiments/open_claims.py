"""Evidence that leaves a claim open where what the paper does not say, or we have not run, decides it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from skiplab.experiments.gains import GLOROT
from skiplab.reproduction import NOT_RUN, NOT_SAID, Evidence, Found, Results


def open_if_glorot_disagrees(found: Found, effect: Callable[[Sequence[Any]], float], worth: float) -> Found:
    """The same evidence, but no verdict where a paper that names no gain might have found the reverse.

    ``effect`` of the samples is worth having at the headline's gains and not at Glorot's, or the reverse: then the
    headline is the paper's own gain, of which there are no runs, and all of ours are further rows.
    """

    def opened(results: Results) -> Iterator[Evidence]:
        rows = list(found(results))
        by_words = {row.condition: row for row in rows}
        for row in rows:
            data, _, ours = row.condition.partition(", ")
            there = by_words.get(f"{data}, gain {GLOROT:.3g}")
            if row.headline and there is not None and all(map(len, (*row.samples, *there.samples))):
                effects = effect(there.samples), effect(row.samples)
                if (effects[0] >= worth) != (effects[1] >= worth):
                    told = f"{effects[0]:.3g} at gain {GLOROT:.3g}, {effects[1]:.3g} at {ours}"
                    silent = f"the paper names no initial gain, and it decides: {told}"
                    yield Evidence.without(f"{data}, the paper's gain", NOT_SAID, silent, len(row.samples))
                    row = replace(row, headline=False)
            yield row

    return opened


def open_if_short(found: Found, untuned: str) -> Found:
    """The same evidence, but no verdict where the first sample's mean falls short and its networks are not tuned.

    ``untuned`` says what was not searched for them: with it they might do better, and without it they may do well.
    """

    def opened(results: Results) -> Iterator[Evidence]:
        for row in found(results):
            if row.headline and all(map(len, row.samples)) and difference(row.samples) <= 0:
                data = row.condition.partition(",")[0]
                yield Evidence.without(f"{data}, tuned", NOT_RUN, untuned, len(row.samples))
                row = replace(row, headline=False)
            yield row

    return opened


def difference(samples: Sequence[Any]) -> float:
    """The first sample's mean less the second's."""
    first, second = (sum(map(float, sample)) / len(sample) for sample in samples)
    return first - second
