"""Panels of spectra over training: fractions, one network's eigenvalues, and limits at the paper's width."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from skiplab.data.registry import title as title_of
from skiplab.experiments.epoch_figures import over_epochs, runs_at
from skiplab.experiments.gain_figures import in_legend, own_curves, with_gains
from skiplab.experiments.gains import Gains, Model, shared_seeds
from skiplab.experiments.narrow_networks import NARROW
from skiplab.reproduction.results import Results, matching, sample_of

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

DEGENERATE, NEGATIVE = r"fraction with $|\lambda|<10^{-3}$", r"fraction with $\lambda<-10^{-3}$"
THRESHOLD = 1e-3
INK, SHADE = "#444444", "#EFEFEF"


def panels(results: Results, models: Sequence[Model]) -> Any:
    """Two columns; per data set two rows as in the paper, and further ones where there is something to show."""
    from skiplab.figures.style import new_figure, panel_letter

    sets = results.settings.data
    more = [
        part for part, there in ((_at_common_gain, _compared), (_at_full_width, _resolved))
        if all(there(results, data, models) for data in sets)
    ]  # fmt: skip
    rows = 2 + len(more)
    figure, axes = new_figure(columns=2, rows=rows * len(sets), width=7.2, height=2.5 * rows * len(sets))
    for number, data in enumerate(sets):
        block = axes[rows * number : rows * (number + 1)]
        _as_the_paper(list(block[:2].flat), results, data, models)
        for part, pair in zip(more, block[2:], strict=True):
            part(pair, results, data, models)
    for letter, ax in zip("abcdefghijkl", axes.flat, strict=False):
        panel_letter(ax, letter)
    return figure


def _as_the_paper(axes: Sequence[Any], results: Results, data: str, models: Sequence[Model]) -> None:
    from skiplab.figures.curves import learning_curves

    settings = results.settings
    curves = {model.name: own_curves(results, data, model) for model in models}
    words = with_gains(results, {model.name: model for model in models}, sets=[data])
    learning_curves(axes[0], range(1, settings.epochs + 1), curves, words=words)
    axes[0].set(title=f"{title_of(data)}, {settings.depth}×{settings.width} units")
    axes[0].set(xlabel="epoch", ylabel="training accuracy")
    shape = f"{settings.narrow_depth}×{settings.narrow} units"
    narrow = at_best(results, NARROW, data, models)
    rows = {model.name: results.rows(stage="spectrum", data=data, model=model.name) for model in models}
    spectra = {
        name: sample_of(matching(each, quantity="eigenvalue"), by="layer") for name, each in rows.items()
    }
    exact = f"{shape}, exact ({max(map(len, spectra.values())):,} eigenvalues)"
    fractions_panel(axes[1], narrow, "degenerate", DEGENERATE, title=exact, labels="legend")
    fractions_panel(axes[2], narrow, "negative", NEGATIVE, title=exact)
    spectrum_panel(axes[3], spectra, in_legend(rows))
    axes[3].set_title(f"{shape}, exact, after epoch {settings.shown_epoch}")


def _compared(results: Results, data: str, models: Sequence[Model]) -> bool:
    """Whether all models have narrow networks at the common gain."""
    gain = NARROW.common_gain(results, data, models)
    return all(len(NARROW.at(results, data, model, gain)) for model in models)


def _at_common_gain(axes: Sequence[Any], results: Results, data: str, models: Sequence[Model]) -> None:
    words, rows = at_common(results, data, models)
    title = f"{results.settings.narrow_depth}×{results.settings.narrow} units, {words} (ours)"
    for ax, fraction, label in zip(axes, ("degenerate", "negative"), (DEGENERATE, NEGATIVE), strict=True):
        labels = "legend" if fraction == "degenerate" else "none"
        fractions_panel(ax, rows, fraction, label, title=title, labels=labels)


def _resolved(results: Results, data: str, models: Sequence[Model]) -> bool:
    """Whether limits at the paper's width say anything: bars from 0 to 1 do not."""
    rows = results.rows(stage="limits")
    return bool(len(rows)) and bool(
        (matching(rows, data=data, quantity="lanczos_resolved")["value"] > 0).any()
    )


def _at_full_width(axes: Sequence[Any], results: Results, data: str, models: Sequence[Model]) -> None:
    rows = {model.name: results.rows(stage="limits", data=data, model=model.name) for model in models}
    shape = f"{results.settings.depth}×{results.settings.width} units"
    for ax, fraction, label in zip(axes, ("degenerate", "negative"), (DEGENERATE, NEGATIVE), strict=True):
        limits_panel(ax, rows, fraction)
        ax.set(ylabel=label, title=f"{shape}: what is known (ours)")


def at_best(results: Results, size: Gains, data: str, models: Sequence[Model]) -> dict[str, pd.DataFrame]:
    """Rows of each model's networks of one size, at its own gain."""
    return {model.name: size.at(results, data, model) for model in models}


def at_common(results: Results, data: str, models: Sequence[Model]) -> tuple[str, dict[str, pd.DataFrame]]:
    """Where narrow networks are judged, in words, and their rows: one gain for all, own gains if none has all."""
    if not _compared(results, data, models):
        return "own gains", at_best(results, NARROW, data, models)
    gain = NARROW.common_gain(results, data, models)
    rows = shared_seeds([NARROW.at(results, data, model, gain) for model in models])  # as they are judged
    by_name = dict(zip([model.name for model in models], rows, strict=True))
    return f"gain {gain:.3g} for all, n = {rows[0]['seed'].nunique()}", by_name


