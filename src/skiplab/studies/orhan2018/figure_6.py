"""Figure 6: gradient norms by layer early in training, and BiasReg with one batch normalisation."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skiplab.experiments import networks
from skiplab.experiments.gains import (
    FLAT,
    ONE_POINT,
    PLAIN,
    RESIDUAL,
    WIDE,
    Model,
    compare,
    log_decay,
    of_one,
)
from skiplab.experiments.networks import GainSettings
from skiplab.reproduction import Claim, Equivalent, Evidence, Results, Study, scales
from skiplab.reproduction.results import matching
from skiplab.studies.orhan2018 import bias_reg
from skiplab.studies.orhan2018.bias_reg import BIAS_REG, WITH_BN

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

EXPERIMENT = bias_reg.experiment(PLAIN, RESIDUAL, BIAS_REG, WITH_BN)
# Ours: the paper's "almost identical" is within 10 %, the margin of every number that a paper gives.
ALIKE = math.log(1.1)


@dataclass(frozen=True)
class Settings(GainSettings):
    """The earlier paper's settings, and how many triples (μ, σ, λ) are tried on how many seeds."""

    data: tuple[str, ...] = ("cifar100-coarse",)
    runs: int = 50
    triples: int = 24
    triple_runs: int = 2


def epochs_with_norms(results: Results) -> list[int]:
    """The epochs at whose start gradients were measured; a training shorter than asked for has fewer."""
    return sorted(map(int, results.rows(quantity="gradient_norm")["epoch"].unique()))


def norms_apart(first: pd.DataFrame, second: pd.DataFrame, epoch: int) -> np.ndarray:
    """The mean over layers of |ln ratio| of two models' gradient norms at the start of an epoch, seed by seed."""
    import numpy as np

    from skiplab.experiments.gain_figures import wide

    logs = []
    for rows in (first, second):
        norms = wide(matching(rows, quantity="gradient_norm", epoch=epoch), "layer")
        # A vanished gradient may be exactly 0; the smallest float32 stands in for it. An infinite one is no number.
        norms = np.maximum(norms, np.finfo(np.float32).tiny)
        logs.append(np.log(np.where(np.isinf(norms), np.nan, norms)))
    difference: np.ndarray = np.abs(logs[0] - logs[1])
    return difference.mean(axis=1)


def alike(results: Results) -> Iterator[Evidence]:
    """Plain against BiasReg norms, seed by seed; later epochs are further rows."""
    first, *later = epochs_with_norms(results)
    for words, headline, both in WIDE.conditions(results, [BIAS_REG, PLAIN]):
        for epoch in (first, *later):
            where = f"start of epoch {epoch + 1}, {words}"
            yield Evidence(where, [norms_apart(*both, epoch)], headline=headline and epoch == first)


def figure(results: Results) -> Any:
    """Two rows per data set: norms at the start of three epochs; accuracy, accuracy by gain, norms at one gain."""
    from skiplab.figures.style import new_figure, panel_letter

    sets = results.settings.data
    figure, axes = new_figure(columns=3, rows=2 * len(sets), width=7.4, height=5.2 * len(sets))
    for number, data in enumerate(sets):
        _panels(axes[2 * number], axes[2 * number + 1], results, data)
    for letter, ax in zip("abcdefghijkl", axes.flat, strict=False):
        panel_letter(ax, letter)
    return figure


def _panels(above: Any, below: Any, results: Results, data: str) -> None:
    from skiplab.experiments.gain_figures import TITLES, best_curves, gains_panel, nearest_glorot
    from skiplab.figures.curves import learning_curves

    settings, epochs = results.settings, epochs_with_norms(results)
    shown: dict[str, Model] = {model.name: model for model in EXPERIMENT.models}
    for ax in above[1:]:
        ax.sharey(above[0])
    for ax, epoch in zip(above, epochs, strict=False):
        _norms(ax, results, data, epoch, None)
        ax.set_title(f"start of epoch {epoch + 1}")
    for ax in above[len(epochs) :]:
        ax.set_visible(False)
    curves = {name: best_curves(results, data, model) for name, model in shown.items()}
    learning_curves(below[0], range(1, settings.epochs + 1), curves)
    below[0].set(xlabel="epoch", ylabel="training accuracy", title=TITLES.get(data, data))
    gains_panel(below[1], results, data, shown)
    below[1].set(ylabel="training accuracy, last epoch")
    glorot = nearest_glorot(settings.gains)
    _norms(below[2], results, data, epochs[-1], glorot)
    below[2].set_title(f"epoch {epochs[-1] + 1}, gain {glorot:.3g} for all")
    for ax in (above[0], below[2]):
        ax.set_ylabel("mean gradient norm")


def _norms(ax: Any, results: Results, data: str, epoch: int, gain: float | None) -> None:
    from skiplab.experiments.gain_figures import layer_norms
    from skiplab.figures.curves import by_layer

    models = (PLAIN, RESIDUAL, BIAS_REG)
    norms = {model.name: layer_norms(results, data, model, gain, epoch) for model in models}
    by_layer(ax, range(1, results.settings.depth + 1), norms, labels="none")
    # Where the two coincide, plain networks' line must not vanish beneath BiasReg's.
    ax.lines[0].set(linewidth=4.0, alpha=0.5, markersize=0)
    ax.set_xlabel("hidden layer")


STUDY = Study(
    id="orhan2018/figure-6",
    words=__file__,
    settings=scales(
        Settings,
        quick={**networks.QUICK, **bias_reg.QUICK},
        smoke={**networks.SMOKE, **bias_reg.SMOKE},
    ),
    stages=EXPERIMENT.stages,
    figure=figure,
    claims=(
        Claim(
            "residual-flat",
            "Gradient norms of residual networks do not diminish in earlier layers (log norm changes by < ln 10).",
            evidence=of_one(RESIDUAL, log_decay),
            kind=Equivalent(margin=FLAT),
            unit="log norm",
        ),
        Claim(
            "bias-reg-as-plain",
            "Gradient norms of plain and BiasReg networks are almost identical initially (within 10 %).",
            evidence=alike,
            kind=Equivalent(margin=ALIKE),
            unit="mean |ln ratio|",
        ),
        Claim(
            "bn-approaches-residual",
            "BiasReg with one BatchNorm comes within a point of the residual network's accuracy.",
            evidence=compare(WITH_BN, RESIDUAL),
            kind=Equivalent(margin=ONE_POINT),
            unit="accuracy",
        ),
    ),
    cost={"quick": 30, "paper": 550},
    paper_device="one H200",
)
