"""How fast rank and norm of gradients move with depth, in one kind of network against another."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

from skiplab.reproduction import Evidence, Found, Results
from skiplab.studies.balduzzi2017.figure_5.trials import PLAIN, WHITE, blocks, measure
from skiplab.studies.balduzzi2017.palette import beta_words

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

DEEP = 10  # from here on we ask whether the rank without skips goes on growing
WORDS = {"loss": "of the loss", "sum": "of the summed outputs"}


def by_depth(results: Results, **where: Any) -> pd.DataFrame:
    """A quantity averaged over each run's minibatches: a row per run, a column per depth."""
    rows = results.rows(measure, **where)
    return rows.pivot_table(index="seed", columns="depth", values="value", aggfunc="mean")


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


def with_and_without(settings: Any) -> list[tuple[str, str]]:
    """The plain network beside each residual one."""
    return [(PLAIN, model) for model in settings.models[1:]]


def larger_and_smaller(settings: Any) -> list[tuple[str, str]]:
    """Residual networks of neighbouring β, the larger first."""
    return list(pairwise(f"resnet-{beta:g}" for beta in sorted(settings.betas, reverse=True)))


def slowed(results: Results) -> Iterator[Evidence]:
    """The rank's growth in residual networks of larger β against smaller β, by two measures of speed."""
    return _speeds_apart(results, "relative_rank", larger_and_smaller(results.settings))


def faster(quantity: str) -> Found:
    """Evidence on a quantity's change without skips against that with them; how many times as fast is told."""
    return lambda results: _speeds_apart(results, quantity, with_and_without(results.settings))


def _speeds_apart(results: Results, quantity: str, pairs: list[tuple[str, str]]) -> Iterator[Evidence]:
    """A quantity's speed in the first of two models against the second, which share weights and minibatches."""
    settings = results.settings
    for data, gradient, pair, how in product(settings.data, settings.gradients, pairs, SPEEDS):
        both = [speeds(results, quantity, data, gradient, model, how) for model in pair]
        first, second = (each.mean() for each in both)
        detail = f"{first:.3g} against {second:.3g}"
        if 0 < second < first:
            detail += f", {first / second:.3g} times as much"
        yield Evidence(
            words_of(data, gradient, pair, how),
            [each.tolist() for each in both],
            headline=decides(settings, gradient, how),
            detail=detail,
            paired=True,
        )


def words_of(data: str, gradient: str, pair: tuple[str, str], how: str) -> str:
    """A condition: data, the models compared, the gradient, and the measure of speed."""
    return f"{data}, {' against '.join(map(name_of, pair))}, gradient {WORDS[gradient]}, {how}"


def decides(settings: Any, gradient: str, how: str) -> bool:
    """Whether a kind of gradient and a measure of speed are the first ones."""
    return bool(gradient == settings.gradients[0]) and how == next(iter(SPEEDS))


def speeds(results: Results, quantity: str, data: str, gradient: str, model: str, how: str) -> np.ndarray:
    """How fast a quantity moves with depth, one number per run."""
    wide = by_depth(results, data=data, gradient=gradient, quantity=quantity, model=model)
    return SPEEDS[how](_curve(wide, quantity))


def _curve(wide: pd.DataFrame, quantity: str) -> pd.DataFrame:
    """What is to grow: the rank itself, and the norm's decay, in logarithms."""
    import numpy as np

    return wide.transform(np.log) * -1.0 if quantity == "mean_norm" else wide


def beyond(results: Results) -> Iterator[Evidence]:
    """By how much the rank of the feedforward network grows from 10 layers on."""
    settings = results.settings
    deepest = max(settings.depths)
    # Of networks that are all shallower, the shallowest.
    near = min([depth for depth in settings.depths if DEEP <= depth < deepest] or settings.depths)
    for data, gradient in product(settings.data, settings.gradients):
        wide = by_depth(results, data=data, model=PLAIN, gradient=gradient, quantity="relative_rank")
        where = f"{data}, feedforward, gradient {WORDS[gradient]}, {near} to {deepest} layers"
        both = [wide[deepest].tolist(), wide[near].tolist()]
        yield Evidence(where, both, headline=gradient == settings.gradients[0], paired=True)


# What decides, and as further rows what large gradients weigh more in.
STRUCTURES = {"structure": "", "covariance structure": ", covariances"}


def structured(results: Results, quantity: str, data: str, model: str, depth: int) -> np.ndarray:
    """How much of a matrix its blocks explain beyond permuted ones, one number per run."""
    return results.sample(blocks, quantity=quantity, data=data, model=model, depth=depth)


def visible(results: Results) -> Iterator[Evidence]:
    """Structure of the shallowest networks' gradients against what clustering makes of white noise."""
    settings = results.settings
    depth = min(settings.depths)
    for data, model, (quantity, words) in product(settings.data, settings.pictured, STRUCTURES.items()):
        both = [structured(results, quantity, data, *which) for which in ((model, depth), (WHITE, 0))]
        where = f"{data}, {name_of(model)}, {depth} layers, against white noise{words}"
        yield Evidence(where, both, headline=not words, detail=_told(*both))


def more_apparent(results: Results) -> Iterator[Evidence]:
    """Structure of the shallowest resnets against the feedforward networks of the same weights and images."""
    settings = results.settings
    depth = min(settings.depths)
    for data, (quantity, words) in product(settings.data, STRUCTURES.items()):
        both = [structured(results, quantity, data, model, depth) for model in settings.pictured[::-1]]
        where = f"{data}, {depth} layers{words}"
        yield Evidence(where, both, headline=not words, detail=_told(*both), paired=True)


def _told(one: np.ndarray, other: np.ndarray) -> str:
    return f"{one.mean():.3f} against {other.mean():.3f}"


def disappears(results: Results) -> Iterator[Evidence]:
    """What the feedforward network's structure loses from the shallowest to the deepest, against white noise's.

    The clusters are the shallowest network's, so that the deepest one's gradients owe nothing to the clustering.
    """
    settings = results.settings
    model, (shallow, deep) = settings.pictured[0], (min(settings.depths), max(settings.depths))
    for data, (quantity, words) in product(settings.data, STRUCTURES.items()):
        before, after = (structured(results, quantity, data, model, depth) for depth in (shallow, deep))
        white = structured(results, quantity, data, WHITE, 0)
        yield Evidence(
            f"{data}, {name_of(model)}, {shallow} to {deep} layers, against white noise{words}",
            [before - after, white],
            headline=not words,
            detail=f"{before.mean():.3f} at {shallow} layers, {after.mean():.3f} at {deep}, white noise "
            f"{white.mean():.3f}",
        )


def left(model_at: int) -> Found:
    """Evidence on the structure left in the deepest of the pictured networks, feedforward (0) or residual (1)."""

    def found(results: Results) -> Iterator[Evidence]:
        settings = results.settings
        model, depth = settings.pictured[model_at], max(settings.depths)
        for data, (quantity, words) in product(settings.data, STRUCTURES.items()):
            sample = structured(results, quantity, data, model, depth)
            yield Evidence(f"{data}, {name_of(model)}, {depth} layers{words}", [sample], headline=not words)

    return found


def name_of(model: str) -> str:
    """How a model is called in words."""
    beta = beta_of(model)
    return "feedforward" if beta is None else f"resnet {beta_words(beta)}"


def beta_of(model: str) -> float | None:
    """A model's β, None without skips."""
    return None if model == PLAIN else float(model.removeprefix("resnet-"))
