"""Projecting known eigenvectors out of an operator, so that probes see only what is left.

With Q orthonormal, A ↦ (I − QQᵀ)A(I − QQᵀ). A few outliers carry nearly all of tr A², so estimating the rest
alone and adding Σλ² cuts its error; the count of eigenvalues near zero gains nothing, since every direction taken
out comes back as an eigenvalue 0 unless the probes are projected too.
"""

from __future__ import annotations

import torch
from torch import Tensor

from skiplab.checks import require
from skiplab.linear_algebra.operators import Product


def deflated(product: Product, vectors: Tensor) -> Product:
    """Return the operator with the span of ``vectors`` (*lead, d, P) projected out on both sides.

    The vectors need not be orthonormal, but must be independent. If they are eigenvectors, every other
    eigenvalue stays and theirs become 0.
    """
    basis = orthonormal(vectors)

    def without(vectors: Tensor) -> Tensor:
        inside = project_out(vectors, basis)
        return project_out(product(inside), basis)

    return without


def orthonormal(vectors: Tensor) -> Tensor:
    """Make the vectors (*lead, d, P) orthonormal, in float64."""
    require(
        vectors.shape[-2] <= vectors.shape[-1],
        f"{vectors.shape[-2]} vectors of dimension {vectors.shape[-1]} cannot be independent; give fewer.",
    )
    factors = torch.linalg.qr(vectors.double().mT)
    sizes = factors.R.diagonal(dim1=-2, dim2=-1).abs()
    require(
        bool((sizes > 1e-10 * torch.linalg.vector_norm(vectors.double(), dim=-1).amax(-1, True)).all()),
        "the vectors to project out are linearly dependent; leave out the repeated ones.",
    )
    return factors.Q.mT.contiguous()


def project_out(vectors: Tensor, basis: Tensor) -> Tensor:
    """Take away from vectors (*lead, k, P) what lies in the span of orthonormal rows (*lead, d, P)."""
    rows = basis.to(vectors.dtype)
    return vectors - (vectors @ rows.mT) @ rows
