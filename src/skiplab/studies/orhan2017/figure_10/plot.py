"""How figure 10 is laid out: the matrices in the first column, then a column per data set."""

from __future__ import annotations

from typing import Any

import numpy as np

from skiplab.data.registry import title as title_of
from skiplab.experiments.gain_figures import gains_panel, legend_above, own_curves, with_gains
from skiplab.experiments.skip_networks import shown, skip_of
from skiplab.figures.colours import colour_of
from skiplab.figures.curves import learning_curves
from skiplab.figures.style import new_figure, panel_letter
from skiplab.reproduction import Results
from skiplab.studies.orhan2017.note_4 import SPECTRA, matrices


def panels(results: Results) -> Any:
    """Spectra and learning curves above; eigenvalues of Σ and accuracy by gain below."""
    settings = results.settings
    skips = shown(settings)
    words = with_gains(results, skips)
    figure, axes = new_figure(columns=1 + len(settings.data), rows=2, width=8.0, height=5.6)
    _spectra(axes[0, 0], results)
    _deviations(axes[1, 0], results)
    for (above, below), data in zip(axes[:, 1:].T, settings.data, strict=True):
        curves = {name: own_curves(results, data, model) for name, model in skips.items()}
        learning_curves(above, range(1, settings.epochs + 1), curves, labels="none", words=words)
        above.set(title=title_of(data), xlabel="epoch", ylabel="training accuracy")
        gains_panel(below, results, data, skips)
        below.sharey(above)
        below.set_ylabel("training accuracy, last epoch")
    legend_above(figure, axes[0, 1], 3)
    for letter, ax in zip("abcdefgh", axes.flat, strict=False):
        panel_letter(ax, letter)
    return figure


def _spectra(ax: Any, results: Results) -> None:
    """Eigenvalues by rank: prescribed (S), and dotted those of the skip vectors' ΣΣᵀ."""
    for tau in results.settings.taus:
        for quantity, style in zip((SPECTRA[0], SPECTRA[-1]), ("-", ":"), strict=True):
            means = results.rows(matrices, tau=tau, quantity=quantity).groupby("x")["value"].mean()
            ax.plot(means.index, means, color=colour_of(skip_of(tau)), linestyle=style, linewidth=1.1)
    ax.set(xlabel="rank", ylabel="eigenvalue", yscale="log", title="eigenvalues of S and ΣΣᵀ (···)")


def _deviations(ax: Any, results: Results) -> None:
    """How far the moduli of Σ's eigenvalues are from 1, every draw, and the two bounds."""
    taus = results.settings.taus

    def drawn(tau: float, quantity: str) -> np.ndarray:
        return results.sample(matrices, by="draw", tau=tau, quantity=quantity)

    places = np.arange(len(taus))
    for place, tau in zip(places, taus, strict=True):
        found = drawn(tau, "deviation")
        ax.scatter(np.full(len(found), place), found, s=9, color="#111111", alpha=0.6, linewidths=0)
    for quantity, label, style in (("bound", "n·eps·cond(T)²", "-"), ("eps cond", "eps·cond(T)", "--")):
        means = [drawn(tau, quantity).mean() for tau in taus]
        ax.plot(places, means, color="#0072B2", linestyle=style, linewidth=1.1, label=label)
    ax.set_xticks(places, [f"{tau:g}" for tau in taus])
    ax.set(xlabel="τ", ylabel="largest ||eigenvalue of Σ| − 1|", yscale="log", title="eigenvalues of Σ")
    ax.legend()
