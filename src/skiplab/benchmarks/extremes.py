"""The largest eigenvalue of a network's Hessian: ours, and PyHessian's power iteration at two ends.

PyHessian stops where two estimates in a row differ by less than .1 %, ours where the eigenvalue is proved to .1 % of
itself, or to 1 % in a second row. PyHessian's run is timed twice: as it stops by default, and for as many products as
it takes to be as near to the eigenvalue as ours. What decides is the gap below the largest eigenvalue, which training
widens: a network as it was drawn, and one trained for a few steps, both in evaluation mode with the batch's own
statistics.

torchvision's resnet18 where it can be imported, ResNet-20 otherwise. ``pip install pyhessian torchvision``.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from skiplab.benchmarks.ceilings import wait_for
from skiplab.benchmarks.harness import Case
from skiplab.benchmarks.steps import CLASSES, noise
from skiplab.reproduction.arithmetic import full_float32


@dataclass(frozen=True)
class ExtremesSize:
    """The batch, how the network is trained, and the most products of a power iteration that is to be as exact."""

    samples: int = 64
    side: int = 32
    steps: int = 5
    rate: float = 0.05
    most: int = 300
    seeds: int = 3


SIZE = ExtremesSize()
# Where errors are told apart: in float32 products of resnet18 themselves err by 2e-6 and more.
LEAST_ERROR = 1e-6
# Ours by default, and where the proof, not the eigenvalue, is about as loose as PyHessian's own stop leaves it.
TOLERANCES = (1e-3, 1e-2)


def fresh_cases(device: str) -> list[Case]:
    """The network as it was drawn: no gap below the largest eigenvalue."""
    return _cases(SIZE, 0, device)


def trained_cases(device: str) -> list[Case]:
    """The same network after a few steps of gradient descent."""
    return _cases(SIZE, SIZE.steps, device)


def _cases(size: ExtremesSize, steps: int, device: str) -> list[Case]:
    from torch import nn

    from skiplab.measurements.hessian_extremes import hessian_extremes

    data = noise(size.samples, 3, size.side, size.side, device=device)
    batch, criterion = (data.inputs, data.labels), nn.CrossEntropyLoss()
    name, network = _network(device)
    _train(network, batch, criterion, steps, size.rate)

    def ours(tolerance: float = 1e-3) -> Any:
        # In tf32 products err by more than what is proved of them.
        with full_float32():
            found = hessian_extremes(
                network, batch, criterion=criterion, which="magnitude", tolerance=tolerance
            )
        wait_for(device)
        return found

    top = float(ours(LEAST_ERROR).values)
    count = sum(parameter.numel() for parameter in network.parameters())
    trained = f"after {steps} steps of training" if steps else "as drawn"
    images = f"{size.samples} images of {size.side} × {size.side}"
    work = f"{name} {trained}, {count:,} parameters, {images}, λ = {top:.6g}"
    precision, cases, errors = "float32", [], []
    for tolerance in TOLERANCES:
        found = ours(tolerance)
        errors.append(abs(float(found.values) / top - 1))
        proved = float(found.residuals / found.values.abs())
        said = f"skiplab: {found.steps} products, error {_part(errors[-1])}, proved {_part(proved)}"
        cases.append(Case(said, partial(ours, tolerance), work, precision))
    first = cases[0]
    try:
        runs = _pyhessian(network, batch, criterion, size, top, errors[0])
    except ImportError as problem:
        return [*cases, replace(first, what="PyHessian", run=None, note=f"skipped: {problem}")]
    return [*cases, *(replace(first, what=what, run=run) for what, run in runs)]


def _network(device: str) -> tuple[str, Any]:
    """torchvision's resnet18, or ResNet-20 and why not the other."""
    import torch

    from skiplab.architectures.resnet import ResNet
    from skiplab.randomness import torch_generator

    try:
        from torchvision.models import resnet18
    except (ImportError, RuntimeError) as problem:  # the latter where its kernels do not fit this torch
        why = str(problem).partition("\n")[0]
        drawn = ResNet(3, generator=torch_generator("benchmark", "extremes"), outputs=CLASSES)
        return f"ResNet-20 (without torchvision's resnet18: {why})", drawn.to(device)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return "torchvision's resnet18", resnet18(num_classes=CLASSES).to(device)


