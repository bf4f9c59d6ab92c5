"""Pairs of networks under T, in float64: compared as they are, and after some steps of training.

Convolutional networks are the paper's. Fully connected ones have kernels of half-width 0, which equation 1 includes;
they narrow where the convolutional ones widen, so that both halves of min(C, D) are met. All numbers are largest
differences relative to the largest value, but for counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skiplab.reproduction import Bench, trial
from skiplab.studies.yu2019.transferred import penalties_of

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor

    from skiplab.data import TensorSet
    from skiplab.ensembles import Ensemble
    from skiplab.training.regularisers import Penalty

CONVOLUTIONAL, CONNECTED = "convolutional", "fully connected"
FAMILIES = (CONVOLUTIONAL, CONNECTED)
INITS = ("HMWI", "KWI")  # with KWI the kernels are as large beside the identity as a plain network's


@dataclass(frozen=True)
class SameFunction:
    """Settings of a comparison before training: one pair per seed."""

    data: str
    family: str
    depth: int
    init: str
    seeds: tuple[int, ...]
    images: int
    side: int | None = None
    strength: float = 1e-4


@dataclass(frozen=True)
class SameSteps:
    """Settings of a comparison in training; ``decay`` is the plain networks' penalty (``pairs.DECAYS``)."""

    data: str
    family: str
    depth: int
    decay: str
    seeds: tuple[int, ...]
    images: int
    batch_size: int
    epochs: int
    side: int | None = None
    rate: float = 1e-2
    momentum: float = 0.9
    strength: float = 1e-4


@trial("yu2019/same-function", version=1)
def same_function(settings: SameFunction, bench: Bench) -> pd.DataFrame:
    """Compare pairs before training: one row per pair and quantity, of ``block`` one per layer.

    Quantities: ``residual`` T⁻¹(T(r)) and r, ``plain`` T(T⁻¹(p)) and p, ``block`` outputs of blocks, ``output``
    logits, ``gradient`` of the risk and ``cost gradient`` with the decay, the worst of all parameter tensors,
    ``cost``, and ``parameters``, by how many the plain network has more.
    """
    import pandas as pd
    import torch

    from skiplab.architectures.transfer import to_plain, to_residual
    from skiplab.subjects import Subject

    samples = _samples(settings, bench.device)
    batch = (samples.inputs, samples.labels)
    first = _residual(settings, samples, settings.init, bench.device)
    second = first.mapped(to_plain)
    back = second.mapped(to_residual)
    found = [
        ("residual", relative(back.rows, first.rows)),
        ("plain", relative(back.mapped(to_plain).rows, second.rows)),
        ("parameters", first.rows.new_full((first.size,), second.layout.count - first.layout.count)),
    ]
    decays = penalties_of(first, second, settings.strength)
    ours, theirs = (_passes(nets, own, batch) for nets, own in zip((first, second), decays, strict=True))
    for quantity in ours:
        each = [relative(*both) for both in zip(theirs[quantity], ours[quantity], strict=True)]
        found.append((quantity, torch.stack(each).amax(0)))
    rows = [
        _row(seed, quantity, value)
        for quantity, values in found
        for seed, value in _by_seed(settings, values)
    ]
    ones, others = (Subject.of(nets).activities(batch) for nets in (first, second))
    for layer, name in enumerate(ones, 2):  # the stem is the first layer
        rows += [
            _row(seed, "block", value, layer, _resizes(first, name))
            for seed, value in _by_seed(settings, relative(others[name], ones[name]))
        ]
    own: dict[str, Any] = {"family": settings.family, "depth": settings.depth, "init": settings.init}
    return pd.DataFrame(rows).assign(**own)


