"""Directions and sizes of the change of scales after one small step, against what theorems 3 and 4 say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from skiplab.reproduction import Evidence, Found, Results
from skiplab.studies.littwin2017.theorems.cross_entropy import START, TRAINED, forces
from skiplab.studies.littwin2017.theorems.trials import (
    ONE_BLOCK,
    SEVERAL,
    scale_steps,
    shape_name,
    size_steps,
    slope_of_size,
)

if TYPE_CHECKING:
    import pandas as pd

ALL_SKIPPED = shape_name(0, 0, SEVERAL)
BLOCKS = tuple(shape_name(*shape) for shape in ONE_BLOCK)


def smallest(results: Results, trial: Any, **where: Any) -> pd.DataFrame:
    """Rows of the smallest step, which stands for μ → 0."""
    return results.rows(trial, step=min(results.settings.steps), **where)


def outside(*shapes: str) -> Found:
    """Evidence of layers that no connection skips: networks in which |λ_l| does not grow."""

    def found(results: Results) -> Iterator[Evidence]:
        for shape in shapes:
            rows = smallest(results, scale_steps, shape=shape, inside=False)
            yield _counted(shape, rows["found"] <= 0)

    return found


def inside(chosen: Callable[[pd.DataFrame], Any], *shapes: str, shrinks: bool = False) -> Found:
    """Evidence of skipped layers, of those rows that are chosen: where |λ_l| does not grow, or does not shrink."""

    def found(results: Results) -> Iterator[Evidence]:
        for shape in shapes:
            rows = smallest(results, scale_steps, shape=shape, inside=True)
            rows = rows[chosen(rows)]
            yield _counted(shape, rows["found"] >= 0 if shrinks else rows["found"] <= 0)

    return found


def condition(rows: pd.DataFrame) -> Any:
    """‖g_p‖² + g_pᵀg_m > 0."""
    return rows["predicted"] > 0


def no_condition(rows: pd.DataFrame) -> Any:
    """‖g_p‖² + g_pᵀg_m < 0."""
    return rows["predicted"] < 0


def longer(rows: pd.DataFrame) -> Any:
    """‖g_p‖ > ‖g_m‖."""
    return rows["through"] > rows["beside"]


def several(results: Results) -> Iterator[Evidence]:
    """Both parts of theorem 3 where every layer but the first is skipped by itself."""
    (first,) = outside(ALL_SKIPPED)(results)
    (others,) = inside(condition, ALL_SKIPPED)(results)
    yield Evidence("the first layer", first.samples, detail=first.detail)
    yield Evidence("skipped layers", others.samples, detail=others.detail)


def sizes(*trials: Any, shapes: tuple[str, ...]) -> Found:
    """Evidence of what is found less what is predicted after the smallest step; larger steps are further rows."""

    def found(results: Results) -> Iterator[Evidence]:
        least = min(results.settings.steps)
        for trial in trials:
            for step in results.settings.steps:
                rows = results.rows(trial, step=step, shape=shapes)
                apart = (rows["found"] - rows["predicted"]).to_numpy()
                where = f"steps of {step:g} ‖w‖"
                yield Evidence(where, [apart], headline=step == least, detail=f"{len(rows)} cases")

    return found


def slopes(results: Results) -> Iterator[Evidence]:
    """∂L/∂C less (1/C) Σ r L_r."""
    yield Evidence(ALL_SKIPPED, [results.sample(slope_of_size, value="apart")])


def dominant(results: Results) -> Iterator[Evidence]:
    """Networks in which C does not grow although ‖g_m‖ < ‖g_p‖ or m‖g_m‖ > p‖g_p‖; the others are not judged."""
    for shape in BLOCKS:
        rows = smallest(results, size_steps, shape=shape)
        is_dominant = (rows["beside"] < rows["through"]) | (
            rows["m"] * rows["beside"] > rows["p"] * rows["through"]
        )
        yield _counted(shape, rows[is_dominant]["found"] <= 0)
        between = _counted(f"{shape}, between", rows[~is_dominant]["found"] <= 0)
        yield Evidence(between.condition, between.samples, headline=False, detail=between.detail)


def every_angle(results: Results) -> Iterator[Evidence]:
    """Norms and opposed gradients: eq 27's sign against (m‖g_m‖ − p‖g_p‖)(‖g_m‖ − ‖g_p‖)."""
    import torch

    from skiplab.theory.path_ensembles.scale_forces import grows_at_every_angle

    ratio = torch.logspace(-1.5, 1.5, 400, dtype=torch.float64)
    angles = torch.linspace(-1, 1, 201, dtype=torch.float64)
    for first, last, p in ONE_BLOCK:
        m = p - (last - first + 1)
        bracket = m * ratio[:, None] ** 2 + p + (m + p) * ratio[:, None] * angles
        told = grows_at_every_angle(ratio, torch.ones_like(ratio), m, p)
        wrong = (bracket > 0).all(1) != told
        yield Evidence(
            f"p = {p}, m = {m}", [wrong.double().numpy()], detail=f"{(~told).sum()} of 400 ratios between"
        )


def cross_entropy(results: Results) -> Iterator[Evidence]:
    """By how much a step on the weights changes the force on λ_l, over μ‖g‖²; further rows have the force itself."""
    for column, words in (("push", ""), ("force", "force, ")):
        for when in (START, TRAINED):
            rows = results.rows(forces, when=when)
            first = rows[rows["layer"] == 1].set_index("seed")[column]
            others = rows[rows["layer"] > 1].groupby("seed")[column].mean()
            for layers, values in (("first layer", first), ("skipped layers, mean", others)):
                share = f"above 0 in {(values > 0).mean():.0%} of networks"
                where = f"{words}{layers}, {when}"
                yield Evidence(where, [values.to_numpy()], headline=column == "push", detail=share)


def _counted(where: str, against: pd.Series) -> Evidence:
    """Zeros, and ones for cases against a claim."""
    values = against.to_numpy(dtype=float)
    return Evidence(where, [values], detail=f"{int(values.sum())} of {len(values)} against")
