"""Pairs of plain and residual networks over depths: the runs behind tables 1, 3, 4, figures 3, 9, 10, 12 and noise.

All these items name the same trials, which therefore run once. What several of them ask of the runs is here too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from skiplab.randomness import run_seeds
from skiplab.reproduction import NOT_RUN, Call, Evidence, Results, chunks, subset
from skiplab.reproduction.results import matching, sample_of
from skiplab.studies.yu2019.networks import Measures, Networks, Training, train

if TYPE_CHECKING:
    import numpy as np

PLAIN, RESIDUAL = "plain", "residual"
DEAD = 0.85  # a training error above: less than 1.5 times as often right as guessing among ten classes
LEARNT = math.log(10) / 2  # networks that end with a larger L have hardly left the loss of guessing
NOT_HERE = f"not trained here for {Training.epochs} epochs on all images"
LEFT_OUT = "networks of this depth are not trained in this run"
Rows = Iterator[tuple[str, float, Any, str]]  # a condition, the number printed for it, ours, a detail


@dataclass(frozen=True)
class PairSettings:
    """What the items with trained pairs have in common.

    ``runs`` pairs of the first depth, on which most is measured, ``deep_runs`` of the others. Plain networks of
    ``slow_depth`` layers or more start with ``slow_rate``, as the paper's of depth 44 do.
    """

    data: tuple[str, ...] = ("cifar10",)
    runs: int = 13
    seed: int = 0
    depths: tuple[int, ...] = (20, 32, 44)
    first_depth: int = 20
    deep_runs: int = 6
    rate: float = 1e-2
    slow_depth: int = 44
    slow_rate: float = 1e-3
    filters: tuple[int, ...] = (16, 32, 64)
    images: int | None = None
    side: int | None = None
    epochs: int = 200
    drops: tuple[int, ...] = (120, 160)
    batch_size: int = 128
    padding: int = 4
    mixed: bool = True
    test_images: int | None = None
    cushions_at: tuple[int, ...] = (0, 1, 15, 50, 120, 200)
    flows_at: tuple[int, ...] = (0, 1, 2, 4, 8, 15, 30, 60, 100, 150, 200)
    noise_at: tuple[int, ...] = (0, 200)
    cushion_images: int = 1000
    noise_images: int = 500
    noise_draws: int = 3
    flow_images: int = 128
    together: int = 13

    def runs_at(self, depth: int) -> int:
        """How many pairs of a depth are trained."""
        return self.runs if depth == self.first_depth else min(self.runs, self.deep_runs)

    def rate_of(self, model: str, depth: int) -> float:
        """The rate that the paper's networks of this kind and depth start with."""
        return self.slow_rate if model == PLAIN and depth >= self.slow_depth else self.rate

    def measures_at(self, depth: int) -> Measures:
        """What is measured of networks of a depth; flows, noise and last gradients of the first depth alone."""
        quarters = tuple(self.epochs * part // 4 for part in range(5))
        own: dict[str, Any] = {"clean": quarters, "weights": quarters, "cushions": self.cushions_at}
        own |= {"diagonals": (self.epochs,)}
        if depth == self.first_depth:
            own |= {"flows": self.flows_at, "noise": self.noise_at, "final_gradients": (0, 1, 2, 3, 4)}
        return subset(Measures, self, **own)

    def networks(self, model: str, depth: int, seeds: Sequence[int], **other: Any) -> Networks:
        """Settings of the trial that trains networks of one model and depth; ``other`` replaces fields."""
        own: dict[str, Any] = {
            "data": self.data[0],
            "rate": self.rate_of(model, depth),
            "filters": self.filters,
            "training": subset(Training, self),
            "measures": self.measures_at(depth),
        }
        return Networks(model=model, depth=depth, seeds=tuple(seeds), **(own | other))


# What the items shrink alike below the paper's scale.
QUICK: dict[str, Any] = {
    "runs": 5,
    "deep_runs": 5,
    "depths": (14, 20),
    "first_depth": 14,
    "filters": (8, 16, 32),
    "images": 1000,
    "side": 16,
    "epochs": 8,
    "drops": (6, 7),
    "batch_size": 25,
    "padding": 2,
    "mixed": False,
    "test_images": 1000,
    "cushions_at": (0, 8),
    "flows_at": (0, 1, 2, 4, 8),
    "noise_at": (8,),
    "cushion_images": 200,
    "noise_images": 100,
    "noise_draws": 1,
    "flow_images": 16,
}
SMOKE: dict[str, Any] = QUICK | {
    "data": ("digits",),
    "runs": 2,
    "deep_runs": 2,
    "depths": (5, 8),
    "first_depth": 5,
    "slow_depth": 8,
    "filters": (2, 2, 4),
    "images": 40,
    "epochs": 1,
    "drops": (),
    "batch_size": 20,
    "padding": 1,
    "cushions_at": (0, 1),
    "flows_at": (0, 1),
    "noise_at": (1,),
    "cushion_images": 10,
    "noise_images": 10,
    "flow_images": 4,
}


def train_pairs(results: Results) -> list[Call]:
    """Name both kinds of network at every depth, the deepest first, so that no core waits for them at the end."""
    settings = results.settings
    return [
        train.of(settings.networks(model, depth, seeds), f"{model}, {depth} layers")
        for depth in sorted(settings.depths, reverse=True)
        for model in (PLAIN, RESIDUAL)
        for seeds in chunks(run_seeds(settings.seed, settings.runs_at(depth)), settings.together)
    ]


def values(
    results: Results,
    model: str,
    depth: int,
    quantity: str,
    *,
    epoch: int | None = None,
    layer: int = 0,
    stage: str = train_pairs.__name__,
    **where: Any,
) -> np.ndarray:
    """One number per network in the order of seeds, at the last epoch unless one is named."""
    at = results.settings.epochs if epoch is None else epoch
    where |= {"model": model, "depth": depth, "quantity": quantity, "epoch": at, "layer": layer}
    return sample_of(matching(results.rows(train, stage=stage), **where))


def both(results: Results, depth: int, quantity: str, **where: Any) -> list[np.ndarray]:
    """The numbers of plain and of residual networks, pair by pair."""
    return [values(results, model, depth, quantity, **where) for model in (PLAIN, RESIDUAL)]


def logs(results: Results, depth: int, quantity: str = "loss", **where: Any) -> list[np.ndarray]:
    """Natural logarithms of what ``both`` gives."""
    import numpy as np

    return [np.log(each) for each in both(results, depth, quantity, **where)]


def living(results: Results, depth: int, **where: Any) -> np.ndarray:
    """Which pairs have learnt, both of them."""
    plain, residual = (each <= DEAD for each in both(results, depth, "error", **where))
    return plain & residual  # a network that diverged has no error, and so has not learnt


def those_that_learn(found: Evidence, alive: np.ndarray) -> Iterator[Evidence]:
    """Evidence on pairs, and where some never learn a further row without them."""
    from skiplab.experiments.gains import share_that

    if alive.all():
        yield found
        return
    dead = f"never learn: {share_that(~alive)} pairs; the mean is over all"
    yield replace(found, detail="; ".join(filter(None, (found.detail, dead))))
    left = [each[alive] for each in found.samples]
    yield replace(found, condition=f"{found.condition}, those that learn", samples=left, headline=False)


def if_learnt(results: Results, found: Evidence) -> Evidence:
    """The evidence, without its numbers where networks have learnt too little to tell what trained ones do."""
    loss = values(results, RESIDUAL, results.settings.first_depth, "loss").mean()
    if loss < LEARNT:
        return found
    why = f"residual networks end at L = {loss:.2f}, so that none has been trained to an end"
    return replace(found, samples=[()] * len(found.samples), detail=why, missing=NOT_RUN)


def waiting(found: Evidence, why: str = NOT_HERE) -> Evidence:
    """The evidence, or, where no networks stand behind it, that their run is still to be made, and why."""
    if all(len(sample) for sample in found.samples):
        return found
    return replace(found, detail=found.detail or why, missing=NOT_RUN)


def left_out(settings: PairSettings) -> list[int]:
    """The paper's depths that a run of its networks leaves out, of which its sentences on every depth speak too."""
    return [depth for depth in PairSettings.depths if is_papers(settings) and depth not in settings.depths]


def without_depths(
    results: Results, words: str = "{depth} layers", samples: int = 2, least: int = 0
) -> Iterator[Evidence]:
    """A headline condition without numbers per depth of at least so many layers that is left out."""
    for depth in left_out(results.settings):
        if depth >= least:
            yield Evidence.without(words.format(depth=depth), NOT_RUN, LEFT_OUT, samples)


def same_seeds(*samples: np.ndarray) -> list[np.ndarray]:
    """Samples of several depths cut to the first runs, whose seeds all have, so that they are paired."""
    runs = min(map(len, samples))
    return [each[:runs] for each in samples]


def steps(depths: Sequence[int]) -> list[tuple[int, int]]:
    """From which depth to which networks grow: first to second, first to last, last but one to last; each once.

    >>> steps((20, 32, 44)), steps((14, 20))
    ([(20, 32), (20, 44), (32, 44)], [(14, 20)])
    """
    ordered = sorted(depths)
    found = [(ordered[0], ordered[1]), (ordered[0], ordered[-1]), (ordered[-2], ordered[-1])]
    return list(dict.fromkeys(found))


def is_papers(settings: PairSettings) -> bool:
    """Whether networks are the paper's, trained as long and on the same images, so that its numbers stand beside."""
    whole = PairSettings()
    names = ("filters", "images", "side", "epochs")
    same = all(getattr(settings, name) == getattr(whole, name) for name in names)
    return same and set(settings.depths) <= set(whole.depths)


def printed(
    results: Results, numbers: Mapping[str, Mapping[int, float]], quantity: str, **where: Any
) -> Rows:
    """A row per number that the paper prints of a model and depth, and our networks' numbers, if comparable."""
    settings = results.settings
    for model, by_depth in numbers.items():
        for depth, number in by_depth.items():
            ours = is_papers(settings) and depth in settings.depths
            sample = values(results, model, depth, quantity, **where) if ours else ()
            why = LEFT_OUT if depth in left_out(settings) else NOT_HERE
            yield f"{model}, {depth} layers", number, sample, "" if ours else why