@trial("yu2019/same-steps", version=1)
def same_steps(settings: SameSteps, bench: Bench) -> pd.DataFrame:
    """Train pairs on the same batches by gradient descent with momentum; compare them after every few steps."""
    import math

    from skiplab.architectures.transfer import to_plain
    from skiplab.experiments.equivalent_pairs import EquivalentPair
    from skiplab.reproduction.results import matching
    from skiplab.training import Plan
    from skiplab.training.optimisers import SGD

    samples = _samples(settings, bench.device)
    probe = (samples.inputs, samples.labels)
    pair = EquivalentPair.of(_residual(settings, samples, "HMWI", bench.device), to_plain, probe)
    steps = settings.epochs * math.ceil(len(samples) / settings.batch_size)
    plan = Plan(
        epochs=settings.epochs,
        batch_size=settings.batch_size,
        seeds=settings.seeds,
        rate=settings.rate,
        optimiser=SGD(settings.momentum),
    )
    decays = penalties_of(pair.first, pair.second, settings.strength, settings.decay)
    at = sorted({*range(0, steps, max(steps // 5, 1)), 1, steps})
    frame = pair.train(samples, plan, probe=probe, penalties=decays, at=at, bench=bench)
    own: dict[str, Any] = {"family": settings.family, "depth": settings.depth, "decay": settings.decay}
    return matching(frame, kind="difference").drop(columns=["kind", "layer"]).assign(**own)


def relative(ours: Tensor, theirs: Tensor) -> Tensor:
    """The largest difference of each pair (E, …) relative to the largest value."""
    return (ours - theirs).abs().flatten(1).amax(1) / theirs.abs().flatten(1).amax(1)


def _passes(
    nets: Ensemble, penalties: Sequence[Penalty], batch: tuple[Tensor, Tensor]
) -> dict[str, list[Tensor]]:
    """What a forward and a backward pass of all networks on a batch compute, as tensors (E, …) by quantity."""
    import torch.nn.functional as F

    inputs, labels = (each.expand(nets.size, *each.shape) for each in batch)
    cost, outputs, risk = nets.gradients(inputs, labels, F.cross_entropy)
    slope = risk.clone()
    for penalty in penalties:
        penalty.add_gradient_(nets.rows, slope)
        cost = cost + penalty.value(nets.rows)
    gradients = {"gradient": risk, "cost gradient": slope}
    return {"output": [outputs], "cost": [cost[:, None]]} | {
        name: list(nets.layout.unpack(rows).values()) for name, rows in gradients.items()
    }


def _by_seed(settings: SameFunction, values: Tensor) -> Iterator[tuple[int, float]]:
    return zip(settings.seeds, values.tolist(), strict=True)


def _row(seed: int, quantity: str, value: float, layer: int = 0, resizes: bool = False) -> dict[str, Any]:
    return {"seed": seed, "quantity": quantity, "layer": layer, "resizes": resizes, "value": value}


def _samples(settings: SameFunction | SameSteps, device: str) -> TensorSet:
    import torch

    from skiplab import data

    side = None if settings.data == "digits" else settings.side
    own: dict[str, Any] = {"images": settings.images, "side": side, "dtype": torch.float64, "device": device}
    return data.tensors(settings.data, flat=settings.family == CONNECTED, **own)


def _residual(settings: SameFunction | SameSteps, samples: TensorSet, init: str, device: str) -> Ensemble:
    import torch

    from skiplab.architectures.initialisers import HMWI, KWI
    from skiplab.architectures.simplified import SimplifiedResMLP, SimplifiedResNet, blocks_of_depth
    from skiplab.checks import one_of
    from skiplab.ensembles import Ensemble
    from skiplab.randomness import torch_generator

    blocks, features = blocks_of_depth(settings.depth), samples.inputs.shape[1]
    kinds = {"HMWI": HMWI, "KWI": KWI}
    one_of("family", settings.family, FAMILIES)
    one_of("init", init, kinds)
    nets: list[Any] = []
    for seed in settings.seeds:
        own: dict[str, Any] = {
            "generator": torch_generator(seed, "network"),
            "init": kinds[init](),
            "dtype": torch.float64,
            "outputs": samples.classes,
        }
        if settings.family == CONVOLUTIONAL:
            nets.append(SimplifiedResNet(blocks, channels=features, **own))
        else:
            widths = [width for width in (64, 32, 16) for _ in range(blocks)]
            nets.append(SimplifiedResMLP(features, [64, *widths], **own))
    return Ensemble.of(nets, device=device)


def _resizes(nets: Ensemble, name: str) -> bool:
    """Whether a block ends with another number of channels than it starts with; in images it then strides too."""
    block: Any = nets.skeleton.get_submodule(name)
    outputs, inputs = block.get_parameter(f"{block.weighted}.weight").shape[:2]
    return bool(outputs != inputs)
