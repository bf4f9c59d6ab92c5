"""The networks that most items of yu2019 train: declared here once, so that they are shared.

A trial trains all networks of one model and depth as one batch and measures them on the way (``measures``). Plain and
residual networks of equal seed share their Gaussian draws, each scaled by its own deviation, their batches, crops and
flips, and so are pairs. Its table is long: one row per network, epoch, layer and quantity.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from skiplab.experiments.long_tables import long_table
from skiplab.reproduction.trial import Bench, trial

if TYPE_CHECKING:
    import pandas as pd
    from torch import nn

    from skiplab.data import TensorSet
    from skiplab.ensembles import Ensemble
    from skiplab.training.loop import Callback, History

LEAST_SIDE = 16  # the networks halve images twice; smaller ones, such as digits, are enlarged


@dataclass(frozen=True)
class Training:
    """How networks are trained: the paper's 200 epochs, its drops, batches and weight decay.

    Momentum and crops and flips are not stated; Table 4's weight norms ask for the first and Table 1's errors for
    the second. ``padding`` None trains on the images as they are.
    """

    images: int | None = None
    side: int | None = None
    epochs: int = 200
    drops: tuple[int, ...] = (120, 160)
    batch_size: int = 128
    momentum: float = 0.9
    decay: float = 1e-4
    padding: int | None = 4
    mixed: bool = False  # bfloat16 in convolutions


@dataclass(frozen=True)
class Measures:
    """At which epochs (0: before training) what is measured, and on how many images; see ``measures``."""

    test_every: int = 1  # 0: never
    clean: tuple[int, ...] = ()
    weights: tuple[int, ...] = ()
    cushions: tuple[int, ...] = ()
    noise: tuple[int, ...] = ()
    flows: tuple[int, ...] = ()  # here 0 is after the first iteration, as in figure 12
    final_gradients: tuple[int, ...] = ()
    interlayer: tuple[int, ...] = ()
    diagonals: tuple[int, ...] = ()
    test_images: int | None = None
    cushion_images: int = 1000
    noise_images: int = 500
    noise_draws: int = 3
    flow_images: int = 128
    interlayer_images: int = 32


@dataclass(frozen=True)
class Networks:
    """Settings of one trial: a model, a depth, a network per seed.

    ``share`` adds so much to the ID entries of a "dosed" network, ``shuffled`` to as many others.
    """

    data: str
    model: str
    depth: int
    seeds: tuple[int, ...]
    training: Training
    rate: float = 1e-2
    filters: tuple[int, ...] = (16, 32, 64)
    share: float = 0.0
    shuffled: bool = False
    measures: Measures = field(default_factory=Measures)


# Building ------------------------------------------------------------------------------------------------------


def build(settings: Networks, samples: TensorSet, seed: int) -> nn.Module:
    """Build one network from its seed alone, so that it equals the network trained by itself."""
    from skiplab.architectures.diagonal import SimplifiedDiagonalNet
    from skiplab.architectures.initialisers import HMWI, KWI
    from skiplab.architectures.resnet import ResNet
    from skiplab.architectures.simplified import SimplifiedPlnNet, SimplifiedResNet, blocks_of_depth
    from skiplab.architectures.transfer import with_identities
    from skiplab.checks import one_of, require
    from skiplab.randomness import torch_generator

    one_of("model", settings.model, MODELS)
    own: dict[str, Any] = {
        "generator": torch_generator(seed, "network"),
        "filters": settings.filters,
        "channels": samples.inputs.shape[1],
        "outputs": samples.classes,
    }
    depth = settings.depth
    if settings.model in FULL:
        require(depth % 6 == 2, f"depth is {depth}, but full networks have 6n + 2 layers; choose 20, say.")
        return ResNet((depth - 2) // 6, skips=settings.model == "full-residual", **own)
    blocks = blocks_of_depth(depth)
    if settings.model in DIAGONAL:
        init = KWI() if settings.model == "diagonal-kwi" else HMWI()
        shift = 1 if settings.model == "diagonal-shifted" else 0
        return SimplifiedDiagonalNet(blocks, init=init, lower=DIAGONAL[settings.model], shift=shift, **own)
    if settings.model == "residual":
        return SimplifiedResNet(blocks, **own)
    if settings.model == "residual-fan-in":
        return SimplifiedResNet(blocks, init=HMWI(counts="input"), **own)
    if settings.model == "dosed":
        order = torch_generator(seed, "shuffled identities") if settings.shuffled else None
        net = SimplifiedPlnNet(blocks, init=HMWI(), **own)
        return with_identities(net, settings.share, shuffled=order)
    return SimplifiedPlnNet(blocks, **own)


DIAGONAL = {
    "diagonal": "diagonal",
    "diagonal-kwi": "diagonal",
    "diagonal-shifted": "diagonal",
    "diagonal-dense": "dense",
    "diagonal-dense-ones": "dense-with-ones",
}
FULL = ("full-plain", "full-residual")
MODELS = ("plain", "residual", "residual-fan-in", "dosed", *DIAGONAL, *FULL)


@lru_cache(maxsize=2)
def samples_of(name: str, split: str, images: int | None, side: int | None, device: str) -> TensorSet:
    """The images of a split; kept for the next trial, which mostly asks for the same."""
    from skiplab import data

    side = None if name == "digits" else side
    return enlarged(data.tensors(name, split, images=images, side=side, flat=False, device=device))


def enlarged(samples: TensorSet) -> TensorSet:
    """Repeat the pixels of images that are too small to be halved twice."""
    import dataclasses

    inputs = samples.inputs
    while inputs.shape[-1] < LEAST_SIDE:
        inputs = inputs.repeat_interleave(2, dim=-1).repeat_interleave(2, dim=-2)
    return dataclasses.replace(samples, inputs=inputs)


# Training ------------------------------------------------------------------------------------------------------


def memory(settings: Networks, device: str) -> int:
    """About how many bytes training the members takes on a device."""
    from skiplab import data
    from skiplab.training.memory import training_bytes

    common = settings.training
    side = None if settings.data == "digits" else common.side
    samples = enlarged(data.outline(settings.data, images=common.images, side=side, flat=False))
    network = build(settings, samples, settings.seeds[0])
    return training_bytes(network, samples, len(settings.seeds), common.batch_size, device)


@trial("yu2019/train-networks", version=1, memory=memory)
def train(settings: Networks, bench: Bench) -> pd.DataFrame:
    """Train the networks as the paper does; measure them at the epochs asked for."""
    from skiplab.ensembles import Ensemble
    from skiplab.studies.yu2019.measures import callbacks
    from skiplab.training import train as train_ensemble
    from skiplab.training.checkpoints import Checkpoints

    common = settings.training
    samples = samples_of(settings.data, "train", common.images, common.side, bench.device)
    modules = [build(settings, samples, seed) for seed in settings.seeds]
    ensemble = Ensemble.of(modules, device=bench.device)
    plan = plan_of(settings, ensemble, callbacks(settings, samples, bench.device))
    checkpoints = Checkpoints(bench.checkpoints) if bench.checkpoints else None
    history = train_ensemble(
        ensemble, samples, plan, checkpoints=checkpoints, tell=bench.tell, deadline=bench.deadline
    )
    return table(settings, rows_of(history), history.diverged.tolist())


def plan_of(settings: Networks, ensemble: Ensemble, calls: Sequence[Callback] = ()) -> Any:
    """SGD with the paper's rate, drops and penalty ½λ‖w‖² on all weights and, as Table 4 has it, all biases."""
    from skiplab.training import Plan
    from skiplab.training.augmentation import CropAndFlip
    from skiplab.training.optimisers import SGD
    from skiplab.training.regularisers import weight_decay
    from skiplab.training.schedules import Steps

    common = settings.training
    return Plan(
        epochs=common.epochs,
        batch_size=common.batch_size,
        seeds=settings.seeds,
        rate=settings.rate,
        optimiser=SGD(common.momentum),
        schedule=Steps(common.drops),
        augmentation=None if common.padding is None else CropAndFlip(common.padding),
        penalties=[weight_decay(ensemble, common.decay, biases=True)] if common.decay else [],
        callbacks=calls,
        mixed=common.mixed,
    )


