"""A training step of fully connected ensembles from a few Triton kernels instead of one per operation.

Traffic is what bounds a step on a GPU: every layer's input and mask are written once and read once, samples are read
from the table they lie in, and gradients are written where the optimiser reads them.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import torch
import triton
from torch import Tensor

from skiplab.ensembles.ensemble import Ensemble
from skiplab.ensembles.fused import kernels
from skiplab.ensembles.fused.shape import Shape, padded, skip_matrices
from skiplab.ensembles.fused.tiles import Tiles

KINDS = {"none": 0, "identity": 1, "matrix": 2, "path": 3}  # as the kernels call them
KERNELS = 7  # that a step launches: the weight gradients come in three shapes
BUDGET = 16 << 30  # bytes for what the backward pass needs of the forward pass


@dataclass(frozen=True)
class Kept:
    """What the passes write for some members at once, on batches of one size."""

    activities: Tensor  # (members, depth, batch, wide)
    masks: Tensor
    deltas: Tensor
    slopes: Tensor  # (members, batch, soft)
    losses: Tensor  # (E, blocks)
    hits: Tensor
    partials: Tensor  # (E, blocks, biases)


class Passes:
    """Forward and backward passes and updates of an ensemble on samples of one table.

    ``weights`` are the parameters as the products take them: the ensemble's own rows, or a copy in bfloat16 or
    rounded to tf32, which ``adam`` writes and ``refresh`` makes anew after any other change.
    """

    def __init__(
        self,
        ensemble: Ensemble,
        shape: Shape,
        inputs: Tensor,
        labels: Tensor,
        *,
        mixed: bool,
        precision: str,
        tiles: Tiles,
        budget: int = BUDGET,
    ) -> None:
        rows = ensemble.rows
        self.ensemble, self.shape, self.labels = ensemble, shape, labels
        self.tiles, self.budget = tiles, budget
        self.dtype = torch.bfloat16 if mixed else rows.dtype
        self.precision = precision
        self.table = self._lowered(inputs).contiguous()
        self.weights = torch.empty_like(rows, dtype=self.dtype) if mixed or self._rounds else rows
        self.gradient = torch.zeros_like(rows)  # the padding of rows is never written: its gradient stays 0
        self.columns = min(tiles.columns, padded(shape.inputs))
        self.first_pieces = -(-shape.inputs // self.columns)
        self.squares = rows.new_empty(ensemble.size, self.first_pieces + shape.depth)
        near = [f"hidden.{layer}.skip.matrix" for layer in range(1, shape.depth)]
        far = [f"far.{layer}.matrix" for layer in range(shape.depth - 2)]
        # A pointer that kernels do not follow where there is no matrix.
        self.near = self.far = self.weights
        if shape.skip == "matrix":
            self.near = self._lowered(skip_matrices(shape, ensemble.fixed, near))
        if shape.far == "matrix":
            self.far = self._lowered(skip_matrices(shape, ensemble.fixed, far))
        self.kept: dict[int, Kept] = {}
        self._only_compiles = False
        self.refresh()

    @contextlib.contextmanager
    def compiling(self) -> Iterator[None]:
        """Compile kernels, several at a time, instead of launching them: in turn they take three times as long."""
        self._only_compiles = True
        try:
            with ThreadPoolExecutor(KERNELS) as pool, triton.AsyncCompileMode(pool):
                yield
        finally:
            self._only_compiles = False

    def _launch(self, kernel: Any, grid: tuple[int, ...], *arguments: Any, **options: Any) -> None:
        kernel.run(*arguments, grid=grid, warmup=self._only_compiles, **options)

    def refresh(self) -> None:
        """Copy the parameters to where the products take them from."""
        if self.weights is not self.ensemble.rows:
            self.weights.copy_(self._lowered(self.ensemble.rows))

    def _lowered(self, tensor: Tensor) -> Tensor:
        """Numbers as products take them, as the kernels' ``lowered``."""
        return rounded_to_tf32(tensor) if self._rounds else tensor.to(self.dtype)

    @property
    def _rounds(self) -> bool:
        return self.precision == "tf32" and self.dtype == torch.float32

    def differentiate(self, index: Tensor) -> Kept:
        """Write the gradients of the mean losses on each member's samples (E, batch)."""
        index = index.contiguous()
        kept = self._keep(index.shape[1])
        at_once = len(kept.slopes)
        for first in range(0, self.ensemble.size, at_once):
            members = min(at_once, self.ensemble.size - first)
            self._sweep(kept, index, first, members)
            self._products(kept, index[first:], first, members)
        torch.sum(kept.partials, 1, out=self.gradient[:, self.first_bias : self.ensemble.layout.count])
        return kept

    def tally(self, kept: Kept, alive: Tensor, loss_sum: Tensor, hit_sum: Tensor, *, changed: bool) -> None:
        """Add losses and right answers to each member's sums, and note whose loss or gradient is not finite.

        ``changed`` says that the gradients of weights, not of biases alone, were changed since they were written.
        """
        squares = self.squares
        if changed:
            squares = self.gradient[:, : self.first_bias].square().sum(1, keepdim=True)
        self._launch(
            kernels.tally,
            (self.ensemble.size,),
            *(kept.losses, kept.hits, squares, self.gradient[:, self.first_bias :], alive, loss_sum, hit_sum),
            *(self.gradient.shape[1], kept.losses.shape[1], squares.shape[1], self.shape.biases),
            BLOCK=self.tiles.tally,
        )

    def adam(
        self, state: dict[str, Tensor], rate: Tensor, alive: Tensor, betas: tuple[float, float], eps: float
    ) -> None:
        """Update all members by Adam from the gradients written last."""
        rows = self.ensemble.rows
        size, row = rows.shape
        self._launch(
            kernels.adam,
            (-(-row // self.tiles.adam), size),
            *(rows, self.gradient, state["first"], state["second"], self.weights),
            *(rate, state["steps"], alive, row),
            BETA1=betas[0],
            BETA2=betas[1],
            LOG1=math.log(betas[0]),
            LOG2=math.log(betas[1]),
            EPS=eps,
            PRECISION=self.precision,
            COPY=self.weights is not rows,
            BLOCK=self.tiles.adam,
        )

    @property
    def first_bias(self) -> int:
        """Where biases begin in a row; all weights are before them."""
        return self.ensemble.layout.count - self.shape.biases

    def _keep(self, batch: int) -> Kept:
        """Memory for the passes; never given back, since captured graphs hold its addresses."""
        if batch not in self.kept:
            shape, rows, low = self.shape, self.ensemble.rows, self.weights
            blocks, size = -(-batch // self.tiles.rows), self.ensemble.size
            one = bytes_per_member(shape, batch, self.dtype)
            layers = (max(1, min(size, self.budget // one)), shape.depth, batch, shape.wide)
            self.kept[batch] = Kept(
                activities=low.new_empty(layers),
                masks=low.new_empty(layers, dtype=torch.int8),
                deltas=low.new_empty(layers),
                slopes=low.new_empty(layers[0], batch, shape.soft),
                losses=rows.new_empty(size, blocks),
                hits=rows.new_empty(size, blocks, dtype=torch.int32),
                partials=rows.new_empty(size, blocks, shape.biases),
            )
        return self.kept[batch]

    def _sweep(self, kept: Kept, index: Tensor, first: int, members: int) -> None:
        """The forward and the backward pass of some members."""
        shape, tiles, row = self.shape, self.tiles, self.weights.shape[1]
        batch, blocks = index.shape[1], kept.losses.shape[1]
        common: dict[str, Any] = {
            "WIDTH": shape.width,
            "CLASSES": shape.outputs,
            "WIDE": shape.wide,
            "SOFT": shape.soft,
            "SKIP": KINDS[shape.skip],
            "FAR": KINDS[shape.far],
            "SCALE": shape.scale,
            "PRECISION": self.precision,
            "ROWS": tiles.rows,
            "num_warps": tiles.warps,
        }
        grid = (members * blocks,)
        self._launch(
            kernels.forward,
            grid,
            *(self.table, self.labels, index, self.weights, self.ensemble.rows, self.near, self.far),
            *(kept.activities, kept.masks, kept.slopes, kept.losses, kept.hits),
            *(row, shape.inputs, self.first_bias, batch, blocks, first, shape.depth),
            SLICE=tiles.slice,
            RAGGED=shape.inputs % tiles.slice != 0,
            SLICES=tiles.slices,
            STAGES=tiles.stages,
            **common,
        )
        self._launch(
            kernels.backward,
            grid,
            *(self.weights, self.near, self.far, kept.masks, kept.slopes, kept.deltas, kept.partials),
            *(row, shape.inputs, batch, blocks, first, shape.depth),
            STAGES=tiles.back_stages,
            **common,
        )

    def _products(self, kept: Kept, index: Tensor, first: int, members: int) -> None:
        """The gradients of all weight matrices of some members: the first layer's, the hidden ones', the output's."""
        shape, row, batch = self.shape, self.weights.shape[1], index.shape[1]
        wide, inner = shape.wide, shape.depth - 1
        layer = batch * wide
        member = shape.depth * layer
        gradient, squares = self.gradient[first:], self.squares[first:]
        common: dict[str, Any] = {
            "PRECISION": self.precision,
            "DEEP": self.tiles.deep,
            "STAGES": self.tiles.gradient_stages,
            "num_warps": self.tiles.gradient_warps,
        }
        pieces = squares.shape[1]
        self._launch(
            kernels.weight_gradients,
            (members, self.first_pieces),
            *(kept.deltas, self.table, index, gradient, squares),
            *(member, 0, 0, 0, shape.inputs, row, shape.inputs, pieces, batch, 1),
            **{"HEIGHT": shape.width, "TALL": wide, "WIDE": self.columns, "GATHER": True, **common},
        )
        start, piece = shape.width * shape.inputs, self.first_pieces
        if inner:
            self._launch(
                kernels.weight_gradients,
                (members * inner, 1),
                *(kept.deltas[:, 1:], kept.activities, index, gradient[:, start:], squares[:, piece:]),
                *(member, layer, member, layer, wide, row, shape.width, pieces, batch, inner),
                **{"HEIGHT": shape.width, "TALL": wide, "WIDE": wide, "GATHER": False, **common},
            )
        start, piece = start + inner * shape.width**2, piece + inner
        self._launch(
            kernels.weight_gradients,
            (members, 1),
            *(kept.slopes, kept.activities[:, inner:], index, gradient[:, start:], squares[:, piece:]),
            *(batch * shape.soft, 0, member, 0, wide, row, shape.width, pieces, batch, 1),
            **{"HEIGHT": shape.outputs, "TALL": shape.soft, "WIDE": wide, "GATHER": False, **common},
        )


def rounded_to_tf32(numbers: Tensor) -> Tensor:
    """Numbers of float32 rounded to tf32's ten binary places, half away from 0.

    >>> rounded_to_tf32(torch.tensor([1.0, 1 + 2**-11, 1 + 2**-12])).tolist() == [1.0, 1 + 2**-10, 1.0]
    True
    """
    rounded = ((numbers.view(torch.int32) + 0x1000) & -0x2000).view(torch.float32)
    return torch.where(numbers.isfinite(), rounded, numbers)


def bytes_per_member(shape: Shape, batch: int, dtype: torch.dtype) -> int:
    """Memory that one member's passes on a batch keep at once, apart from parameters and gradients."""
    return batch * (shape.depth * shape.wide * (2 * dtype.itemsize + 1) + shape.soft * dtype.itemsize)