def line_key(ax: Any, colours: Sequence[str], styles: Mapping[str, str]) -> None:
    """A legend of colours by model and of line styles by what they mean."""
    from skiplab.figures.colours import colour_of, label_of

    for model in colours:
        ax.plot([], [], color=colour_of(model), label=label_of(model))
    for word, style in styles.items():
        ax.plot([], [], color=INK, linestyle=style, label=word)
    keyed = len(colours) + len(styles)
    lines = ax.get_lines()[-keyed:]
    ax.legend(lines, [line.get_label() for line in lines])


def fractions_panel(
    ax: Any,
    rows_by_name: Mapping[str, pd.DataFrame],
    quantity: str,
    label: str,
    *,
    title: str = "",
    layer: int = 0,
    line: str = "-",
    labels: str = "none",
) -> None:
    """A quantity over training with dots at the measured epochs; ``line`` is the style of its lines."""
    known = len(ax.get_lines())
    over_epochs(ax, rows_by_name, quantity, label, layer=layer, labels=labels)
    for drawn in ax.get_lines()[known:]:
        drawn.set(marker="o", markersize=3, linestyle=line)
    if label in (DEGENERATE, NEGATIVE):  # an interval of a mean may leave what a fraction can be
        low, high = ax.get_ylim()
        ax.set_ylim(max(low, -0.02), min(high, 1.02))
    if title:
        ax.set_title(title)


def spectrum_panel(
    ax: Any,
    eigenvalues: Mapping[str, np.ndarray],
    words: Mapping[str, str],
    inner: float = 1e-4,
    bins: int = 4,
) -> None:
    """Share of eigenvalues in bins that are equally wide on an axis logarithmic beyond ±``inner``.

    ``words`` is what the legend says, ``bins`` the number of bins per decade. The band |λ| < 10⁻³ is shaded, and its
    ends are edges of bins.
    """
    import numpy as np

    from skiplab.figures.colours import colour_of

    # A network that diverged has no spectrum to show.
    shown = {name: values for name, values in eigenvalues.items() if len(values)}
    most = max((float(np.abs(values).max()) for values in shown.values()), default=THRESHOLD)
    decades = max(int(np.ceil(np.log10(most / inner))), 2)
    outer = inner * 10 ** (np.arange(decades * bins + 1) / bins)
    # Symlog draws ±inner a decade from 0. An odd number of bins there puts 0 inside the middle one.
    edges = np.concatenate([-outer[::-1], np.linspace(-inner, inner, 2 * bins)[1:-1], outer])
    ax.axvspan(-THRESHOLD, THRESHOLD, color=SHADE, zorder=0)
    for name, values in shown.items():
        share = np.histogram(values, edges)[0] / len(values)
        ax.stairs(share, edges, color=colour_of(name), fill=True, alpha=0.15)
        ax.stairs(share, edges, color=colour_of(name), label=words[name], linewidth=1.1)
    ax.set_xscale("symlog", linthresh=inner)
    ticks = [10.0**power for power in range(-3, round(np.log10(outer[-1])) + 1, 2)]
    ax.set_xticks([-tick for tick in reversed(ticks)] + [0] + ticks)
    ax.minorticks_off()
    lowest = min((float(values.min()) for values in shown.values()), default=0.0)
    ax.set_xlim(2 * min(lowest, -10 * THRESHOLD), 2 * max(most, 10 * THRESHOLD))
    # Zeros may outnumber any other bin a hundredfold; a square root keeps both visible and 0 at 0.
    ax.set_yscale("function", functions=(lambda y: np.sqrt(np.maximum(y, 0)), np.square))
    ax.set_ylim(bottom=0)
    ax.set_yticks([tick for tick in (0, 0.01, 0.04, 0.1, 0.2, 0.4, 0.6, 0.8, 1) if tick < ax.get_ylim()[1]])
    ax.set(xlabel=r"eigenvalue $\lambda$", ylabel="share of eigenvalues per bin")
    ax.legend(fontsize=7)


def limits_panel(ax: Any, rows_by_name: Mapping[str, pd.DataFrame], fraction: str) -> None:
    """Bars between the means over runs of the guaranteed limits, and dots where the paper's mixture puts each run."""
    import numpy as np

    from skiplab.figures.colours import colour_of

    width, unresolved, spectra = 0.8 / len(rows_by_name), 0, 0
    epochs: list[int] = []
    for place, (name, rows) in enumerate(rows_by_name.items()):
        if rows.empty:
            continue
        epochs, low = runs_at(rows, f"lanczos_{fraction}_low")
        _, high = runs_at(rows, f"lanczos_{fraction}_high")
        _, mixture = runs_at(rows, f"mixture_{fraction}")
        _, resolved = runs_at(rows, "lanczos_resolved")
        x = np.arange(len(epochs)) + (place - (len(rows_by_name) - 1) / 2) * width
        bottom, top = low.mean(0), high.mean(0)
        ax.bar(x, top - bottom, 0.9 * width, bottom, color=colour_of(name), alpha=0.3)
        dots = {"s": 7, "color": colour_of(name), "edgecolor": INK, "linewidths": 0.4, "zorder": 3}
        ax.scatter(np.broadcast_to(x, mixture.shape), mixture, **dots)
        unresolved += int((resolved < 1).sum())
        spectra += resolved.size
    ax.set_xticks(range(len(epochs)), [str(epoch) for epoch in epochs])
    ax.set_ylim(-0.03, 1.22)
    ax.set_yticks([0, 0.25, 0.5, 0.75, 1])
    ax.grid(False, axis="x")
    ax.set_xlabel("epoch")
    ax.text(
        0.01,
        0.99,
        f"bars: limits ({unresolved} of {spectra} unresolved); dots: paper's mixture",
        transform=ax.transAxes,
        va="top",
        fontsize=7,
        color=INK,
    )
