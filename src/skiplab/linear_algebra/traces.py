"""The trace of an operator from few products, with an error bar: XTrace (Epperly, Tropp and Webber, 2024, section 2).

ℓ random vectors ω are multiplied, Y = AΩ, and so is an orthonormal basis Q of Y. The part of A that Q holds has a
trace that is known, tr(QᵀAQ); the rest is estimated as Hutchinson (1989) does. So that all ω serve both, ω_i
estimates the rest of the basis Q_(i) that is made without it:

    t_i = tr(Q_(i)ᵀ A Q_(i)) + ω_iᵀ(I − P_i) A (I − P_i)ω_i · (P − ℓ + 1)/‖(I − P_i)ω_i‖²,   P_i = Q_(i)Q_(i)ᵀ,

and the estimate is their mean. An operator of a few large eigenvalues, such as the Hessian of a trained network,
costs far fewer products than by Hutchinson's mean, whose error falls as 1/√ℓ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from skiplab.checks import Refused
from skiplab.linear_algebra.operators import Product, apply, flat, probes

LEAST_PRODUCTS = 4


@dataclass(frozen=True)
class Trace:
    """Traces and their standard errors (*lead), and how many products of each operator they took."""

    value: Tensor
    stderr: Tensor
    products: int


def xtrace(
    product: Product,
    dimension: int,
    products: int,
    generator: torch.Generator,
    *,
    lead: Sequence[int] = (),
    dtype: torch.dtype = torch.float64,
    device: torch.device | str | None = None,
) -> Trace:
    """Estimate the trace with at most so many products; exact, with error 0, where these are as many as rows.

    >>> found = xtrace(lambda v: v @ matrix, len(matrix), 100, generator)
    >>> float(found.value), float(found.stderr), found.products
    (55.0, 0.0, 10)
    """
    if products < LEAST_PRODUCTS:
        raise Refused(f"products is {products}, but an error bar needs at least {LEAST_PRODUCTS}; give more.")
    if products >= dimension:
        rows = torch.eye(dimension, dtype=torch.float64, device=device).expand(*lead, -1, -1)
        diagonal = apply(product, rows.contiguous(), dtype).diagonal(dim1=-2, dim2=-1)
        return Trace(diagonal.sum(-1), torch.zeros_like(diagonal[..., 0]), dimension)
    count = products // 2
    drawn = probes(lead, count, dimension, generator, kind="normal", device=device)
    image = flat(apply(product, drawn, dtype), 2) * dimension**0.5
    omega = flat(drawn, 2).mul_(dimension**0.5)  # rows; ‖ω‖² = P
    del drawn
    basis, upper = torch.linalg.qr(image.mT)
    shaped = basis.mT.reshape(*lead, count, dimension).contiguous()
    inner = basis.mT @ flat(apply(product, shaped, dtype), 2).mT  # H = QᵀAQ
    inner = (inner + inner.mT) / 2
    each = _left_out(omega, image, basis, upper, inner)
    stderr = each.std(-1) / count**0.5
    return Trace(each.mean(-1).reshape(tuple(lead)), stderr.reshape(tuple(lead)), 2 * count)


def _left_out(omega: Tensor, image: Tensor, basis: Tensor, upper: Tensor, inner: Tensor) -> Tensor:
    """The estimates t_i (L, ℓ), from Ω and AΩ as rows, Q, R and H; all columns below belong to one i."""
    count, dimension = omega.shape[-2:]
    # s_i is the direction in the basis that only y_i needs, orthogonal to all columns of R but the i-th: R⁻ᵀe_i.
    # Where the others span what y_i does, R is singular, and s_i is a direction that none of them needs: the tiny
    # diagonal makes it the largest part of the inverse.
    diagonal = upper.diagonal(dim1=-2, dim2=-1)
    least = torch.finfo(upper.dtype).eps * diagonal.abs().amax(-1, keepdim=True).clamp_min(1e-290)
    filled = upper + torch.diag_embed(torch.where(diagonal.abs() < least, least, 0))
    identity = torch.eye(count, dtype=upper.dtype, device=upper.device).expand_as(upper)
    normals = torch.linalg.solve_triangular(filled.mT, identity, upper=False)
    normals = normals / torch.linalg.vector_norm(normals, dim=-2, keepdim=True)
    inside = basis.mT @ omega.mT  # Qᵀω_i
    inside = inside - normals * (normals * inside).sum(-2, keepdim=True)  # … in Q_(i)
    known = inner.diagonal(dim1=-2, dim2=-1).sum(-1, keepdim=True) - _quadratic(inner, normals)
    rest = (omega * image).sum(-1) - 2 * (inside * upper).sum(-2) + _quadratic(inner, inside)
    size = dimension - inside.square().sum(-2)
    return known + rest * (dimension - count + 1) / size


def _quadratic(matrix: Tensor, columns: Tensor) -> Tensor:
    """xᵀMx of every column x."""
    return (columns * (matrix @ columns)).sum(-2)
