"""Hessian products of many networks at once, of one network alone, and by double backward."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skiplab.benchmarks.ceilings import study_precision, wait_for
from skiplab.benchmarks.harness import Case
from skiplab.benchmarks.hessian import product_work

if TYPE_CHECKING:
    from skiplab.architectures.fully_connected import PlainNet
    from skiplab.data import TensorSet


@dataclass(frozen=True)
class ProductSize:
    """E plain networks on the same samples, one product with a vector of its own each."""

    networks: int
    inputs: int
    width: int
    depth: int
    samples: int

    def network(self, seed: int) -> PlainNet:
        """One of the networks, at a gain at which activities keep their size."""
        from skiplab.architectures.fully_connected import PlainNet
        from skiplab.architectures.initialisers import Glorot
        from skiplab.benchmarks.steps import CLASSES
        from skiplab.randomness import torch_generator

        shape = (self.inputs, self.width, self.depth, CLASSES)
        return PlainNet(*shape, generator=torch_generator(seed), init=Glorot(2**0.5))


CPU_SIZE = ProductSize(networks=5, inputs=128, width=32, depth=10, samples=500)
GPU_SIZE = ProductSize(networks=50, inputs=3072, width=128, depth=30, samples=5000)  # 873,482 parameters


def product_cases(device: str) -> list[Case]:
    """One product for each network; double backward takes one network, and would take the others after it."""
    from skiplab.benchmarks.steps import CLASSES, noise

    size = GPU_SIZE if device.startswith("cuda") else CPU_SIZE
    data = noise(size.samples, size.inputs, device=device)
    hidden = [(size.width, size.width)] * (size.depth - 1)
    layers = [(size.inputs, size.width), *hidden, (size.width, CLASSES)]
    work = product_work(layers, size.samples, size.networks, "product")
    note = f"{size.networks} networks of {size.depth} layers, {size.samples:,} samples"
    ours = Case("skiplab", product_run(size, device), note, study_precision(device), work=work)
    plain = replace(
        ours,
        what="double backward, one by one",
        run=_double_backward(size, data, device),
        note=f"torch.autograd; one network timed, × {size.networks}",
        times=size.networks,
    )
    alone = replace(
        ours,
        what="skiplab, one by one",
        run=product_run(replace(size, networks=1), device),
        note=f"as instruments measure a user's network; one network timed, × {size.networks}",
        times=size.networks,
    )
    return [ours, alone, plain]


def product_run(size: ProductSize, device: str) -> Callable[[], object]:
    """What multiplies by the Hessian of every network, with the gradient for a vector."""
    import torch.nn.functional as F

    from skiplab.benchmarks.steps import noise
    from skiplab.curvature.products import HessianProduct
    from skiplab.curvature.sweeps.replayed import WORTH_RECORDING
    from skiplab.ensembles import Ensemble

    ensemble = Ensemble.of([size.network(seed) for seed in range(size.networks)], device=device)
    data = noise(size.samples, size.inputs, device=device)
    product = HessianProduct(ensemble, (data.inputs, data.labels), criterion=F.cross_entropy)
    vectors = product.gradient()[:, None]
    # The first run is not timed; after it, a network alone on a GPU is replayed from a graph.
    products = WORTH_RECORDING if size.networks == 1 and device.startswith("cuda") else 1

    def run() -> object:
        nonlocal products
        for _ in range(products):
            answer = product(vectors)
        products = 1
        wait_for(device)
        return answer

    return run


def _double_backward(size: ProductSize, data: TensorSet, device: str) -> Callable[[], object]:
    """Pearlmutter's product as papers' code has it: the gradient of the gradient's product with the vector."""
    import torch
    import torch.nn.functional as F

    network = size.network(0).to(device)
    parameters = list(network.parameters())

    def gradient() -> tuple[torch.Tensor, ...]:
        loss = F.cross_entropy(network(data.inputs), data.labels)
        return torch.autograd.grad(loss, parameters, create_graph=True)

    vector = [each.detach() for each in gradient()]

    def run() -> object:
        along = sum((one * other).sum() for one, other in zip(gradient(), vector, strict=True))
        answer = torch.autograd.grad(along, parameters)  # type: ignore[arg-type]
        wait_for(device)
        return answer

    return run
