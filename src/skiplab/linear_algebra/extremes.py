"""The largest and smallest eigenvalues, run until their residuals are small, not for a fixed number of steps.

Block Lanczos (Golub and Underwood, 1977): a block of b random vectors starts a Krylov space, A is projected on it,
and the projection's eigenvalues θ with vectors y (Ritz pairs) approach A's from inside.
The residual ‖Ay − θy‖ comes free from the recurrence, and some eigenvalue lies within it of θ (Saad, *Numerical
Methods for Large Eigenvalue Problems*, 2011, section 6.3). A fixed number of steps, say 2·count, gets the inner ones
wrong without a word; here ``converged`` tells.

A new block is orthogonalised against the two before it, and against all of them from when the residual of any Ritz
pair is small: until then the recurrence keeps them orthogonal, since a block leans towards an earlier Ritz vector by
no more than rounding over its residual (Paige, 1976; Simon, 1984). Where eigenvectors are asked for, it is
orthogonalised against all from the start. With float32 products everything but the
projection is float32, whose rounding is that of the products.

A space grown from one vector sees each distinct eigenvalue once. A block of b sees up to b copies, and tells apart up
to b eigenvalues that are closer than the tolerance; raise ``block`` where more are expected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from skiplab.checks import Refused, at_least, one_of
from skiplab.linear_algebra.operators import Product, dot, flat, multiplied, probes

WHICH = ("largest", "smallest", "magnitude", "both")
MAX_STEPS = 200  # chosen by us: outliers of a Hessian take 20 to 40, the edge of its bulk more
BLOCKS_A_PIECE = 8
LEANING = (
    1e-3  # residual of a Ritz pair, beside the largest |θ|, below which new blocks would lean towards it
)
PART = 1 << 16  # numbers that are made float64 at a time, small enough for a cache
EXHAUSTED = 1e-12  # a new direction this small beside the operator is rounding


@dataclass(frozen=True)
class Extremes:
    """Eigenvalues and residuals (*lead, count), the block steps taken, and which eigenvalues are ``settled``.

    Largest come in descending order, smallest ascending, by magnitude descending in |λ|; ``both`` holds the ``count``
    largest and then the ``count`` smallest. ``vectors`` (*lead, count, P), if asked for, are orthonormal within the
    rounding of the products.
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
    start: Tensor | None = None,
    vectors: bool = False,
    dtype: torch.dtype = torch.float64,
    device: torch.device | str | None = None,
) -> Extremes:
    """Find ``count`` eigenvalues at one end, or at both, to residuals of ``tolerance`` times the largest |θ|.

    Each step multiplies ``block`` vectors of every leading index; all go on until the last has converged or
    ``max_steps`` are over. The first block is ``start`` (*lead, block, P), by default random on the sphere; a start
    that has nothing of an eigenvector never finds it, so add random numbers to one that is not random. Memory is
    steps × block × P numbers of ``dtype`` for each leading index, and what ``extremes_held`` counts besides.

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
    if start is None:
        start = probes(lead, min(block, dimension), dimension, generator, kind="normal", device=device)
    space = _Space(product, flat(start, 2), tuple(lead), dtype, generator, max_steps, leaning=vectors)
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

    Pieces hold several blocks, so that a vector meets the basis in few large products. The newest ``block`` lies in
    them too, but is not yet multiplied. ``coupling`` (L, b, b) has its coordinates (rows) in the images of the
    block ``before`` (columns).
    """

    def __init__(
        self,
        product: Product,
        start: Tensor,
        lead: tuple[int, ...],
        dtype: torch.dtype,
        generator: torch.Generator,
        steps: int,
        *,
        leaning: bool,
    ) -> None:
        self.most = (steps + 1) * start.shape[-2]  # rows, with those of the block that is not yet multiplied
        self.product, self.lead, self.dtype, self.generator = product, lead, dtype, generator
        self.dimension = start.shape[-1]
        self.pieces: list[Tensor] = []
        self.free = 0  # rows still unused in the last piece
        self.leaning = leaning  # whether a new block has to be orthogonalised against all
        self.projected = start.new_zeros((len(start), 0, 0), dtype=torch.float64)
        self.coupling = self.projected
        self.before: Tensor | None = None
        # One memory for all images: fresh pages cost more than the arithmetic on them.
        self.work = torch.empty_like(start, dtype=dtype)
        self.block = self._row(start.shape[1])
        self.work.copy_(start)
        _directions(self.work, self.block, _norms(self.work))

    @property
    def size(self) -> int:
        return self.projected.shape[-1]

    @property
    def complete(self) -> bool:
        return self.size == self.dimension

    def grow(self) -> None:
        """Multiply the newest block, project the operator on it, and find the block after it."""
        block, before = self.block, self.before
        count, width, _ = block.shape
        image = multiplied(self.product, block.reshape(*self.lead, width, self.dimension))
        # A copy: the operator may have returned its argument, or a tensor it keeps.
        rest = self.work[:, :width].copy_(flat(image, 2))
        del image
        inner = _coordinates(rest, block)
        rest.baddbmm_(inner.to(self.dtype), block, alpha=-1)
        old = self.size
        grown = inner.new_zeros((count, old + width, old + width))
        grown[:, :old, :old] = self.projected
        grown[:, old:, old:] = (inner + inner.mT) / 2
        if before is not None:
            rest.baddbmm_(self.coupling.to(self.dtype), before, alpha=-1)
            grown[:, old:, old - before.shape[1] : old] = self.coupling
            grown[:, old - before.shape[1] : old, old:] = self.coupling.mT
        self.projected = grown
        sizes = None if self.leaning else _norms(rest)
        self.leaning = sizes is None or self._leans(sizes)
        if self.leaning:
            sizes = _orthogonalise(rest, self._filled())
        self.before = block
        assert sizes is not None
        self._follow(rest, sizes)

    def _leans(self, sizes: Tensor) -> bool:
        """Whether a Ritz pair has come so close to an eigenpair that rounding in its direction grows.

        ``sizes`` (L, b) are the lengths of what the space lacks of the newest images.
        """
        theta, inner = torch.linalg.eigh(self.projected)
        residual = torch.linalg.vector_norm(sizes[..., None] * inner[:, -sizes.shape[1] :], dim=-2)
        return bool((residual <= LEANING * theta.abs().amax(-1, keepdim=True)).any())

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
            total += inner[:, first : first + piece.shape[1]].mT @ piece.double()
            first += piece.shape[1]
        return total

    def _row(self, width: int) -> Tensor:
        """Memory for a block (L, b, P) beside those before."""
        if self.free < width:
            held = sum(piece.shape[1] for piece in self.pieces) - self.free
            rows = min(BLOCKS_A_PIECE * width, min(self.dimension, self.most) - held)
            if self.free:
                self.pieces[-1] = self.pieces[-1][:, : -self.free]
            self.pieces.append(self.work.new_empty((len(self.work), rows, self.dimension)))
            self.free = rows
        first = self.pieces[-1].shape[1] - self.free
        self.free -= width
        return self.pieces[-1][:, first : first + width]

    def _filled(self) -> list[Tensor]:
        """The rows of all blocks that were multiplied."""
        found, left = [], self.size
        for piece in self.pieces:
            found.append(piece[:, :left])
            left -= found[-1].shape[1]
        return [piece for piece in found if piece.shape[1]]

    def _follow(self, rest: Tensor, lengths: Tensor) -> None:
        """Choose the next block: the strongest directions of the rest, and random ones where it is exhausted."""
        width = min(rest.shape[1], self.dimension - self.size)
        if not width:
            self.coupling = self.coupling.new_zeros((len(rest), 0, rest.shape[1]))
            return
        self.block = self._row(width)
        sizes, right = _directions(rest, self.block, lengths)
        empty = sizes <= EXHAUSTED * self.projected.abs().amax((-2, -1))[:, None]
        sizes = torch.where(empty, 0, sizes)
        self.coupling = sizes[..., None] * right
        if bool(empty.any()):
            self.block.masked_fill_(empty[..., None], 0)
            for column in range(width):
                if bool(empty[:, column].any()):
                    fresh = self._fresh()
                    self.block[:, column] = torch.where(empty[:, column, None], fresh, self.block[:, column])

    def _fresh(self) -> Tensor:
        """A random unit vector (L, P) outside the space and the block; its coupling is 0, so T stays exact."""
        count, _, dimension = self.block.shape
        drawn = probes((count,), 1, dimension, self.generator, kind="normal", device=self.block.device)
        drawn = drawn.to(self.dtype)
        for _ in range(2):
            drawn /= _orthogonalise(drawn, [*self._filled(), self.block])[..., None].to(self.dtype)
        return drawn[:, 0]


