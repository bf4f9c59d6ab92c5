"""Stochastic Lanczos quadrature of a network's Hessian: ours against public peers.

- ``hessian``: 10 probes × 80 steps on a plain net of 10 × 32 units and 1,000 samples, all parameters above the first
  layer (9,834);
- ``large``: 1 probe × 20 steps on all 873,482 parameters of a plain net of 30 × 128 units on 3,072 inputs, 5,000
  samples as one batch, against PyHessian. Both do six matrix products a layer for a Hessian product, so there is
  little to win;
- ``loader``: the same with the samples in batches of 500, as networks of this size are trained. PyHessian computes
  the passes through the network anew for every product and batch; we keep them and put batches together.

Peers are optional: ``pip install --pre pyhessian curvlinops-for-pytorch hessian-eigenthings``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from skiplab.benchmarks.ceilings import study_precision
from skiplab.benchmarks.harness import Case, Work


@dataclass(frozen=True)
class HessianSize:
    """The network, the samples and the work."""

    inputs: int
    width: int
    depth: int
    samples: int
    probes: int
    steps: int
    first_layer: bool
    batch_size: int | None = None  # all samples in one batch

    def work(self) -> Work:
        """What the products with the Hessian take: see ``product_work``."""
        layers = [(self.inputs, self.width)] * self.first_layer + [(self.width, self.width)] * (
            self.depth - 1
        )
        return product_work([*layers, (self.width, 10)], self.samples, self.probes * self.steps, "product")


def product_work(layers: Sequence[tuple[int, int]], samples: int, products: int, unit: str) -> Work:
    """The work of some Hessian products of a network of linear layers, (inputs, outputs) each.

    By Pearlmutter's rules a layer takes six matrix products: two forwards (weights with the tangent, the vector with
    the activities), two backwards and two for the answer; the first one only two, since what comes in has no
    tangent and nothing goes further back. At least it moves, in float32, the weights and the vector twice, the answer
    once, and for every sample the activities and their gradients once each.
    """
    weights = [inputs * outputs for inputs, outputs in layers]
    flops = 2 * samples * (2 * weights[0] + 6 * sum(weights[1:]))
    activities = sum(inputs for inputs, _ in layers) + sum(outputs for _, outputs in layers)
    traffic = 4 * (5 * sum(weights) + samples * activities)
    return Work(products * flops, products * traffic, products, unit)


SMALL = HessianSize(inputs=128, width=32, depth=10, samples=1000, probes=10, steps=80, first_layer=False)
LARGE = HessianSize(inputs=3072, width=128, depth=30, samples=5000, probes=1, steps=20, first_layer=True)
LOADER_BATCH = 500


def hessian_cases(device: str) -> list[Case]:
    """The small network: ours first, then every peer that is installed; the others with the word why not."""
    peers = {"PyHessian": _pyhessian, "curvlinops": _curvlinops, "hessian-eigenthings": _eigenthings}
    return _cases(SMALL, peers, device)


def large_hessian_cases(device: str) -> list[Case]:
    """The network of the paper's width, against PyHessian."""
    return _cases(LARGE, {"PyHessian": _pyhessian}, device)


def loader_hessian_cases(device: str) -> list[Case]:
    """The same network on a loader of small batches."""
    return _cases(replace(LARGE, batch_size=LOADER_BATCH), {"PyHessian": _pyhessian}, device)


def _cases(
    size: HessianSize, peers: dict[str, Callable[..., Callable[[], object]]], device: str
) -> list[Case]:
    import torch
    from torch import nn

    from skiplab.architectures.fully_connected import PlainNet
    from skiplab.architectures.initialisers import Glorot
    from skiplab.curvature.spectrum_methods import Lanczos
    from skiplab.measurements.hessian_spectrum import hessian_spectrum
    from skiplab.randomness import torch_generator

    draw = torch_generator("benchmark", "hessian")
    inputs = torch.randn(size.samples, size.inputs, generator=draw).to(device)
    labels = torch.randint(10, (size.samples,), generator=draw).to(device)
    model = PlainNet(size.inputs, size.width, size.depth, 10, generator=draw, init=Glorot(2**0.5))
    model = model.to(device).eval()
    model.hidden[0].requires_grad_(size.first_layer)
    criterion = nn.CrossEntropyLoss()
    count = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)

    step = size.batch_size or size.samples
    batches = list(zip(inputs.split(step), labels.split(step), strict=True))

    def ours() -> None:
        method = Lanczos(probes=size.probes, steps=size.steps, max_steps=size.steps)
        hessian_spectrum(model, batches, criterion=criterion, method=method)

    work = f"{size.probes} probes × {size.steps} steps, {count:,} parameters, {size.samples:,} samples"
    if size.batch_size:
        work += f" in batches of {size.batch_size}"
    cases = [Case("skiplab", ours, work, study_precision(device), work=size.work())]
    for name, prepare in peers.items():
        try:
            run = prepare(model, criterion, batches, size)
            note = "same probes, steps and parameters"
            cases.append(replace(cases[0], what=name, run=run, note=note))
        except ImportError as error:
            cases.append(replace(cases[0], what=name, run=None, note=f"skipped: {error}"))
    return cases


def _pyhessian(model: Any, criterion: Any, batches: list[Any], size: HessianSize) -> Callable[[], object]:
    from unittest import mock

    import torch
    from pyhessian import hessian  # type: ignore[import-not-found]

    def eig(matrix: torch.Tensor, eigenvectors: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
        values, vectors = torch.linalg.eigh(matrix)
        return torch.stack([values, torch.zeros_like(values)], 1), vectors

    def run() -> object:
        # PyHessian 0.1 calls torch.eig, which torch has removed; it is put back while PyHessian runs.
        with mock.patch.object(torch, "eig", eig):
            # It takes one batch or a loader, and is faster with the former.
            given = {"data": batches[0]} if len(batches) == 1 else {"dataloader": batches}
            operator = hessian(model, criterion, **given, cuda=batches[0][0].is_cuda)
            return operator.density(iter=size.steps, n_v=size.probes)

    return run


def _curvlinops(model: Any, criterion: Any, batches: list[Any], size: HessianSize) -> Callable[[], object]:
    from curvlinops import (  # type: ignore[import-not-found]
        HessianLinearOperator,
        lanczos_approximate_spectrum,
    )

    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]

    def run() -> object:
        operator = HessianLinearOperator(model, criterion, parameters, batches, check_deterministic=False)
        return lanczos_approximate_spectrum(operator, ncv=size.steps, num_repeats=size.probes)

    return run


def _eigenthings(model: Any, criterion: Any, batches: list[Any], size: HessianSize) -> Callable[[], object]:
    from hessian_eigenthings import (  # type: ignore[import-not-found]
        HessianOperator,
        spectral_density,
        supervised_loss,
    )

    def run() -> object:
        operator = HessianOperator(model, batches, supervised_loss(criterion))
        return spectral_density(operator, num_runs=size.probes, lanczos_steps=size.steps, seed=0)

    return run
