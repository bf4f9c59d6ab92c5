"""Losses and gradients of fully connected ensembles from a few Triton kernels instead of one per operation.

A step's traffic is what bounds it on a GPU: every layer's input and mask are written once and read once, samples are
read from the table they lie in, and gradients are written where the optimiser reads them.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from skiplab.ensembles.ensemble import Ensemble
from skiplab.ensembles.fused import kernels
from skiplab.ensembles.fused.shape import Shape, padded, skip_matrices

KINDS = {"none": 0, "identity": 1, "matrix": 2, "path": 3}
SHARED = 227 * 1024  # bytes of shared memory that a program may take on the GPUs that kernels were tuned on
SPARE = 56 * 1024  # bytes of it left to sums over rows and changes of layout
BUDGET = 16 << 30  # bytes for what the backward pass needs of the forward pass


@dataclass(frozen=True)
class Tiles:
    """How kernels are cut: rows per program, warps and pipeline stages; no result depends on warps and stages."""

    rows: int = 64
    slice: int = 64  # inputs per turn of the first layer
    deep: int = 64  # samples per turn of the weight gradients
    columns: int = 128  # of the first matrix's gradient, per program
    warps: int = 4
    stages: int = 3
    gradient_warps: int = 8
    gradient_stages: int = 3
    adam: int = 1024


@dataclass(frozen=True)
class Kept:
    """What the passes write for some members at once; a smaller batch uses the front of it."""

    batch: int
    activities: Tensor
    masks: Tensor
    slopes: Tensor
    deltas: Tensor


class Passes:
    """Forward and backward passes of an ensemble on samples of one table.

    ``weights`` are the parameters as the products read them: the ensemble's own rows, or a bfloat16 copy, which
    the optimiser writes (``adam``) and ``refresh`` makes anew after any other change.
    """

    def __init__(
        self,
        ensemble: Ensemble,
        shape: Shape,
        inputs: Tensor,
        labels: Tensor,
        *,
        mixed: bool,
        tiles: Tiles | None = None,
        budget: int = BUDGET,
    ) -> None:
        rows = ensemble.rows
        self.ensemble, self.shape, self.labels = ensemble, shape, labels
        self.dtype = torch.bfloat16 if mixed else rows.dtype
        self.tiles = tiles or Tiles()
        self.budget = budget
        self.table = inputs.to(self.dtype).contiguous()
        self.weights = torch.empty_like(rows, dtype=self.dtype) if mixed else rows
        # Never written: the padding of rows, whose gradient stays 0.
        self.gradient = torch.zeros_like(rows)
        layers = range(1, shape.depth)
        near = [f"hidden.{layer}.skip.matrix" for layer in layers] if shape.skip == "matrix" else []
        far = [f"far.{layer}.matrix" for layer in range(shape.depth - 2)] if shape.far == "matrix" else []
        self.near = skip_matrices(shape, ensemble.fixed, near, self.dtype) if near else self.weights
        self.far = skip_matrices(shape, ensemble.fixed, far, self.dtype) if far else self.weights
        self.kept: list[Kept] = []
        self.refresh()

    def refresh(self) -> None:
        """Copy the parameters to where the products read them."""
        if self.weights is not self.ensemble.rows:
            self.weights.copy_(self.ensemble.rows)

    def gradients(self, index: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Mean losses (E,), right answers (E,) and gradients (E, row) on each member's samples (E, batch)."""
        size, batch = index.shape
        blocks = -(-batch // self.tiles.rows)
        losses = self.gradient.new_empty(size, blocks)
        hits = torch.empty(size, blocks, dtype=torch.int32, device=losses.device)
        partials = self.gradient.new_empty(size, blocks, self.shape.biases)
        index = index.contiguous()
        kept = self._keep(batch)
        at_once = len(kept.slopes)
        for first in range(0, size, at_once):
            members = min(at_once, size - first)
            self._sweep(kept, index, first, members, losses, hits, partials)
            self._products(kept, index, first, members)
        start = self.ensemble.layout.count - self.shape.biases
        torch.sum(partials, 1, out=self.gradient[:, start : self.ensemble.layout.count])
        return losses.sum(1) / batch, hits.sum(1), self.gradient

    def adam(
        self,
        state: dict[str, Tensor],
        scale: Tensor,
        correction: Tensor,
        alive: Tensor,
        betas: tuple[float, float],
        eps: float,
    ) -> None:
        """One update by Adam from the gradients found last, all members in one kernel."""
        rows = self.ensemble.rows
        size, row = rows.shape
        grid = (-(-row // self.tiles.adam), size)
        arguments = (rows, self.gradient, state["first"], state["second"], self.weights, scale, correction)
        kernels.adam[grid](
            *arguments,
            alive,
            row,
            BETA1=betas[0],
            BETA2=betas[1],
            EPS=eps,
            COPY=self.weights is not rows,
            BLOCK=self.tiles.adam,
            num_warps=4,
        )

    @property
    def fits(self) -> bool:
        """Whether one matrix fits into a multiprocessor's shared memory."""
        return self._square <= self._shared

    @property
    def _stages(self) -> int:
        """Layers whose matrices are on their way at once; with one, matrices are read in turn."""
        return max(1, min(self.tiles.stages, self._shared // (self.shape.matrices * self._square)))

    @property
    def _square(self) -> int:
        return self.shape.wide**2 * self.weights.element_size()

    @property
    def _shared(self) -> int:
        device = self.weights.device
        if device.type != "cuda":
            return SHARED - SPARE
        return int(torch.cuda.get_device_properties(device).shared_memory_per_block_optin) - SPARE

    @property
    def precision(self) -> str:
        """How products of float32 are computed: as torch's own are at the moment."""
        return "ieee" if torch.get_float32_matmul_precision() == "highest" else "tf32"

    def bytes_per_member(self, batch: int) -> int:
        """Memory that one member's passes keep at once."""
        shape, item = self.shape, self.weights.element_size()
        return batch * (shape.depth * shape.wide * (2 * item + 1) + shape.soft * item)

    def _keep(self, batch: int) -> Kept:
        """Memory for the passes; never given back, since captured graphs hold its addresses."""
        for kept in self.kept:
            if kept.batch >= batch:
                return kept
        shape, device = self.shape, self.weights.device
        at_once = max(1, min(self.ensemble.size, self.budget // self.bytes_per_member(batch)))
        layers = (at_once, shape.depth, batch, shape.wide)
        kept = Kept(
            batch,
            torch.empty(layers, dtype=self.dtype, device=device),
            torch.empty(layers, dtype=torch.int8, device=device),
            torch.empty((at_once, batch, shape.soft), dtype=self.dtype, device=device),
            torch.empty(layers, dtype=self.dtype, device=device),
        )
        self.kept.append(kept)
        return kept

    def _sweep(
        self,
        kept: Kept,
        index: Tensor,
        first: int,
        members: int,
        losses: Tensor,
        hits: Tensor,
        partials: Tensor,
    ) -> None:
        """The forward and the backward pass of some members."""
        shape, tiles, row = self.shape, self.tiles, self.weights.shape[1]
        batch, blocks = index.shape[1], losses.shape[1]
        common = {
            "WIDTH": shape.width,
            "CLASSES": shape.outputs,
            "WIDE": shape.wide,
            "SOFT": shape.soft,
            "SKIP": KINDS[shape.skip],
            "FAR": KINDS[shape.far],
            "SCALE": shape.scale,
            "PRECISION": self.precision,
            "ROWS": tiles.rows,
            "STAGES": self._stages,
            "num_warps": tiles.warps if shape.far == "none" else 2 * tiles.warps,
        }
        grid = (members * blocks,)
        kernels.forward[grid](
            *(self.table, self.labels, index, self.weights, self.ensemble.rows, self.near, self.far),
            *(kept.activities, kept.masks, kept.slopes, losses, hits),
            *(row, shape.inputs, self.ensemble.layout.count - shape.biases),
            *(batch, blocks, first, shape.depth),
            SLICE=tiles.slice,
            RAGGED=shape.inputs % tiles.slice != 0,
            **common,
        )
        kernels.backward[grid](
            *(self.weights, self.near, self.far, kept.masks, kept.slopes, kept.deltas, partials),
            *(row, shape.inputs, batch, blocks, first, shape.depth),
            **common,
        )

    def _products(self, kept: Kept, index: Tensor, first: int, members: int) -> None:
        """The gradients of all weight matrices of some members."""
        shape, tiles, row = self.shape, self.tiles, self.weights.shape[1]
        batch, wide = index.shape[1], shape.wide
        layer, member = batch * wide, shape.depth * batch * wide
        index, gradient = index[first:], self.gradient[first : first + members]
        common = {
            "PRECISION": self.precision,
            "DEEP": tiles.deep,
            "num_warps": tiles.gradient_warps,
            "STAGES": tiles.gradient_stages,
        }
        columns = min(tiles.columns, padded(shape.inputs))
        kernels.weight_gradients[members, -(-shape.inputs // columns)](
            *(kept.deltas, self.table, index, gradient),
            *(member, 0, 0, 0, shape.inputs, row, shape.inputs, batch, 1),
            **{"HEIGHT": shape.width, "TALL": wide, "WIDE": columns, "GATHER": True, **common},
        )
        at = shape.width * shape.inputs
        if shape.depth > 1:
            kernels.weight_gradients[members * (shape.depth - 1), 1](
                *(kept.deltas.flatten()[layer:], kept.activities, index, gradient[:, at:]),
                *(member, layer, member, layer, wide, row, shape.width, batch, shape.depth - 1),
                **{"HEIGHT": shape.width, "TALL": wide, "WIDE": wide, "GATHER": False, **common},
            )
        at += (shape.depth - 1) * shape.width**2
        kernels.weight_gradients[members, 1](
            *(kept.slopes, kept.activities.flatten()[(shape.depth - 1) * layer :], index, gradient[:, at:]),
            *(batch * shape.soft, 0, member, 0, wide, row, shape.width, batch, 1),
            **{"HEIGHT": shape.outputs, "TALL": shape.soft, "WIDE": wide, "GATHER": False, **common},
        )
