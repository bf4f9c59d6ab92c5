"""Moments of the spectrum from random vectors: μ_j = E[vᵀAʲv / vᵀv] (Skilling, 1989; orhan2018, supplement).

With u_i = Aⁱv, symmetry gives vᵀA^{2i}v = u_iᵀu_i and vᵀA^{2i−1}v = u_{i−1}ᵀu_i, so one product yields two moments.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from skiplab.checks import at_least
from skiplab.linear_algebra.operators import Product, apply, dot, stderr


@dataclass(frozen=True)
class SpectralMoments:
    """Means and standard errors (*lead, order) of the moments 1 … order, and each probe's (*lead, k, order).

    They are moments of a single eigenvalue drawn at random: μ_j = tr Aʲ / P.
    """

    mean: Tensor
    stderr: Tensor
    samples: Tensor


def moments_of(product: Product, start: Tensor, *, order: int = 4) -> SpectralMoments:
    """Estimate the first ``order`` moments from probes (*lead, k, P) of any length, with ⌈order/2⌉ products.

    Products have the probes' dtype. Normal probes are Skilling's; Rademacher ones vary less.
    """
    at_least("order", order, 1)
    dtype = start.dtype
    vector = start.double()
    vector = vector / torch.linalg.vector_norm(vector, dim=-1, keepdim=True)
    # Vectors are kept at length 1 and their true lengths aside, so powers neither overflow nor vanish in float32.
    length = torch.ones_like(vector[..., 0])
    found: list[Tensor] = []
    while len(found) < order:
        image = apply(product, vector, dtype)
        found.append(length.square() * dot(vector, image))
        stretch = torch.linalg.vector_norm(image, dim=-1)
        length = length * stretch
        found.append(length.square())
        vector = image / torch.where(stretch > 0, stretch, 1)[..., None]
    samples = torch.stack(found[:order], -1)
    return SpectralMoments(samples.mean(-2), stderr(samples, -2), samples)
