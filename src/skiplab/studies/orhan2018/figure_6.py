"""Figure 6: gradient norms by layer early in training, and BiasReg with one batch normalisation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skiplab.reproduction.claim import Claim, Equivalent, Evidence
from skiplab.reproduction.study import Study
from skiplab.reproduction.trial import Call
from skiplab.studies.orhan2017 import figure_7, figure_8, searches
from skiplab.studies.orhan2017 import networks as earlier
from skiplab.studies.orhan2017.networks import FigureSettings
from skiplab.studies.orhan2018 import bias_reg, figure_5
from skiplab.studies.orhan2018.figure_5 import BIAS_REG, PLAIN, RESIDUAL

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

WITH_BN = ("bias-reg-bn", "identity")
MODELS = (PLAIN, RESIDUAL, BIAS_REG, WITH_BN)
# Ours: the paper's "almost identical" is within 10 %, the margin of every number that a paper gives.
ALIKE = math.log(1.1)


@dataclass(frozen=True)
class Settings(FigureSettings):
    """The earlier paper's settings, and how many triples (μ, σ, λ) are tried on how many seeds."""

    data: tuple[str, ...] = ("cifar100-coarse",)
    runs: int = 50
    triples: int = 24
    triple_runs: int = 2


SMOKE = Settings(**earlier.SMOKE, triples=2, triple_runs=1)
QUICK = Settings(**earlier.QUICK, triples=6, triple_runs=1)


def search(settings: Settings, _: Sequence[pd.DataFrame]) -> list[Call]:
    """Figure 5's searches at the paper's width."""
    calls = []
    for data in settings.data:
        calls += [searches.gain_search(settings, model, data) for model in figure_5.FREE]
        calls.append(bias_reg.search(settings, data, settings.triples, settings.triple_runs))
    return calls


def decide(settings: Settings, tables: Sequence[pd.DataFrame]) -> list[Call]:
    """Figure 5's runs of three models, and BiasReg + BN with the triples found without BN and its gain search."""
    apart = earlier.search_seeds(settings.seed, settings.search_runs)
    calls = []
    for data in settings.data:
        calls += bias_reg.decide(settings, tables[0], data, [model for model, _ in MODELS])
        chosen = bias_reg.members(settings, tables[0], data, WITH_BN[0], apart)
        calls.append(earlier.call(settings.search, data, WITH_BN[0], chosen, what="search"))
    return calls


def epochs_with_norms(frame: pd.DataFrame) -> list[int]:
    """The epochs at whose start gradients were measured; a training shorter than asked for has fewer."""
    return sorted(int(epoch) for epoch in frame[frame["quantity"] == "gradient_norm"]["epoch"].unique())


def norms_apart(first: pd.DataFrame, second: pd.DataFrame, epoch: int) -> np.ndarray:
    """The mean over layers of |ln ratio| of two models' gradient norms at the start of an epoch, seed by seed."""
    import numpy as np

    logs = []
    for rows in (first, second):
        chosen = rows[(rows["quantity"] == "gradient_norm") & (rows["epoch"] == epoch)]
        norms = chosen.pivot(index="seed", columns="layer", values="value").to_numpy(dtype=float)
        # A vanished gradient may be exactly 0; the smallest float32 stands in for it. An infinite one is no number.
        norms = np.maximum(norms, np.finfo(np.float32).tiny)
        logs.append(np.log(np.where(np.isinf(norms), np.nan, norms)))
    difference: np.ndarray = np.abs(logs[0] - logs[1])
    return difference.mean(axis=1)


