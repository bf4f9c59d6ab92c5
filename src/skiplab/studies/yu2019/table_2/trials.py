"""Residual networks and the plain networks that T makes of them, trained on the same batches.

The penalty of the plain networks is ‖T⁻¹(p)‖², so that only rounding drives the two apart. The table has a row per
pair, step and quantity, as ``experiments.equivalent_pairs`` says, and the error on test images at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skiplab.reproduction import Bench, trial
from skiplab.studies.yu2019.transferred import penalties_of

if TYPE_CHECKING:
    import pandas as pd

    from skiplab.data import TensorSet
    from skiplab.ensembles import Ensemble
    from skiplab.training import Plan

FIRST, SECOND = "first", "second"  # the residual networks, and the plain ones
SECOND_LAYER = "blocks.0"  # the stem is the first
TEST_CHUNK = 500  # images per forward pass when testing: bounds memory, changes nothing


@dataclass(frozen=True)
class Training:
    """How networks are trained: the paper's epochs, rate, drops, batches and weight decay.

    Momentum, crops and flips are not stated; Tables 1 and 4 ask for them.
    """

    images: int | None = None
    side: int | None = None
    epochs: int = 200
    drops: tuple[int, ...] = (120, 160)
    batch_size: int = 128
    rate: float = 1e-2
    momentum: float = 0.9
    decay: float = 1e-4
    padding: int = 4
    mixed: bool = False  # bfloat16 in convolutions


@dataclass(frozen=True)
class Pairs:
    """Settings of one trial: a depth, a pair per seed.

    Losses are compared on ``probe`` training images after every ``every`` steps (0: not at all), the outputs of the
    second layer after one step. ``test`` tells the error on test images, on ``test_images`` of them if fewer.
    """

    data: str
    depth: int
    seeds: tuple[int, ...]
    training: Training
    precision: str = "float32"
    filters: tuple[int, ...] = (16, 32, 64)
    every: int = 0
    probe: int = 128
    test: bool = False
    test_images: int | None = None


def memory(settings: Pairs, device: str) -> int:
    """About how many bytes training one member of all pairs takes on a device; the other waits."""
    import dataclasses

    import torch

    from skiplab import data
    from skiplab.training.memory import training_bytes

    common = settings.training
    samples = data.outline(settings.data, images=common.images, side=_side(settings), flat=False)
    inputs = samples.inputs.to(getattr(torch, settings.precision))
    samples = dataclasses.replace(samples, inputs=inputs)
    network = _residual(settings, samples, settings.seeds[:1], "cpu").skeleton
    return training_bytes(network, samples, len(settings.seeds), common.batch_size, device)


@trial("yu2019/train-pairs", version=1, memory=memory)
def train_pairs(settings: Pairs, bench: Bench) -> pd.DataFrame:
    """Train pairs with the matching weight decay and tabulate how they part."""
    import pandas as pd

    from skiplab.architectures.transfer import to_plain
    from skiplab.experiments.equivalent_pairs import EquivalentPair
    from skiplab.reproduction.arithmetic import full_float32

    common = settings.training
    samples = _samples(settings, "train", bench.device)
    probe = (samples.inputs[: settings.probe], samples.labels[: settings.probe])
    pair = EquivalentPair.of(_residual(settings, samples, settings.seeds, bench.device), to_plain, probe)
    steps = common.epochs * -(-len(samples) // common.batch_size)
    with full_float32():  # in tf32 what is learnt beside an ID entry of 1 would lose all but its first bits
        frame = pair.train(
            samples,
            _plan(settings),
            probe=probe,
            penalties=penalties_of(pair.first, pair.second, common.decay),
            at=(1,) if settings.every else (),
            losses_at=sorted({*range(0, steps, settings.every), steps}) if settings.every else (),
            layers=[SECOND_LAYER],
            bench=bench,
        )
    if settings.test:
        held_out = _samples(settings, "test", bench.device)
        ends = [
            {"seed": seed, "kind": kind, "step": steps, "quantity": "test_error", "layer": "", "value": error}
            for kind, nets in ((FIRST, pair.first), (SECOND, pair.second))
            for seed, error in zip(settings.seeds, errors(nets, held_out), strict=True)
        ]
        frame = pd.concat([frame, pd.DataFrame(ends)], ignore_index=True)
    words = dict.fromkeys(["kind", "quantity", "layer"], "category")
    epoch = frame["step"] * common.epochs / steps
    return frame.assign(data=settings.data, depth=settings.depth, epoch=epoch).astype(words)


def errors(nets: Ensemble, samples: TensorSet) -> list[float]:
    """Each network's share of wrong answers; NaN for one that diverged to outputs that are no numbers."""
    import torch.nn.functional as F

    from skiplab.measurements.answers import Tally, answers
    from skiplab.subjects import Subject

    subject, tally = Subject.of(nets, criterion=F.cross_entropy), Tally()
    for batch in zip(samples.inputs.split(TEST_CHUNK), samples.labels.split(TEST_CHUNK), strict=True):
        found = answers(subject, batch)
        tally.add(found, found, batch)
    return (1 - tally.accuracy).tolist()


def _plan(settings: Pairs) -> Plan:
    from skiplab.training import Plan
    from skiplab.training.augmentation import CropAndFlip
    from skiplab.training.optimisers import SGD
    from skiplab.training.schedules import Steps

    common = settings.training
    return Plan(
        epochs=common.epochs,
        batch_size=common.batch_size,
        seeds=settings.seeds,
        rate=common.rate,
        optimiser=SGD(common.momentum),
        schedule=Steps(common.drops),
        augmentation=CropAndFlip(common.padding),
        mixed=common.mixed,
    )


def _side(settings: Pairs) -> int | None:
    return None if settings.data == "digits" else settings.training.side


def _samples(settings: Pairs, split: str, device: str) -> TensorSet:
    """The images of a split; those to test on are standardised as the training images are."""
    import dataclasses

    import torch

    from skiplab import data

    own: dict[str, Any] = {"images": settings.training.images, "side": _side(settings), "flat": False}
    found = data.tensors(settings.data, split, device=device, dtype=getattr(torch, settings.precision), **own)
    count = settings.test_images if split == "test" else None
    return dataclasses.replace(found, inputs=found.inputs[:count], labels=found.labels[:count])


def _residual(settings: Pairs, samples: TensorSet, seeds: tuple[int, ...], device: str) -> Ensemble:
    """The residual networks of these seeds, the same as all studies of this paper build."""
    import torch

    from skiplab.architectures.simplified import SimplifiedResNet, blocks_of_depth
    from skiplab.ensembles import Ensemble
    from skiplab.randomness import torch_generator

    sizes: dict[str, Any] = {
        "filters": settings.filters,
        "channels": samples.inputs.shape[1],
        "outputs": samples.classes,
        "dtype": getattr(torch, settings.precision),
    }
    blocks = blocks_of_depth(settings.depth)
    nets = [SimplifiedResNet(blocks, generator=torch_generator(seed, "network"), **sizes) for seed in seeds]
    return Ensemble.of(nets, device=device)
