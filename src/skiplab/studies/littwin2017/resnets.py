"""ResNet-32 on images, trained as the public Torch code that the paper used, and measured: figures 2 and 3, paths.

A trial trains some networks together. From their state after epoch ``fork_at`` further trainings may branch off:
"rate-kept" does not lower the rate, "scales-spared" does not let γ decay. Rows of the networks themselves have the
branch "main". What is measured: test errors and means over layers at every epoch, ``resnet_measures`` at some.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skiplab.files import aside_folder
from skiplab.reproduction.trial import Bench, trial

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor, nn

    from skiplab.data import TensorSet
    from skiplab.ensembles import Ensemble
    from skiplab.training import Plan

MAIN, RATE_KEPT, SCALES_SPARED = "main", "rate-kept", "scales-spared"


@dataclass(frozen=True)
class ImageTraining:
    """How networks are trained, all as in the public code: its epochs 81 and 122 are the first after ``drops``.

    ``images`` and ``side`` shrink the data, ``padding`` None trains on the images as they are, ``mixed`` computes in
    bfloat16.
    """

    images: int | None = None
    side: int | None = None
    epochs: int = 164
    drops: tuple[int, ...] = (80, 121)
    batch_size: int = 128
    rate: float = 0.1
    momentum: float = 0.9
    decay: float = 1e-4
    padding: int | None = 4
    mixed: bool = True


@dataclass(frozen=True)
class ResNets:
    """Settings of one trial: ResNet-(6·blocks + 2), a network per seed.

    ``forks`` branch off after epoch ``fork_at`` with the first ``forked`` networks and end after ``fork_epochs``.
    ``layers_at`` names the epochs at which layers are measured one by one, ``paths_at`` those of path lengths.
    """

    data: str
    seeds: tuple[int, ...]
    training: ImageTraining = ImageTraining()
    blocks: int = 5
    filters: tuple[int, ...] = (16, 32, 64)
    skips: bool = True
    frozen: bool = False  # every γ stays 1
    forks: tuple[str, ...] = ()
    forked: int = 0
    fork_at: int = 80
    fork_epochs: int = 121
    test_images: int | None = None
    layers_at: tuple[int, ...] = (0,)
    paths_at: tuple[int, ...] = ()
    path_images: int = 512


def build(settings: ResNets, samples: TensorSet, seed: int) -> nn.Module:
    """Build one network from its seed alone: w ~ N(0, 2/(9·filters)), γ = 1, as in the public code."""
    from torch import nn

    from skiplab.architectures.initialisers import He, UniformByFanIn
    from skiplab.architectures.resnet import ResNet
    from skiplab.randomness import torch_generator

    net = ResNet(
        settings.blocks,
        generator=torch_generator(seed, "network"),
        skips=settings.skips,
        init=He(counts="output"),
        output_init=UniformByFanIn(biases=False),
        filters=settings.filters,
        channels=samples.inputs.shape[1],
        outputs=samples.classes,
    )
    for part in net.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.weight.requires_grad_(not settings.frozen)
    return net


@lru_cache(maxsize=2)
def samples_of(name: str, split: str, images: int | None, side: int | None, device: str) -> TensorSet:
    """The images of a split; kept for the next trial, which mostly asks for the same."""
    from skiplab import data

    side = None if name == "digits" else side
    return data.tensors(name, split, images=images, side=side, flat=False, device=device)


def memory(settings: ResNets, device: str) -> int:
    """About how many bytes training the members takes on a device."""
    from skiplab import data
    from skiplab.training.memory import training_bytes

    common = settings.training
    side = None if settings.data == "digits" else common.side
    samples = data.outline(settings.data, images=common.images, side=side, flat=False)
    network = build(settings, samples, settings.seeds[0])
    return training_bytes(network, samples, len(settings.seeds), common.batch_size, device)


@trial("littwin2017/train-resnets", version=1, memory=memory)
def train(settings: ResNets, bench: Bench) -> pd.DataFrame:
    """Train the networks, then the trainings that branch off, and measure all of them on the way."""
    import pandas as pd

    from skiplab.training.checkpoints import Checkpoints

    common = settings.training
    samples = samples_of(settings.data, "train", common.images, common.side, bench.device)
    modules = [build(settings, samples, seed) for seed in settings.seeds]
    with aside_folder(Path(tempfile.gettempdir())) as scratch:
        folder = bench.checkpoints or scratch
        trunk = Checkpoints(folder, keep=settings.fork_at if settings.forks else None)
        tables = [_trained(settings, MAIN, modules, samples, trunk, bench)]
        for name in settings.forks:
            own = replace(settings, seeds=settings.seeds[: settings.forked], forks=())
            own = replace(own, training=replace(common, epochs=settings.fork_epochs))
            start = _start(trunk, settings.forked, settings.fork_epochs)
            checkpoints = Checkpoints(folder / name, start=start)
            tables.append(_trained(own, name, modules[: settings.forked], samples, checkpoints, bench))
    return pd.concat(tables, ignore_index=True).astype(
        dict.fromkeys(["branch", "data", "quantity"], "category")
    )


def _start(trunk: Any, members: int, epochs: int) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The kept state of the first networks, for a training of so many epochs."""
    tensors, notes = trunk.kept()
    metrics = tensors.pop("metrics")[:, :epochs, :members]
    return {name: tensor[:members] for name, tensor in tensors.items()} | {"metrics": metrics}, {
        "epoch": notes["epoch"],
        "rows": [],
    }


def _trained(
    settings: ResNets,
    branch: str,
    modules: list[nn.Module],
    samples: TensorSet,
    checkpoints: Any,
    bench: Bench,
) -> pd.DataFrame:
    from skiplab.ensembles import Ensemble
    from skiplab.studies.littwin2017.recording import table
    from skiplab.training import train as train_ensemble

    ensemble = Ensemble.of(modules, device=bench.device)
    plan = plan_of(settings, branch, ensemble, samples, bench.device)

    def tell(done: float, text: str) -> None:
        bench.tell(done, f"{branch}, {text}")

    history = train_ensemble(
        ensemble, samples, plan, checkpoints=checkpoints, tell=tell, deadline=bench.deadline
    )
    first = 1 if branch == MAIN else settings.fork_at + 1
    frame = table(settings.seeds, history, range(first, settings.training.epochs + 1))
    return frame.assign(branch=branch, data=settings.data)


def plan_of(settings: ResNets, branch: str, ensemble: Ensemble, samples: TensorSet, device: str) -> Plan:
    """SGD with Nesterov's momentum, the rate lowered after ``drops``, and decay of all parameters, γ included."""
    from skiplab.studies.littwin2017.resnet_measures import scales_of, when_training
    from skiplab.training import Plan
    from skiplab.training.augmentation import CropAndFlip
    from skiplab.training.optimisers import SGD
    from skiplab.training.regularisers import weight_decay
    from skiplab.training.schedules import Steps

    common = settings.training
    unseen = samples_of(settings.data, "test", common.images, common.side, device)
    spared = scales_of(ensemble) if branch == SCALES_SPARED else ()
    decay = weight_decay(ensemble, common.decay, biases=True, but=spared)
    return Plan(
        epochs=common.epochs,
        batch_size=common.batch_size,
        seeds=settings.seeds,
        rate=common.rate,
        optimiser=SGD(common.momentum, nesterov=True),
        schedule=Steps(() if branch == RATE_KEPT else common.drops),
        augmentation=None if common.padding is None else CropAndFlip(common.padding),
        penalties=[decay] if common.decay else [],
        callbacks=when_training(settings, ensemble, samples, unseen),
        mixed=common.mixed,
    )
