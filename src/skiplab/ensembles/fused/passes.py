"""A training step of fully connected ensembles from a few Triton kernels instead of one per operation.

Traffic is what bounds a step on a GPU: every layer's input and mask are written once and read once, samples are
read from the table they lie in, and gradients are written where the optimiser reads them.
"""

from __future__ import annotations

import contextlib
import contextvars
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import torch
import triton
from torch import Tensor

from skiplab.ensembles.ensemble import Ensemble
from skiplab.ensembles.fused import kernels, update_kernels
from skiplab.ensembles.fused.arithmetic import Arithmetic
from skiplab.ensembles.fused.shape import Shape, padded, skip_matrices
from skiplab.ensembles.fused.tiles import Tiles

KINDS = {"none": 0, "identity": 1, "matrix": 2, "path": 3}  # as the kernels call them
KERNELS = 7  # that a step launches: the weight gradients come in three shapes
BUDGET = 16 << 30  # bytes for what the backward pass needs of the forward pass


@dataclass(frozen=True)
class Kept:
    """What the passes write for some members at once, on batches of one size."""

    activities: Tensor  # (parts, members, depth, batch, wide)
    deltas: Tensor
    masks: Tensor  # (members, depth, batch, 8), sixteen bits each
    slopes: Tensor  # (parts, members, batch, soft)
    losses: Tensor  # (E, blocks)
    hits: Tensor


@dataclass(frozen=True)
class Update:
    """A step of Adam: its state, with the step counted already, and who takes it at which rate."""

    state: dict[str, Tensor]
    rate: Tensor
    alive: Tensor
    betas: tuple[float, float]
    eps: float

    @property
    def constants(self) -> dict[str, Any]:
        """What the kernels are compiled with."""
        (beta1, beta2), logs = self.betas, [math.log(beta) for beta in self.betas]
        return {"BETA1": beta1, "BETA2": beta2, "LOG1": logs[0], "LOG2": logs[1], "EPS": self.eps}


# Registers per thread of weight gradients that Adam ends: with 161 to 166, which Triton takes by itself, one program
# fits into a multiprocessor instead of two. With 128 none spills where tiles are whole (Triton 3.6, sm_90).
REGISTERS = 128

NO_UPDATE: dict[str, Any] = dict.fromkeys(("BETA1", "BETA2", "LOG1", "LOG2", "EPS"), 0.0)


