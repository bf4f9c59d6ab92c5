"""Flows of two units near an overlap and of three near a linear dependence, full and reduced."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skiplab.reproduction.trial import Bench, trial

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("part", "run", "condition", "z", "u", "ratio", "quantity", "x", "value")
FORMS = ("frozen", "relaxed", "relaxed, w held")
SIGNATURES = {"H negative definite": (-1, -1), "H positive definite": (1, 1), "H indefinite": (-1, 1)}
Row = tuple[str, int, str, float, float, float, str, float, float]


@dataclass(frozen=True)
class TwoUnitGrid:
    """Random single units (v*, w*), and a grid of curvature ratios |H|/K, distances |u| and z."""

    seeds: tuple[int, ...]
    ratios: tuple[float, ...]
    distances: tuple[float, ...]
    shares: tuple[float, ...]
    order: int = 64


@dataclass(frozen=True)
class TwoInputUnits:
    """Random single units with two inputs, and how many values of z between −2 and 2 are looked at."""

    seeds: tuple[int, ...]
    points: int = 20
    order: int = 24


@dataclass(frozen=True)
class TwoUnitStarts:
    """One two-unit task and the full flow from random z, a little and farther outside the basin of the overlap."""

    seeds: tuple[int, ...]
    near: float = 1.02
    far: float = 1.2
    ratio: float = -0.1
    times: int = 200
    order: int = 64
    halvings: int = 9


@dataclass(frozen=True)
class ThreeUnitToys:
    """Random three-unit toys, each from a start near the dependence manifold."""

    seeds: tuple[int, ...]
    times: int = 200


def _frame(rows: Iterable[Row]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(list(rows), columns=list(COLUMNS))


def _unit(seed: int, dimension: int) -> tuple[Any, float]:
    """Draw the best single unit: |v*| and w* between .7 and 1.5."""
    from skiplab.randomness import numpy_generator

    draw = numpy_generator(seed, "single unit", dimension)
    way = draw.standard_normal(dimension)
    return way / (way @ way) ** 0.5 * draw.uniform(0.7, 1.5), float(draw.uniform(0.7, 1.5))


@trial("orhan2018/two-unit-flow-agreement", version=1)
def agreement(settings: TwoUnitGrid, bench: Bench) -> pd.DataFrame:
    """Compare u̇ and ż of three reduced forms with the full flow once v and w have settled.

    A row is a form's rate over the full flow's, less 1. H is negative and K the smallest curvature in (v, w).
    """
    import numpy as np

    from skiplab.theory.singular.two_unit_flows import frozen_flow, relaxed_flow, settle
    from skiplab.theory.singular.two_units import task

    rows: list[Row] = []
    grid = np.meshgrid(settings.ratios, settings.distances, settings.shares, indexing="ij")
    ratio, distance, share = (axis.ravel() for axis in grid)
    for done, seed in enumerate(settings.seeds):
        bench.tell(done / len(settings.seeds), f"unit {seed}")
        v, w = _unit(seed, 1)
        K = float(task(v, w, [[0.0]], order=settings.order).curvature)
        cells = len(ratio)
        units = task(
            np.tile(v, (cells, 1)), np.full(cells, w), (-ratio * K)[:, None, None], order=settings.order
        )
        theta = settle(units, distance[:, None], share)
        now = units.reduced(theta)
        u_full, z_full = units.rates(theta)
        forms = {
            "frozen": frozen_flow(now.u, now.z, units.H, w),
            "relaxed": relaxed_flow(now.u, now.z, units.H, w, units.slaving),
            "relaxed, w held": relaxed_flow(now.u, now.z, units.H, w),
        }
        for form, (u_rate, z_rate) in forms.items():
            errors = {"u rate": (u_rate / u_full)[:, 0] - 1, "z rate": z_rate / z_full - 1}
            for quantity, error in errors.items():
                rows += [
                    ("agreement", seed, form, float(z), float(u), float(r), quantity, 0.0, float(e))
                    for z, u, r, e in zip(share, distance, ratio, error, strict=True)
                ]
    return _frame(rows)


@trial("orhan2018/two-unit-flow-stability", version=1)
def stability(settings: TwoInputUnits, bench: Bench) -> pd.DataFrame:
    """Count the z at which h = 0 is stable in the full flow but should not be, or the other way round.

    Stable means that the full Hessian at the overlap has no negative eigenvalue; eigenvalues of H are up to a
    twentieth of K. The predicted and found share of stable z are kept too.
    """
    import numpy as np

    from skiplab.randomness import numpy_generator
    from skiplab.theory.singular.two_unit_flows import overlap_is_stable
    from skiplab.theory.singular.two_units import task

    rows: list[Row] = []
    for done, seed in enumerate(settings.seeds):
        bench.tell(done / len(settings.seeds), f"unit {seed}")
        v, w = _unit(seed, 2)
        draw = numpy_generator(seed, "stability")
        K = float(task(v, w, np.zeros((2, 2)), order=settings.order).curvature)
        turn = draw.uniform(0, np.pi)
        axes = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
        z = np.sort(draw.uniform(-2, 2, settings.points))
        for name, signs in SIGNATURES.items():
            values = 0.05 * K * draw.uniform(0.2, 1, 2) * signs
            H = axes @ np.diag(values) @ axes.T
            units = task(v, w, (H + H.T) / 2, order=settings.order)
            hessians = units.hessian(units.point(np.zeros((settings.points, 2)), z))
            found = np.linalg.eigvalsh(hessians)
            stable = found[:, 0] > -1e-12 * found[:, -1]
            predicted = overlap_is_stable(z, units.H)
            for quantity, value in {
                "mismatches": (stable != predicted).sum(),
                "stable inside": stable[np.abs(z) < 1].sum(),
                "stable outside": stable[np.abs(z) > 1].sum(),
            }.items():
                rows.append(("stability", seed, name, 0.0, 0.0, 0.0, quantity, 0.0, float(value)))
    return _frame(rows)


@trial("orhan2018/two-unit-portrait", version=2)
def portrait(settings: TwoUnitStarts, bench: Bench) -> pd.DataFrame:
    """Follow the full flow from starts near the overlap: z, h and loss over time, and how deep the plateau is.

    The single unit is v* = w* = 1. A seed starts at z between .3 and .6 and at .6, ``near`` and ``far`` times the h
    at which the full flow ceases to fall into the overlap; ``edge`` is that h over the relaxed form's.
    """
    import numpy as np

    from skiplab.randomness import numpy_generator
    from skiplab.theory.singular.two_unit_flows import basin_edge, full_flow, relaxed_invariant
    from skiplab.theory.singular.two_units import task

    K = float(task([1.0], 1.0, [[0.0]], order=settings.order).curvature)
    H = settings.ratio * K
    units = task([1.0], 1.0, [[H]], order=settings.order)
    follow = float(units.slaving[0, 0])
    known = {"H": H, "slaving": follow, "loss at overlap": float(units.loss(units.point([0.0], 0.0)))}
    rows: list[Row] = [
        ("portrait", settings.seeds[0], "task", 0.0, 0.0, settings.ratio, name, 0.0, value)
        for name, value in known.items()
    ]
    times = np.concatenate([[0.0], np.geomspace(1.0, 1e4 / abs(H), settings.times)])
    starts = {"inside": 0.6, "near": settings.near, "far": settings.far}
    for done, seed in enumerate(settings.seeds):
        bench.tell(done / len(settings.seeds), f"start {seed}")
        z = float(numpy_generator(seed, "portrait").uniform(0.3, 0.6))
        reach = float(relaxed_invariant(0.0, 1.0, 1.0, follow) - relaxed_invariant(0.0, z, 1.0, follow))
        edge = basin_edge(units, z, (0.8 * reach, 2.5 * reach), steps=settings.halvings)
        rows.append(("portrait", seed, "task", z, 0.0, settings.ratio, "edge", 0.0, edge / reach))
        for name, share in starts.items():
            theta = full_flow(units, units.point([np.sqrt(2 * share * edge)], z), times, rtol=1e-9).theta
            now, loss = units.reduced(theta), units.loss(theta)
            rows += _path("portrait", seed, name, times, {"z": now.z, "h": now.h, "loss": loss})
            depth = _plateau((units.velocity(theta) ** 2).sum(-1), loss)
            rows.append(("portrait", seed, name, z, 0.0, settings.ratio, "plateau", 0.0, depth))
    return _curves(rows)


@trial("orhan2018/linear-dependence", version=2)
def dependence(settings: ThreeUnitToys, bench: Bench) -> pd.DataFrame:
    """Follow the full flow of three-unit toys, plain and with a skip, and the gradient on the manifold itself."""
    import dataclasses

    import numpy as np

    from skiplab.randomness import numpy_generator
    from skiplab.theory.singular.three_units import ThreeUnits

    rows: list[Row] = []
    times = np.concatenate([[0.0], np.geomspace(0.05, 200.0, settings.times)])
    for done, seed in enumerate(settings.seeds):
        bench.tell(done / len(settings.seeds), f"toy {seed}")
        draw = numpy_generator(seed, "three units")
        alpha, beta = draw.uniform(0.4, 1.0, 2)
        toy = ThreeUnits(float(alpha), float(beta), (*draw.uniform(-1, 1, 2).tolist(), 1.0))
        s, m = draw.uniform(0.005, 0.05, 2)
        for name, net in {"plain": toy, "residual": dataclasses.replace(toy, skip=1.0)}.items():
            theta = net.full_flow(net.point(s, m), times)
            speed = (net.velocity(theta) ** 2).sum(-1)
            path = {"s": theta[:, 2] * net.kappa, "m": theta[:, 3], "loss": net.loss(theta)}
            rows += _path("dependence", seed, name, times, path)
            depth = _plateau(speed, path["loss"])
            rows.append(("dependence", seed, name, 0.0, 0.0, 0.0, "plateau", 0.0, depth))
        rows.append(("dependence", seed, "plain", 0.0, 0.0, 0.0, "kappa", 0.0, toy.kappa))
        anywhere = draw.standard_normal((100, 4))
        anywhere[:, 3] = 0
        velocity = toy.velocity(anywhere)
        blind = np.abs(velocity @ toy.null_direction) / np.linalg.norm(velocity, axis=-1)
        rows.append(("dependence", seed, "plain", 0.0, 0.0, 0.0, "null gradient", 0.0, float(blind.max())))
    return _curves(rows)


def _curves(rows: Iterable[Row]) -> pd.DataFrame:
    """A table of curves to draw, whose numbers need no more than float32: it ships with the package."""
    return _frame(rows).astype({"x": "float32", "value": "float32"})


def _path(part: str, run: int, condition: str, times: Any, values: dict[str, Any]) -> list[Row]:
    return [
        (part, run, condition, 0.0, 0.0, 0.0, quantity, float(t), float(y))
        for quantity, series in values.items()
        for t, y in zip(times, series, strict=True)
    ]


def _plateau(speed: Any, loss: Any) -> float:
    """How many powers of ten the loss's rate of fall, |∂L/∂θ|², rises again after its slowest moment.

    Looked for until 99 % of the fall is done: beyond, the rate is rounding.
    """
    import numpy as np

    during = loss > loss[-1] + 0.01 * (loss[0] - loss[-1])
    shown = speed[: int(during.nonzero()[0][-1]) + 1]
    later = np.maximum.accumulate(shown[::-1])[::-1]
    return float(np.log10(later / shown).max())
