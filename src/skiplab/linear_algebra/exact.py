"""The dense matrix of an operator and all its eigenvalues, for dimensions up to some 20,000."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from skiplab.checks import Refused, at_least
from skiplab.linear_algebra.memory import available_bytes, in_words
from skiplab.linear_algebra.operators import Product, apply

CHUNK_BYTES = 64 * 2**20  # of identity columns at a time; chosen by us, small beside the matrix
# A Hessian made of float32 products is symmetric to about 1e-6; a larger part says the operator is another one.
ASYMMETRY = 1e-3


def dense_bytes(dimension: int, members: int = 1) -> int:
    """Bytes that a matrix and its eigensolver take: the matrix of every member, one copy, and workspace."""
    return 8 * dimension**2 * (members + 2)


def dense_matrix(
    product: Product,
    dimension: int,
    *,
    lead: Sequence[int] = (),
    columns: int | None = None,
    dtype: torch.dtype = torch.float64,
    device: torch.device | str = "cpu",
) -> Tensor:
    """Return the matrices (*lead, P, P) in float64, made of products with the identity's columns and symmetrised.

    ``columns`` at a time go through the operator, by default as many as take 64 MB; give fewer where the operator
    itself needs much memory a vector. The mean of the matrix and its transpose halves the rounding.
    """
    at_least("the dimension", dimension, 1)
    members = int(torch.Size(lead).numel())
    needed = dense_bytes(dimension, members)
    free = available_bytes(device)
    if needed > free:
        raise Refused(
            f"a dense matrix of order {dimension:,} with its eigenvalues takes {in_words(needed)}, and "
            f"{in_words(int(free))} are free; use Lanczos, or fewer members at a time."
        )
    if columns is None:
        columns = max(1, CHUNK_BYTES // (members * dimension * 8))
    at_least("columns", columns, 1)
    matrix = torch.empty((*lead, dimension, dimension), dtype=torch.float64, device=device)
    for first in range(0, dimension, columns):
        last = min(first + columns, dimension)
        ones = torch.zeros((last - first, dimension), dtype=torch.float64, device=device)
        ones[torch.arange(last - first), torch.arange(first, last)] = 1
        block = ones.expand(*lead, *ones.shape)
        matrix[..., first:last, :] = apply(product, block.contiguous(), dtype)
    _symmetrise(matrix)
    return matrix


def exact_eigenvalues(
    product: Product,
    dimension: int,
    *,
    lead: Sequence[int] = (),
    columns: int | None = None,
    dtype: torch.dtype = torch.float64,
    device: torch.device | str = "cpu",
) -> Tensor:
    """All eigenvalues (*lead, P), ascending, in float64, by the dense symmetric eigensolver.

    >>> exact_eigenvalues(lambda v: v @ matrix, len(matrix))
    """
    matrix = dense_matrix(product, dimension, lead=lead, columns=columns, dtype=dtype, device=device)
    # One matrix at a time: the solver's copy and workspace then are those of one member.
    single = matrix.reshape(-1, dimension, dimension)
    return torch.stack([torch.linalg.eigvalsh(one) for one in single]).reshape(*lead, dimension)


def _symmetrise(matrix: Tensor) -> None:
    """Replace A by (A + Aᵀ)/2 in place, by blocks, so that no second matrix is held."""
    order = matrix.shape[-1]
    step = 1024
    off = size = 0.0
    for i in range(0, order, step):
        for j in range(i, order, step):
            upper = matrix[..., i : i + step, j : j + step]
            lower = matrix[..., j : j + step, i : i + step].mT.clone()
            off = max(off, float((upper - lower).abs().max()))
            mean = (upper + lower).div_(2)
            size = max(size, float(mean.abs().max()))
            matrix[..., i : i + step, j : j + step] = mean
            matrix[..., j : j + step, i : i + step] = mean.mT
    if off > ASYMMETRY * size:
        raise Refused(
            f"the operator is not symmetric: entries differ from their mirror by {off:.1e}, the largest being "
            f"{size:.1e}; pass a symmetric one, the same at every call."
        )