def _train(network: Any, batch: tuple[Any, Any], criterion: Any, steps: int, rate: float) -> None:
    """Take some steps, then give normalisations the batch's own statistics and end in evaluation mode."""
    import torch
    from torch import nn

    optimiser = torch.optim.SGD(network.parameters(), rate)
    network.train()
    for _ in range(steps):
        optimiser.zero_grad()
        criterion(network(batch[0]), batch[1]).backward()
        optimiser.step()
    optimiser.zero_grad()
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.reset_running_stats()
            module.momentum = None  # a plain mean, here of one batch
    with torch.no_grad():
        network(batch[0])
    network.eval()


def _pyhessian(
    network: Any, batch: tuple[Any, Any], criterion: Any, size: ExtremesSize, top: float, error: float
) -> list[tuple[str, Callable[[], object]]]:
    """As it stops by default, and after the products that its own iteration takes to an error like ours."""
    import torch
    from pyhessian import hessian  # type: ignore[import-not-found]
    from pyhessian.utils import (  # type: ignore[import-not-found]
        group_product,
        hessian_vector_product,
        normalization,
    )

    module = copy.deepcopy(network)  # it leaves gradients with graphs

    def operator() -> Any:
        return hessian(module, criterion, data=batch, cuda=batch[0].is_cuda)

    def estimates(seed: int) -> list[float]:
        """What the iteration from one seed's vector says after every product, until neither run would go on."""
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            made = operator()
            vector = normalization([torch.randn(p.size()).to(p.device) for p in made.params])
        found: list[float] = []
        while len(found) < size.most and None in (_stop(found), near(found)):
            image = hessian_vector_product(made.gradsH, made.params, vector)
            found.append(group_product(image, vector).item())
            vector = normalization(image)
        module.zero_grad()
        return found

    def near(estimates: list[float]) -> int | None:
        """After how many products the estimate is as near as ours."""
        close = (_apart(each, top) <= max(error, LEAST_ERROR) for each in estimates)
        return next((count for count, is_close in enumerate(close, 1) if is_close), None)

    def run(settings: list[dict[str, Any]]) -> Callable[[], object]:
        turns = itertools.cycle(enumerate(settings))  # a seed per round

        def once() -> object:
            seed, given = next(turns)
            with torch.random.fork_rng(), full_float32():
                torch.manual_seed(seed)
                answer = operator().eigenvalues(top_n=1, **given)[0]
            module.zero_grad()
            return answer

        return once

    with full_float32():
        found = [estimates(seed) for seed in range(size.seeds)]
    stops = [_stop(each) or len(each) for each in found]
    # It answers with the estimate before the last.
    errors = [_apart(each[stop - 2], top) for each, stop in zip(found, stops, strict=True)]
    default = f"PyHessian: {_range(stops)} products, error {_part(min(errors))} to {_part(max(errors))}"
    lengths = [near(each) or len(each) for each in found]
    as_exact = "until as exact" if all(map(near, found)) else "not as exact"
    exact = f"PyHessian, {as_exact}: {_range(lengths)} products"
    return [
        (default, run([{}] * size.seeds)),
        (exact, run([{"maxIter": length, "tol": 0.0} for length in lengths])),
    ]


def _stop(estimates: list[float], tolerance: float = 1e-3, most: int = 100) -> int | None:
    """How many products PyHessian takes by default, or None where it would go on."""
    for count, (one, other) in enumerate(itertools.pairwise(estimates[:most]), 2):
        if abs(one - other) / (abs(one) + 1e-6) < tolerance:
            return count
    return most if len(estimates) >= most else None


def _apart(value: float, top: float) -> float:
    return abs(value / top - 1)


def _range(counts: list[int]) -> str:
    return f"{min(counts)}" if len(set(counts)) == 1 else f"{min(counts)} to {max(counts)}"


def _part(error: float) -> str:
    """An error as a share: '0.9 %', or below 1e-6 what float32 cannot tell."""
    return f"{100 * error:.2g} %" if error >= LEAST_ERROR else "below 0.0001 %"
