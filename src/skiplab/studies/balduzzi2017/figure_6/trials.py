"""The thin convolutional networks of figure 6, trained (section 5.1 and appendix A4).

A trial trains some networks of one model at one depth as one ensemble. Its table is long: one row per network,
epoch and quantity (training loss and accuracy, the factor on the learning rate, test accuracy).
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skiplab.checks import require
from skiplab.experiments.long_tables import long_table
from skiplab.reproduction import Bench, trial
from skiplab.studies.balduzzi2017.images import outline_of, samples_of

if TYPE_CHECKING:
    import pandas as pd
    from torch import nn

    from skiplab.data import TensorSet
    from skiplab.ensembles import Ensemble
    from skiplab.training import History

# What each model is as a ThinNet: those of the figure in the order of the paper's legend, then section 5's PReLU.
KINDS = {"crelu-ll": "crelu", "crelu": "crelu", "resnet": "resnet", "relu": "relu", "prelu-ll": "relu"}
LOOKS_LINEAR = {"crelu-ll": "crelu", "prelu-ll": "prelu"}
LINEAR = "linear"  # the baseline: one matrix, of depth 1
TEST_CHUNK = 500  # images per forward pass when testing: bounds memory, changes nothing


@dataclass(frozen=True)
class ThinTraining:
    """How all networks of the figure are trained; window … drop are the auto-scheduler's."""

    images: int | None = None
    side: int | None = None
    epochs: int = 100
    batch_size: int = 128
    rate: float = 1e-3
    padding: int = 4
    batch_norm: bool = True
    window: int = 10
    patience: int = 5
    threshold: float = 0.01
    drop: float = 0.5
    mixed: bool = False  # bfloat16 in convolutions and products


@dataclass(frozen=True)
class ThinNetworks:
    """Settings of one training trial: a model, a depth, a member per seed.

    ``checkpoint_every`` trades time for memory (activities are computed again in the backward pass) and moves
    numbers by rounding alone.
    """

    data: str
    model: str
    depth: int
    seeds: tuple[int, ...]
    training: ThinTraining
    test_epochs: tuple[int, ...] = ()
    test_images: int | None = None
    checkpoint_every: int | None = None


def memory(settings: ThinNetworks, device: str) -> int:
    """About how many bytes training the members takes on a device, without mixed precision."""
    from skiplab.training.memory import training_bytes

    common = settings.training
    samples = outline_of(settings.data, common.images, common.side)
    network = build(settings, samples, settings.seeds[0])
    return training_bytes(network, samples, len(settings.seeds), common.batch_size, device)


