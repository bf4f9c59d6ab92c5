"""Figure 5: gradients of convolutional networks on images shatter with depth, those of residual ones less."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

from skiplab.figures.shattering_palette import beta_words
from skiplab.randomness import run_seeds
from skiplab.reproduction.claim import Claim, Evidence, Greater
from skiplab.reproduction.study import Study
from skiplab.reproduction.trial import Call
from skiplab.studies.balduzzi2017.convnet_gradients import PLAIN, Gradients, measure

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

DEEP = 10  # from here on the rank without skips is asked to go on growing
WORDS = {"loss": "of the loss", "sum": "of the summed outputs"}


@dataclass(frozen=True)
class Settings:
    """Depths count convolutions in modules; a run is a set of networks and minibatches of its own."""

    data: tuple[str, ...] = ("cifar10",)
    runs: int = 30
    seed: int = 0
    depths: tuple[int, ...] = (2, 4, 10, 24, 50)
    betas: tuple[float, ...] = (1.0, 0.1)
    gradients: tuple[str, ...] = ("loss", "sum")
    filters: int = 16
    samples: int = 256
    minibatches: int = 1
    clusters: int = 10
    images: int | None = None
    side: int | None = None

    @property
    def models(self) -> tuple[str, ...]:
        """The networks compared: without skips, and with them at each β."""
        return (PLAIN, *(f"resnet-{beta:g}" for beta in self.betas))


QUICK = Settings(runs=10, gradients=("loss",), images=5000, side=16)
SMOKE = Settings(
    data=("digits",), runs=2, depths=(2, 4), gradients=("loss",), filters=4, samples=24, clusters=3, images=60
)


def stage(settings: Settings, _: Sequence[pd.DataFrame]) -> list[Call]:
    """The one stage: a trial a model and run; the first run's plain and most damped networks give the pictures."""
    pictured = (PLAIN, settings.models[-1])
    return [
        measure.of(
            Gradients(
                data,
                model,
                seed,
                settings.depths,
                settings.gradients,
                settings.filters,
                settings.samples,
                settings.minibatches,
                settings.images,
                settings.side,
                clusters=settings.clusters if run == 0 and model in pictured else 0,
            ),
            f"{data}, {model}, run {run}",
        )
        for data in settings.data
        for run, seed in enumerate(run_seeds(settings.seed, settings.runs))
        for model in settings.models
    ]


