"""A straight line through points that come in groups, with the uncertainty of the groups (figures 4, S3 and S7).

Points of one network at several epochs are not independent; networks are. So every interval here is a jackknife
over groups (Tukey 1958): θ fitted without group i gives the pseudo-value Gθ − (G − 1)θ₍₋ᵢ₎, and G of these are
treated as independent observations of θ, whose mean has Student's interval.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

NEARLY_ONE = 1 - 1e-12  # a correlation of ±1, as of two points, has no finite z


def line(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Intercept and slope of the least-squares line; NaN where x does not vary."""
    spread = x - x.mean() if len(x) else x
    square = float(spread @ spread)
    if len(x) < 2 or square == 0:
        return np.full(2, np.nan)
    slope = float(spread @ y) / square
    return np.array([y.mean() - slope * x.mean(), slope])


def correlation(x: np.ndarray, y: np.ndarray) -> float:
    """Pearson's r; NaN where x or y does not vary."""
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return float("nan")
    a, b = x - x.mean(), y - y.mean()
    return float(np.clip(a @ b / np.sqrt((a @ a) * (b @ b)), -1.0, 1.0))


def slope(x: np.ndarray, y: np.ndarray) -> float:
    """The slope of the least-squares line; NaN where x does not vary."""
    return float(line(x, y)[1])


def pseudo_values(
    statistic: Callable[[np.ndarray, np.ndarray], float | np.ndarray],
    x: np.ndarray,
    y: np.ndarray,
    groups: np.ndarray,
) -> np.ndarray:
    """One jackknife pseudo-value of a statistic per group, (groups, …); NaN if there is only one group."""
    names = list(dict.fromkeys(groups.tolist()))
    whole = np.asarray(statistic(x, y), dtype=float)
    without = [np.asarray(statistic(x[groups != name], y[groups != name]), dtype=float) for name in names]
    if len(names) < 2:
        return np.full((len(names), *whole.shape), np.nan)
    return len(names) * whole - (len(names) - 1) * np.stack(without)


def spearman(x: np.ndarray, y: np.ndarray) -> float:
    """Spearman's rank correlation, ties given their mean rank."""
    from scipy import stats

    return correlation(stats.rankdata(x), stats.rankdata(y))


def rank_z(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Pseudo-values of Fisher's z = artanh of Spearman's ρ, one per point; its law is nearer to normal than ρ's."""

    def statistic(x: np.ndarray, y: np.ndarray) -> float:
        return float(np.arctanh(np.clip(spearman(x, y), -NEARLY_ONE, NEARLY_ONE)))

    return pseudo_values(statistic, x, y, np.arange(len(x)))


def line_with_band(
    x: np.ndarray, y: np.ndarray, groups: np.ndarray, at: np.ndarray, level: float = 0.95
) -> tuple[np.ndarray, np.ndarray]:
    """The fitted line at some places and the half-width of its confidence band over groups."""
    from skiplab.figures.curves import mean_interval

    def heights(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        intercept, slope = line(x, y)
        return np.asarray(intercept + slope * at)

    _, low, high = mean_interval(pseudo_values(heights, x, y, groups), level)
    return heights(x, y), (high - low) / 2


def binned(
    x: np.ndarray, y: np.ndarray, groups: np.ndarray, bins: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean x, mean y and the standard error of y in bins with equally many points.

    A group counts once in each bin, by its mean there; a bin with one group has no standard error (NaN).
    """
    order = np.argsort(x, kind="stable")
    found = []
    for part in np.array_split(order, bins):
        if not len(part):
            continue
        names = list(dict.fromkeys(groups[part].tolist()))
        own = np.array(
            [(x[part][groups[part] == n].mean(), y[part][groups[part] == n].mean()) for n in names]
        )
        error = own[:, 1].std(ddof=1) / np.sqrt(len(own)) if len(own) > 1 else np.nan
        found.append((*own.mean(0), error))
    middle, mean, error = np.array(found).reshape(-1, 3).T
    return middle, mean, error