def _coordinates(vectors: Tensor, rows: Tensor) -> Tensor:
    """The inner products (L, k, r) of vectors (L, k, P) with rows (L, r, P), in float64."""
    # Sums in float32 would err by 1e-5 of them, ten times as much as products of a large network.
    parts = zip(vectors.split(PART, -1), rows.split(PART, -1), strict=True)
    found = vectors.new_zeros((*vectors.shape[:2], rows.shape[1]), dtype=torch.float64)
    for some, others in parts:
        found.baddbmm_(some.double(), others.double().mT)
    return found


def _norms(vectors: Tensor) -> Tensor:
    """The lengths (L, k) of vectors (L, k, P), in float64."""
    return torch.stack([dot(some, some) for some in vectors.split(PART, -1)]).sum(0).sqrt()


def _orthogonalise(vectors: Tensor, pieces: Sequence[Tensor]) -> Tensor:
    """Take away from vectors (L, k, P), in place, what lies along rows (L, r, P); return the norms of the rest.

    Twice where once leaves rounding of a larger part, as in ``lanczos``.
    """
    for _ in range(2):
        taken = vectors.new_zeros(vectors.shape[:-1], dtype=torch.float64)
        for piece in pieces:
            along = _coordinates(vectors, piece)
            vectors.baddbmm_(along.to(vectors.dtype), piece, alpha=-1)
            taken += along.square().sum(-1)
        rest = _norms(vectors)
        if bool((taken.sqrt() <= rest).all()):
            break
    return rest


def _directions(rows: Tensor, out: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Write into ``out`` (L, w, P) orthonormal directions of rows (L, b, P) of these lengths, the strongest first.

    Returned are their sizes (L, w) and the turn (L, w, b): rows are turnᵀ · sizes · directions.
    """
    width = out.shape[1]
    if rows.shape[1] == 1:  # a QR of one column takes as long as a Hessian product
        torch.mul(rows, torch.where(lengths > 0, 1 / lengths, 0)[..., None].to(rows.dtype), out=out)
        return lengths, torch.ones_like(lengths)[..., None]
    factors = torch.linalg.qr(rows.mT)
    left, sizes, right = torch.linalg.svd(factors.R)
    out.copy_((factors.Q @ left).mT[:, :width])
    return sizes[:, :width].double(), right[:, :width].double()
