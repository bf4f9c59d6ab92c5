"""How figure 8 is laid out: eigenvalues of the matrices above, gradient norms and accuracies below."""

from __future__ import annotations

from typing import Any

import numpy as np

from skiplab.data.registry import title as title_of
from skiplab.experiments.gain_figures import best_curves, layer_norms, wide
from skiplab.experiments.skip_networks import shown, skip_of
from skiplab.figures.colours import colour_of
from skiplab.figures.curves import by_layer, learning_curves
from skiplab.figures.style import new_figure, panel_letter
from skiplab.reproduction import Results
from skiplab.studies.orhan2018.skip_spectra import QUANTITIES, skip_spectra


def panels(results: Results) -> Any:
    """Draw three panels of eigenvalues, gradient norms on the first data set, and a panel per data set."""
    settings = results.settings
    skips = shown(settings)
    figure, axes = new_figure(columns=3, rows=2, width=7.4, height=5.4)
    _spectra(axes[0], results)
    first = settings.data[0]
    norms = {name: layer_norms(results, first, model, None) for name, model in skips.items()}
    by_layer(axes[1, 0], range(1, settings.depth + 1), norms, labels="none")
    start = f"start of epoch {max(settings.norms_at) + 1}"
    axes[1, 0].set(xlabel="hidden layer", ylabel=f"gradient norm, {start}", title=title_of(first))
    for ax, data in zip(axes[1, 1:], settings.data, strict=False):
        curves = {name: best_curves(results, data, model) for name, model in skips.items()}
        learning_curves(ax, range(1, settings.epochs + 1), curves, labels="none")
        ax.set(xlabel="epoch", ylabel="training accuracy", title=title_of(data))
    for ax in axes[1, 1 + len(settings.data) :]:
        ax.set_visible(False)
    lines, names = axes[1, 0].get_legend_handles_labels()
    figure.legend(lines, names, loc="outside upper center", ncols=len(names))
    for letter, ax in zip(("a", "a′", "a″", "b", "c", "d"), axes.flat, strict=False):
        if ax.get_visible():
            panel_letter(ax, letter)
    return figure


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
