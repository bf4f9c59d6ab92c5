"""Training many fully connected networks: one batched computation against JAX and plain PyTorch one by one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skiplab.benchmarks.ceilings import study_precision
from skiplab.benchmarks.harness import Case
from skiplab.checks import Refused

if TYPE_CHECKING:
    from skiplab.architectures.fully_connected import ResidualNet


@dataclass(frozen=True)
class TrainingSize:
    """E residual networks and one epoch of images, in batches that divide it."""

    networks: int
    width: int
    inputs: int
    images: int
    batch: int
    depth: int = 30

    def network(self, seed: int) -> ResidualNet:
        """One of the networks, at a gain from which it trains."""
        from skiplab.architectures.fully_connected import ResidualNet
        from skiplab.architectures.initialisers import Glorot
        from skiplab.benchmarks.steps import CLASSES
        from skiplab.randomness import torch_generator

        draw = torch_generator(seed)
        shape = (self.inputs, self.width, self.depth, CLASSES)
        return ResidualNet(*shape, generator=draw, init=Glorot(gain=0.3))


CPU_SIZE = TrainingSize(networks=10, width=32, inputs=128, images=2000, batch=100)
GPU_SIZE = TrainingSize(networks=50, width=128, inputs=3072, images=50000, batch=500)
IN_PARTS = ", float32 as two bfloat16 parts"
MANY = 200  # networks that fill an H200


def training_cases(device: str) -> list[Case]:
    """One epoch of E residual nets of 30 layers; plain PyTorch trains one, and would train the others after it."""
    gpu = device.startswith("cuda")
    size = GPU_SIZE if gpu else CPU_SIZE
    cases = _ours(size, device)
    if not gpu:
        cases.append(_our_case(size, device, "loop"))
    return [*cases, *_jax(size, device, cases[0]), _plain(size, device, cases[0])]


def many_training_cases(device: str) -> list[Case]:
    """The same with more networks, where a GPU is."""
    return _ours(replace(GPU_SIZE, networks=MANY), device) if device.startswith("cuda") else []


def joined_cases(device: str) -> list[Case]:
    """Adam after the weight gradients, and as the end of them, which trials do not do; where a GPU is."""
    if not device.startswith("cuda"):
        return []
    apart, joined = (
        _our_case(GPU_SIZE, device, "batched", mixed=True, joined=each) for each in (False, True)
    )
    return [apart, replace(joined, what=f"{joined.what}, Adam at the gradients' end")]


def _ours(size: TrainingSize, device: str) -> list[Case]:
    cases = [_our_case(size, device, "batched")]
    if device.startswith("cuda"):
        try:
            cases.append(_our_case(size, device, "batched", fused=True))
        except Refused as error:  # no Triton, or a GPU whose memory the tiles do not fit
            missing = replace(
                cases[0], what=f"skiplab, batched{IN_PARTS}", run=None, note=f"skipped: {error}"
            )
            cases.append(missing)
        cases.append(_our_case(size, device, "batched", mixed=True))
    return cases


def _our_case(
    size: TrainingSize,
    device: str,
    backend: str,
    *,
    mixed: bool = False,
    fused: bool | None = None,
    joined: bool = False,
) -> Case:
    from skiplab.benchmarks.counting import training_work
    from skiplab.benchmarks.steps import noise, our_epoch, our_step
    from skiplab.ensembles import Ensemble

    data = noise(size.images, size.inputs, device=device)
    ensemble = Ensemble.drawn(size.network, size.networks, backend=backend, device=device)
    step = our_step(ensemble, data, mixed=mixed, fused=fused, joined=joined)
    if device.startswith("cuda"):
        step.compile()  # as long training does
    work = training_work(
        ensemble.skeleton,
        data.inputs[: size.batch],
        data.labels[: size.batch],
        steps=size.images / size.batch,
        networks=size.networks,
        unit="network-epoch",
        units=size.networks,
    )
    note = f"{size.networks} networks, one epoch of {size.images} samples"
    precision = "bfloat16" if mixed else study_precision(device)
    arithmetic = ", bfloat16" if mixed else IN_PARTS if fused else ""
    what = f"skiplab, {backend}{arithmetic}"
    return Case(what, our_epoch(step, size.batch, device), note, precision, work=work)


def _jax(size: TrainingSize, device: str, ours: Case) -> list[Case]:
    from skiplab.benchmarks.jax_peer import jax_epoch

    cases = []
    for precision, name in ((ours.precision, "JAX"), ("bfloat16", "JAX, bfloat16")):
        case = replace(ours, what=name, precision=precision, note="vmap and jit, a whole epoch on the device")
        try:
            cases.append(replace(case, run=jax_epoch(size, device, mixed=precision == "bfloat16")))
        except ImportError as error:
            cases.append(replace(case, run=None, note=f"skipped: {error}"))
    return cases


def _plain(size: TrainingSize, device: str, ours: Case) -> Case:
    from skiplab.benchmarks.steps import noise, plain_steps

    data = noise(size.images, size.inputs, device=device)
    run = plain_steps(size.network(0), data, size.batch, size.images // size.batch, device)
    note = f"torch.optim.Adam, eager; one network timed, × {size.networks}"
    return replace(ours, what="plain PyTorch, one by one", run=run, note=note, times=size.networks)
