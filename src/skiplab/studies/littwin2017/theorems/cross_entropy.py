"""Theorem 3 carried over to cross-entropy and real batch normalisation, where nothing proves it.

Residual networks of eq 22 with one λ_l = 1 per layer, σ_l being the mean standard deviation of the layer's units over
the batch, so that a λ_l changes every later σ too. What theorem 3 is about, by how much a step of gradient descent on
the weights changes the force on λ_l, is measured before training and after some steps on the weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from skiplab.reproduction import Bench, trial

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor

CLASSES, FEATURES = 10, 50  # of figure 1d's toy
START, TRAINED = "before training", "after 100 steps"
STEPS, RATE = 100, 0.1
EPSILON = (
    1e-5  # batch normalisation's usual one: a unit that is never active has a deviation of 0, and no slope
)


@dataclass(frozen=True)
class Normalised:
    """Settings of one trial: networks with batch normalisation on a mixture of Gaussians, one of each per seed."""

    depth: int
    width: int
    samples: int
    seeds: tuple[int, ...]


@trial("littwin2017/cross-entropy-forces", version=1)
def forces(settings: Normalised, bench: Bench) -> pd.DataFrame:
    """Note by layer the force −λ_l ∂L/∂λ_l, and its ``push``: its change by a small step on the weights over μ‖g‖².

    With a linear loss and fixed σ the push is 1 in layers that are not skipped.
    """
    import pandas as pd

    rows = []
    for done, seed in enumerate(settings.seeds):
        bench.tell(done / len(settings.seeds), f"network {seed}")
        weights, inputs, labels = _drawn(settings, seed)
        for when in (START, TRAINED):
            for _ in range(STEPS if when == TRAINED else 0):
                gradients = _slopes(weights, inputs, labels)[1]
                weights = [each - RATE * slope for each, slope in zip(weights, gradients, strict=True)]
            force, push = _push(weights, inputs, labels)
            layers = range(1, settings.depth + 1)
            rows += [(seed, when, *row) for row in zip(layers, force.tolist(), push.tolist(), strict=True)]
    return pd.DataFrame(rows, columns=["seed", "when", "layer", "force", "push"])


def _drawn(settings: Normalised, seed: int) -> tuple[list[Tensor], Tensor, Tensor]:
    """Weights of variance 1/fan-in, the last a linear readout, and samples with their labels."""
    import torch

    from skiplab.randomness import torch_generator

    stream = torch_generator(seed, "cross-entropy")

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=stream, dtype=torch.float64)

    labels = torch.arange(settings.samples) % CLASSES
    inputs = normal(CLASSES, FEATURES)[labels] + normal(settings.samples, FEATURES)
    sizes = [FEATURES, *[settings.width] * settings.depth, CLASSES]
    weights = [normal(after, before) / before**0.5 for before, after in pairwise(sizes)]
    return weights, inputs, labels


def _push(weights: list[Tensor], inputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Forces and pushes by layer; the derivative of the force along −g, exactly."""
    import torch

    leaves = [each.detach().requires_grad_() for each in weights]
    slopes, gradients = _slopes(leaves, inputs, labels, again=True)
    norm = sum(each.detach().square().sum() for each in gradients)
    pushes = []
    for slope in slopes:
        mixed = torch.autograd.grad(slope, leaves, retain_graph=True)
        pushes.append(
            sum((one * two.detach()).sum() for one, two in zip(mixed, gradients, strict=True)) / norm
        )
    return -slopes.detach(), torch.stack([torch.as_tensor(each) for each in pushes])


def _slopes(
    weights: list[Tensor], inputs: Tensor, labels: Tensor, *, again: bool = False
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """∂L/∂λ_l at λ_l = 1, and the gradient of the weights; to be differentiated ``again``."""
    import torch

    leaves = weights if again else [each.detach().requires_grad_() for each in weights]
    scales = torch.ones(len(weights) - 1, dtype=torch.float64, requires_grad=True)
    loss = loss_of(leaves, scales, inputs, labels)
    first, *others = torch.autograd.grad(loss, [scales, *leaves], create_graph=again)
    return first, tuple(others)


def loss_of(weights: list[Tensor], scales: Tensor, inputs: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of a network of eq 22 whose σ_l are the batch's."""
    import torch
    import torch.nn.functional as F

    at = inputs
    for layer, matrix in enumerate(weights[:-1]):
        unit = torch.relu(at @ matrix.T)
        deviation = (unit.var(0, correction=0) + EPSILON).sqrt().mean()
        unit = scales[layer] / deviation * unit
        at = unit + at if layer else unit
    return F.cross_entropy(at @ weights[-1].T, labels)
