"""Triton kernels: batch normalisation and ReLU of E networks, y = ReLU(γ(z − μ)/σ + β), or with a shortcut added.

Images are (E, B, H, W, F) as in ``wide_kernels``, whose convolution gives z and the moments of its parts. Per layer
and step these passes over memory:

- ``normalised``: reads z, and the tensor that a shortcut passes, writes y;
- ``gradient_sums``: reads the gradient g of y and z, writes sums of ĝ = g·[y > 0] and of ĝ·x̂ over parts of the batch,
  x̂ = (z − μ)/σ; with a shortcut it also reads y and writes ĝ, which is the shortcut's gradient;
- ``field_gradient``: reads ĝ and z, writes the gradient of z, γ/σ·(ĝ − mean of ĝ − x̂·mean of ĝ·x̂).

``standard`` (E, 4, F) holds what normalises each channel: μ, the rate 1/σ = 1/√(variance + ε), γ and β.

Means and deviations come from parts by the formula of Chan, Golub and LeVeque, since a difference of sums of squares
would lose a deviation far below the mean; all sums are float32 and added in a fixed order: no atomics, the same bits
every time.
"""

# mypy: allow-untyped-defs

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

# Numbers per program and warps.
NORMALISED = (4096, 4)
SUMMED = (8192, 8)
FIELDS = (4096, 4)
ADDED = 4096  # numbers that one program adds at a time
CHUNK = 4  # channels that one program adds


