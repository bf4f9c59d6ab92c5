"""The dense matrix of an operator and all its eigenvalues, for dimensions up to some 20,000."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from skiplab.checks import Refused, at_least
from skiplab.linear_algebra.memory import available_bytes, in_words
from skiplab.linear_algebra.operators import Product, apply, flat

CHUNK_BYTES = 64 * 2**20  # of identity columns at a time on a CPU; chosen by us, small beside the matrix
CHUNK_SHARE = 32  # on a GPU the part of the free memory that they may take: few large steps are the fastest
# A larger part says that the operator is another one. Hessians of float32 products are symmetric to about 1e-6 of
# their size, but only to 5e-3 once the loss is about 1e-5, where the probabilities that make them are nearly 0 and 1.
ASYMMETRY = {torch.float32: 0.1, torch.float64: 1e-3}


def dense_bytes(dimension: int, members: int = 1) -> int:
    """Bytes that a matrix and its eigensolver take: the matrix of every member, one copy, and workspace."""
    return 8 * dimension**2 * (members + 2)


def require_room(
    dimension: int,
    members: int,
    device: torch.device | str,
    *,
    remedy: str = "Lanczos, or fewer members at a time",
) -> int:
    """Refuse matrices that would not fit with their eigensolver; return the bytes that are free."""
    needed, free = dense_bytes(dimension, members), available_bytes(device)
    if needed > free:
        raise Refused(
            f"a dense matrix of order {dimension:,} with its eigenvalues takes {in_words(needed)}, and "
            f"{in_words(int(free))} are free; use {remedy}."
        )
    return free


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

    ``columns`` at a time go through the operator, by default as many as take 64 MB, or on a GPU a thirty-second of
    its free memory; give fewer where the operator itself needs much memory a vector. The mean of the matrix and its
    transpose halves the rounding.
    """
    at_least("the dimension", dimension, 1)
    members = int(torch.Size(lead).numel())
    free = require_room(dimension, members, device)
    if columns is None:
        room = CHUNK_BYTES if torch.device(device).type == "cpu" else max(CHUNK_BYTES, free // CHUNK_SHARE)
        columns = max(1, room // (members * dimension * 8))
    at_least("columns", columns, 1)
    matrix = torch.empty((*lead, dimension, dimension), dtype=torch.float64, device=device)
    for first in range(0, dimension, columns):
        last = min(first + columns, dimension)
        ones = torch.zeros((last - first, dimension), dtype=torch.float64, device=device)
        ones[torch.arange(last - first), torch.arange(first, last)] = 1
        block = ones.expand(*lead, *ones.shape)
        matrix[..., first:last, :] = apply(product, block.contiguous(), dtype)
    _symmetrise(matrix, dtype)
    return matrix


def matrix_eigenvalues(matrix: Tensor) -> Tensor:
    """All eigenvalues (*lead, P), ascending, of symmetric matrices (*lead, P, P).

    Rows of zeros, such as those of the weights around a unit that is never active, are left out before and have
    the eigenvalue 0: half of the rows take an eighth of the time.
    """
    # One matrix at a time: the solver's copy and workspace then are those of one member.
    single = flat(matrix, 2)
    return torch.stack([_one_matrix(each) for each in single]).reshape(matrix.shape[:-1])


def _one_matrix(matrix: Tensor) -> Tensor:
    order = len(matrix)
    # A row of zeros has a zero on the diagonal, which is quick to see.
    (suspects,) = torch.where(matrix.diagonal() == 0)
    if not len(suspects):
        return torch.linalg.eigvalsh(matrix)
    dead = suspects[~matrix[suspects].any(-1)]
    kept = torch.ones(order, dtype=torch.bool, device=matrix.device)
    kept[dead] = False
    (alive,) = torch.where(kept)
    if len(alive) == order:
        return torch.linalg.eigvalsh(matrix)
    found = matrix.new_zeros(order)
    found[: len(alive)] = torch.linalg.eigvalsh(matrix[alive][:, alive])
    return found.sort().values


def _symmetrise(matrix: Tensor, dtype: torch.dtype) -> None:
    """Replace A by (A + Aᵀ)/2 in place, by blocks, so that no second matrix is held."""
    order = matrix.shape[-1]
    step = 1024 if matrix.device.type == "cpu" else 4096
    off, size = [], []
    for i in range(0, order, step):
        for j in range(i, order, step):
            upper = matrix[..., i : i + step, j : j + step]
            lower = matrix[..., j : j + step, i : i + step].mT.clone()
            mean = (upper + lower).div_(2)
            size.append(mean.abs().max())
            off.append(lower.sub_(upper).abs_().max())
            matrix[..., i : i + step, j : j + step] = mean
            matrix[..., j : j + step, i : i + step] = mean.mT
    # Looked at once in the end, since a GPU is waited for at every look.
    apart, largest = torch.stack([torch.stack(off).max(), torch.stack(size).max()]).tolist()
    if apart > ASYMMETRY.get(dtype, 0.1) * largest:
        coarse = "" if dtype == torch.float64 else "use float64 products, or "
        raise Refused(
            f"the operator is not symmetric: entries differ from their mirror by {apart:.1e}, the largest being "
            f"{largest:.1e}; {coarse}pass a symmetric one, the same at every call."
        )