@trial("balduzzi2017/train-convnets", version=1, memory=memory)
def train(settings: ThinNetworks, bench: Bench) -> pd.DataFrame:
    """Train the members with Adam and the auto-scheduler; test them at the epochs asked for and at the end."""
    from skiplab.ensembles import Ensemble
    from skiplab.training import Plan
    from skiplab.training import train as train_ensemble
    from skiplab.training.augmentation import CropAndFlip
    from skiplab.training.checkpoints import Checkpoints
    from skiplab.training.loop import Callback
    from skiplab.training.schedules import AutoDrop

    common = settings.training
    samples = samples_of(settings.data, "train", common.images, common.side, bench.device)
    steps = -(-len(samples) // common.batch_size)
    modules = [build(settings, samples, seed) for seed in settings.seeds]
    ensemble = Ensemble.of(modules, device=bench.device)
    at = {epoch * steps: epoch for epoch in (*settings.test_epochs, common.epochs) if epoch <= common.epochs}

    def test(ensemble: Ensemble, step: int) -> list[dict[str, Any]]:
        right = accuracy(ensemble, held_out(settings, bench.device))
        return [
            {"member": member, "epoch": at[step], "quantity": "test_accuracy", "value": value}
            for member, value in enumerate(right)
        ]

    schedule = AutoDrop(common.window, common.patience, common.threshold, common.drop)
    plan = Plan(
        epochs=common.epochs,
        batch_size=common.batch_size,
        seeds=settings.seeds,
        rate=common.rate,
        schedule=schedule,
        augmentation=CropAndFlip(common.padding),
        callbacks=[Callback(frozenset(at), test)],
        mixed=common.mixed,
    )
    checkpoints = Checkpoints(bench.checkpoints) if bench.checkpoints else None
    history = train_ensemble(
        ensemble, samples, plan, checkpoints=checkpoints, tell=bench.tell, deadline=bench.deadline
    )
    factors = [schedule.factor(epoch, history.loss[:epoch]).tolist() for epoch in range(common.epochs)]
    return table(settings, rows_of(history, factors, 1 / samples.classes), history.diverged.tolist())


def rows_of(history: History, factors: list[list[float]], chance: float) -> list[dict[str, Any]]:
    """Rows by member and epoch; a network answers at chance from the epoch in which it diverged."""
    gone = history.loss.isnan()
    quantities = {
        "accuracy": history.accuracy.nan_to_num(nan=chance).tolist(),
        "loss": history.loss.tolist(),
        "rate_factor": factors,
    }
    rows = [
        {"member": member, "epoch": epoch, "quantity": quantity, "value": value}
        for quantity, epochs in quantities.items()
        for epoch, members in enumerate(epochs, 1)
        for member, value in enumerate(members)
    ]
    for row in history.rows:
        lost = row["epoch"] > 0 and bool(gone[row["epoch"] - 1, row["member"]])
        rows.append({**row, "value": chance} if lost else row)
    return rows


def table(settings: ThinNetworks, rows: list[dict[str, Any]], diverged: list[bool]) -> pd.DataFrame:
    """A trial's long table."""
    known = {
        "network_id": [network_id(settings, seed) for seed in settings.seeds],
        "data": settings.data,
        "model": settings.model,
        "depth": settings.depth,
        "seed": settings.seeds,
        "diverged": diverged,
    }
    return long_table(rows, known, epoch="int16", depth="int16", value="float32")


def network_id(settings: ThinNetworks, seed: int) -> str:
    """A name for one trained network that does not depend on which others shared its trial."""
    own = [settings.data, settings.model, settings.depth, seed, vars(settings.training)]
    return hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()[:12]


# Samples and networks --------------------------------------------------------------------------------------


def blocks_of(depth: int) -> int:
    """The r of appendix A4: depth = 4r + 2 layers with weights, so 198 is r = 49."""
    require(
        depth >= 6 and (depth - 2) % 4 == 0,
        f"depth is {depth}, but these networks have 4r + 2 layers; choose 6, 10, 14, …, 198.",
    )
    return (depth - 2) // 4


def build(settings: ThinNetworks, samples: TensorSet, seed: int) -> nn.Module:
    """Build one member from its seed alone, so that it equals the network trained by itself."""
    from skiplab.architectures.initialisers import He
    from skiplab.architectures.thin import ThinNet
    from skiplab.randomness import torch_generator

    if settings.model == LINEAR:
        from torch import nn

        matrix = nn.Linear(samples.inputs[0].numel(), samples.classes)
        return He().apply(nn.Sequential(nn.Flatten(), matrix), torch_generator(seed, "network"))
    network = ThinNet(
        blocks_of(settings.depth),
        generator=torch_generator(seed, "network"),
        kind=KINDS[settings.model],
        batch_norm=settings.training.batch_norm,
        channels=samples.inputs.shape[1],
        outputs=samples.classes,
        image_size=samples.inputs.shape[-1],
        checkpoint_every=settings.checkpoint_every,
    )
    if settings.model in LOOKS_LINEAR:
        from skiplab.remedies.looks_linear import looks_linear

        kind = LOOKS_LINEAR[settings.model]
        return looks_linear(network, generator=torch_generator(seed, "looks linear"), kind=kind)
    return network


def held_out(settings: ThinNetworks, device: str) -> TensorSet:
    """The images to test on, centred and scaled as the training images are."""
    common = settings.training
    # Mean and scale are those of as many training images as are named here, so it must be the same number.
    found = samples_of(settings.data, "test", common.images, common.side, device)
    count = settings.test_images
    return dataclasses.replace(found, inputs=found.inputs[:count], labels=found.labels[:count])


def accuracy(ensemble: Ensemble, samples: TensorSet) -> list[float]:
    """Each member's share of right answers, with the running statistics of its normalisations."""
    import torch

    ensemble.train(False)
    hits = torch.zeros(ensemble.size, dtype=torch.int64, device=ensemble.device)
    with torch.no_grad():
        for inputs, labels in zip(
            samples.inputs.split(TEST_CHUNK), samples.labels.split(TEST_CHUNK), strict=True
        ):
            hits += (ensemble(inputs).argmax(-1) == labels).sum(1)
    return (hits.double() / len(samples)).tolist()