# The table -----------------------------------------------------------------------------------------------------


def rows_of(history: History) -> list[dict[str, Any]]:
    """Rows by member and epoch: running means of loss and error, NaN once diverged, and what was measured."""
    quantities = {"loss": history.loss.tolist(), "error": (1 - history.accuracy).tolist()}
    return history.rows + [
        {"member": member, "epoch": epoch, "quantity": quantity, "layer": 0, "value": value}
        for quantity, epochs in quantities.items()
        for epoch, members in enumerate(epochs, 1)
        for member, value in enumerate(members)
    ]


def table(settings: Networks, rows: list[dict[str, Any]], diverged: list[bool]) -> pd.DataFrame:
    """A trial's long table."""
    known = {
        "network_id": [network_id(settings, seed) for seed in settings.seeds],
        "data": settings.data,
        "model": settings.model,
        "depth": settings.depth,
        "rate": settings.rate,
        "share": settings.share,
        "shuffled": settings.shuffled,
        "decay": settings.training.decay,
        "seed": settings.seeds,
        "diverged": diverged,
    }
    return long_table(rows, known, epoch="int16", layer="int16", depth="int16")


def network_id(settings: Networks, seed: int) -> str:
    """A name for one trained network that does not depend on which others shared its trial."""
    own = [settings.data, settings.model, settings.depth, seed, settings.rate, settings.filters]
    own += [settings.share, settings.shuffled, vars(settings.training)]
    return hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()[:12]
