"""What the networks say of the estimates: how far they are off, and whether they go with the exact fractions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING

from skiplab.reproduction import Evidence, Found, Results
from skiplab.reproduction.results import matching
from skiplab.studies.orhan2018.figure_s3.trials import of_width

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

FRACTIONS = ("degenerate", "negative")
METHODS = ("mixture", "lanczos")


def points(results: Results, data: str, width: int) -> pd.DataFrame:
    """One row per network and measured epoch: exact fractions, both estimates and the limits."""
    rows = results.rows(stage=of_width(width), data=data, layer=0)
    rows = rows.astype({"network_id": str, "quantity": str})
    wide = rows.pivot(index=["gain", "seed", "network_id", "epoch"], columns="quantity", values="value")
    return wide.astype(float).dropna(subset=["degenerate", "mixture_degenerate"]).reset_index()


def pairs(each: pd.DataFrame, method: str, fraction: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Exact values, estimates, and the network each pair belongs to."""
    return (
        each[fraction].to_numpy(dtype=float),
        each[f"{method}_{fraction}"].to_numpy(dtype=float),
        each["network_id"].to_numpy(dtype=str),
    )


def conditions(results: Results) -> Iterator[tuple[str, bool, pd.DataFrame]]:
    """Yield (condition, headline, points): all networks of a width first, then those at each gain."""
    settings = results.settings
    for data, width in product(settings.data, settings.widths):
        where, every = f"{data}, {settings.depth}×{width}", points(results, data, width)
        yield f"{where}, all gains", True, every
        if len(settings.gains) > 1:
            for gain in settings.gains:
                yield f"{where}, gain {gain:.3g}", False, matching(every, gain=gain)


def bias(fraction: str, sign: float) -> Found:
    """Evidence of how much the mixture exceeds the exact fraction (times a sign), by networks' means over epochs."""

    def found(results: Results) -> Iterator[Evidence]:
        for condition, headline, each in conditions(results):
            own = each.groupby("network_id")[[f"mixture_{fraction}", fraction]].mean()
            sample = sign * (own[f"mixture_{fraction}"] - own[fraction]).to_numpy(dtype=float)
            detail = f"estimated {own[f'mixture_{fraction}'].mean():.3f}, exact {own[fraction].mean():.3f}"
            yield Evidence(condition, [sample], headline=headline, detail=detail if len(own) else "")

    return found


def relation(fraction: str) -> Found:
    """The slope of estimates against exact values, as jackknife pseudo-values: one number per network."""

    def found(results: Results) -> Iterator[Evidence]:
        from skiplab.studies.orhan2018.regression import pseudo_values, slope

        for condition, headline, each in conditions(results):
            for method in METHODS if headline else METHODS[:1]:
                x, y, groups = pairs(each, method, fraction)
                ours = method == "lanczos"
                yield Evidence(
                    f"{condition}, Lanczos (ours)" if ours else condition,
                    [pseudo_values(slope, x, y, groups)],
                    headline=headline and not ours,
                    detail=described(x, y, groups) + (f"; {limits_hold(each, fraction)}" if ours else ""),
                )

    return found


def described(x: np.ndarray, y: np.ndarray, groups: np.ndarray) -> str:
    """Say r, and the slope with its 95 % interval over networks."""
    from skiplab.figures.curves import mean_interval
    from skiplab.studies.orhan2018.regression import correlation, pseudo_values, slope

    count = len(set(groups.tolist()))
    where = f"{len(x)} points of {count} networks"
    if count < 2:
        return where
    _, low, high = mean_interval(pseudo_values(slope, x, y, groups))
    rise = f"slope {slope(x, y):.3f} ± {(high - low) / 2:.3f}"
    return f"r = {correlation(x, y):.3f}, {rise} (95 %), {where}"


def limits_hold(each: pd.DataFrame, fraction: str) -> str:
    """Say how often Lanczos' [low, high] holds the exact fraction, and how near its resolved answers are."""
    # The table keeps float32, which may put an exact 0 or 1 a rounding beyond its limit.
    inside = (each[f"lanczos_{fraction}_low"] <= each[fraction] + 1e-6) & (
        each[fraction] <= each[f"lanczos_{fraction}_high"] + 1e-6
    )
    sure = each[each["lanczos_resolved"] > 0]
    error = (sure[f"lanczos_{fraction}"] - sure[fraction]).abs().mean()
    resolved = f"{len(sure)} resolved" + (f" with mean |error| {error:.4f}" if len(sure) else "")
    return f"[low, high] holds the exact value at {int(inside.sum())} points; {resolved}"
