"""Stochastic Lanczos quadrature of a small network's Hessian: ours against public peers.

10 probes × 80 steps on a plain net of 10 × 32 units and 1,000 samples, all parameters above the first layer (9,834).
Peers are optional: ``pip install pyhessian curvlinops-for-pytorch``; hessian-eigenthings is not on PyPI.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from skiplab.benchmarks.harness import Case

PROBES, STEPS, SAMPLES = 10, 80, 1000


def hessian_cases(device: str) -> list[Case]:
    """Ours first, then every peer that is installed; the others are named with the word why not."""
    import torch
    from torch import nn

    from skiplab.architectures.fully_connected import PlainNet
    from skiplab.architectures.initialisers import Glorot
    from skiplab.measurements.hessian_spectrum import hessian_spectrum
    from skiplab.randomness import torch_generator

    draw = torch_generator("benchmark", "hessian")
    inputs = torch.randn(SAMPLES, 128, generator=draw).to(device)
    labels = torch.randint(10, (SAMPLES,), generator=draw).to(device)
    model = PlainNet(128, 32, 10, 10, generator=draw, init=Glorot(2**0.5)).to(device).eval()
    for parameter in model.hidden[0].parameters():
        parameter.requires_grad_(False)
    criterion = nn.CrossEntropyLoss()
    count = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)

    def ours() -> None:
        options = {"method": "lanczos", "probes": PROBES, "steps": STEPS, "max_steps": STEPS}
        hessian_spectrum(model, (inputs, labels), criterion=criterion, **options)  # type: ignore[arg-type]

    work = f"{PROBES} probes × {STEPS} steps, {count:,} parameters, {SAMPLES:,} samples"
    peers = {"PyHessian": _pyhessian, "curvlinops": _curvlinops, "hessian-eigenthings": _eigenthings}
    cases = [Case("skiplab", ours, work)]
    for name, prepare in peers.items():
        try:
            cases.append(
                Case(name, prepare(model, criterion, inputs, labels), "same probes, steps and parameters")
            )
        except ImportError as error:
            cases.append(Case(name, None, f"skipped: {error}"))
    return cases


def _pyhessian(model: Any, criterion: Any, inputs: Any, labels: Any) -> Callable[[], object]:
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
            return operator.density(iter=STEPS, n_v=PROBES)

    return run


def _curvlinops(model: Any, criterion: Any, inputs: Any, labels: Any) -> Callable[[], object]:
    from curvlinops import (  # type: ignore[import-not-found]
        HessianLinearOperator,
        lanczos_approximate_spectrum,
    )

    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]

    def run() -> object:
        operator = HessianLinearOperator(
            model, criterion, parameters, [(inputs, labels)], check_deterministic=False
        )
        return lanczos_approximate_spectrum(operator, ncv=STEPS, num_repeats=PROBES)

    return run


def _eigenthings(model: Any, criterion: Any, inputs: Any, labels: Any) -> Callable[[], object]:
    from hessian_eigenthings.hvp_operator import HVPOperator  # type: ignore[import-not-found]

    operator = HVPOperator(model, [(inputs, labels)], criterion, use_gpu=inputs.is_cuda)

    def run() -> object:
        import torch

        vector = torch.ones(operator.size[0])
        for _ in range(PROBES * STEPS):
            product = operator.apply(vector)
        return product

    return run
