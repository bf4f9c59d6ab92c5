"""Lanczos tridiagonalisation of many operators from many starting vectors as one computation.

From a unit vector v₁ the recurrence β_j v_{j+1} = A v_j − α_j v_j − β_{j−1} v_{j−1} builds an orthonormal basis
of the Krylov space in which A is tridiagonal (Lanczos, 1950; Golub and Meurant, *Matrices, Moments and
Quadrature*, 2010, chapter 4). The k probes do not mix; they only share each call of the operator.

Every new vector is orthogonalised against all before it, since the recurrence alone loses orthogonality and then
shows converged eigenvalues several times. The recurrence is the first pass, one product with the whole basis the
second, and "twice is enough" (Kahan and Parlett; Giraud et al., 2005); a third follows only where the second took
away as much as it left.

The recurrence runs in float64 whatever the basis is kept in. A float32 basis halves memory and time, and T hardly
notices: the second pass then leaves overlaps ε near 1e-6, the last two vectors are made orthogonal again in
float64, and overlaps with the others move T by ε² only (Simon, 1984). Measured on eigenvalues from 1e-4 to 750,
P = 9,834, 400 steps: 7e-12·‖A‖, where a float32 product itself errs by 1e-7·‖A‖. So by default the basis is kept in
the precision of the products.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from skiplab.checks import at_least, require
from skiplab.linear_algebra.operators import Product, apply, dot, flat

# A residual this small beside the operator is rounding of its products: the Krylov space is exhausted.
BREAKDOWN = {torch.float64: 1e-12, torch.float32: 1e-6}


@dataclass(frozen=True)
class Krylov:
    """What going on needs: the basis in pieces (N, steps, P), the last two vectors (N, P), and the precision."""

    pieces: tuple[Tensor, ...]
    previous: Tensor
    current: Tensor
    dtype: torch.dtype
    tolerance: float


@dataclass(frozen=True)
class Tridiagonal:
    """The coefficients of m Lanczos steps for every probe, all float64.

    ``diagonal`` α (*lead, k, m), ``off_diagonal`` β (*lead, k, m−1), ``last_off_diagonal`` β_m (*lead, k).
    ``lengths`` (*lead, k) says how many steps a probe took before its Krylov space was exhausted; entries beyond are
    0, its β_m is 0, and its quadrature is exact.
    """

    diagonal: Tensor
    off_diagonal: Tensor
    last_off_diagonal: Tensor
    lengths: Tensor
    krylov: Krylov | None = None

    @property
    def steps(self) -> int:
        """The number of steps m of the probe that took most."""
        return self.diagonal.shape[-1]

    @property
    def finished(self) -> Tensor:
        """Which probes (*lead, k) have exhausted their Krylov space, so that nothing is left to learn."""
        return self.last_off_diagonal == 0

    @property
    def scale(self) -> Tensor:
        """Size (*lead, k) of each tridiagonal matrix: its largest entry, which is at least ‖T‖/3."""
        largest = torch.maximum(self.diagonal.abs().amax(-1), self.last_off_diagonal)
        return torch.maximum(largest, self.off_diagonal.amax(-1)) if self.steps > 1 else largest

    @property
    def basis(self) -> Tensor:
        """The Lanczos vectors (*lead, k, m, P), as stored; zeros beyond a probe's length."""
        require(self.krylov is not None, "the basis was not kept; ask for it with keep_basis=True.")
        assert self.krylov is not None
        joined = torch.cat(self.krylov.pieces, 1)
        return joined.reshape(*self.diagonal.shape, joined.shape[-1])

    def without_basis(self) -> Tridiagonal:
        """The same numbers with the memory of the basis set free."""
        return replace(self, krylov=None)


