"""Stochastic Lanczos quadrature of a network's Hessian: ours against public peers.

- ``hessian``: 10 probes × 80 steps on a plain net of 10 × 32 units and 1,000 samples, all parameters above the first
  layer (9,834);
- ``large``: 1 probe × 20 steps on all 873,482 parameters of a plain net of 30 × 128 units on 3,072 inputs, 5,000
  samples, against PyHessian. Both do six matrix products a layer for a Hessian product, so there is little to win.

Peers are optional: ``pip install pyhessian curvlinops-for-pytorch``; hessian-eigenthings is not on PyPI.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from skiplab.benchmarks.harness import Case


@dataclass(frozen=True)
class Size:
    """The network, the samples and the work."""

    inputs: int
    width: int
    depth: int
    samples: int
    probes: int
    steps: int
    first_layer: bool


SMALL = Size(inputs=128, width=32, depth=10, samples=1000, probes=10, steps=80, first_layer=False)
LARGE = Size(inputs=3072, width=128, depth=30, samples=5000, probes=1, steps=20, first_layer=True)


def hessian_cases(device: str) -> list[Case]:
    """The small network: ours first, then every peer that is installed; the others with the word why not."""
    peers = {"PyHessian": _pyhessian, "curvlinops": _curvlinops, "hessian-eigenthings": _eigenthings}
    return _cases(SMALL, peers, device)


def large_hessian_cases(device: str) -> list[Case]:
    """The network of the paper's width, against PyHessian."""
    return _cases(LARGE, {"PyHessian": _pyhessian}, device)


def _cases(size: Size, peers: dict[str, Callable[..., Callable[[], object]]], device: str) -> list[Case]:
    import torch
    from torch import nn

    from skiplab.architectures.fully_connected import PlainNet
    from skiplab.architectures.initialisers import Glorot
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

    def ours() -> None:
        options = {"method": "lanczos", "probes": size.probes, "steps": size.steps, "max_steps": size.steps}
        hessian_spectrum(model, (inputs, labels), criterion=criterion, **options)  # type: ignore[arg-type]

    work = f"{size.probes} probes × {size.steps} steps, {count:,} parameters, {size.samples:,} samples"
    cases = [Case("skiplab", ours, work)]
    for name, prepare in peers.items():
        try:
            run = prepare(model, criterion, inputs, labels, size)
            cases.append(Case(name, run, "same probes, steps and parameters"))
        except ImportError as error:
            cases.append(Case(name, None, f"skipped: {error}"))
    return cases


def _pyhessian(model: Any, criterion: Any, inputs: Any, labels: Any, size: Size) -> Callable[[], object]:
    from unittest import mock

    import torch
    from pyhessian import hessian  # type: ignore[import-not-found]

    def eig(matrix: torch.Tensor, eigenvectors: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
        values, vectors = torch.linalg.eigh(matrix)
        return torch.stack([values, torch.zeros_like(values)], 1), vectors

    def run() -> object:
        # PyHessian 0.1 calls torch.eig, which torch has removed; it is put back while PyHessian runs.
        with mock.patch.object(torch, "eig", eig):
            operator = hessian(model, criterion, data=(inputs, labels), cuda=inputs.is_cuda)
            return operator.density(iter=size.steps, n_v=size.probes)

    return run


def _curvlinops(model: Any, criterion: Any, inputs: Any, labels: Any, size: Size) -> Callable[[], object]:
    from curvlinops import (  # type: ignore[import-not-found]
        HessianLinearOperator,
        lanczos_approximate_spectrum,
    )

    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]

    def run() -> object:
        operator = HessianLinearOperator(
            model, criterion, parameters, [(inputs, labels)], check_deterministic=False
        )
        return lanczos_approximate_spectrum(operator, ncv=size.steps, num_repeats=size.probes)

    return run


def _eigenthings(model: Any, criterion: Any, inputs: Any, labels: Any, size: Size) -> Callable[[], object]:
    from hessian_eigenthings.hvp_operator import HVPOperator  # type: ignore[import-not-found]

    operator = HVPOperator(model, [(inputs, labels)], criterion, use_gpu=inputs.is_cuda)

    def run() -> object:
        import torch

        vector = torch.ones(operator.size[0])
        for _ in range(size.probes * size.steps):
            product = operator.apply(vector)
        return product

    return run
