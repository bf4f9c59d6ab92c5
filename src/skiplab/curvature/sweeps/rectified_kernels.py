"""Triton kernels: the sweeps of Hessian products through y = ReLU(x Wᵀ + b), one pass over memory per direction.

Two batched products, their sum, the bias and the ReLU's mask would each read and write tensors of (lanes, samples,
units); here the sums stay in registers. A tensor with one lane, the values of a lone network, serves all lanes.
"""

# mypy: allow-untyped-defs

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

TILE, WARPS, STAGES = 64, 4, 3  # samples per program; the fastest of those tried on an H200
DEPTH = 32  # terms of its sums that a product takes at a time


def tangent(
    x: Tensor,
    dx: Tensor,
    weight: Tensor,
    dweight: Tensor,
    dbias: Tensor,
    mask: Tensor,
    out: Tensor,
    precision: str,
) -> Tensor:
    """(x dWᵀ + dx Wᵀ + db) where the mask (L, N, units) holds, from x (L, N, K) and W (L, units, K)."""
    lanes, samples, units = out.shape
    _tangent[(triton.cdiv(samples, TILE), lanes)](
        x, dx, weight, dweight, dbias, mask, out, samples,
        _step(x), _step(dx), _step(weight), _step(dweight), _step(dbias), _step(mask),
        weight.shape[2], units, TILE, min(DEPTH, weight.shape[2]), precision, num_warps=WARPS, num_stages=STAGES,
    )  # fmt: skip
    return out


def turned(
    r: Tensor,
    g: Tensor,
    mask: Tensor,
    weight: Tensor,
    dweight: Tensor,
    masked: Tensor,
    out: Tensor,
    precision: str,
) -> Tensor:
    """r W + g dW into ``out`` with r masked, which is kept in ``masked``; returns its sum over samples (L, units).

    Weights are transposed, (L, K, units): a product reads them along what it sums over.
    """
    lanes, samples, units = r.shape
    tiles = triton.cdiv(samples, TILE)
    sums = r.new_empty(tiles, lanes, units)
    _turned[(tiles, lanes)](
        r, g, mask, weight, dweight, masked, out, sums, samples, lanes,
        _step(r), _step(g), _step(mask), _step(weight), _step(dweight),
        weight.shape[1], units, TILE, min(DEPTH, units), precision, num_warps=WARPS, num_stages=STAGES,
    )  # fmt: skip
    return sums.sum(0)


def _step(tensor: Tensor) -> int:
    return 0 if tensor.shape[0] == 1 else tensor.stride(0)


@triton.jit
def _tangent(
    x, dx, weight, dweight, dbias, mask, out, samples,
    x_step, dx_step, weight_step, dweight_step, dbias_step, mask_step,
    INPUTS: tl.constexpr, UNITS: tl.constexpr, TILE: tl.constexpr, DEPTH: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    lane = tl.program_id(1).to(tl.int64)
    sample = tl.program_id(0) * TILE + tl.arange(0, TILE)
    inside = (sample < samples)[:, None]
    unit = tl.arange(0, UNITS)
    deep = tl.arange(0, DEPTH)
    rows = sample[:, None] * INPUTS + deep[None, :]
    columns = unit[None, :] * INPUTS + deep[:, None]
    x += lane * x_step
    dx += lane * dx_step
    weight += lane * weight_step
    dweight += lane * dweight_step
    total = tl.zeros([TILE, UNITS], tl.float32)
    for first in range(0, INPUTS, DEPTH):
        left = tl.load(x + rows + first, mask=inside, other=0.0)
        right = tl.load(dweight + columns + first)
        total = tl.dot(left, right, total, input_precision=PRECISION)
    for first in range(0, INPUTS, DEPTH):
        left = tl.load(dx + rows + first, mask=inside, other=0.0)
        right = tl.load(weight + columns + first)
        total = tl.dot(left, right, total, input_precision=PRECISION)
    total += tl.load(dbias + lane * dbias_step + unit)[None, :]
    at = sample[:, None] * UNITS + unit[None, :]
    passes = tl.load(mask + lane * mask_step + at, mask=inside, other=0)
    tl.store(out + lane * samples * UNITS + at, tl.where(passes != 0, total, 0.0), mask=inside)


@triton.jit
def _turned(
    r, g, mask, weight, dweight, masked, out, sums, samples, lanes,
    r_step, g_step, mask_step, weight_step, dweight_step,
    INPUTS: tl.constexpr, UNITS: tl.constexpr, TILE: tl.constexpr, DEPTH: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    lane = tl.program_id(1).to(tl.int64)
    sample = tl.program_id(0) * TILE + tl.arange(0, TILE)
    inside = (sample < samples)[:, None]
    inputs = tl.arange(0, INPUTS)
    deep = tl.arange(0, DEPTH)
    rows = sample[:, None] * UNITS + deep[None, :]
    columns = inputs[None, :] * UNITS + deep[:, None]
    r += lane * r_step
    g += lane * g_step
    mask += lane * mask_step
    masked += lane * samples * UNITS
    sums += (tl.program_id(0) * lanes + lane) * UNITS
    weight += lane * weight_step
    dweight += lane * dweight_step
    total = tl.zeros([TILE, INPUTS], tl.float32)
    for first in range(0, UNITS, DEPTH):
        left = tl.load(g + rows + first, mask=inside, other=0.0)
        right = tl.load(dweight + columns + first)
        total = tl.dot(left, right, total, input_precision=PRECISION)
    for first in range(0, UNITS, DEPTH):
        passes = tl.load(mask + rows + first, mask=inside, other=0)
        left = tl.load(r + rows + first, mask=inside, other=0.0)
        left = tl.where(passes != 0, left, 0.0)
        tl.store(masked + rows + first, left, mask=inside)
        tl.store(sums + first + deep, tl.sum(left, 0))
        right = tl.load(weight + columns + first)
        total = tl.dot(left, right, total, input_precision=PRECISION)
    at = sample[:, None] * INPUTS + inputs[None, :]
    tl.store(out + lane * samples * INPUTS + at, total, mask=inside)
