"""Moments of one-layer nets' gradients beside those of Brownian motion."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from skiplab.reproduction import Evidence, Results
from skiplab.studies.balduzzi2017.proposition_a1.trials import gradients

if TYPE_CHECKING:
    import pandas as pd

# Laws of the weights: the proposition asks for mean 0 and variance 1/N only.
LAWS = {"normal": "normal weights", "signs": "weights ±1/√N"}
PAIRS = ((0.25, 0.5), (0.25, 1.0), (0.5, 1.0), (1.0, 1.0))


def by_run(results: Results, law: str, quantity: str) -> pd.DataFrame:
    """A quantity with a row per run and a column per pair (s, t)."""
    rows = results.rows(gradients, law=law, quantity=quantity)
    return rows.pivot_table(index="run", columns=["s", "t"], values="value")


def covariances(results: Results) -> Iterator[Evidence]:
    """Each run's mean over pairs s ≤ t of E[f′_s f′_t]/min(s, t), then some pairs by themselves."""
    from skiplab.theory.shattering.brownian import covariance

    for law, shown in LAWS.items():
        found = by_run(results, law, "covariance")
        s, t = (found.columns.get_level_values(name).to_numpy() for name in ("s", "t"))
        ratios: pd.DataFrame = found.div(covariance(s, t), axis=1)
        detail = f"from {ratios.mean().min():.3f} to {ratios.mean().max():.3f} at single pairs"
        condition = f"{shown}, covariance, mean over {len(s)} pairs"
        yield Evidence(condition, [ratios.mean(axis=1).tolist()], paper_value=1.0, detail=detail)
        for one, other in (pair for pair in PAIRS if pair in ratios):
            ratio = ratios[(one, other)].tolist()
            where = f"{shown}, covariance, s = {one:g}, t = {other:g}"
            yield Evidence(where, [ratio], paper_value=1.0, headline=False)


def covariances_in_x(results: Results) -> Iterator[Evidence]:
    """The same over pairs of inputs, relative to min(F(x), F(y))."""
    from skiplab.theory.shattering.brownian import covariance_in_x

    for law, shown in LAWS.items():
        found = by_run(results, law, "x covariance")
        x, y = (found.columns.get_level_values(name).to_numpy() for name in ("s", "t"))
        ratios: pd.DataFrame = found.div(covariance_in_x(x, y, 1.0), axis=1)
        yield Evidence(shown, [ratios.mean(axis=1).tolist()], paper_value=1.0)


def variances(results: Results) -> Iterator[Evidence]:
    """The variance of F_k against 1/((k − ½)²π²)."""
    from skiplab.theory.shattering.brownian import eigenvalues

    settings = results.settings
    limit = eigenvalues(settings.components)
    finite = eigenvalues(settings.components, settings.neurons)
    for law, shown in LAWS.items():
        found = by_run(results, law, "component")
        for k in range(1, settings.components + 1):
            detail = f"λ of the walk of {settings.neurons} neurons {finite[k - 1]:.4g}"
            yield Evidence(
                f"{shown}, k = {k}",
                [found[float(k), float(k)].tolist()],
                paper_value=float(limit[k - 1]),
                headline=law == "normal",
                detail=detail,
            )


def uncorrelated(results: Results) -> Iterator[Evidence]:
    """Each run's mean over pairs j < k of r² − 1/n, r being the correlation of F_j and F_k over its n nets.

    Where there is no correlation r² has mean 1/n, so that the runs' mean is 0; it may be below. The margin is in
    r: the mean square may not exceed CORRELATION².
    """
    for law, shown in LAWS.items():
        found, settings = by_run(results, law, "component"), results.settings
        ranks = [float(k) for k in range(1, settings.components + 1)]
        pairs = [(j, k) for j in ranks for k in ranks if j < k]
        squares = [found[(j, k)] ** 2 / (found[(j, j)] * found[(k, k)]) - 1 / settings.nets for j, k in pairs]
        yield Evidence(shown, [[sum(run) / len(run) for run in zip(*squares, strict=True)]])


def largest(results: Results) -> Iterator[Evidence]:
    """E[max_t B_t] = √(2/π), a functional of the whole path; a walk's is lower by .583/√N for normal steps."""
    expected = math.sqrt(2 / math.pi)
    for law, shown in LAWS.items():
        sample = results.sample(gradients, by="run", law=law, quantity="largest")
        detail = f"{sample.mean():.4g}, and √(2/π) is {expected:.4g}"
        where = f"{shown}, largest value"
        yield Evidence(where, [(sample / expected).tolist()], paper_value=1.0, detail=detail)


def brownian(results: Results) -> Iterator[Evidence]:
    """The covariance, which any independent weights of variance 1/N have, and the largest value, which not any do."""
    yield from covariances(results)
    yield from largest(results)


def derivative(results: Results) -> Iterator[Evidence]:
    """The largest difference between equation A2 and automatic differentiation."""
    for law, shown in LAWS.items():
        yield Evidence(shown, [results.sample(gradients, by="run", law=law, quantity="derivative")])
