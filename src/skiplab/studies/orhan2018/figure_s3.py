"""Figure S3: the paper's estimates of degenerate and negative fractions against exact ones, and ours beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from skiplab.experiments import measured_networks as networks
from skiplab.experiments import networks as earlier
from skiplab.experiments.measured_networks import Measured
from skiplab.experiments.networks import SQRT2, Member, Training
from skiplab.reproduction.claim import Claim, Evidence, Greater
from skiplab.reproduction.study import Study
from skiplab.reproduction.trial import Call

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

FRACTIONS = ("degenerate", "negative")
METHODS = ("mixture", "lanczos")
BINS = 8


@dataclass(frozen=True)
class Settings:
    """Which plain networks have exact spectra, at which epochs, and what Lanczos may spend on them."""

    data: tuple[str, ...] = ("cifar100-coarse",)
    runs: int = 10  # networks at each gain
    seed: int = 0
    gains: tuple[float, ...] = (0.3, 1.0, SQRT2)
    widths: tuple[int, ...] = (32,)
    depth: int = 10
    images: int | None = None
    components: int = 128
    epochs: int = 100
    batch_size: int = 500
    at: tuple[int, ...] = (0, 1, 3, 10, 30, 100)
    samples: int = 2000
    probes: int = 10
    steps: int = 80
    max_steps: int = 640

    def training(self, width: int) -> Training:
        """What the networks of one width have in common."""
        return Training(self.depth, width, self.images, self.components, self.epochs, self.batch_size)


QUICK = Settings(
    runs=5,
    gains=(0.3, SQRT2),
    widths=(16,),
    images=2000,
    components=32,
    epochs=25,
    batch_size=100,
    at=(3, 25),
    samples=500,
    probes=4,
    max_steps=80,
)
SMOKE = Settings(
    data=("digits",),
    runs=2,
    gains=(SQRT2,),
    widths=(4,),
    depth=3,
    images=100,
    epochs=1,
    batch_size=50,
    at=(0, 1),
    samples=40,
    probes=2,
    steps=4,
    max_steps=4,
)


def measure(settings: Settings, _: Sequence[pd.DataFrame]) -> list[Call]:
    """The one stage: a trial a data set, width and gain, with exact spectra and both estimates."""
    seeds = earlier.final_seeds(settings.seed, settings.runs)
    calls = []
    for data in settings.data:
        for width in settings.widths:
            for gain in settings.gains:
                members = [Member(seed, gain) for seed in seeds]
                named = earlier.together(settings.training(width), data, "plain", members)
                measured = Measured(
                    named,
                    part_of(width),
                    at=settings.at,
                    exact=settings.samples,
                    limits=settings.samples,
                    probes=settings.probes,
                    steps=settings.steps,
                    max_steps=settings.max_steps,
                )
                calls.append(networks.call(measured, f"{width} units, gain {gain:.3g}"))
    return calls


def part_of(width: int) -> str:
    """How the trials' tables name the networks of one width."""
    return f"{width} units"


