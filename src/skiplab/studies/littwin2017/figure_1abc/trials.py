"""Peaks of ε_r found by listing, weight outside a band at growing depth, and the scales that bring a peak about."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from skiplab.reproduction import Bench, trial

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

RHO, WIDTH = 0.5, 20  # gates open half of the time; a width at which lemma 4's scales C are tried


@dataclass(frozen=True)
class RandomPeaks:
    """Settings of one trial: random depths and β, one of each per seed."""

    seeds: tuple[int, ...]
    deepest: int


@trial("littwin2017/random-peaks", version=1)
def random_peaks(settings: RandomPeaks, bench: Bench) -> pd.DataFrame:
    """List all ε_r in whole numbers, and note where the largest are and where theorem 1 has them.

    One row per seed and case: ``any`` depth, and a depth at which pβ/(1 + β) is ``whole``.
    """
    import pandas as pd

    from skiplab.randomness import numpy_generator
    from skiplab.theory.path_ensembles.multipliers import predicted_peaks

    rows = []
    for done, seed in enumerate(settings.seeds):
        bench.tell(done / len(settings.seeds), f"run {seed}")
        stream = numpy_generator(seed, "peaks")
        any_beta = _ratio(stream, 10**6)
        p = int(stream.integers(2, settings.deepest + 1))
        few = _ratio(stream, 12)
        times = int(stream.integers(1, settings.deepest // (few.numerator + few.denominator) + 1))
        whole = times * (few.numerator + few.denominator)
        for case, depth, beta in (("any", p, any_beta), ("whole", whole, few)):
            found, formula = listed_peaks(depth, beta), predicted_peaks(depth, beta)
            away = max(abs(float(each - depth * beta / (1 + beta))) for each in found)
            rows.append(
                (seed, case, depth, float(beta), len(found), float(found != formula), max(0.0, away - 1))
            )
    columns = ["seed", "case", "p", "beta", "peaks", "elsewhere", "too_far"]
    return pd.DataFrame(rows, columns=columns)


def _ratio(stream: np.random.Generator, most: int) -> Fraction:
    over, under = stream.integers(1, most, endpoint=True, size=2)
    return Fraction(int(over), int(under))


def listed_peaks(p: int, beta: Fraction) -> tuple[int, ...]:
    """Where C(p − 1, r − 1) βʳ is largest, from all of them in whole numbers."""
    from math import comb

    over, under = beta.numerator, beta.denominator
    values = [comb(p - 1, r - 1) * over**r * under ** (p - r) for r in range(1, p + 1)]
    most = max(values)
    return tuple(r for r, value in enumerate(values, 1) if value == most)


@dataclass(frozen=True)
class Depths:
    """Settings of one trial: one β at several depths; bands are ± ``deltas`` times p about pβ/(1 + β)."""

    beta: float
    depths: tuple[int, ...]
    deltas: tuple[float, ...]


@trial("littwin2017/multipliers-by-depth", version=1)
def by_depth(settings: Depths, bench: Bench) -> pd.DataFrame:
    """Note peaks, weights outside bands and the spread of the path length, one row per depth and quantity."""
    import pandas as pd

    from skiplab.theory.path_ensembles.multipliers import (
        band,
        mass_outside,
        mean_and_deviation,
        peaks,
        predicted_peaks,
    )

    rows = []
    beta, ratio = settings.beta, Fraction(str(settings.beta))
    for done, p in enumerate(settings.depths):
        bench.tell(done / len(settings.depths), f"p = {p}")
        centre = p * beta / (1 + beta)
        found, formula = peaks(p, ratio), predicted_peaks(p, ratio)
        rows += [
            (p, 0.0, "peak", float(found[-1])),
            (p, 0.0, "elsewhere", float(found != formula)),
            (p, 0.0, "too far", max(0.0, max(abs(each - centre) for each in found) - 1)),
            (p, 0.0, "deviation", mean_and_deviation(p, beta)[1] / band(p, beta)),
        ]
        for delta in settings.deltas:
            low, high = centre - delta * p, centre + delta * p
            rows.append((p, delta, "below", mass_outside(p, beta, low, p)))
            rows.append((p, delta, "above", mass_outside(p, beta, 1, high)))
    return pd.DataFrame(rows, columns=["p", "delta", "quantity", "value"]).assign(beta=beta)


@dataclass(frozen=True)
class EveryLength:
    """Settings of one trial: a depth, every length of which is made the peak."""

    depth: int


@trial("littwin2017/every-length", version=1)
def every_length(settings: EveryLength, bench: Bench) -> pd.DataFrame:
    """Find for each length k a scale C that brings the peak there, and try β at and beyond the ends of its range.

    ``missed``: with a C inside the range the peak is not k. ``blunt``: at an end of the range k does not tie with its
    neighbour, or is still a peak beyond it.
    """
    import math

    import pandas as pd

    from skiplab.theory.path_ensembles.multipliers import beta_of, betas_of_peak, multipliers, peaks

    p, rows, outside = settings.depth, [], Fraction(1, 10**6)
    for k in range(1, p + 1):
        low, high = betas_of_peak(p, k)
        inside = (float(low) + float(high)) / 2 if k < p else 2.0 * p
        C = inside * math.sqrt(WIDTH) / (RHO * WIDTH)
        at = int(multipliers(p, beta_of(RHO, WIDTH, C, WIDTH)).argmax()) + 1
        rows.append((k, "missed", float(at != k)))
        ends = []
        if k > 1:
            ends += [peaks(p, low) == (k - 1, k), peaks(p, low * (1 - outside)) == (k - 1,)]
        if isinstance(high, Fraction):
            ends += [peaks(p, high) == (k, k + 1), peaks(p, high * (1 + outside)) == (k + 1,)]
        rows.append((k, "blunt", float(not all(ends))))
    return pd.DataFrame(rows, columns=["length", "quantity", "value"]).assign(p=p)