def lanczos(
    product: Product,
    start: Tensor,
    steps: int,
    *,
    tolerance: float | None = None,
    storage: torch.dtype | None = None,
    keep_basis: bool = False,
) -> Tridiagonal:
    """Take up to ``steps`` Lanczos steps from the vectors ``start`` (*lead, k, P).

    The operator is called with vectors of ``start``'s dtype; everything else is float64, but for the kept basis
    (``storage``, by default as ``start``). A probe ends early where β falls to ``tolerance`` times the size of its
    matrix, by default 1e-12 for float64 products and 1e-6 for float32. ``keep_basis`` lets ``extend`` go on.

    >>> lanczos(lambda v: v @ matrix, torch.ones(1, len(matrix), dtype=torch.float64), steps=80).lengths.tolist()
    [10]
    """
    at_least("steps", steps, 1)
    require(start.ndim >= 2, f"start has shape {tuple(start.shape)}; give it as (*lead, probes, dimension).")
    require(
        start.dtype in BREAKDOWN, f"start is {start.dtype}; Lanczos needs float32 or float64, so convert it."
    )
    storage = storage or start.dtype
    require(storage in BREAKDOWN, f"storage is {storage}; choose torch.float32 or torch.float64.")
    lead = start.shape[:-1]
    first = flat(start.detach(), 1).to(torch.float64, copy=True)
    norms = torch.linalg.vector_norm(first, dim=-1, keepdim=True)
    require(
        bool(((norms > 0) & norms.isfinite()).all()), "a starting vector is zero or not finite; draw others."
    )
    tolerance = BREAKDOWN[start.dtype] if tolerance is None else tolerance
    krylov = Krylov((), torch.zeros_like(first), first.div_(norms), start.dtype, tolerance)
    empty = Tridiagonal(
        diagonal=first.new_zeros((*lead, 0)),
        off_diagonal=first.new_zeros((*lead, 0)),
        last_off_diagonal=first.new_ones(lead),
        lengths=torch.zeros(lead, dtype=torch.long, device=start.device),
        krylov=krylov,
    )
    result = _advance(product, empty, steps, storage)
    return result if keep_basis else result.without_basis()


def extend(state: Tridiagonal, product: Product, more: int) -> Tridiagonal:
    """Take ``more`` steps from where a run with ``keep_basis=True`` ended; the same numbers as one long run.

    Every extension adds a piece to the basis and copies nothing, so a few long ones are better than many short.
    """
    at_least("more", more, 1)
    require(state.krylov is not None, "the basis was not kept; run lanczos with keep_basis=True to go on.")
    assert state.krylov is not None
    return _advance(product, state, more, state.krylov.pieces[0].dtype)


def _advance(product: Product, state: Tridiagonal, more: int, storage: torch.dtype) -> Tridiagonal:
    krylov = state.krylov
    assert krylov is not None
    lead = state.lengths.shape
    previous, current = krylov.previous, krylov.current
    count, dimension = current.shape
    piece = current.new_zeros((count, more, dimension), dtype=storage)
    beta = state.last_off_diagonal.reshape(count)
    lengths = state.lengths.reshape(count).clone()
    size = state.scale.reshape(count) if state.steps else torch.zeros_like(beta)
    diagonal: list[Tensor] = []
    off_diagonal: list[Tensor] = []
    for step in range(more):
        running = beta > 0
        if not bool(running.any()):
            break
        piece[:, step] = current
        image = flat(apply(product, current.reshape(*lead, dimension), krylov.dtype), 1)
        alpha = dot(current, image)
        size = torch.maximum(size, alpha.abs())
        # Not in place: the operator may have returned its argument, or a tensor it keeps.
        image = torch.addcmul(image, alpha[:, None], current, value=-1)
        if state.steps + step > 0:
            image.addcmul_(beta[:, None], previous, value=-1)
            off_diagonal.append(beta)
        pieces = (*krylov.pieces, piece[:, : step + 1])
        residual = _orthogonalise(image, pieces, (previous, current))
        size = torch.maximum(size, residual)
        lengths += running
        beta = torch.where(running & (residual > krylov.tolerance * size), residual, 0)
        diagonal.append(alpha)
        previous, current = current, image * torch.where(beta > 0, 1 / residual, 0)[:, None]
    if not diagonal:
        return state

    def grown(old: Tensor, new: list[Tensor]) -> Tensor:
        return torch.cat([old, torch.stack(new, -1).reshape(*lead, -1)], -1) if new else old

    return Tridiagonal(
        grown(state.diagonal, diagonal),
        grown(state.off_diagonal, off_diagonal),
        beta.reshape(lead),
        lengths.reshape(lead),
        replace(
            krylov, pieces=(*krylov.pieces, piece[:, : len(diagonal)]), previous=previous, current=current
        ),
    )


def _orthogonalise(vectors: Tensor, pieces: Sequence[Tensor], neighbours: Sequence[Tensor]) -> Tensor:
    """Take away from each of (N, P), in place, what lies along its basis; return the norms (N,) of the rest."""
    for _ in range(2):
        taken = torch.zeros_like(vectors[:, 0])
        for piece in pieces:
            # A row times a matrix: on a CPU 4 to 9 times as fast as bmm with one column.
            along = torch.bmm(vectors[:, None].to(piece.dtype), piece.transpose(1, 2))
            vectors -= torch.bmm(along, piece)[:, 0]
            taken += along.double().square().sum((1, 2))
        for vector in neighbours:  # in float64: an overlap ε left here would move T by εβ
            vectors.addcmul_(dot(vector, vectors)[:, None], vector, value=-1)
        rest = torch.linalg.vector_norm(vectors, dim=-1)
        if bool((taken.sqrt() <= rest).all()):
            break
    return rest
