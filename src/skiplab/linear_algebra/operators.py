"""Symmetric operators known only by their products, and the random vectors that probe them.

An operator is a callable that maps vectors (*lead, k, P) to the same shape: for every index of the leading
axes (say one a network) one symmetric P×P matrix, applied to k vectors at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from torch import Tensor

from skiplab.checks import Refused, at_least, one_of, require
from skiplab.randomness import torch_generator

Product: TypeAlias = Callable[[Tensor], Tensor]
KINDS = ("rademacher", "normal")
# Chosen by us: float32 products of trained nets stayed below 1e-3, a wrong second derivative made .7.
UNEVEN = 0.1


def probes(
    lead: Sequence[int],
    count: int,
    dimension: int,
    generator: torch.Generator,
    *,
    kind: str = "rademacher",
    dtype: torch.dtype = torch.float64,
    device: torch.device | str | None = None,
) -> Tensor:
    """Draw unit vectors v (*lead, count, P) with E[vᵀf(A)v] = tr f(A) / P.

    ``rademacher`` has entries ±1/√P and the smaller variance for traces (Hutchinson, 1989); ``normal`` is uniform
    on the sphere and treats every eigenbasis alike. Numbers are drawn on the generator's device.
    """
    one_of("probe kind", kind, KINDS)
    at_least("the number of probes", count, 1)
    at_least("the dimension", dimension, 1)
    shape = (*lead, count, dimension)
    where = generator.device
    if kind == "rademacher":
        signs = torch.randint(0, 2, shape, generator=generator, dtype=torch.int8, device=where)
        return signs.to(device or where, dtype).mul_(2).sub_(1).div_(dimension**0.5)
    draws = torch.randn(shape, generator=generator, dtype=dtype, device=where).to(device or where)
    return draws.div_(torch.linalg.vector_norm(draws, dim=-1, keepdim=True, dtype=torch.float64).to(dtype))


def apply(product: Product, vectors: Tensor, dtype: torch.dtype) -> Tensor:
    """Apply the operator to float64 vectors in its own precision, and return float64."""
    return multiplied(product, vectors.to(dtype)).double()


def multiplied(product: Product, vectors: Tensor) -> Tensor:
    """Apply the operator to vectors of its own precision, and return that.

    Refuses a result of another shape or one that is not finite, since either would spoil all that follows.
    """
    result = product(vectors).detach()
    require(
        result.shape == vectors.shape,
        f"the operator made {tuple(result.shape)} of {tuple(vectors.shape)}; it must keep the shape.",
    )
    # A sum is twenty times as fast as isfinite of every entry, but may itself overflow.
    if not bool(result.sum().isfinite()) and not bool(result.isfinite().all()):
        raise Refused(
            f"the operator's product in {str(vectors.dtype).removeprefix('torch.')} is not finite; "
            "use float64 or look for inf and NaN in the loss."
        )
    return result


def require_symmetric(
    product: Product,
    dimension: int,
    *,
    lead: Sequence[int] = (),
    dtype: torch.dtype = torch.float64,
    device: torch.device | str = "cpu",
    least: float = 0.0,
) -> None:
    """Refuse an operator that is far from symmetric: uᵀAv and vᵀAu of three random unit vectors are compared.

    Both have the size λ/√P with λ the eigenvalues' root mean square, and rounding moves them by a small part of it
    unless A is all rounding: ``least`` is the size of an eigenvalue that matters.
    """
    draw = torch_generator("symmetry check")
    vectors = probes((), 3, dimension, draw, kind="normal").to(device).expand(*lead, 3, dimension)
    images = apply(product, vectors.contiguous(), dtype)
    pairs = vectors @ images.mT
    apart = (pairs - pairs.mT).abs().amax((-2, -1))
    size = torch.linalg.vector_norm(images, dim=-1).amax(-1).clamp_min(max(least, 1e-300)) / dimension**0.5
    worst = float((apart / size).max())
    require(
        worst <= UNEVEN,
        f"the operator is not symmetric: uᵀAv and vᵀAu differ by {worst:.1e} of their size; look for a function "
        "with a wrong second derivative, or numbers that differ at every call.",
    )


def dot(left: Tensor, right: Tensor) -> Tensor:
    """Inner products over the last axis, added up in float64."""
    doubled = left.double()
    return torch.linalg.vecdot(doubled, doubled if right is left else right.double())


def stderr(samples: Tensor, axis: int = -1) -> Tensor:
    """Standard error of the mean over an axis; NaN where there is one sample, which says nothing of spread."""
    count = samples.shape[axis]
    if count < 2:
        return samples.mean(axis) * torch.nan
    return samples.std(axis) / count**0.5


def flat(tensor: Tensor, keep: int) -> Tensor:
    """Join all leading axes to one and keep the last ``keep``, as the batched products need."""
    return tensor.reshape(-1, *tensor.shape[tensor.ndim - keep :])
