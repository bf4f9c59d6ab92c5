"""Gradients in the very model of balduzzi2017's theorems: random weights, and a coin for every unit and input.

Backwards through x ↦ a x + b W ρ(x), gradients follow ∇ ↦ a ∇ + b D Wᵀ∇ from ∇ = (1, …, 1), the derivative of the
sum of the last layer; D holds the gates. W is met once, so given the gradients of S inputs Wᵀ∇ is Gaussian: units are
independent, and over the inputs the covariance is (2/N) times the gradients' Gram matrix. N × S numbers thus
stand for N × N weights with exactly the same law, at a cost that allows thousands of wide nets.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from skiplab.checks import at_least

Scales = Sequence[tuple[float, float]]  # (a, b) of each module, the first module first


def plain_scales(depth: int) -> Scales:
    """Feedforward nets: (0, 1)."""
    return [(0.0, 1.0)] * depth


def residual_scales(depth: int, alpha: float = 1.0, beta: float = 1.0) -> Scales:
    """Equation 2 without normalisation: (α, αβ)."""
    return [(alpha, alpha * beta)] * depth


def batch_norm_scales(depth: int, beta: float = 1.0) -> Scales:
    """Equation 2 with α = 1 and BN as theorem 3 models it, a division by the root of β² l + 1."""
    return [(1.0, beta / math.sqrt(beta**2 * layer + 1)) for layer in range(depth)]


def highway_scales(depth: int) -> Scales:
    """Corollary 1 with γ₁ = √(1 − 1/L) and γ₂ = √(1/L)."""
    return [(math.sqrt(1 - 1 / depth), math.sqrt(1 / depth))] * depth


def gated_gradients(
    scales: Scales, width: int, samples: int, nets: int, *, generator: torch.Generator
) -> Tensor:
    """Gradients (nets, samples, width) in the first layer, in float64."""
    for name, value in (("width", width), ("samples", samples), ("nets", nets)):
        at_least(name, value, 1)
    device = generator.device
    shape = (nets, samples, width)
    gradients = torch.ones(shape, dtype=torch.float64, device=device)
    for carry, branch in reversed(scales):
        noise = torch.randn(shape, generator=generator, dtype=torch.float64, device=device)
        gates = torch.randint(0, 2, shape, generator=generator, device=device, dtype=torch.int8)
        mixed = gram_root(gradients @ gradients.mT * (2 / width)) @ noise
        gradients = carry * gradients + branch * gates * mixed
    return gradients


def second_moments(gradients: Tensor) -> tuple[Tensor, Tensor]:
    """Each net's mean of ∇_i² over samples and units, and of ∇_i ∇_j over pairs of samples and units."""
    samples, width = gradients.shape[-2:]
    squares = gradients.square().sum((-2, -1))
    products = gradients.sum(-2).square().sum(-1) - squares
    return squares / (samples * width), products / (samples * (samples - 1) * width)


def gram_root(gram: Tensor) -> Tensor:
    """The symmetric root; at the last layer all gradients are equal, so that Cholesky's would not exist."""
    values, vectors = torch.linalg.eigh(gram)
    return vectors * values.clamp(min=0).sqrt()[..., None, :] @ vectors.mT
