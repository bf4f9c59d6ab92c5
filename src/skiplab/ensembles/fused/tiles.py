"""How the kernels are cut into programs, and whether they fit the device."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from skiplab.ensembles.fused.arithmetic import Arithmetic
from skiplab.ensembles.fused.shape import Shape

SHARED = 227 * 1024  # bytes of shared memory that a program may take on the GPUs that kernels were tuned on
SPARE = 56 * 1024  # bytes of it left to sums over rows and changes of layout


@dataclass(frozen=True)
class Tiles:
    """Rows, inputs and columns per program, warps and stages of pipelines; on warps and stages no result depends."""

    rows: int = 64
    slice: int = 64  # inputs per turn of the first layer
    deep: int = 64  # samples per turn of the weight gradients
    columns: int = 128  # of the first matrix's gradient, per program
    warps: int = 4
    slices: int = 3
    # Two programs on a multiprocessor hide more than a longer pipeline of one. On an H200 (E = 50, bfloat16) the
    # backward pass takes .22 ms with two stages, .30 with three, the forward pass .21 with three.
    stages: int = 3
    back_stages: int = 2
    gradient_warps: int = 8
    gradient_stages: int = 3
    tally: int = 256
    adam: int = 1024


# Numbers in two parts take twice the memory, which leaves room for one program, of twice the rows.
IN_PARTS = Tiles(rows=128, warps=8, slices=2, stages=2, deep=32)


def tiles_for(shape: Shape, arithmetic: Arithmetic, device: torch.device) -> Tiles | None:
    """The tiles for a network's products, or None where one matrix does not fit into shared memory."""
    shared = SHARED
    if device.type == "cuda":
        # torch's type hints leave it out.
        shared = torch.cuda.get_device_properties(device).shared_memory_per_block_optin  # type: ignore[attr-defined]
    square = shape.wide**2 * arithmetic.itemsize
    if square > shared - SPARE:
        return None
    tiles = Tiles() if arithmetic.parts == 1 else IN_PARTS
    # With one stage matrices are read in turn, so that one at a time needs room.
    most = max(1, (shared - SPARE) // (shape.matrices * square))
    stages = {"stages": min(tiles.stages, most), "back_stages": min(tiles.back_stages, most)}
    # The bracket of a hyper-residual network is another tile in registers.
    return replace(tiles, **stages, warps=tiles.warps if shape.far == "none" else 8)
