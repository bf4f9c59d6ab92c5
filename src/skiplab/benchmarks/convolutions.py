"""Training many convolutional networks: wide ones against ``torch.vmap`` as it is and plain PyTorch one by one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skiplab.benchmarks.harness import Case

if TYPE_CHECKING:
    from skiplab.ensembles import Ensemble


@dataclass(frozen=True)
class ConvolutionSize:
    """Networks of 4·blocks + 2 layers; ``steps`` are timed together."""

    networks: int
    blocks: int
    batch: int
    steps: int


CPU_SIZE = ConvolutionSize(networks=4, blocks=3, batch=32, steps=2)
GPU_SIZE = ConvolutionSize(networks=10, blocks=12, batch=128, steps=20)


def convolution_cases(device: str, size: ConvolutionSize | None = None) -> list[Case]:
    """Some steps of the thin ReLU networks of balduzzi2017 on noise; on a CPU members are best taken in turn."""
    import torch
    import torch.nn.functional as F

    from skiplab.architectures.thin import ThinNet
    from skiplab.data import TensorSet
    from skiplab.ensembles import Ensemble
    from skiplab.randomness import torch_generator
    from skiplab.training.optimisers import Adam
    from skiplab.training.step import Step

    gpu = device.startswith("cuda")
    size = size or (GPU_SIZE if gpu else CPU_SIZE)
    draw = torch_generator("benchmark", "convolutions")
    images = torch.randn(size.batch, 3, 32, 32, generator=draw).to(device)
    labels = torch.randint(10, (size.batch,), generator=draw).to(device)
    data = TensorSet(inputs=images, labels=labels, classes=10, name="noise", fingerprint="noise")
    note = f"{size.networks} networks of {4 * size.blocks + 2} layers, {size.steps} step(s) of {size.batch} images"

    def network(seed: int) -> ThinNet:
        return ThinNet(size.blocks, generator=torch_generator(seed))

    def stacked(backend: str) -> Ensemble:
        return Ensemble.of([network(s) for s in range(size.networks)], backend=backend, device=device).train()

    def wait() -> None:
        if gpu:
            torch.cuda.synchronize()

    def steps(ensemble: Ensemble, *, mixed: bool = False) -> Callable[[], None]:
        step = Step(ensemble, data, Adam(), F.cross_entropy, (), None, mixed)
        step.rate.fill_(1e-3)
        indices = torch.arange(size.batch, device=device).expand(size.networks, -1)

        def run() -> None:
            for _ in range(size.steps):
                step(indices)
            wait()

        return run

    def one_by_one() -> Callable[[], None]:
        networks = [network(seed).to(device) for seed in range(size.networks)]
        optimisers = [torch.optim.Adam(each.parameters(), lr=1e-3) for each in networks]

        def run() -> None:
            for each, optimiser in zip(networks, optimisers, strict=True):
                for _ in range(size.steps):
                    optimiser.zero_grad()
                    F.cross_entropy(each(images), labels).backward()
                    optimiser.step()
            wait()

        return run

    vmapped = stacked("batched")
    # What torch does by itself.
    vmapped._wide = lambda *, fused: contextlib.nullcontext()  # type: ignore[method-assign]
    wide = [
        Case("skiplab, wide", steps(stacked("batched")), note),
        Case("skiplab, wide, bfloat16", steps(stacked("batched"), mixed=True), "mixed precision"),
    ]
    in_turn = Case("skiplab, loop", steps(stacked("loop")), note)
    others = [
        Case("torch.vmap", steps(vmapped), "without our rules for images"),
        Case("plain PyTorch, one by one", one_by_one(), "torch.optim.Adam, eager"),
    ]
    return [*wide, *others] if gpu else [in_turn, *wide, *others]
