"""Near-singular flows: fields with trajectories, plateaus, and the agreement of reduced and full flow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Polygon
from matplotlib.ticker import NullLocator

from skiplab.figures.colours import colour_of, label_of
from skiplab.figures.flow_fields import FULL, flow_field, trajectory
from skiplab.figures.style import PAGE_WIDTH, new_figure, panel_letter
from skiplab.randomness import run_seeds
from skiplab.reproduction.results import Results
from skiplab.reproduction.trial import Trial
from skiplab.studies.orhan2018.figure_2.evidence import STATED
from skiplab.studies.orhan2018.figure_2.trials import agreement, dependence, portrait

Path = tuple[Any, ...]  # times, then two coordinates and the loss
Errors = Mapping[tuple[str, float, float, float], float]  # form, z, |u| and |H|/K → |relative error| of ż

INK, BASIN = "#222222", "#DDDDDD"
_WASHED = {"frozen": "#E69F00", "relaxed": "#0072B2", "relaxed, w held": "#56B4E9"}
_NAMES = {"frozen": "$v, w$ frozen (Wei)", "relaxed": "$v, w$ follow", "relaxed, w held": "$v$ follows only"}


def near_singular_panels(results: Results) -> Figure:
    """Draw the nine panels: above and in the middle two units, where w* = 1, below three."""
    run = run_seeds(results.settings.seed, results.settings.runs)[0]
    curvature, slaving, level = (
        _number(results, portrait, run, quantity) for quantity in ("H", "slaving", "loss at overlap")
    )
    # (times, z, h, loss) of the full flow
    escaping, trapped = (
        _path(results, portrait, run, condition, ("z", "h", "loss")) for condition in ("near", "inside")
    )
    toys = {name: _path(results, dependence, run, name, ("s", "m", "loss")) for name in ("plain", "residual")}
    errors = _median_errors(results)
    figure, axes = new_figure(3, rows=3, width=PAGE_WIDTH, height=6.6)
    _two_unit_diagram(axes[0, 0])
    top = 1.12 * float(max(escaping[2][0], trapped[2][0], 0.35))
    arrows: Any = None
    for ax, form in zip(axes[0, 1:], ("frozen", "relaxed"), strict=True):
        arrows = _overlap_portrait(ax, form, curvature, slaving, top)
        for path in (escaping, trapped):
            inside = (np.abs(path[1]) < 1.6) & (path[2] < top)
            stop = len(inside) if inside.all() else int(np.argmin(inside)) + 1
            trajectory(ax, path[1][:stop], path[2][:stop])
        ax.set_title(_NAMES[form])
    bar = figure.colorbar(arrows, ax=axes[0, 2], shrink=0.8, pad=0.03)
    bar.set_label("speed / largest")
    _plateau(axes[1, 0], escaping, trapped, level)
    _agreement(axes[1, 1], errors, over="ratio")
    _agreement(axes[1, 2], errors, over="u")
    _three_unit_diagram(axes[2, 0])
    _dependence_portrait(axes[2, 1], _number(results, dependence, run, "kappa"), toys["plain"])
    for name, (times, _, _, loss) in toys.items():
        axes[2, 2].plot(times[1:], loss[1:], color=colour_of(name), label=label_of(name))
    axes[2, 2].set(xscale="log", xlabel="time", ylabel="loss", title="Toy: loss", ylim=(-0.02, None))
    axes[2, 2].legend(loc="upper right")
    for letter, ax in zip("abcdefghi", axes.flat, strict=True):
        panel_letter(ax, letter)
    return figure


def _number(results: Results, trial: Trial, run: int, quantity: str) -> float:
    return float(results.rows(trial, run=run, quantity=quantity)["value"].iloc[0])


def _path(results: Results, trial: Trial, run: int, condition: str, names: Sequence[str]) -> Path:
    """Times, and the quantities named at them."""
    rows = results.rows(trial, run=run, condition=condition, quantity=list(names))
    wide = rows.pivot(index="x", columns="quantity", values="value")
    columns = (wide.index, *(wide[name] for name in names))
    return tuple(column.to_numpy(dtype=float) for column in columns)


def _median_errors(results: Results) -> Errors:
    """Median |relative error| of ż over units, for every form, z, |u| and |H|/K."""
    rows = results.rows(agreement, quantity="z rate")
    cells = rows.assign(value=rows["value"].abs()).groupby(["condition", "z", "u", "ratio"])["value"]
    return {key: float(value) for key, value in cells.median().items()}  # type: ignore[misc]


def _overlap_portrait(ax: Axes, form: str, curvature: float, slaving: float, top: float) -> Any:
    from_invariant = _frozen_reach if form == "frozen" else lambda z: _relaxed_reach(z, slaving)

    def field(z: np.ndarray, h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        form_value = 2 * curvature * h  # uᵀHu with one input
        if form == "frozen":
            return -z * (z**2 + 3) / 4 * form_value, 0.5 * (1 - z**2) * form_value
        grown = form_value * (1 + slaving * (1 - z**2) ** 2)
        return -z / (1 + z**2) * grown, 0.5 * (1 - z**2) / (1 + z**2) * form_value

    ax.grid(False)
    z = np.linspace(-1, 1, 401)
    z = z[np.abs(z) > 1e-3]
    reach = np.minimum(from_invariant(np.abs(z)), 2 * top)
    if curvature < 0:
        ax.fill_between(z, 0, reach, color=BASIN, linewidth=0, zorder=0)
        ax.plot([-1, 1], [0, 0], color="black", linewidth=4, solid_capstyle="butt", zorder=6, clip_on=False)
    arrows = flow_field(ax, field, (-1.6, 1.6), (0.0, top))
    for edge in (-1, 1):
        ax.axvline(edge, color="#888888", linewidth=0.6, linestyle=(0, (3, 3)), zorder=1)
    ax.set(xlabel="$z$", ylabel="$h$")
    return arrows


def _frozen_reach(z: np.ndarray) -> np.ndarray:
    """How high the basin reaches: the trajectory that meets h = 0 at |z| = 1."""
    return 2 / 3 * (np.log((z**2 + 3) ** 2 / z) - np.log(16))


def _relaxed_reach(z: np.ndarray, slaving: float) -> np.ndarray:
    # dh/dz = −(1 − z²)/(2z(1 + C(1 − z²)²)) along a trajectory, summed from |z| = 1.
    fine = np.geomspace(1e-3, 1, 4000)
    slope = (1 - fine**2) / (2 * fine * (1 + slaving * (1 - fine**2) ** 2))
    steps = np.diff(fine) * (slope[1:] + slope[:-1]) / 2
    heights = np.append(np.cumsum(steps[::-1])[::-1], 0.0)
    return np.interp(z, fine, heights)


def _plateau(ax: Axes, escaping: Path, trapped: Path, level: float) -> None:
    ax.axhline(1, color="#888888", linewidth=0.7, linestyle=(0, (3, 3)))
    ax.plot(trapped[0][1:], trapped[3][1:] / level, color=FULL, alpha=0.45, label="inside the basin")
    ax.plot(escaping[0][1:], escaping[3][1:] / level, color=FULL, label="just outside")
    ax.plot(escaping[0][1:2], escaping[3][1:2] / level, "o", color="black", markersize=4.5)
    ax.set(xscale="log", yscale="log", xlabel="time", ylabel="loss / loss at overlap", title="Plateau")
    low, high = ax.get_ylim()
    ticks = [t for t in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50) if low <= t <= high]
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.yaxis.set_minor_locator(NullLocator())
    ax.legend(fontsize=7)


def _agreement(ax: Axes, errors: Errors, over: str) -> None:
    shares = sorted({z for _, z, _, _ in errors})
    for form, colour in _WASHED.items():
        for z, style in zip((shares[0], shares[-1]), ("-", "--"), strict=True):
            points = sorted(
                (ratio if over == "ratio" else u, error)
                for (name, share, u, ratio), error in errors.items()
                if (name, share) == (form, z) and (u == STATED[1] if over == "ratio" else ratio == STATED[0])
            )
            if not points:
                continue
            label = _NAMES[form] if style == "-" and over == "ratio" else None
            ax.plot(*zip(*points, strict=True), style, color=colour, marker="o", markersize=2.5, label=label)
    if over == "u":
        ax.plot([], [], "-", color="#777777", label=f"z = {shares[0]:g}")
        ax.plot([], [], "--", color="#777777", label=f"z = {shares[-1]:g}")
    ax.legend(fontsize=7, loc="upper left", handlelength=1.8)
    ax.axhline(0.01, color="#888888", linewidth=0.7, linestyle=(0, (1, 2)))
    fixed = f"|u| = {STATED[1]:g}" if over == "ratio" else f"|H|/K = {STATED[0]:g}"
    ax.set(xscale="log", yscale="log", ylim=(2e-4, 60), title=f"At {fixed}")
    ax.set(xlabel="$|H|/K$" if over == "ratio" else "$|u|$", ylabel=r"|error| of $\dot z$")


def _dependence_portrait(ax: Axes, kappa: float, path: Path) -> None:
    def field(s: np.ndarray, m: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        left = 1 - s * m / kappa
        return m / kappa * left, s / kappa * left

    ax.grid(False)
    flow_field(ax, field, (-2.0, 2.0), (-2.0, 2.0))
    ax.axhline(0, color="black", linewidth=1.6, zorder=3)
    s = np.linspace(kappa / 2, 2, 100)
    for side in (-1, 1):
        ax.plot(side * s, side * kappa / s, color="#009E73", linewidth=1.6, zorder=3)
    trajectory(ax, path[1], path[2])
    ground = {"facecolor": "white", "edgecolor": "none", "pad": 1.0, "alpha": 0.85}
    ax.text(1.94, -0.14, "dependence, m = 0", ha="right", va="top", fontsize=7, bbox=ground, zorder=7)
    for words, colour in (("solutions", "#009E73"), ("one path", FULL)):
        ax.plot([], [], color=colour, linewidth=1.6, label=words)
    ax.legend(loc="upper left", fontsize=7, frameon=True, framealpha=0.85, edgecolor="none")
    ax.set(xlabel="$s$ (null direction)", ylabel="$m$", title="Toy: flow")


def _two_unit_diagram(ax: Axes) -> None:
    places = {"x": (0.12, 0.5), "1": (0.45, 0.74), "2": (0.45, 0.26), "f": (0.78, 0.5)}
    for start, end, text, (dx, dy) in (
        ("x", "1", "$J_1$", (-0.05, 0.07)),
        ("x", "2", "$J_2$", (-0.05, -0.08)),
        ("1", "f", "$w_1$", (0.05, 0.07)),
        ("2", "f", "$w_2$", (0.05, -0.08)),
    ):
        (x0, y0), (x1, y1) = places[start], places[end]
        ax.plot([x0, x1], [y0, y1], color=INK, linewidth=1, zorder=1)
        ax.text((x0 + x1) / 2 + dx, (y0 + y1) / 2 + dy, text, ha="center", va="center", fontsize=8.5)
    for name, (x, y) in places.items():
        text = {"x": "$x$", "f": "$f$"}.get(name, r"$\varphi$")
        ax.scatter(x, y, s=190, facecolor="white", edgecolor=INK, linewidths=0.9, zorder=2)
        ax.text(x, y, text, ha="center", va="center", fontsize=8.5, zorder=3)
    ax.text(0.45, 1.02, "$w=w_1+w_2,\\quad z=(w_1-w_2)/w$", ha="center", va="center", fontsize=7.5)
    ax.text(0.45, -0.02, "$v=(w_1J_1+w_2J_2)/w$", ha="center", va="center", fontsize=7.5)
    ax.text(0.45, -0.14, r"$u=J_1-J_2,\quad h=\frac{1}{2}\,u\cdot u$", ha="center", va="center", fontsize=7.5)
    ax.set(xlim=(0, 0.92), ylim=(-0.22, 1.1))
    ax.axis("off")


def _three_unit_diagram(ax: Axes) -> None:
    """The plane of two units' weights, and the third at distance m above it."""
    corner: Any
    corner, one, two = np.array([0.05, 0.08]), np.array([0.62, 0.0]), np.array([0.26, 0.3])
    plane = [corner, corner + one, corner + one + two, corner + two]
    ax.add_patch(Polygon(plane, closed=True, facecolor="#EAF1F7", edgecolor="#9DB4C6", linewidth=0.8))
    origin = corner + 0.18 * one + 0.25 * two
    tips = {"$J_1$": origin + 0.62 * one, "$J_2$": origin + 0.62 * two}
    foot = origin + 0.4 * one + 0.45 * two
    tip = foot + np.array([0.0, 0.42])
    arrow = {"arrowstyle": "-|>", "lw": 1.2, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 9}
    for text, end in tips.items():
        ax.annotate("", xy=end, xytext=origin, arrowprops={**arrow, "color": INK})
        beside = (-0.1, -0.02) if text == "$J_2$" else (0.02, -0.03)
        ax.text(end[0] + beside[0], end[1] + beside[1], text, fontsize=8.5)
    ax.annotate("", xy=tip, xytext=origin, arrowprops={**arrow, "color": FULL})
    ax.text(tip[0] + 0.02, tip[1] + 0.02, "$J_3$", fontsize=8.5, color=FULL)
    ax.plot(*zip(origin, foot, strict=True), color="#888888", linewidth=0.8, linestyle=(0, (3, 2)))
    ax.plot(*zip(foot, tip, strict=True), color="#888888", linewidth=0.8, linestyle=(0, (3, 2)))
    ax.text(foot[0] + 0.025, foot[1] + 0.2, "$m$", fontsize=9)
    ax.text(foot[0] + 0.025, foot[1] - 0.02, r"$\alpha J_1+\beta J_2$", fontsize=7.5, color="#555555")
    ax.text(0.5, -0.05, "$m=0$: linear dependence", ha="center", fontsize=7.5)
    ax.set(xlim=(0, 1), ylim=(-0.12, 0.95), title="Toy (ours)")
    ax.axis("off")
