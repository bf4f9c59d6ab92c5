"""The networks whose paths are measured: figures 1d and 1e's, figure 2's, and scaled ones before training.

Small networks are trained again with path lengths measured on the way: the very networks of figures 1d and 1e, since
seeds, data and training are theirs. ResNets are measured in figure 2's own trials.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from skiplab.randomness import run_seeds
from skiplab.reproduction import Call, Results
from skiplab.reproduction.results import matching
from skiplab.studies.littwin2017 import resnet_settings, resnets, toy_settings, toys
from skiplab.studies.littwin2017.figure_1e.study import RATE
from skiplab.studies.littwin2017.path_measures import DEPTH
from skiplab.studies.littwin2017.resnet_settings import LIMITS
from skiplab.studies.littwin2017.start_paths import StartPaths, start_paths

if TYPE_CHECKING:
    import numpy as np

WITH, WITHOUT, SMALL, FROZEN = "toys, BN", "toys, no BN", "toys, no BN, gain .3", "toys, BN, λ stays 1"
TOYS: dict[str, dict[str, Any]] = {
    WITH: {},
    WITHOUT: {"norm": None, "rate": RATE},
    SMALL: {"norm": None, "rate": RATE, "gain": 0.3},
    FROZEN: {"frozen": True},
}
LABELS = {
    "cifar10": "ResNet-32, CIFAR-10",
    "cifar100-fine": "ResNet-32, CIFAR-100",
    "digits": "ResNet, digits",
}
STILL = {"cifar10": "ResNet-32, CIFAR-10, γ stays 1", "digits": "ResNet, digits, γ stays 1"}
SCALES = (0.5, 1.0, 2.0)
HE = 2**0.5
TOY_SIZES = {"paper": {}, "quick": toy_settings.QUICK, "smoke": toy_settings.SMOKE}
RESNET_SIZES = {"paper": {}, "quick": resnet_settings.QUICK, "smoke": resnet_settings.SMOKE}


def toy_sizes(settings: Any) -> toy_settings.ToySettings:
    """What the small networks' trials share with those of figures 1d and 1e at the same scale."""
    return toy_settings.ToySettings(
        **{**TOY_SIZES[settings.sizes], "runs": settings.runs, "seed": settings.seed}
    )


def resnet_sizes(settings: Any) -> resnet_settings.ResNetSettings:
    """What the ResNets' trials share with those of figures 2 and 3 at the same scale."""
    own = {"data": settings.data, "seed": settings.seed, "limited": settings.limited}
    if settings.resnet_runs:
        own["runs"] = settings.resnet_runs
    return resnet_settings.ResNetSettings(**{**RESNET_SIZES[settings.sizes], **own})


def path_epochs(epochs: int) -> tuple[int, ...]:
    """Before training, after the first epoch, and every quarter of the training, of a long one every eighth."""
    if epochs >= 100:
        return tuple(sorted({0, 2, 5, 10, *toy_settings.trend_epochs(epochs)}))
    return tuple(sorted({0, 1, *(round(part * epochs / 4) for part in range(1, 5))}))


def trained(results: Results) -> list[Call]:
    """Name the networks that are trained."""
    settings = results.settings
    sizes = toy_sizes(settings)
    at = path_epochs(sizes.epochs)
    calls = [
        toys.train.of(toy_settings.toys(sizes, paths_at=at, **own), name, stage=name)
        for name, own in TOYS.items()
    ]
    if settings.resnets:
        own = replace(resnet_sizes(settings), controls=(resnet_settings.FROZEN,))
        calls += resnet_settings.networks(Results(own))
    return calls


def scaled(results: Results) -> list[Call]:
    """Name networks before training whose weights or scales are multiplied, and those with He's weights."""
    settings = results.settings
    sizes = toy_sizes(settings)
    seeds = tuple(run_seeds(settings.seed, settings.runs))
    usual: dict[str, Any] = {"seeds": seeds, "blocks": sizes.blocks, "width": sizes.width}
    usual["samples"] = settings.samples
    calls = [StartPaths(norm=None, gain=scale, **usual) for scale in (*SCALES, HE)]
    calls += [StartPaths(norm="after", scale=scale, **usual) for scale in SCALES]
    calls += [StartPaths(norm="after", every_scale=scale, **usual) for scale in SCALES]
    return [start_paths.of(each, "before training, scaled") for each in calls]


@dataclass(frozen=True)
class Group:
    """Networks of one kind that were trained: where their rows are, and how many blocks count."""

    name: str
    trial: Any
    where: dict[str, Any]
    blocks: int

    def rows(self, results: Results, quantity: str) -> Any:
        """Rows of networks that did not diverge."""
        return results.rows(self.trial, quantity=quantity, diverged=False, **self.where)

    def curve(self, results: Results, quantity: str, layer: int = -1) -> tuple[np.ndarray, np.ndarray]:
        """Epochs, and a quantity (networks, epochs) in the order of seeds; layer −1 is of all path lengths."""
        rows = matching(self.rows(results, quantity), layer=layer)
        wide = rows.pivot_table(index="seed", columns="epoch", values="value", observed=True)
        return wide.columns.to_numpy(), wide.to_numpy(dtype=float)

    def seeds(self, results: Results) -> list[int]:
        """The seeds of the networks, in the order in which ``curve`` has them."""
        return sorted({int(seed) for seed in self.rows(results, DEPTH)["seed"]})

    def by_length(self, results: Results, quantity: str, epoch: int) -> np.ndarray:
        """Shares (networks, lengths) at an epoch."""
        rows = matching(self.rows(results, quantity), epoch=epoch)
        wide = rows.pivot_table(index="seed", columns="layer", values="value", observed=True)
        return wide.to_numpy(dtype=float)


def toy_group(results: Results, name: str) -> Group:
    """Small networks of one kind."""
    return Group(name, toys.train, {"stage": name}, toy_sizes(results.settings).blocks)


def is_toy(group: Group) -> bool:
    """Whether a group's networks are small ones."""
    return group.trial is toys.train


def resnet_groups(results: Results, stage: str = resnet_settings.NETWORKS) -> Iterator[Group]:
    """ResNets per data set; those whose γ stays 1 are of the first set only."""
    settings = results.settings
    if not settings.resnets:
        return
    sizes = resnet_sizes(settings)
    frozen = stage == resnet_settings.FROZEN
    for data in settings.data[:1] if frozen else settings.data:
        names = STILL if frozen else LABELS
        where = {"stage": stage, "data": data, "branch": resnets.MAIN}
        if any(part.stage == stage for part in results.parts):
            yield Group(names.get(data, data), resnets.train, where, len(sizes.filters) * sizes.blocks)


def doubt(results: Results, group: Group) -> str:
    """Why ResNets are not judged: they are not as good as the paper's ("" if they are)."""
    data = group.where.get("data")
    if data is None:
        return ""
    limit = LIMITS.get(data, 1.0) if results.settings.limited else 1.0
    errors = group.curve(results, "test_error", 0)[1][:, -1]
    far = bool(len(errors)) and float(errors.mean()) > limit
    return f"test error {errors.mean():.3f}, above {limit:g}: not the paper's networks" if far else ""
