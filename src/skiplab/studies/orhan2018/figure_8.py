"""Figure 8: skip matrices with unit eigenvalues and correlated vectors, whose gradients do not vanish."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skiplab.experiments import measured_networks as networks
from skiplab.experiments import networks as earlier
from skiplab.experiments import old_gains as searches
from skiplab.reproduction.claim import Claim, Evidence, Greater, Ordered
from skiplab.reproduction.study import Study
from skiplab.reproduction.trial import Call
from skiplab.studies.orhan2017 import figure_10
from skiplab.studies.orhan2017.figure_10 import skip_of
from skiplab.studies.orhan2018.skip_spectra import Spectra, skip_spectra

if TYPE_CHECKING:
    import pandas as pd

# Ours, as in the earlier version's figure 8: a factor of ten through the whole network is no great change.
TENFOLD = math.log(10)


@dataclass(frozen=True)
class Settings(figure_10.Settings):
    """The earlier version's settings, with fewer matrices: their eigenvalues are shown here, not judged."""

    data: tuple[str, ...] = ("cifar100-coarse", "cifar10")
    draws: int = 5


QUICK = Settings(**earlier.QUICK, taus=figure_10.QUICK.taus)
SMOKE = Settings(**earlier.SMOKE, taus=(0.0, 0.4), draws=2)


def train(settings: Settings, _: Sequence[pd.DataFrame]) -> list[Call]:
    """The one stage: the matrices' spectra, and the networks of the earlier version's figure 10."""
    draws = tuple(earlier.final_seeds(settings.seed, settings.draws))
    spectra = Spectra(settings.taus, draws, settings.width)
    calls = [skip_spectra.of(spectra, f"eigenvalues of skip matrices, {len(draws)} draws")]
    return calls + figure_10.train_networks(settings)


def table(_: Settings, tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Networks ("wide") and matrices in one long table."""
    frame = networks.joined(tables)
    words = {name: frame[name].astype("category") for name in ("skip", "quantity")}
    return frame.assign(**words)


def decays(frame: pd.DataFrame, settings: Settings) -> list[Evidence]:
    """How far log gradient norms fall at the smallest τ, and at each larger one."""
    wide = networks.part(frame, "wide")
    *others, orthogonal = settings.skips
    return [
        Evidence(f"{pair[1]}, {row.condition}", row.samples, headline=row.headline)
        for pair in reversed(others)
        for row in searches.compare(wide, settings, orthogonal, pair, searches.log_decay)
    ]


def trend(frame: pd.DataFrame, settings: Settings) -> list[Evidence]:
    """Accuracies from the largest τ to the smallest."""
    return figure_10.trend(networks.part(frame, "wide"), settings)


def figure(frame: pd.DataFrame, settings: Settings) -> Any:
    """Eigenvalues of covariance, correlation and of Σ itself above; gradient norms and accuracies below."""
    from skiplab.experiments.old_gain_figures import TITLES, best_curves, layer_norms
    from skiplab.figures.curves import by_layer, learning_curves
    from skiplab.figures.style import new_figure, panel_letter

    wide, skips = networks.part(frame, "wide"), list(reversed(settings.skips))
    figure, axes = new_figure(columns=3, rows=2, width=7.4, height=5.4)
    _spectra(axes[0], networks.part(frame, "matrices"), settings)
    first = settings.data[0]
    norms = {skip: layer_norms(wide, first, model, skip, None) for model, skip in skips}
    by_layer(axes[1, 0], range(1, settings.depth + 1), norms, labels="none")
    start = f"start of epoch {max(settings.norms_at) + 1}"
    axes[1, 0].set(xlabel="hidden layer", ylabel=f"gradient norm, {start}", title=TITLES.get(first, first))
    for ax, data in zip(axes[1, 1:], settings.data, strict=False):
        curves = {skip: best_curves(wide, data, model, skip) for model, skip in skips}
        learning_curves(ax, range(1, settings.epochs + 1), curves, labels="none")
        ax.set(xlabel="epoch", ylabel="training accuracy", title=TITLES.get(data, data))
    for ax in axes[1, 1 + len(settings.data) :]:
        ax.set_visible(False)
    lines, names = axes[1, 0].get_legend_handles_labels()
    figure.legend(lines, names, loc="outside upper center", ncols=len(names))
    for letter, ax in zip(("a", "a′", "a″", "b", "c", "d"), axes.flat, strict=False):
        if ax.get_visible():
            panel_letter(ax, letter)
    return figure


def _spectra(axes: Any, matrices: pd.DataFrame, settings: Settings) -> None:
    """Eigenvalues by rank on one scale: geometric means and ranges over draws; dotted what note 4 prescribes."""
    import numpy as np

    from skiplab.figures.colours import colour_of
    from skiplab.studies.orhan2018.skip_spectra import QUANTITIES

    titles = ("covariance of skip vectors", "correlation (ours)", "|eigenvalues of Σ| (ours)")
    ranks = np.arange(1, settings.width + 1)
    for ax, quantity, title in zip(axes, QUANTITIES, titles, strict=True):
        ax.set(xlabel="rank", title=title, yscale="log")
        if ax is not axes[0]:
            ax.sharey(axes[0])
        for place, tau in enumerate(settings.taus):
            rows = matrices[(matrices["quantity"] == quantity) & (matrices["skip"] == skip_of(tau))]
            runs = rows.pivot(index="seed", columns="layer", values="value").to_numpy(dtype=float)
            colour = colour_of(skip_of(tau))
            ax.fill_between(ranks, runs.min(0), runs.max(0), color=colour, alpha=0.25, linewidth=0)
            # The moduli lie on top of each other, so their lines get thinner with τ.
            width = 1.4 + 1.2 * (len(settings.taus) - 1 - place) * (quantity == "modulus")
            ax.plot(ranks, np.exp(np.log(runs).mean(0)), color=colour, linewidth=width)
            if quantity == "covariance":
                ax.plot(ranks, np.exp(-tau * (ranks - 1)), color=colour, linewidth=0.9, linestyle=":")
    axes[0].set_ylabel("eigenvalue")


STUDY = Study(
    id="orhan2018/figure-8",
    words=__file__,
    settings={"smoke": SMOKE, "quick": QUICK, "paper": Settings()},
    stages=(train,),
    table=table,
    figure=figure,
    claims=(
        Claim(
            "gradients-do-not-vanish",
            "Gradients vanish no more with larger τ than with τ = 0: their log norm falls by at most ln 10 more.",
            decays,
            Greater(margin=TENFOLD),
            "log norm",
        ),
        Claim(
            "accuracy-falls-with-tau",
            "Accuracy falls as τ grows.",
            trend,
            Ordered(),
            "P(smaller τ > larger τ)",
        ),
    ),
    cost={"quick": 50, "paper": 300},
    paper_device="one H200",
    in_tour=False,
)
