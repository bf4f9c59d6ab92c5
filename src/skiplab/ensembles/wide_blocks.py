"""The kernels of ``wide_kernels`` for 16 channels and stride 1, by blocks of 2 × 2 pixels.

A pixel of 16 channels is 32 bytes, and each is read nine times, once for each place in the 3 × 3 window: loads, not
arithmetic, take the time. A block of 2 × 2 pixels of y sees 4 × 4 pixels of x, so a pixel is read four times, and a
row of the window is 128 bytes in one piece. The product is then (4 · 16) × (4 · 16) for each of the four rows; seven
of sixteen weights are zero, for which tensor cores have time.
"""

# mypy: allow-untyped-defs

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

CHANNELS = 16
MAPPED = (128, 4, 2)  # blocks per tile, warps and pipeline stages of forward and backward_images
SUMMED = (64, 8, 2)  # the same of backward_weights
PROGRAMS = 264  # of the sums over the batch: two for each of an H200's 132 multiprocessors


def fit(x: Tensor, filters: int, stride: int) -> bool:
    """Whether images (E, B, H, W, C) can be taken by blocks."""
    height, width, channels = x.shape[2:]
    return (channels, filters, stride) == (CHANNELS, CHANNELS, 1) and height % 2 == 0 and width % 2 == 0


def forward(x: Tensor, kernels: Tensor, bias: Tensor, skip: bool, precision: str) -> Tensor:
    """As ``wide_kernels.forward``."""
    return _mapped(x, kernels, bias, None, True, skip, precision)


