"""How figure 8 is laid out: eigenvalues of the matrices above, gradient norms and accuracies below."""

from __future__ import annotations

from typing import Any

import numpy as np

from skiplab.data.registry import title as title_of
from skiplab.experiments.gain_figures import legend_above, own_curves, wide, with_gains
from skiplab.experiments.gains import WIDE, shared_seeds
from skiplab.experiments.gradient_falls import log_norms
from skiplab.experiments.skip_networks import shown, skip_of
from skiplab.figures.colours import colour_of, label_of
from skiplab.figures.curves import learning_curves, mean_interval
from skiplab.figures.style import new_figure, panel_letter
from skiplab.reproduction import Results
from skiplab.studies.orhan2018.skip_spectra import QUANTITIES, skip_spectra


def panels(results: Results) -> Any:
    """Draw three panels of eigenvalues, gradient norms on the first data set, and a panel per data set."""
    settings = results.settings
    skips = shown(settings)
    figure, axes = new_figure(columns=3, rows=2, width=7.4, height=5.4)
    _spectra(axes[0], results)
    _norms(axes[1, 0], results)
    words = with_gains(results, skips)
    for ax, data in zip(axes[1, 1:], settings.data, strict=False):
        curves = {name: own_curves(results, data, model) for name, model in skips.items()}
        learning_curves(ax, range(1, settings.epochs + 1), curves, labels="none", words=words)
        ax.set(xlabel="epoch", ylabel="training accuracy", title=title_of(data))
    for ax in axes[1, 1 + len(settings.data) :]:
        ax.set_visible(False)
    legend_above(figure, axes[1, 1], 3)
    for letter, ax in zip(("a", "a′", "a″", "b", "c", "d"), axes.flat, strict=False):
        if ax.get_visible():
            panel_letter(ax, letter)
    return figure


def _norms(ax: Any, results: Results) -> None:
    """Gradient norms with each τ over those with τ = 0 by layer, at the common gain at which the two are judged.

    A line style per data set.
    """
    settings = results.settings
    *others, orthogonal = settings.skips
    layers = range(1, settings.depth + 1)
    for model in reversed(others):
        gains = [WIDE.common_gain(results, data, [model, orthogonal]) for data in settings.data]
        label = f"{label_of(model.skip)}, g = {' / '.join(dict.fromkeys(f'{gain:.3g}' for gain in gains))}"
        for data, gain, style in zip(settings.data, gains, ("-", "--"), strict=False):
            rows = shared_seeds([WIDE.at(results, data, each, gain) for each in (model, orthogonal)])
            norms, ours = (log_norms(each, before=True)[:, 0] for each in rows)
            middle, low, high = (np.exp(each) for each in mean_interval(norms - ours))
            colour = colour_of(model.skip)
            ax.fill_between(layers, low, high, color=colour, alpha=0.18, linewidth=0)
            ax.plot(layers, middle, color=colour, linestyle=style, label=label if style == "-" else None)
    ax.legend(fontsize=7)
    ax.set(
        yscale="log",
        xlabel="hidden layer",
        ylabel="gradient norm over that at τ = 0",
        title="before training",
    )


def _spectra(axes: Any, results: Results) -> None:
    """Eigenvalues by rank on one scale: geometric means and ranges over draws; dotted what note 4 prescribes."""
    settings = results.settings
    titles = ("covariance of skip vectors", "correlation (ours)", "|eigenvalues of Σ| (ours)")
    ranks = np.arange(1, settings.width + 1)
    for ax, quantity, title in zip(axes, QUANTITIES, titles, strict=True):
        ax.set(xlabel="rank", title=title, yscale="log")
        if ax is not axes[0]:
            ax.sharey(axes[0])
        for place, tau in enumerate(settings.taus):
            runs = wide(results.rows(skip_spectra, quantity=quantity, skip=skip_of(tau)), "layer")
            colour = colour_of(skip_of(tau))
            ax.fill_between(ranks, runs.min(0), runs.max(0), color=colour, alpha=0.25, linewidth=0)
            # The moduli lie on top of each other, so their lines get thinner with τ.
            width = 1.4 + 1.2 * (len(settings.taus) - 1 - place) * (quantity == "modulus")
            ax.plot(ranks, np.exp(np.log(runs).mean(0)), color=colour, linewidth=width)
            if quantity == "covariance":
                ax.plot(ranks, np.exp(-tau * (ranks - 1)), color=colour, linewidth=0.9, linestyle=":")
    axes[0].set_ylabel("eigenvalue")