class Passes:
    """Forward and backward passes and updates of an ensemble on samples of one table.

    ``weights`` (parts, E, row) are the parameters as the products take them: the ensemble's own rows, or a copy in
    one or two parts of bfloat16, which ``adam`` writes and ``refresh`` makes anew after any other change.
    """

    def __init__(
        self,
        ensemble: Ensemble,
        shape: Shape,
        inputs: Tensor,
        labels: Tensor,
        *,
        arithmetic: Arithmetic,
        tiles: Tiles,
        budget: int = BUDGET,
    ) -> None:
        rows = ensemble.rows
        self.ensemble, self.shape, self.labels = ensemble, shape, labels
        self.tiles, self.budget = tiles, budget
        self.arithmetic = arithmetic
        self.table = arithmetic.parts_of(inputs)
        self.weights = arithmetic.parts_of(rows)
        self.gradient = torch.zeros_like(rows)  # the padding of rows is never written: its gradient stays 0
        self.columns = min(tiles.columns, padded(shape.inputs))
        self.first_pieces = -(-shape.inputs // self.columns)
        self.squares = rows.new_empty(ensemble.size, self.first_pieces + shape.depth)
        near = [f"hidden.{layer}.skip.matrix" for layer in range(1, shape.depth)]
        far = [f"far.{layer}.matrix" for layer in range(shape.depth - 2)]
        # A pointer that kernels do not follow where there is no matrix.
        self.near = self.far = self.weights
        if shape.skip == "matrix":
            self.near = arithmetic.parts_of(skip_matrices(shape, ensemble.fixed, near))
        if shape.far == "matrix":
            self.far = arithmetic.parts_of(skip_matrices(shape, ensemble.fixed, far))
        self.kept: dict[int, Kept] = {}
        self._only_compiles = False

    def compile(self, step: Callable[[], object]) -> None:
        """Compile the kernels of a step side by side instead of launching them: the first one waits for the slowest.

        What cannot be compiled so is compiled by its launch, which says why if it cannot either. Python before 3.11.8
        and in 3.12.0 and 3.12.1 may fail to parse in several threads at once (CPython's issue 106905).
        """

        def side_by_side() -> None:
            with ThreadPoolExecutor(KERNELS) as pool, triton.AsyncCompileMode(pool):
                step()

        self._only_compiles = True
        try:
            # In a context of its own: Triton 3.6 leaves the mode on where it ends by an error.
            with contextlib.suppress(Exception):
                contextvars.copy_context().run(side_by_side)
        finally:
            self._only_compiles = False

    def _launch(self, kernel: Any, grid: tuple[int, ...], *arguments: Any, **options: Any) -> None:
        kernel.run(*arguments, grid=grid, warmup=self._only_compiles, **options)

    def refresh(self) -> None:
        """Copy the parameters to where the products take them from."""
        if self._copied:
            self.weights.copy_(self.arithmetic.parts_of(self.ensemble.rows))

    def differentiate(self, index: Tensor, update: Update | None = None) -> Kept:
        """Write the gradients of the mean losses on each member's samples (E, batch).

        With an update weight matrices take it at once, and only the gradients of biases are written; ``tally`` and
        ``adam`` of the biases follow.
        """
        index = index.contiguous()
        kept = self._keep(index.shape[1])
        at_once = len(kept.masks)
        for first in range(0, self.ensemble.size, at_once):
            members = min(at_once, self.ensemble.size - first)
            self._sweep(kept, index, first, members)
            self._products(kept, index[first:], first, members, update)
        return kept

    def tally(self, kept: Kept, alive: Tensor, loss_sum: Tensor, hit_sum: Tensor, *, changed: bool) -> None:
        """Add losses and right answers to each member's sums, and note whose loss or gradient is not finite.

        ``changed`` says that the gradients of weights, not of biases alone, were changed since they were written.
        """
        squares = self.squares
        if changed:
            squares = self.gradient[:, : self.first_bias].square().sum(1, keepdim=True)
        self._launch(
            update_kernels.tally,
            (self.ensemble.size,),
            *(kept.losses, kept.hits, squares, self.gradient[:, self.first_bias :], alive, loss_sum, hit_sum),
            *(self.gradient.shape[1], kept.losses.shape[1], squares.shape[1], self.shape.biases),
            BLOCK=self.tiles.tally,
        )

    def adam(self, update: Update, *, biases: bool = False) -> None:
        """Update all members by Adam from the gradients written last, or their biases alone."""
        rows, state = self.ensemble.rows, update.state
        size, row = rows.shape
        start = self.first_bias if biases else 0
        self._launch(
            update_kernels.adam,
            (-(-(row - start) // self.tiles.adam), size),
            *(rows, self.gradient, state["first"], state["second"], self.weights),
            *(update.rate, state["steps"], update.alive, self.weights.stride(0), row),
            START=start,
            **update.constants,
            PARTS=self.arithmetic.parts,
            COPY=self._copied,
            BLOCK=self.tiles.adam,
        )

    @property
    def _copied(self) -> bool:
        """Whether products take a copy of the parameters."""
        return self.arithmetic.dtype != self.ensemble.rows.dtype

    @property
    def first_bias(self) -> int:
        """Where biases begin in a row; all weights are before them."""
        return self.ensemble.layout.count - self.shape.biases

    def _keep(self, batch: int) -> Kept:
        """Memory for the passes; never given back, since captured graphs hold its addresses."""
        if batch not in self.kept:
            shape, rows, low = self.shape, self.ensemble.rows, self.weights
            blocks, size = -(-batch // self.tiles.rows), self.ensemble.size
            one = bytes_per_member(shape, batch, self.arithmetic)
            layers = (max(1, min(size, self.budget // one)), shape.depth, batch, shape.wide)
            parts = self.arithmetic.parts
            self.kept[batch] = Kept(
                activities=low.new_empty(parts, *layers),
                deltas=low.new_empty(parts, *layers),
                masks=low.new_empty(*layers[:-1], 8, dtype=torch.int16),
                slopes=low.new_empty(parts, layers[0], batch, shape.soft),
                losses=rows.new_empty(size, blocks),
                hits=rows.new_empty(size, blocks, dtype=torch.int32),
            )
        return self.kept[batch]

    def _sweep(self, kept: Kept, index: Tensor, first: int, members: int) -> None:
        """The forward and the backward pass of some members."""
        shape, tiles, row = self.shape, self.tiles, self.weights.shape[-1]
        batch, blocks = index.shape[1], kept.losses.shape[1]
        common: dict[str, Any] = {
            "WIDTH": shape.width,
            "CLASSES": shape.outputs,
            "WIDE": shape.wide,
            "SOFT": shape.soft,
            "SKIP": KINDS[shape.skip],
            "FAR": KINDS[shape.far],
            "SCALE": shape.scale,
            "PARTS": self.arithmetic.parts,
            "ROWS": tiles.rows,
            "num_warps": tiles.warps,
        }
        grid = (members * blocks,)
        planes = [
            parts.stride(0) for parts in (self.weights, self.near, self.far, kept.activities, kept.slopes)
        ]
        self._launch(
            kernels.forward,
            grid,
            *(self.table, self.labels, index, self.weights, self.ensemble.rows, self.near, self.far),
            *(kept.activities, kept.masks, kept.slopes, kept.losses, kept.hits),
            *(self.table.stride(0), *planes),
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
            *(self.weights, self.near, self.far, kept.masks, kept.slopes, kept.deltas),
            *planes,
            *(row, shape.inputs, batch, blocks, first, shape.depth),
            STAGES=tiles.back_stages,
            **common,
        )

    def _products(
        self, kept: Kept, index: Tensor, first: int, members: int, update: Update | None = None
    ) -> None:
        """The gradients of all weight matrices of some members: the first layer's, the hidden ones', the output's."""
        shape, row, batch = self.shape, self.weights.shape[-1], index.shape[1]
        wide, inner = shape.wide, shape.depth - 1
        layer = batch * wide
        member = shape.depth * layer
        gradient, squares = self.gradient[first:], self.squares[first:]
        biases = gradient[:, self.first_bias :]
        common: dict[str, Any] = {
            "PARTS": self.arithmetic.parts,
            "DEEP": self.tiles.deep,
            "STAGES": self.tiles.gradient_stages,
            "num_warps": self.tiles.gradient_warps,
            "COPY": self._copied,
            "BLOCK": self.tiles.tally,
            "UPDATE": update is not None,
            **(NO_UPDATE if update is None else update.constants),
        }
        if update is not None and self.arithmetic.parts == 1 and shape.width == wide:
            common["maxnreg"] = REGISTERS
        pieces = squares.shape[1]
        table, layers, slopes = (parts.stride(0) for parts in (self.table, kept.deltas, kept.slopes))
        self._launch(
            update_kernels.weight_gradients,
            (members, self.first_pieces),
            *(kept.deltas, self.table, index, gradient, biases, squares),
            *(layers, table, member, 0, 0, 0, shape.inputs, row, shape.inputs, pieces, batch, 1),
            *self._of_update(update, kept, first, 0),
            **{"HEIGHT": shape.width, "TALL": wide, "WIDE": self.columns, "GATHER": True, **common},
        )
        start, piece = shape.width * shape.inputs, self.first_pieces
        if inner:
            self._launch(
                update_kernels.weight_gradients,
                (members * inner, 1),
                *(kept.deltas[:, :, 1:], kept.activities, index),
                *(gradient[:, start:], biases[:, shape.width :], squares[:, piece:]),
                *(layers, layers, member, layer, member, layer, wide, row, shape.width, pieces, batch, inner),
                *self._of_update(update, kept, first, start),
                **{"HEIGHT": shape.width, "TALL": wide, "WIDE": wide, "GATHER": False, **common},
            )
        start, piece = start + inner * shape.width**2, piece + inner
        self._launch(
            update_kernels.weight_gradients,
            (members, 1),
            *(kept.slopes, kept.activities[:, :, inner:], index),
            *(gradient[:, start:], biases[:, shape.depth * shape.width :], squares[:, piece:]),
            *(slopes, layers, batch * shape.soft, 0, member, 0, wide, row, shape.width, pieces, batch, 1),
            *self._of_update(update, kept, first, start),
            **{"HEIGHT": shape.outputs, "TALL": shape.soft, "WIDE": wide, "GATHER": False, **common},
        )

    def _of_update(self, update: Update | None, kept: Kept, first: int, start: int) -> tuple[Any, ...]:
        """What weight gradients of members from ``first`` on, of columns from ``start`` on, take for an update."""
        plane, blocks = self.weights.stride(0), kept.losses.shape[1]
        if update is None:  # pointers that no kernel follows
            return (*[self.gradient] * 8, plane, blocks)
        state = update.state
        places = (self.ensemble.rows, state["first"], state["second"])
        return (
            *(tensor[first:, start:] for tensor in places),
            *(self.weights[:, first:, start:], kept.losses[first:], update.rate[first:], state["steps"]),
            *(update.alive[first:], plane, blocks),
        )


def bytes_per_member(shape: Shape, batch: int, arithmetic: Arithmetic) -> int:
    """Memory that one member's passes on a batch keep at once, apart from parameters and gradients."""
    number = arithmetic.itemsize
    return batch * (shape.depth * (shape.wide * 2 * number + 16) + shape.soft * number)
