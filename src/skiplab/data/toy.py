"""Toy inputs: mixtures of Gaussians (littwin2017, appendix C) and the 1-D grid (balduzzi2017, figure 1)."""

from __future__ import annotations

import hashlib

import torch

from skiplab.checks import at_least, one_of
from skiplab.data.preparation import TensorSet

COVARIANCES = ("unit", "random")


def gaussian_mixture(
    generator: torch.Generator,
    *,
    classes: int = 10,
    dimensions: int = 50,
    samples: int = 10_000,
    separation: float = 1.0,
    covariances: str = "unit",
    dtype: torch.dtype = torch.float32,
) -> TensorSet:
    """Draw x ~ N(separation·m_y, Σ_y), a mixture with one Gaussian per class and equal numbers of each.

    Ten classes, 50 dimensions and 10,000 samples are those of littwin2017's appendix C; its caption says 50
    Gaussians, for which pass ``classes=50``. The means m_y ~ N(0, I), the covariances and the equal numbers are
    *ours*: the paper does not state them. Covariances are I ("unit"), for which the best classifier is linear, or
    Σ_y = A_y A_yᵀ with entries of A_y ~ N(0, 1/dimensions) ("random"), whose mean is I too.
    """
    at_least("classes", classes, 1)
    at_least("dimensions", dimensions, 1)
    at_least("samples", samples, classes)
    at_least("separation", separation, 0)
    one_of("covariances", covariances, COVARIANCES)
    means = separation * torch.randn(classes, dimensions, generator=generator, dtype=torch.float64)
    labels = torch.arange(samples) % classes
    labels = labels[torch.randperm(samples, generator=generator)]
    noise = torch.randn(samples, dimensions, generator=generator, dtype=torch.float64)
    if covariances == "random":
        for label in range(classes):
            root = torch.randn(dimensions, dimensions, generator=generator, dtype=torch.float64)
            own = labels == label
            noise[own] = noise[own] @ root.T / dimensions**0.5
    inputs = means[labels] + noise
    identity = hashlib.sha256(inputs.numpy().tobytes() + labels.numpy().tobytes()).hexdigest()
    return TensorSet(inputs.to(dtype), labels, classes, "gaussian-mixture", identity)


def grid(
    points: int = 256, low: float = -2.0, high: float = 2.0, *, dtype: torch.dtype = torch.float32
) -> torch.Tensor:
    """A uniform grid of one-dimensional inputs, points×1: 256 points of [−2, 2] in balduzzi2017."""
    at_least("points", points, 2)
    return torch.linspace(low, high, points, dtype=torch.float64).to(dtype)[:, None]