def table(_: Settings, tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The rows of all trials."""
    return tables[0].astype(dict.fromkeys(("data", "model", "gradient", "quantity"), str))


# Evidence --------------------------------------------------------------------------------------------------


def by_depth(frame: pd.DataFrame, data: str, model: str, gradient: str, quantity: str) -> pd.DataFrame:
    """A quantity averaged over each run's minibatches: a row a run, a column a depth."""
    chosen = frame[(frame["data"] == data) & (frame["model"] == model) & (frame["gradient"] == gradient)]
    chosen = chosen[chosen["quantity"] == quantity]
    return chosen.pivot_table(index="seed", columns="depth", values="value", aggfunc="mean")


def growth(wide: pd.DataFrame) -> np.ndarray:
    """Each run's mean change since the shallowest network, over all deeper ones."""
    values = wide.sort_index(axis=1).to_numpy(dtype=float)
    change: np.ndarray = (values[:, 1:] - values[:, :1]).mean(axis=1)
    return change


def slope(wide: pd.DataFrame) -> np.ndarray:
    """Each run's least-squares slope against log depth."""
    import numpy as np

    values = wide.to_numpy(dtype=float)
    position = np.log(np.asarray(wide.columns, dtype=float))
    position = position - position.mean()
    found: np.ndarray = (values - values.mean(axis=1, keepdims=True)) @ position / (position @ position)
    return found


SPEEDS = {"mean change since the shallowest": growth, "slope against log depth": slope}


def differences(
    frame: pd.DataFrame, settings: Settings, quantity: str, pairs: Sequence[tuple[str, str]]
) -> list[Evidence]:
    """By how much one model's quantity moves faster than another's in each run, by two measures of speed.

    Models of a run share weights and minibatches, so their difference is one number a run.
    """
    import numpy as np

    rows = []
    for data, gradient, pair, how in product(settings.data, settings.gradients, pairs, SPEEDS):
        curves = [by_depth(frame, data, model, gradient, quantity) for model in pair]
        if quantity == "mean_norm":  # its decay, in logarithms
            curves = [curve.transform(np.log) * -1.0 for curve in curves]
        fast, slow = (SPEEDS[how](curve) for curve in curves)
        condition = f"{data}, {' against '.join(map(name_of, pair))}, gradient {WORDS[gradient]}, {how}"
        headline = gradient == settings.gradients[0] and how == next(iter(SPEEDS))
        detail = f"means {fast.mean():.3g} and {slow.mean():.3g}"
        rows.append(Evidence(condition, [fast - slow], headline=headline, detail=detail))
    return rows


def beyond(frame: pd.DataFrame, settings: Settings) -> list[Evidence]:
    """By how much the rank of the feedforward network grows from 10 layers on, as further rows."""
    depths = sorted(depth for depth in settings.depths if depth >= DEEP)
    if len(depths) < 2:
        return []
    rows = []
    for data, gradient in product(settings.data, settings.gradients):
        wide = by_depth(frame, data, PLAIN, gradient, "relative_rank")
        near, far = wide[depths[0]], wide[depths[-1]]
        condition = (
            f"{data}, feedforward, gradient {WORDS[gradient]}, change from {depths[0]} to {depths[-1]} layers"
        )
        detail = f"means {near.mean():.3g} and {far.mean():.3g}"
        rows.append(Evidence(condition, [(far - near).tolist()], headline=False, detail=detail))
    return rows


def with_and_without(settings: Settings) -> list[tuple[str, str]]:
    """The plain network beside each residual one."""
    return [(PLAIN, model) for model in settings.models[1:]]


def larger_and_smaller(settings: Settings) -> list[tuple[str, str]]:
    """Residual networks of neighbouring β, the larger first."""
    models = [f"resnet-{beta:g}" for beta in sorted(settings.betas, reverse=True)]
    return list(pairwise(models))


def name_of(model: str) -> str:
    """How a model is called in words."""
    beta = beta_of(model)
    return "feedforward" if beta is None else f"resnet {beta_words(beta)}"


def beta_of(model: str) -> float | None:
    """A model's β, None without skips."""
    return None if model == PLAIN else float(model.removeprefix("resnet-"))


def whole(rows: pd.DataFrame) -> np.ndarray:
    """The symmetric matrix of which a trial kept the lower half."""
    import numpy as np

    size = int(rows["row"].max()) + 1
    matrix = np.zeros((size, size))
    below = rows["row"].to_numpy(), rows["column"].to_numpy()
    matrix[below] = matrix[below[::-1]] = rows["value"].to_numpy()
    return matrix


def figure(frame: pd.DataFrame, settings: Settings) -> Any:
    """Covariances above, relative effective rank and normalised norm by depth below, as in the paper."""
    from skiplab.figures.gradient_covariances import gradient_covariances

    data, gradient = settings.data[0], settings.gradients[0]
    kept = frame[(frame["quantity"] == "covariance") & (frame["data"] == data)]
    pictures: dict[float | None, dict[int, np.ndarray]] = {}
    for model, depth in product(settings.models, settings.depths):
        rows = kept[(kept["model"] == model) & (kept["depth"] == depth)]
        if len(rows):
            pictures.setdefault(beta_of(model), {})[depth] = whole(rows)
    depths = sorted(set(settings.depths))

    def curves(quantity: str) -> dict[float | None, np.ndarray]:
        return {
            beta_of(model): by_depth(frame, data, model, gradient, quantity).to_numpy(dtype=float)
            for model in settings.models
        }

    return gradient_covariances(
        pictures, depths, curves("relative_rank"), curves("mean_norm"), samples=settings.samples
    )


STUDY = Study(
    id="balduzzi2017/figure-5",
    words=__file__,
    settings={"smoke": SMOKE, "quick": QUICK, "paper": Settings()},
    stages=(stage,),
    table=table,
    figure=figure,
    claims=(
        Claim(
            "rank-grows-faster-without-skips",
            "The relative effective rank of gradients grows faster with depth without skip connections.",
            lambda frame, settings: [
                *differences(frame, settings, "relative_rank", with_and_without(settings)),
                *beyond(frame, settings),
            ],
            Greater(),
            "relative effective rank",
        ),
        Claim(
            "smaller-beta-slows-growth",
            "In residual networks a smaller β slows the growth of the effective rank.",
            lambda frame, settings: differences(
                frame, settings, "relative_rank", larger_and_smaller(settings)
            ),
            Greater(),
            "relative effective rank",
        ),
        Claim(
            "norm-decays-faster-without-skips",
            "The normalised norm of the mean gradient decays faster with depth without skip connections.",
            lambda frame, settings: differences(frame, settings, "mean_norm", with_and_without(settings)),
            Greater(),
            "fall of log norm",
        ),
    ),
    cost={"quick": 50, "paper": 120},
    paper_device="one H200",
    in_tour=False,
)
