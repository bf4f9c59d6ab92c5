"""The largest and smallest eigenvalues, run until their residuals are small, not for a fixed number of steps.

Block Lanczos with full re-orthogonalisation (Golub and Underwood, 1977): a block of b random vectors starts a Krylov
space, A is projected on it, and the projection's eigenvalues θ with vectors y (Ritz pairs) approach A's from inside.
The residual ‖Ay − θy‖ comes free from the recurrence, and some eigenvalue lies within it of θ (Saad, *Numerical
Methods for Large Eigenvalue Problems*, 2011, section 6.3). A fixed number of steps, say 2·count, gets the inner ones
wrong without a word; here ``converged`` tells.

A space grown from one vector sees each distinct eigenvalue once. A block of b sees up to b copies, and tells apart up
to b eigenvalues that are closer than the tolerance; raise ``block`` where more are expected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from skiplab.checks import Refused, at_least, one_of
from skiplab.linear_algebra.operators import Product, apply, flat, probes

WHICH = ("largest", "smallest", "magnitude", "both")
MAX_STEPS = 200  # chosen by us: outliers of a Hessian take 20 to 40, the edge of its bulk more
BLOCKS_A_PIECE = 8
EXHAUSTED = 1e-12  # a new direction this small beside the operator is rounding


@dataclass(frozen=True)
class Extremes:
    """Eigenvalues and residuals (*lead, count), the block steps taken, and which eigenvalues are ``settled``.

    Largest come in descending order, smallest ascending, by magnitude descending in |λ|; ``both`` holds the ``count``
    largest and then the ``count`` smallest. ``vectors`` (*lead, count, P), if asked for, are orthonormal.
    """

    values: Tensor
    residuals: Tensor
    steps: int
    settled: Tensor
    vectors: Tensor | None = None

    @property
    def converged(self) -> Tensor:
        """Whether all eigenvalues are settled, (*lead)."""
        return self.settled.all(-1)


def extreme_eigenvalues(
    product: Product,
    dimension: int,
    count: int,
    generator: torch.Generator,
    *,
    which: str = "largest",
    tolerance: float = 1e-6,
    max_steps: int = MAX_STEPS,
    block: int = 2,
    lead: Sequence[int] = (),
    vectors: bool = False,
    dtype: torch.dtype = torch.float64,
    device: torch.device | str | None = None,
) -> Extremes:
    """Find ``count`` eigenvalues at one end, or at both, to residuals of ``tolerance`` times the largest |θ|.

    Each step multiplies ``block`` vectors of every leading index; all go on until the last has converged or
    ``max_steps`` are over. Memory is steps × block × P float64 numbers for each leading index, and what
    ``extremes_held`` counts besides.

    >>> extreme_eigenvalues(lambda v: v @ matrix, len(matrix), 2, generator, which="both").values.round().tolist()
    [10.0, 9.0, 1.0, 2.0]
    """
    one_of("which", which, WHICH)
    for name, value in (("count", count), ("block", block), ("max_steps", max_steps)):
        at_least(name, value, 1)
    count = int(count)  # NumPy's whole numbers give NumPy's answers
    if count > dimension:
        raise Refused(f"count is {count}, but the operator has {dimension} eigenvalues; ask for fewer.")
    if not tolerance > 0:
        raise Refused(f"tolerance is {tolerance}; give a positive one, say 1e-6.")
    start = probes(lead, min(block, dimension), dimension, generator, kind="normal", device=device)
    space = _Space(product, flat(start, 2), tuple(lead), dtype, generator, max_steps)
    step = 0
    while True:
        space.grow()
        step += 1
        over = step == max_steps or space.complete
        if space.size < min(count, dimension) and not over:
            continue
        # Each look is a dense eigenproblem, so they get rarer as it grows.
        if not over and step % max(1, step // 8):
            continue
        found = space.ritz(count, which, tolerance)
        if over or bool(found.settled.all()):
            break
    values, residuals, inner = found.values, found.residuals, found.inner
    if values.shape[-1] < count * (2 if which == "both" else 1):
        raise Refused(
            f"{step} steps of {block} vectors cannot hold {count} eigenvalues; raise max_steps or block."
        )
    return Extremes(
        values.reshape(*lead, -1),
        residuals.reshape(*lead, -1),
        step,
        found.settled.reshape(*lead, -1),
        space.lift(inner).reshape(*lead, -1, dimension) if vectors else None,
    )


@dataclass(frozen=True)
class _Ritz:
    values: Tensor
    residuals: Tensor
    settled: Tensor
    inner: Tensor


class _Space:
    """A growing Krylov space: orthonormal rows in pieces (L, r, P), and the operator projected on it (L, n, n).

    Pieces hold several blocks, so that a vector meets the basis in few large products.
    """

    def __init__(
        self,
        product: Product,
        start: Tensor,
        lead: tuple[int, ...],
        dtype: torch.dtype,
        generator: torch.Generator,
        steps: int,
    ) -> None:
        self.most = steps * start.shape[-2]  # rows
        self.product, self.lead, self.dtype, self.generator = product, lead, dtype, generator
        self.dimension = start.shape[-1]
        self.pieces: list[Tensor] = []
        self.free = 0  # rows still unused in the last piece
        self.next = torch.linalg.qr(start.mT).Q.mT.contiguous()
        self.projected = start.new_zeros((len(start), 0, 0))
        self.coupling = start.new_zeros((len(start), 0, 0))

    @property
    def size(self) -> int:
        return self.projected.shape[-1]

    @property
    def complete(self) -> bool:
        return self.size == self.dimension

    def grow(self) -> None:
        """Multiply the newest block, project the operator on it, and find the block after it."""
        block = self.next
        count, width, _ = block.shape
        self._store(block)
        shaped = block.reshape(*self.lead, width, self.dimension)
        image = flat(apply(self.product, shaped, self.dtype), 2)
        scale = torch.linalg.vector_norm(image, dim=-1).amax(-1)
        along, rest = self._split(image)
        grown = image.new_zeros((count, self.size + width, self.size + width))
        grown[:, : self.size, : self.size] = self.projected
        grown[:, :, self.size :] = along.mT
        grown[:, self.size :, :] = along
        inner = grown[:, self.size :, self.size :]
        grown[:, self.size :, self.size :] = (inner + inner.mT) / 2
        self.projected = grown
        self._follow(rest, torch.maximum(scale, grown.abs().amax((-2, -1))))

    def ritz(self, count: int, which: str, tolerance: float) -> _Ritz:
        """The wanted Ritz pairs with their residuals."""
        theta, inner = torch.linalg.eigh(self.projected)
        scale = theta.abs().amax(-1, keepdim=True)
        width = self.coupling.shape[-1]
        residual = torch.linalg.vector_norm(self.coupling @ inner[:, -width:], dim=-2)
        # The recurrence cannot know the products' own rounding, so no residual is smaller than that.
        residual = residual.clamp_min(torch.finfo(self.dtype).eps * scale)
        order = {
            "largest": lambda: theta.argsort(descending=True)[:, :count],
            "smallest": lambda: theta.argsort()[:, :count],
            "magnitude": lambda: theta.abs().argsort(descending=True)[:, :count],
            "both": lambda: torch.cat(
                [theta.argsort(descending=True)[:, :count], theta.argsort()[:, :count]], 1
            ),
        }[which]()
        values, residuals = theta.gather(1, order), residual.gather(1, order)
        settled = (residuals <= tolerance * scale) & (self.size >= count)
        chosen = inner.gather(2, order[:, None].expand(-1, self.size, -1))
        return _Ritz(values, residuals, settled, chosen)

    def lift(self, inner: Tensor) -> Tensor:
        """Vectors (L, c, P) from coordinates (L, n, c) in the space."""
        total = inner.new_zeros((len(inner), inner.shape[-1], self.dimension))
        first = 0
        for piece in self._filled():
            total += inner[:, first : first + piece.shape[1]].mT @ piece
            first += piece.shape[1]
        return total

    def _store(self, block: Tensor) -> None:
        count, width, dimension = block.shape
        if self.free < width:
            rows = min(BLOCKS_A_PIECE * width, min(dimension, self.most) - self.size)
            if self.free:
                self.pieces[-1] = self.pieces[-1][:, : -self.free]
            self.pieces.append(block.new_empty((count, rows, dimension)))
            self.free = rows
        first = self.pieces[-1].shape[1] - self.free
        self.pieces[-1][:, first : first + width] = block
        self.free -= width

    def _filled(self) -> list[Tensor]:
        return [*self.pieces[:-1], self.pieces[-1][:, : self.pieces[-1].shape[1] - self.free]]

    def _split(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """Coordinates in the space and what lies outside; twice, since once leaves rounding of the larger part."""
        total: Tensor | None = None
        for _ in range(2):
            found = []
            for piece in self._filled():
                along = torch.bmm(vectors, piece.mT)
                vectors = torch.baddbmm(vectors, along, piece, alpha=-1)
                found.append(along)
            both = torch.cat(found, -1)
            total = both if total is None else total + both
        assert total is not None
        return total, vectors

    def _follow(self, rest: Tensor, scale: Tensor) -> None:
        """Choose the next block: the strongest directions of the rest, and random ones where it is exhausted."""
        width = min(rest.shape[1], self.dimension - self.size)
        factors = torch.linalg.qr(rest.mT)
        left, sizes, right = torch.linalg.svd(factors.R)
        block = (factors.Q @ left).mT[:, :width].contiguous()
        sizes = sizes[:, :width]
        empty = sizes <= EXHAUSTED * scale[:, None]
        sizes = torch.where(empty, 0, sizes)
        self.coupling = sizes[..., None] * right[:, :width]
        if width and bool(empty.any()):
            block = torch.where(empty[..., None], 0, block)
            for column in range(width):
                if bool(empty[:, column].any()):
                    block[:, column] = torch.where(
                        empty[:, column, None], self._fresh(block), block[:, column]
                    )
        self.next = block

    def _fresh(self, block: Tensor) -> Tensor:
        """A random unit vector (L, P) outside the space and the block; its coupling is 0, so T stays exact."""
        count, _, dimension = block.shape
        drawn = probes((count,), 1, dimension, self.generator, kind="normal", device=block.device)
        for _ in range(2):
            drawn = self._split(drawn)[1]
            drawn = drawn - (drawn @ block.mT) @ block
            drawn = drawn / torch.linalg.vector_norm(drawn, dim=-1, keepdim=True)
        return drawn[:, 0]