def fields(x: Tensor, kernels: Tensor, moments: bool, precision: str) -> tuple[Tensor, Tensor, int]:
    """As ``wide_kernels.fields``."""
    size, images, height, width, channels = x.shape
    tile = MAPPED[0]
    parts = triton.cdiv(images * height * width // 4, tile)
    found = x.new_empty(parts if moments else 0, size, 2, 4, channels, dtype=torch.float32)
    return _mapped(x, kernels, None, found if moments else None, True, False, precision), found, tile


def backward_images(masked: Tensor, kernels: Tensor, skip: bool, precision: str) -> Tensor:
    """As ``wide_kernels.backward_images``."""
    return _mapped(masked, kernels, None, None, False, skip, precision)


def _mapped(
    x: Tensor,
    kernels: Tensor,
    bias: Tensor | None,
    moments: Tensor | None,
    forwards: bool,
    skip: bool,
    precision: str,
) -> Tensor:
    size, images, height, width, channels = x.shape
    y = torch.empty_like(x)
    blocks = images * height * width // 4
    tile, warps, stages = MAPPED
    _windows_to_blocks[(triton.cdiv(blocks, tile), size)](
        x, kernels, y if bias is None else bias, y, y if moments is None else moments, images, blocks, size,
        height, width, channels, forwards, skip, bias is not None, moments is not None, tile, precision,
        num_warps=warps, num_stages=stages,
    )  # fmt: skip
    return y


def backward_weights(x: Tensor, y: Tensor, gradient: Tensor, precision: str) -> tuple[Tensor, Tensor, Tensor]:
    """As ``wide_kernels.backward_weights``."""
    masked = torch.empty_like(y)
    return *_weight_sums(x, y, gradient, masked, True, precision), masked


def weights_alone(x: Tensor, gradient: Tensor, precision: str) -> Tensor:
    """As ``wide_kernels.weights_alone``."""
    return _weight_sums(x, gradient, gradient, gradient, False, precision)[0]


def _weight_sums(
    x: Tensor, y: Tensor, gradient: Tensor, masked: Tensor, rectified: bool, precision: str
) -> tuple[Tensor, Tensor]:
    size, images, height, width, channels = x.shape
    blocks = images * height * width // 4
    tile, warps, stages = SUMMED
    tiles = triton.cdiv(blocks, tile)
    each = triton.cdiv(tiles, max(1, PROGRAMS // size))
    parts = triton.cdiv(tiles, each)
    sums = x.new_empty(parts, size, 4, 4 * channels, 4 * channels, dtype=torch.float32)
    weight = x.new_empty(size, channels, channels, 3, 3, dtype=torch.float32)
    # As in ``wide_kernels``: what stands in a bias's place is left alone.
    bias_sums, bias = sums, weight
    if rectified:
        bias_sums = x.new_empty(parts, size, 4 * channels, dtype=torch.float32)
        bias = x.new_empty(size, channels, dtype=torch.float32)
    _block_sums[(parts, size)](
        x, y, gradient, masked, sums, bias_sums, images, blocks, size, each, height, width, channels, rectified, tile,
        precision, num_warps=warps, num_stages=stages,
    )  # fmt: skip
    _added_up[(channels, size)](sums, bias_sums, weight, bias, parts, size, channels, rectified, num_warps=4)
    return weight, bias


@triton.jit
def _windows_to_blocks(
    x, kernels, bias, y, moments, images, blocks, size,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, CHANNELS: tl.constexpr, FORWARDS: tl.constexpr, SKIP: tl.constexpr,
    RECTIFIED: tl.constexpr, MOMENTS: tl.constexpr, TILE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    member = tl.program_id(1).to(tl.int64)
    x += member * images * (HEIGHT * WIDTH * CHANNELS)
    y += member * images * (HEIGHT * WIDTH * CHANNELS)
    kernels += member * (9 * CHANNELS * CHANNELS)
    block = tl.program_id(0) * TILE + tl.arange(0, TILE)
    inside = block < blocks
    top = block // (WIDTH // 2) % (HEIGHT // 2) * 2
    left = block % (WIDTH // 2) * 2
    corner = (block // (HEIGHT * WIDTH // 4) * HEIGHT + top) * WIDTH + left
    seen_at = tl.arange(0, 4 * CHANNELS)  # a row of the window: its columns, and channels within
    across, channel = seen_at // CHANNELS, seen_at % CHANNELS
    out_at = tl.arange(0, 4 * CHANNELS)  # the block: its rows, its columns, and filters within
    out_row, out_column, filters = out_at // (2 * CHANNELS), out_at // CHANNELS % 2, out_at % CHANNELS
    right = left[:, None] + across[None, :] - 1
    there = inside[:, None] & (right >= 0) & (right < WIDTH)
    total = tl.zeros([TILE, 4 * CHANNELS], tl.float32)
    for row in range(4):
        down = top + row - 1
        seen = there & ((down >= 0) & (down < HEIGHT))[:, None]
        at = ((corner + (row - 1) * WIDTH - 1) * CHANNELS)[:, None] + seen_at[None, :]
        patches = tl.load(x + at, mask=seen, other=0.0)
        # Where in the 3 × 3 kernel the window's pixel meets the block's; backwards it is the kernel turned over.
        if FORWARDS:
            kernel_row = row - out_row[None, :]
            kernel_column = across[:, None] - out_column[None, :]
            at = channel[:, None] * CHANNELS + filters[None, :]
        else:
            kernel_row = out_row[None, :] - row + 2
            kernel_column = out_column[None, :] - across[:, None] + 2
            at = filters[None, :] * CHANNELS + channel[:, None]
        met = (kernel_row >= 0) & (kernel_row < 3) & (kernel_column >= 0) & (kernel_column < 3)
        at += (kernel_row * 3 + kernel_column) * (CHANNELS * CHANNELS)
        weights = tl.load(kernels + at, mask=met, other=0.0)
        total = tl.dot(patches, weights, total, input_precision=PRECISION)
    at = ((corner[:, None] + (out_row * WIDTH + out_column)[None, :]) * CHANNELS) + filters[None, :]
    if RECTIFIED:
        total += tl.load(bias + member * CHANNELS + filters)[None, :]
    if SKIP:
        total += tl.load(x + at, mask=inside[:, None], other=0.0).to(tl.float32)
    if RECTIFIED:
        total = tl.where(total < 0, 0.0, total)  # not a maximum, which would make 0 of NaN
    rounded = total.to(y.dtype.element_ty)
    tl.store(y + at, rounded, mask=inside[:, None])
    if MOMENTS:
        store_moments(rounded, inside, moments, tl.program_id(0) * size + member, out_at, 4 * CHANNELS)


@triton.jit
def store_moments(rounded, inside, moments, place, column, COLUMNS: tl.constexpr):
    """Store a tile's means, column by column, and its sums of squares about them."""
    values = tl.where(inside[:, None], rounded.to(tl.float32), 0.0)
    mean = tl.sum(values, 0) / tl.sum(inside.to(tl.float32), 0)
    apart = tl.where(inside[:, None], values - mean[None, :], 0.0)
    moments += place * (2 * COLUMNS) + column
    tl.store(moments, mean)
    tl.store(moments + COLUMNS, tl.sum(apart * apart, 0))


@triton.jit
def _block_sums(
    x, y, gradient, masked, sums, bias_sums, images, blocks, size, each,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, CHANNELS: tl.constexpr, RECTIFIED: tl.constexpr, TILE: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    part, member = tl.program_id(0), tl.program_id(1).to(tl.int64)
    x += member * images * (HEIGHT * WIDTH * CHANNELS)
    y += member * images * (HEIGHT * WIDTH * CHANNELS)
    gradient += member * images * (HEIGHT * WIDTH * CHANNELS)
    masked += member * images * (HEIGHT * WIDTH * CHANNELS)
    seen_at = tl.arange(0, 4 * CHANNELS)
    across = seen_at // CHANNELS
    out_at = tl.arange(0, 4 * CHANNELS)
    place = (out_at // (2 * CHANNELS) * WIDTH + out_at // CHANNELS % 2) * CHANNELS + out_at % CHANNELS
    first = tl.zeros([4 * CHANNELS, 4 * CHANNELS], tl.float32)
    second = tl.zeros([4 * CHANNELS, 4 * CHANNELS], tl.float32)
    third = tl.zeros([4 * CHANNELS, 4 * CHANNELS], tl.float32)
    fourth = tl.zeros([4 * CHANNELS, 4 * CHANNELS], tl.float32)
    biases = tl.zeros([TILE, 4 * CHANNELS], tl.float32)
    for step in range(each):
        block = (part * each + step) * TILE + tl.arange(0, TILE)
        inside = block < blocks
        top = block // (WIDTH // 2) % (HEIGHT // 2) * 2
        left = block % (WIDTH // 2) * 2
        corner = ((block // (HEIGHT * WIDTH // 4) * HEIGHT + top) * WIDTH + left) * CHANNELS
        at = corner[:, None] + place[None, :]
        slope = tl.load(gradient + at, mask=inside[:, None], other=0.0)
        if RECTIFIED:
            value = tl.load(y + at, mask=inside[:, None], other=0.0)
            slope = tl.where(value <= 0, 0.0, slope)  # as torch has it: a NaN passes its gradient on
            biases += slope.to(tl.float32)
            tl.store(masked + at, slope, mask=inside[:, None])
        right = left[:, None] + across[None, :] - 1
        seen = inside[:, None] & (right >= 0) & (right < WIDTH)
        above, below = (top > 0)[:, None], (top < HEIGHT - 2)[:, None]
        at = (corner - CHANNELS)[:, None] + seen_at[None, :]
        patches = tl.load(x + at - WIDTH * CHANNELS, mask=seen & above, other=0.0)
        first = tl.dot(tl.trans(patches), slope, first, input_precision=PRECISION)
        patches = tl.load(x + at, mask=seen, other=0.0)
        second = tl.dot(tl.trans(patches), slope, second, input_precision=PRECISION)
        patches = tl.load(x + at + WIDTH * CHANNELS, mask=seen, other=0.0)
        third = tl.dot(tl.trans(patches), slope, third, input_precision=PRECISION)
        patches = tl.load(x + at + 2 * WIDTH * CHANNELS, mask=seen & below, other=0.0)
        fourth = tl.dot(tl.trans(patches), slope, fourth, input_precision=PRECISION)
    sums += (part * size + member) * (64 * CHANNELS * CHANNELS)
    at = seen_at[:, None] * (4 * CHANNELS) + out_at[None, :]
    tl.store(sums + at, first)
    tl.store(sums + at + 16 * CHANNELS * CHANNELS, second)
    tl.store(sums + at + 32 * CHANNELS * CHANNELS, third)
    tl.store(sums + at + 48 * CHANNELS * CHANNELS, fourth)
    if RECTIFIED:
        tl.store(bias_sums + (part * size + member) * (4 * CHANNELS) + out_at, tl.sum(biases, 0))


@triton.jit
def _added_up(sums, bias_sums, weight, bias, parts, size, CHANNELS: tl.constexpr, BIASED: tl.constexpr):
    # One channel of one member: over the parts and over the block's four pixels, always in the same order.
    channel, member = tl.program_id(0), tl.program_id(1)
    place = tl.arange(0, 16 * CHANNELS)
    tap, filters = place // CHANNELS, place % CHANNELS
    pixel = tl.arange(0, 4)[:, None]
    out_row, out_column = pixel // 2, pixel % 2
    row, column = (tap // 3)[None, :] + out_row, (tap % 3)[None, :] + out_column
    at = (
        (row * 4 * CHANNELS + column * CHANNELS + channel) * (4 * CHANNELS)
        + pixel * CHANNELS
        + filters[None, :]
    )
    weights = tl.zeros([4, 16 * CHANNELS], tl.float32)
    biases = tl.zeros([4, CHANNELS], tl.float32)
    own = tl.arange(0, CHANNELS)
    for part in range(parts):
        from_part = part * size + member
        found = tl.load(
            sums + from_part * (64 * CHANNELS * CHANNELS) + at,
            mask=(tap < 9)[None, :] & (pixel < 4),
            other=0.0,
        )
        weights += found
        if BIASED:
            biases += tl.load(bias_sums + from_part * (4 * CHANNELS) + pixel * CHANNELS + own[None, :])
    tl.store(
        weight + ((member * CHANNELS + filters) * CHANNELS + channel) * 9 + tap,
        tl.sum(weights, 0),
        mask=tap < 9,
    )
    if BIASED and channel == 0:
        tl.store(bias + member * CHANNELS + own, tl.sum(biases, 0))