def alike(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    """Plain against BiasReg norms, seed by seed; later epochs are further rows."""
    epochs = epochs_with_norms(frame)
    for condition, headline, (biased, plain) in searches.each_condition(frame, settings, [BIAS_REG, PLAIN]):
        for epoch in epochs:
            where = f"start of epoch {epoch + 1}, {condition}"
            yield Evidence(
                where, [norms_apart(biased, plain, epoch)], headline=headline and epoch == epochs[0]
            )


def figure(frame: pd.DataFrame, settings: Settings) -> Any:
    """Two rows a data set: norms at the start of three epochs; accuracy, accuracy by gain, norms at one gain."""
    from skiplab.figures.curves import by_layer, learning_curves
    from skiplab.figures.style import new_figure, panel_letter
    from skiplab.studies.orhan2017.drawing import TITLES, best_curves, gains_panel, layer_norms

    glorot = min(settings.gains, key=lambda gain: abs(math.log(gain)))
    figure, axes = new_figure(
        columns=3, rows=2 * len(settings.data), width=7.4, height=5.2 * len(settings.data)
    )
    layers, epochs = range(1, settings.depth + 1), epochs_with_norms(frame)

    def norms(ax: Any, data: str, epoch: int, gain: float | None, title: str) -> None:
        then = frame[frame["epoch"] == epoch]
        found = {}
        for model, skip in (PLAIN, RESIDUAL, BIAS_REG):
            own = searches.best_gain(frame, data, model, skip) if gain is None else gain
            found[model] = layer_norms(then, data, model, skip, own)
        by_layer(ax, layers, found, labels="none")
        # Where the two coincide, plain networks' line must not vanish beneath BiasReg's.
        ax.lines[0].set(linewidth=4.0, alpha=0.5, markersize=0)
        ax.set(xlabel="hidden layer", title=title)

    for number, data in enumerate(settings.data):
        above, below = axes[2 * number : 2 * number + 2]
        for ax in above[1:]:
            ax.sharey(above[0])
        for ax, epoch in zip(above, epochs, strict=False):
            norms(ax, data, epoch, None, f"start of epoch {epoch + 1}")
        for ax in above[len(epochs) :]:
            ax.set_visible(False)
        above[0].set_ylabel("mean gradient norm")
        curves = {model: best_curves(frame, data, model, skip) for model, skip in MODELS}
        learning_curves(below[0], range(1, settings.epochs + 1), curves)
        below[0].set(xlabel="epoch", ylabel="training accuracy", title=TITLES.get(data, data))
        gains_panel(below[1], frame, data, settings, [(model, model, skip) for model, skip in MODELS])
        below[1].set(ylabel="training accuracy, last epoch")
        norms(below[2], data, epochs[-1], glorot, f"epoch {epochs[-1] + 1}, gain {glorot:.3g} for all")
        below[2].set_ylabel("mean gradient norm")
    for letter, ax in zip("abcdefghijkl", axes.flat, strict=False):
        panel_letter(ax, letter)
    return figure


STUDY = Study(
    id="orhan2018/figure-6",
    item="Figure 6",
    title="Skips keep gradients from vanishing; drawing biases apart leaves them as they were",
    caption=(
        "(a–c) Mean norm of the loss gradient in each layer's activities at the start of the first three epochs, "
        "each model at its best initial gain; medians over runs with 95 % intervals; the broad line is plain. (d) "
        "Training accuracy, with one batch normalisation at the middle layer for BiasReg + BN; means with 95 % "
        "intervals. Ours: (e) accuracy at the last epoch for every gain, (f) norms with all models at the gain "
        "nearest Glorot's."
    ),
    settings={"smoke": SMOKE, "quick": QUICK, "paper": Settings()},
    stages=(search, decide),
    table=figure_7.table,
    figure=figure,
    claims=(
        Claim(
            "residual-flat",
            "Gradient norms of residual networks do not diminish in earlier layers (log norm changes by < ln 10).",
            lambda frame, settings: searches.of_one(frame, settings, RESIDUAL, searches.log_decay),
            Equivalent(margin=figure_8.FLAT),
            "log norm",
        ),
        Claim(
            "bias-reg-as-plain",
            "Gradient norms of plain and BiasReg networks are almost identical initially (within 10 %).",
            alike,
            Equivalent(margin=ALIKE),
            "mean |ln ratio|",
        ),
        Claim(
            "bn-approaches-residual",
            "BiasReg with one BatchNorm comes within a point of the residual network's accuracy.",
            lambda frame, settings: searches.compare(frame, settings, WITH_BN, RESIDUAL),
            Equivalent(margin=figure_7.ONE_POINT),
            "accuracy",
        ),
    ),
    cost={"quick": 30, "paper": 550},
    paper_device="one H200",
    choices=(
        "Almost identical means that norms of networks with the same seed differ by less than 10 % on average over "
        "layers. The start of the first epoch is the headline, those of the next two are further rows.",
        "The BatchNorm acts on the pre-activations of the middle layer (15 of 30); μ, σ and λ are those found "
        "without it.",
        *figure_8.STUDY.choices[:2],
        *bias_reg.CHOICES,
        figure_7.STUDY.choices[0],
        *figure_7.STUDY.choices[2:],
    ),
    errata=(
        "That plain and BiasReg gradients agree initially says nothing about training at equal gains: biases start "
        "at 0 whatever their targets, so the two are then the same networks. The next two epochs are the test.",
        *figure_7.STUDY.errata,
    ),
)