def statistics(
    moments: Tensor,
    tile: int,
    pixels: int,
    eps: float,
    momentum: float,
    running_mean: Tensor,
    running_variance: Tensor,
    scale: Tensor,
    shift: Tensor,
) -> Tensor:
    """``standard`` from the moments of parts; running means and variances are changed in place.

    Vectors (E, F) need not lie side by side, but the numbers of each do.
    """
    parts, size, _, places, filters = moments.shape
    vectors = running_mean, running_variance, scale, shift
    standard = moments.new_empty(size, 4, filters)
    _statistics[(filters // CHUNK, size)](
        moments, standard, *vectors, *[vector.stride(0) for vector in vectors],
        parts, size, pixels // places, tile, eps, momentum,
        filters, places, CHUNK, _at_once(parts * places), num_warps=4,
    )  # fmt: skip
    return standard


def normalised(z: Tensor, standard: Tensor, passed: Tensor | None, stride: int) -> Tensor:
    """ReLU of the normalised z, or with a tensor (E, B, H·stride, W·stride, C) added through shortcut A."""
    size, images, rows, columns, filters = z.shape
    y = torch.empty_like(z)
    pixels, (tile, warps) = images * rows * columns, _tile(NORMALISED, filters)
    height, width, channels = (rows, columns, filters) if passed is None else passed.shape[2:]
    _normalised[(triton.cdiv(pixels, tile), size)](
        z, standard, z if passed is None else passed, y, images, pixels, rows, columns, height, width, channels,
        filters, stride, passed is not None, tile, num_warps=warps,
    )  # fmt: skip
    return y


def gradient_sums(
    gradient: Tensor, y: Tensor | None, z: Tensor, standard: Tensor
) -> tuple[Tensor, Tensor | None]:
    """Sums (E, 2, F) of ĝ and ĝ·x̂; and ĝ itself if y is given, by which it is masked, else by z."""
    size, images, rows, columns, filters = z.shape
    pixels, (tile, warps) = images * rows * columns, _tile(SUMMED, filters)
    parts = triton.cdiv(pixels, tile)
    masked = None if y is None else torch.empty_like(z)
    found = z.new_empty(parts, size, 2, filters, dtype=torch.float32)
    _gradient_sums[(parts, size)](
        gradient, z if y is None else y, z, standard, z if masked is None else masked, found, pixels, size,
        filters, y is not None, tile, num_warps=warps,
    )  # fmt: skip
    sums = found.new_empty(size, 2, filters)
    _added_up[(2 * filters // CHUNK, size)](
        found, sums, parts, size, 2 * filters, CHUNK, _at_once(parts), num_warps=4
    )
    return sums, masked


def field_gradient(
    gradient: Tensor, z: Tensor, standard: Tensor, sums: Tensor, masked: bool, training: bool
) -> Tensor:
    """The gradient of z from that of y, or from ĝ if it is masked already; statistics vary with z in training."""
    size, images, rows, columns, filters = z.shape
    pixels, (tile, warps) = images * rows * columns, _tile(FIELDS, filters)
    found = torch.empty_like(z)
    _field_gradient[(triton.cdiv(pixels, tile), size)](
        gradient, z, standard, sums, found, pixels, filters, masked, training, tile, num_warps=warps
    )
    return found


def _tile(setting: tuple[int, int], filters: int) -> tuple[int, int]:
    return max(1, setting[0] // filters), setting[1]


def _at_once(parts: int) -> int:
    return min(ADDED // CHUNK, triton.next_power_of_2(parts))


@triton.jit
def _statistics(
    moments, standard, running_mean, running_variance, scale, shift,
    mean_step, variance_step, scale_step, shift_step, parts, size, pixels, tile, eps, momentum,
    FILTERS: tl.constexpr, PLACES: tl.constexpr, CHUNK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    channel = tl.program_id(0) * CHUNK + tl.arange(0, CHUNK)
    member = tl.program_id(1).to(tl.int64)
    moments += channel[None, :]
    rows = parts * PLACES
    total = tl.zeros([ROWS, CHUNK], tl.float32)
    for first in range(0, rows, ROWS):
        row = first + tl.arange(0, ROWS)
        count = tl.minimum(tile, pixels - row // PLACES * tile).to(tl.float32)[:, None]
        at = (row // PLACES * size + member) * (2 * PLACES * FILTERS) + row % PLACES * FILTERS
        total += count * tl.load(moments + at[:, None], mask=(row < rows)[:, None], other=0.0)
    every = pixels * 1.0 * PLACES
    centre = tl.sum(total, 0) / every
    apart = tl.zeros([ROWS, CHUNK], tl.float32)
    squares = tl.zeros([ROWS, CHUNK], tl.float32)
    for first in range(0, rows, ROWS):
        row = first + tl.arange(0, ROWS)
        there = (row < rows)[:, None]
        count = tl.minimum(tile, pixels - row // PLACES * tile).to(tl.float32)[:, None]
        at = (row // PLACES * size + member) * (2 * PLACES * FILTERS) + row % PLACES * FILTERS
        between = tl.load(moments + at[:, None], mask=there, other=0.0) - centre[None, :]
        between = tl.where(there, between, 0.0)
        within = tl.load(moments + PLACES * FILTERS + at[:, None], mask=there, other=0.0)
        apart += count * between
        squares += within + count * between * between
    # By how much the centre was rounded: its square is missing from the variance.
    more = tl.sum(apart, 0) / every
    centre += more
    variance = tl.sum(squares, 0) / every - more * more
    at = standard + member * (4 * FILTERS) + channel
    tl.store(at, centre)
    tl.store(at + FILTERS, 1.0 / tl.sqrt_rn(variance + eps))
    tl.store(at + 2 * FILTERS, tl.load(scale + member * scale_step + channel))
    tl.store(at + 3 * FILTERS, tl.load(shift + member * shift_step + channel))
    at = running_mean + member * mean_step + channel
    tl.store(at, momentum * centre + (1.0 - momentum) * tl.load(at))
    at = running_variance + member * variance_step + channel
    unbiased = variance * (every / (every - 1.0))
    tl.store(at, momentum * unbiased + (1.0 - momentum) * tl.load(at))


@triton.jit
def _standardised(z, standard, FILTERS: tl.constexpr):
    # x̂ and γx̂ + β, always by the same operations: backwards, too, they tell where y > 0.
    apart = (z.to(tl.float32) - tl.load(standard)) * tl.load(standard + FILTERS)
    return apart, apart * tl.load(standard + 2 * FILTERS) + tl.load(standard + 3 * FILTERS)


@triton.jit
def _normalised(
    z, standard, passed, y, images, pixels,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr, CHANNELS: tl.constexpr,
    FILTERS: tl.constexpr, STRIDE: tl.constexpr, PASSED: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    member = tl.program_id(1).to(tl.int64)
    z += member * pixels * FILTERS
    y += member * pixels * FILTERS
    passed += member * images * (HEIGHT * WIDTH * CHANNELS)
    filters = tl.arange(0, FILTERS)[None, :]
    pixel = (tl.program_id(0) * TILE + tl.arange(0, TILE))[:, None]
    inside = pixel < pixels
    at = pixel * FILTERS + filters
    values = tl.load(z + at, mask=inside, other=0.0)
    _, total = _standardised(values, standard + member * (4 * FILTERS) + filters, FILTERS)
    if PASSED:
        if STRIDE == 1 and CHANNELS == FILTERS:
            total += tl.load(passed + at, mask=inside, other=0.0).to(tl.float32)
        else:
            row, column = pixel // COLUMNS % ROWS, pixel % COLUMNS
            place = (pixel // (ROWS * COLUMNS) * HEIGHT + row * STRIDE) * WIDTH + column * STRIDE
            there = inside & (filters < CHANNELS)
            total += tl.load(passed + place * CHANNELS + filters, mask=there, other=0.0).to(tl.float32)
    total = tl.where(total < 0, 0.0, total)  # not a maximum, which would make 0 of NaN
    tl.store(y + at, total.to(y.dtype.element_ty), mask=inside)


@triton.jit
def _gradient_sums(
    gradient, y, z, standard, masked, sums, pixels, size,
    FILTERS: tl.constexpr, PASSED: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    member = tl.program_id(1).to(tl.int64)
    filters = tl.arange(0, FILTERS)
    standard += member * (4 * FILTERS) + filters[None, :]
    pixel = (tl.program_id(0) * TILE + tl.arange(0, TILE))[:, None]
    inside = pixel < pixels
    at = member * pixels * FILTERS + pixel * FILTERS + filters[None, :]
    slope = tl.load(gradient + at, mask=inside, other=0.0)
    values = tl.load(z + at, mask=inside, other=0.0)
    apart, field = _standardised(values, standard, FILTERS)
    # As torch has it: a NaN passes its gradient on.
    if PASSED:
        slope = tl.where(tl.load(y + at, mask=inside, other=0.0) <= 0, 0.0, slope)
        tl.store(masked + at, slope, mask=inside)
    else:
        slope = tl.where(field <= 0, 0.0, slope)
    slope = slope.to(tl.float32)
    sums += (tl.program_id(0) * size + member) * (2 * FILTERS) + filters
    tl.store(sums, tl.sum(slope, 0))
    tl.store(sums + FILTERS, tl.sum(slope * tl.where(inside, apart, 0.0), 0))


@triton.jit
def _added_up(found, sums, parts, size, COLUMNS: tl.constexpr, CHUNK: tl.constexpr, ROWS: tl.constexpr):
    column = tl.program_id(0) * CHUNK + tl.arange(0, CHUNK)
    member = tl.program_id(1).to(tl.int64)
    total = tl.zeros([ROWS, CHUNK], tl.float32)
    for first in range(0, parts, ROWS):
        part = first + tl.arange(0, ROWS)
        at = (part * size + member)[:, None] * COLUMNS + column[None, :]
        total += tl.load(found + at, mask=(part < parts)[:, None], other=0.0)
    tl.store(sums + member * COLUMNS + column, tl.sum(total, 0))


@triton.jit
def _field_gradient(
    gradient, z, standard, sums, found, pixels,
    FILTERS: tl.constexpr, MASKED: tl.constexpr, TRAINING: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    member = tl.program_id(1).to(tl.int64)
    filters = tl.arange(0, FILTERS)[None, :]
    standard += member * (4 * FILTERS) + filters
    pixel = (tl.program_id(0) * TILE + tl.arange(0, TILE))[:, None]
    inside = pixel < pixels
    at = member * pixels * FILTERS + pixel * FILTERS + filters
    slope = tl.load(gradient + at, mask=inside, other=0.0).to(tl.float32)
    values = tl.load(z + at, mask=inside, other=0.0)
    apart, field = _standardised(values, standard, FILTERS)
    if not MASKED:
        slope = tl.where(field <= 0, 0.0, slope)
    if TRAINING:
        first = tl.load(sums + member * (2 * FILTERS) + filters) / pixels
        second = tl.load(sums + member * (2 * FILTERS) + FILTERS + filters) / pixels
        slope = slope - first - apart * second
    slope *= tl.load(standard + 2 * FILTERS) * tl.load(standard + FILTERS)
    tl.store(found + at, slope.to(found.dtype.element_ty), mask=inside)