def table(_: Settings, tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The trials' rows as they are."""
    return tables[0]


# Points ------------------------------------------------------------------------------------------------


def points(frame: pd.DataFrame, data: str, width: int, gain: float | None = None) -> pd.DataFrame:
    """One row a network and measured epoch: exact fractions, both estimates and the limits."""
    rows = frame[(frame["part"] == part_of(width)) & (frame["data"] == data) & (frame["layer"] == 0)]
    rows = rows.astype({"network_id": str, "quantity": str})
    wide = rows.pivot(index=["gain", "seed", "network_id", "epoch"], columns="quantity", values="value")
    wide = wide.astype(float).dropna(subset=["degenerate", "mixture_degenerate"]).reset_index()
    return wide if gain is None else wide[wide["gain"] == gain]


def pairs(each: pd.DataFrame, method: str, fraction: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Exact values, estimates, and the network each pair belongs to."""
    return (
        each[fraction].to_numpy(dtype=float),
        each[f"{method}_{fraction}"].to_numpy(dtype=float),
        each["network_id"].to_numpy(dtype=str),
    )


def conditions(frame: pd.DataFrame, settings: Settings) -> Iterator[tuple[str, bool, pd.DataFrame]]:
    """Yield (condition, headline, points): all networks of a width first, then those at each gain."""
    for data in settings.data:
        for width in settings.widths:
            where = f"{data}, {settings.depth}×{width}"
            yield f"{where}, all gains", True, points(frame, data, width)
            if len(settings.gains) > 1:
                for gain in settings.gains:
                    yield f"{where}, gain {gain:.3g}", False, points(frame, data, width, gain)


def biases(frame: pd.DataFrame, settings: Settings, fraction: str, sign: float) -> Iterator[Evidence]:
    """How much the mixture exceeds the exact fraction (times a sign), a network's mean over its epochs."""
    for condition, headline, each in conditions(frame, settings):
        own = each.groupby("network_id")[[f"mixture_{fraction}", fraction]].mean()
        sample = sign * (own[f"mixture_{fraction}"] - own[fraction]).to_numpy(dtype=float)
        detail = f"estimated {own[f'mixture_{fraction}'].mean():.3f}, exact {own[fraction].mean():.3f}"
        yield Evidence(condition, [sample], headline=headline, detail=detail if len(own) else "")


def relations(frame: pd.DataFrame, settings: Settings, fraction: str) -> Iterator[Evidence]:
    """Fisher's z of estimates and exact values, as jackknife pseudo-values: one number a network."""
    from skiplab.studies.orhan2018.regression import fisher_z, pseudo_values

    for condition, headline, each in conditions(frame, settings):
        for method in METHODS if headline else METHODS[:1]:
            x, y, groups = pairs(each, method, fraction)
            ours = method == "lanczos"
            yield Evidence(
                f"{condition}, Lanczos (ours)" if ours else condition,
                [pseudo_values(fisher_z, x, y, groups)],
                headline=headline and not ours,
                detail=described(x, y, groups) + (f"; {limits_hold(each, fraction)}" if ours else ""),
            )


def described(x: np.ndarray, y: np.ndarray, groups: np.ndarray) -> str:
    """Say r, and the slope with its 95 % interval over networks."""
    from skiplab.figures.curves import mean_interval
    from skiplab.studies.orhan2018.regression import correlation, line, pseudo_values

    count = len(set(groups.tolist()))
    where = f"{len(x)} points of {count} networks"
    if count < 2:
        return where
    _, low, high = mean_interval(pseudo_values(lambda x, y: line(x, y)[1], x, y, groups))
    slope = f"slope {line(x, y)[1]:.3f} ± {(high - low) / 2:.3f}"
    return f"r = {correlation(x, y):.3f}, {slope} (95 %), {where}"


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


# The figure --------------------------------------------------------------------------------------------


def figure(frame: pd.DataFrame, settings: Settings) -> Any:
    """For each width the mixture against exact fractions (as the paper's), and below it Lanczos (ours)."""
    from skiplab.figures.style import new_figure, panel_letter

    cases = [(data, width) for data in settings.data for width in settings.widths]
    figure, axes = new_figure(columns=2, rows=2 * len(cases), width=6.6, height=6.2 * len(cases) + 0.3)
    for number, (data, width) in enumerate(cases):
        each = points(frame, data, width)
        for row, draw in enumerate((_mixture_panel, _lanczos_panel)):
            for column, fraction in enumerate(FRACTIONS):
                ax = axes[2 * number + row, column]
                draw(ax, each, fraction, settings)
                across = _ceiling(each[fraction])
                up = max(across, _ceiling(each[(f"mixture_{fraction}", f"lanczos_{fraction}_high")[row]]))
                ax.plot((0, across), (0, across), color="#444444", linestyle="--", linewidth=0.9, zorder=1)
                ax.set(xlim=(-0.03 * across, 1.03 * across), ylim=(-0.03 * up, 1.03 * up))
                ax.set_title(f"{('Mixture', 'Lanczos (ours)')[row]}, {settings.depth} × {width} units")
                ax.set(xlabel=f"exact {fraction} fraction", ylabel=f"estimated {fraction} fraction")
    lines, names = axes[0, 0].get_legend_handles_labels()
    more, further = axes[1, 0].get_legend_handles_labels()
    figure.legend([*lines, *more], [*names, *further], loc="outside upper center", ncols=4)
    for letter, ax in zip("abcdefghijklmnop", axes.flat, strict=False):
        panel_letter(ax, letter)
    return figure


def _ceiling(values: pd.Series) -> float:
    """The upper end of an axis: the next tenth above all values."""
    import math

    return min(1.0, math.ceil(10 * values.max() + 0.1) / 10)


def _mixture_panel(ax: Any, each: pd.DataFrame, fraction: str, settings: Settings) -> None:
    """Points by gain, means and standard errors in bins, and the regression line with its band."""
    import numpy as np

    from skiplab.figures.colours import colour_of
    from skiplab.studies.orhan2018.regression import binned, line_with_band

    x, y, groups = pairs(each, "mixture", fraction)
    for marker, gain in zip("^osDv", settings.gains, strict=False):
        chosen = (each["gain"] == gain).to_numpy()
        dots = {"s": 16, "color": colour_of("plain"), "alpha": 0.6, "linewidths": 0, "marker": marker}
        ax.scatter(x[chosen], y[chosen], label=f"gain {gain:.3g}", zorder=3, **dots)
    at = np.linspace(x.min(), x.max(), 60)
    heights, half = line_with_band(x, y, groups, at)
    ax.fill_between(at, heights - half, heights + half, color="#111111", alpha=0.15, linewidth=0)
    ax.plot(at, heights, color="#111111", label="fit, 95 % band")
    middle, mean, error = binned(x, y, groups, min(BINS, max(1, len(x) // 4)))
    style = {"fmt": "o", "color": "#111111", "markersize": 3.5, "capsize": 2, "linewidth": 1}
    ax.errorbar(middle, mean, np.nan_to_num(error), label="bins, ± s.e.", **style)


def _lanczos_panel(ax: Any, each: pd.DataFrame, fraction: str, settings: Settings) -> None:
    """Middles of the limits with [low, high] as bars; filled where resolved, hollow where not."""
    from skiplab.figures.colours import colour_of

    blue = colour_of("residual")
    for resolved, face, words in ((False, "white", "Lanczos, unresolved"), (True, blue, "Lanczos, resolved")):
        some = each[(each["lanczos_resolved"] > 0) == resolved]
        x, y = some[fraction].to_numpy(), some[f"lanczos_{fraction}"].to_numpy()
        low, high = (some[f"lanczos_{fraction}_{end}"].to_numpy() for end in ("low", "high"))
        ends = [(y - low).clip(min=0), (high - y).clip(min=0)]
        style = {"fmt": "o", "markersize": 3.5, "linewidth": 0.7, "alpha": 0.8}
        ax.errorbar(x, y, ends, color=blue, markerfacecolor=face, label=words, **style)


def _claims() -> Iterator[Claim]:
    for fraction, sign, verb in (("degenerate", -1.0, "underestimates"), ("negative", 1.0, "overestimates")):
        yield Claim(
            f"mixture-{verb}-{fraction}",
            f"The mixture {verb} the fraction of {fraction} eigenvalues.",
            partial(biases, fraction=fraction, sign=sign),
            Greater(),
            "fraction",
        )
    for fraction in FRACTIONS:
        yield Claim(
            f"{fraction}-linear",
            f"Estimated and exact fractions of {fraction} eigenvalues are positively correlated.",
            partial(relations, fraction=fraction),
            Greater(),
            "Fisher's z",
        )


STUDY = Study(
    id="orhan2018/figure-S3",
    words=__file__,
    settings={"smoke": SMOKE, "quick": QUICK, "paper": Settings()},
    stages=(measure,),
    table=table,
    figure=figure,
    claims=tuple(_claims()),
    cost={"quick": 45.0, "paper": 1500.0},
    paper_device="one H200",
    in_tour=False,
)
