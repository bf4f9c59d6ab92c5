"""Training many convolutional networks: wide ones against ``torch.vmap`` as it is and plain PyTorch one by one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skiplab.benchmarks.ceilings import study_precision, wait_for
from skiplab.benchmarks.harness import Case

if TYPE_CHECKING:
    from skiplab.architectures.convolutional import GroupedNet
    from skiplab.ensembles import Ensemble

EPOCH = 50_000  # images, of which some steps see a part


@dataclass(frozen=True)
class ConvolutionSize:
    """The residual networks of yu2019 with 3·blocks + 2 layers; ``steps`` are timed together.

    ``normalised``: ResNets with batch normalisation instead, of 6·blocks + 2 layers.
    """

    networks: int
    blocks: int
    batch: int
    steps: int
    normalised: bool = False

    @property
    def layers(self) -> int:
        """Layers with weights."""
        return (6 if self.normalised else 3) * self.blocks + 2

    def network(self, seed: int) -> GroupedNet:
        """One of the networks."""
        from skiplab.architectures.resnet import ResNet
        from skiplab.architectures.simplified import SimplifiedResNet
        from skiplab.randomness import torch_generator

        kind = ResNet if self.normalised else SimplifiedResNet
        return kind(self.blocks, generator=torch_generator(seed))


CPU_SIZE = ConvolutionSize(networks=4, blocks=2, batch=32, steps=2)
GPU_SIZE = ConvolutionSize(networks=10, blocks=6, batch=128, steps=20)
MANY = 26  # networks, as a trial of yu2019's depth 20 may have
NORMALISED = ConvolutionSize(
    networks=5, blocks=5, batch=128, steps=20, normalised=True
)  # littwin2017's ResNet-32


def convolution_cases(device: str, size: ConvolutionSize | None = None) -> list[Case]:
    """Some steps on noise, by the way that is chosen first: on a CPU members are best taken in turn."""
    gpu = device.startswith("cuda")
    size = size or (GPU_SIZE if gpu else CPU_SIZE)
    ours = _ours(size, device)
    vmapped = _stacked(size, device, "batched")
    # What torch does by itself, whatever is asked for.
    vmapped._wide = lambda **options: contextlib.nullcontext()  # type: ignore[method-assign]
    note = "without our rules for images"
    return [
        *ours,
        replace(ours[0], what="torch.vmap", run=_steps(size, vmapped, device), note=note),
        *(_plain(size, device, ours[0], mixed=mixed) for mixed in ((False, True) if gpu else (False,))),
    ]


def many_convolution_cases(device: str) -> list[Case]:
    """The same with more networks, where a GPU is."""
    return _ours(replace(GPU_SIZE, networks=MANY), device) if device.startswith("cuda") else []


def normalised_convolution_cases(device: str) -> list[Case]:
    """ResNets with batch normalisation, where a GPU is."""
    return convolution_cases(device, NORMALISED) if device.startswith("cuda") else []


def _ours(size: ConvolutionSize, device: str) -> list[Case]:
    from skiplab.benchmarks.counting import training_work
    from skiplab.benchmarks.steps import noise

    data = noise(size.batch, 3, 32, 32, device="cpu")
    work = training_work(
        size.network(0),
        data.inputs,
        data.labels,
        steps=size.steps,
        networks=size.networks,
        unit="network-epoch",
        units=size.networks * size.steps * size.batch / EPOCH,
    )
    normalised = ", with batch normalisation" if size.normalised else ""
    layers = f"{size.layers} layers{normalised}"
    note = f"{size.networks} networks of {layers}, {size.steps} step(s) of {size.batch} images"
    blank = Case("", None, note, study_precision(device), work=work)
    wide = [
        replace(blank, what="skiplab, wide", run=_steps(size, _stacked(size, device, "batched"), device)),
        replace(
            blank,
            what="skiplab, wide, bfloat16",
            run=_steps(size, _stacked(size, device, "batched"), device, mixed=True),
            precision="bfloat16",
        ),
    ]
    if device.startswith("cuda"):
        return wide
    return [
        replace(blank, what="skiplab, loop", run=_steps(size, _stacked(size, device, "loop"), device)),
        *wide,
    ]


def _stacked(size: ConvolutionSize, device: str, backend: str) -> Ensemble:
    from skiplab.ensembles import Ensemble

    return Ensemble.of([size.network(s) for s in range(size.networks)], backend=backend, device=device)


def _steps(
    size: ConvolutionSize, ensemble: Ensemble, device: str, *, mixed: bool = False
) -> Callable[[], None]:
    import torch

    from skiplab.benchmarks.steps import noise, our_step

    step = our_step(ensemble, noise(size.batch, 3, 32, 32, device=device), mixed=mixed)
    indices = torch.arange(size.batch, device=device).expand(size.networks, -1)

    def run() -> None:
        for _ in range(size.steps):
            step(indices)
        wait_for(device)

    return run


def _plain(size: ConvolutionSize, device: str, ours: Case, *, mixed: bool) -> Case:
    from skiplab.benchmarks.steps import noise, plain_steps

    data = noise(size.batch * size.steps, 3, 32, 32, device=device)
    return replace(
        ours,
        what="plain PyTorch, one by one" + (", bfloat16" if mixed else ""),
        run=plain_steps(size.network(0), data, size.batch, size.steps, device, mixed=mixed),
        note=f"torch.optim.Adam, eager; one network timed, × {size.networks}",
        precision="bfloat16" if mixed else ours.precision,
        times=size.networks,
    )
