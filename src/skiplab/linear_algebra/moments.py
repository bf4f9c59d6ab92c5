"""Moments of the spectrum from random vectors: μ_j = E[vᵀAʲv / vᵀv] (Skilling, 1989; orhan2018, supplement).

With u_i = Aⁱv, symmetry gives vᵀA^{2i}v = u_iᵀu_i and vᵀA^{2i−1}v = u_{i−1}ᵀu_i, so one product yields two moments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from skiplab.checks import at_least
from skiplab.linear_algebra.operators import Product, apply, dot, probes, stderr


@dataclass(frozen=True)
class Moments:
    """Means and standard errors (*lead, order) of the moments 1 … order, and each probe's (*lead, k, order).

    They are moments of a single eigenvalue drawn at random: μ_j = tr Aʲ / P.
    """

    mean: Tensor
    stderr: Tensor
    samples: Tensor


def stochastic_moments(
    product: Product,
    dimension: int,
    generator: torch.Generator,
    *,
    order: int = 4,
    count: int = 10,
    lead: Sequence[int] = (),
    kind: str = "normal",
    dtype: torch.dtype = torch.float64,
    device: torch.device | str | None = None,
) -> Moments:
    """Estimate the first ``order`` moments of the spectrum from ``count`` probes, with ⌈order/2⌉ products.

    ``normal`` probes are Skilling's; ``rademacher`` ones vary less.
    """
    return moments_of(
        product, probes(lead, count, dimension, generator, kind=kind, dtype=dtype, device=device), order=order
    )


def moments_of(product: Product, start: Tensor, *, order: int = 4) -> Moments:
    """The same for given vectors (*lead, k, P), whose dtype the products have."""
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
    return Moments(samples.mean(-2), stderr(samples, -2), samples)
