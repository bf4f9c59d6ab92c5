"""Triton kernels: rectified 3 × 3 convolutions of E networks, y = ReLU(conv(x) + b) or ReLU(skip(x) + conv(x) + b).

Images are (E, B, H, W, C), each network's by themselves and channels last, from the first layer to the last, so that
nothing is copied between layers. All sums are float32. Per layer and step three passes over memory:

- forward: reads x, writes y; the skip is what the kernel's centre meets, so it costs no memory traffic;
- ``backward_weights``: reads x, y and the gradient g of y once, writes ḡ = g·[y > 0] and sums of ḡ xᵀ and of ḡ over
  parts of the batch, which are added up in a fixed order: no atomics, the same bits every time;
- ``backward_images``: reads ḡ, writes the gradient of x, skip included.

A tile of a product takes ``TAPS`` of the nine places in the 3 × 3 window at once, since 16 channels alone would be
thin work for a tensor core. Channels and filters are powers of two.
"""

# mypy: allow-untyped-defs

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from skiplab.ensembles import wide_blocks
from skiplab.ensembles.wide_blocks import store_moments

# Pixels per tile, warps and pipeline stages, by the number of filters: of 30 tried on an H200 (10 networks, batch
# 128) within a tenth of the fastest for each layer; those of "weights" were not tried.
TILES: dict[str, dict[int, tuple[int, int, int]]] = {
    "forward": {16: (128, 4, 2), 32: (128, 4, 2), 64: (128, 8, 2)},
    "weights": {16: (128, 4, 2), 32: (64, 4, 2), 64: (64, 4, 3)},
    "images": {16: (128, 8, 2), 32: (128, 4, 2), 64: (128, 4, 2)},
}
WIDEST = 64  # columns of a tile: TAPS times channels
PROGRAMS = 1056  # of the sums over the batch: eight for each of an H200's 132 multiprocessors
MOST_SUMS = 1024  # parts of a batch times filters: they are added up in registers


def forward(x: Tensor, kernels: Tensor, bias: Tensor, stride: int, skip: bool, precision: str) -> Tensor:
    """Compute y (E, B, H/stride, W/stride, F) from x (E, B, H, W, C), kernels (E, 9, C, F) and biases (E, F)."""
    if wide_blocks.fit(x, kernels.shape[-1], stride):
        return wide_blocks.forward(x, kernels, bias, skip, precision)
    size, images, height, width, channels = x.shape
    rows, columns, filters = _halved(height, stride), _halved(width, stride), kernels.shape[-1]
    y = x.new_empty(size, images, rows, columns, filters)
    tile, warps, stages = TILES["forward"][filters]
    pixels = images * rows * columns
    _forward[(triton.cdiv(pixels, tile), size)](
        x, kernels, bias, y, y, images, pixels, size,
        height, width, rows, columns, channels, filters, stride, skip, True, False, _taps(channels), tile, precision,
        num_warps=warps, num_stages=stages,
    )  # fmt: skip
    return y


def fields(
    x: Tensor, kernels: Tensor, stride: int, moments: bool, precision: str
) -> tuple[Tensor, Tensor, int]:
    """Compute z = conv(x) alone, and with ``moments`` its parts' means and sums of squares about them.

    The moments (parts, E, 2, places, F) are those of every ``places`` of a tile's pixels by itself; the number
    returned is how many pixels a full part has at each place. The last part may have fewer.
    """
    if wide_blocks.fit(x, kernels.shape[-1], stride):
        return wide_blocks.fields(x, kernels, moments, precision)
    size, images, height, width, channels = x.shape
    rows, columns, filters = _halved(height, stride), _halved(width, stride), kernels.shape[-1]
    z = x.new_empty(size, images, rows, columns, filters)
    tile, warps, stages = TILES["forward"][filters]
    pixels = images * rows * columns
    parts = triton.cdiv(pixels, tile)
    found = x.new_empty(parts if moments else 0, size, 2, 1, filters, dtype=torch.float32)
    _forward[(parts, size)](
        x, kernels, z, z, found if moments else z, images, pixels, size,
        height, width, rows, columns, channels, filters, stride, False, False, moments, _taps(channels), tile,
        precision, num_warps=warps, num_stages=stages,
    )  # fmt: skip
    return z, found, tile


def backward_weights(
    x: Tensor, y: Tensor, gradient: Tensor, stride: int, precision: str
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of weights (E, F, C, 3, 3) and biases (E, F), both float32, and the gradient where y > 0."""
    if wide_blocks.fit(x, y.shape[-1], stride):
        return wide_blocks.backward_weights(x, y, gradient, precision)
    masked = torch.empty_like(y)
    return *_weight_sums(x, y, gradient, masked, stride, True, precision), masked


def weights_alone(x: Tensor, gradient: Tensor, stride: int, precision: str) -> Tensor:
    """The gradient of weights (E, F, C, 3, 3) in float32 from that of conv(x) itself, without bias and ReLU."""
    if wide_blocks.fit(x, gradient.shape[-1], stride):
        return wide_blocks.weights_alone(x, gradient, precision)
    return _weight_sums(x, gradient, gradient, gradient, stride, False, precision)[0]


def _weight_sums(
    x: Tensor, y: Tensor, gradient: Tensor, masked: Tensor, stride: int, rectified: bool, precision: str
) -> tuple[Tensor, Tensor]:
    size, images, height, width, channels = x.shape
    rows, columns, filters = gradient.shape[2:]
    tile, warps, stages = TILES["weights"][filters]
    pixels, taps = images * rows * columns, _taps(channels)
    groups = triton.cdiv(9, taps)
    tiles = triton.cdiv(pixels, tile)
    parts = min(tiles, MOST_SUMS // filters, max(1, PROGRAMS // (groups * size)))
    each = triton.cdiv(tiles, parts)
    parts = triton.cdiv(tiles, each)
    kernel_sums = x.new_empty(parts, size, groups * taps, channels, filters, dtype=torch.float32)
    weight = x.new_empty(size, filters, channels, 3, 3, dtype=torch.float32)
    # Without a ReLU no bias is asked for: the kernels leave what stands in its place alone.
    bias_sums, bias = kernel_sums, weight
    if rectified:
        bias_sums = x.new_empty(parts, size, filters, dtype=torch.float32)
        bias = x.new_empty(size, filters, dtype=torch.float32)
    _backward_weights[(groups * parts, size)](
        x, y, gradient, masked, kernel_sums, bias_sums, images, pixels, size, each,
        height, width, rows, columns, channels, filters, stride, rectified, taps, groups, tile, precision,
        num_warps=warps, num_stages=stages,
    )  # fmt: skip
    _added_up[(channels, size)](
        kernel_sums, bias_sums, weight, bias, parts, size,
        channels, filters, groups * taps, rectified, triton.next_power_of_2(parts), num_warps=8,
    )  # fmt: skip
    return weight, bias


def backward_images(
    masked: Tensor, kernels: Tensor, like: Tensor, stride: int, skip: bool, precision: str
) -> Tensor:
    """The gradient of x, shaped as ``like``, from the masked gradient of y."""
    if wide_blocks.fit(like, masked.shape[-1], stride):
        return wide_blocks.backward_images(masked, kernels, skip, precision)
    size, images, height, width, channels = like.shape
    rows, columns, filters = masked.shape[2:]
    gradient = torch.empty_like(like)
    tile, warps, stages = TILES["images"][filters]
    pixels = images * height * width
    _backward_images[(triton.cdiv(pixels, tile), size)](
        masked, kernels, gradient, images, pixels,
        height, width, rows, columns, channels, filters, max(channels, 16), stride, skip, _taps(filters), tile,
        precision, num_warps=warps, num_stages=stages,
    )  # fmt: skip
    return gradient


def _halved(length: int, stride: int) -> int:
    return -(-length // stride)


def _taps(channels: int) -> int:
    return min(16, max(1, WIDEST // channels))


@triton.jit
def _forward(
    x, kernels, bias, y, moments, images, pixels, size,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    CHANNELS: tl.constexpr, FILTERS: tl.constexpr, STRIDE: tl.constexpr, SKIP: tl.constexpr,
    RECTIFIED: tl.constexpr, MOMENTS: tl.constexpr, TAPS: tl.constexpr, TILE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    # In 64 bits: all members together may have more than 2³¹ numbers, one never (``rectified`` sees to it).
    member = tl.program_id(1).to(tl.int64)
    x += member * images * (HEIGHT * WIDTH * CHANNELS)
    y += member * pixels * FILTERS
    kernels += member * (9 * CHANNELS * FILTERS)
    pixel = tl.program_id(0) * TILE + tl.arange(0, TILE)
    inside = pixel < pixels
    image, row, column = pixel // (ROWS * COLUMNS), pixel // COLUMNS % ROWS, pixel % COLUMNS
    place = tl.arange(0, TAPS * CHANNELS)
    channel = place % CHANNELS
    filters = tl.arange(0, FILTERS)
    total = tl.zeros([TILE, FILTERS], tl.float32)
    for first in range(0, 9, TAPS):
        tap = first + place // CHANNELS
        down = row[:, None] * STRIDE + (tap // 3 - 1)[None, :]
        right = column[:, None] * STRIDE + (tap % 3 - 1)[None, :]
        seen = (down >= 0) & (down < HEIGHT) & (right >= 0) & (right < WIDTH)
        seen = seen & inside[:, None] & (tap < 9)[None, :]
        at = ((image[:, None] * HEIGHT + down) * WIDTH + right) * CHANNELS + channel[None, :]
        patches = tl.load(x + at, mask=seen, other=0.0)
        at = (tap * CHANNELS + channel)[:, None] * FILTERS + filters[None, :]
        weights = tl.load(kernels + at, mask=(tap < 9)[:, None], other=0.0)
        total = tl.dot(patches, weights, total, input_precision=PRECISION)
    if RECTIFIED:
        total += tl.load(bias + member * FILTERS + filters)[None, :]
    if SKIP:
        centre = (image * HEIGHT + row * STRIDE) * WIDTH + column * STRIDE
        at = centre[:, None] * CHANNELS + filters[None, :]
        passed = tl.load(x + at, mask=inside[:, None] & (filters < CHANNELS)[None, :], other=0.0)
        total += passed.to(tl.float32)
    if RECTIFIED:
        total = tl.where(total < 0, 0.0, total)  # not a maximum, which would make 0 of NaN
    at = pixel[:, None] * FILTERS + filters[None, :]
    rounded = total.to(y.dtype.element_ty)
    tl.store(y + at, rounded, mask=inside[:, None])
    if MOMENTS:
        store_moments(rounded, inside, moments, tl.program_id(0) * size + member, filters, FILTERS)


@triton.jit
def _backward_weights(
    x, y, gradient, masked, kernel_sums, bias_sums, images, pixels, size, each,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    CHANNELS: tl.constexpr, FILTERS: tl.constexpr, STRIDE: tl.constexpr, RECTIFIED: tl.constexpr,
    TAPS: tl.constexpr, GROUPS: tl.constexpr, TILE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    group, part = tl.program_id(0) % GROUPS, tl.program_id(0) // GROUPS
    member = tl.program_id(1).to(tl.int64)
    x += member * images * (HEIGHT * WIDTH * CHANNELS)
    y += member * pixels * FILTERS
    gradient += member * pixels * FILTERS
    masked += member * pixels * FILTERS
    place = tl.arange(0, TAPS * CHANNELS)
    channel, tap = place % CHANNELS, group * TAPS + place // CHANNELS
    filters = tl.arange(0, FILTERS)
    total = tl.zeros([TAPS * CHANNELS, FILTERS], tl.float32)
    biases = tl.zeros([TILE, FILTERS], tl.float32)
    for step in range(each):
        pixel = (part * each + step) * TILE + tl.arange(0, TILE)
        inside = pixel < pixels
        at = pixel[:, None] * FILTERS + filters[None, :]
        slope = tl.load(gradient + at, mask=inside[:, None], other=0.0)
        if RECTIFIED:
            value = tl.load(y + at, mask=inside[:, None], other=0.0)
            slope = tl.where(value <= 0, 0.0, slope)  # as torch has it: a NaN passes its gradient on
            biases += slope.to(tl.float32)
            if group == 0:
                tl.store(masked + at, slope, mask=inside[:, None])
        image, row, column = pixel // (ROWS * COLUMNS), pixel // COLUMNS % ROWS, pixel % COLUMNS
        down = row[:, None] * STRIDE + (tap // 3 - 1)[None, :]
        right = column[:, None] * STRIDE + (tap % 3 - 1)[None, :]
        seen = (down >= 0) & (down < HEIGHT) & (right >= 0) & (right < WIDTH)
        seen = seen & inside[:, None] & (tap < 9)[None, :]
        at = ((image[:, None] * HEIGHT + down) * WIDTH + right) * CHANNELS + channel[None, :]
        patches = tl.load(x + at, mask=seen, other=0.0)
        total = tl.dot(tl.trans(patches), slope, total, input_precision=PRECISION)
    place_of_sum = (part * size + member) * GROUPS + group
    at = (place_of_sum * (TAPS * CHANNELS) + place)[:, None] * FILTERS + filters[None, :]
    tl.store(kernel_sums + at, total)
    if RECTIFIED and group == 0:
        tl.store(bias_sums + (part * size + member) * FILTERS + filters, tl.sum(biases, 0))


@triton.jit
def _added_up(
    kernel_sums, bias_sums, weight, bias, parts, size,
    CHANNELS: tl.constexpr, FILTERS: tl.constexpr, SLOTS: tl.constexpr, BIASED: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    # One channel of one member: the parts' sums, in the order in which weights lie in memory.
    channel, member = tl.program_id(0), tl.program_id(1)
    part = tl.arange(0, PARTS)[:, None]
    place = tl.arange(0, 16 * FILTERS)
    tap, of_tap = place // FILTERS, place % FILTERS
    at = (((part * size + member) * SLOTS + tap[None, :]) * CHANNELS + channel) * FILTERS + of_tap[None, :]
    weights = tl.sum(tl.load(kernel_sums + at, mask=(part < parts) & (tap < 9)[None, :], other=0.0), 0)
    tl.store(weight + ((member * FILTERS + of_tap) * CHANNELS + channel) * 9 + tap, weights, mask=tap < 9)
    if BIASED and channel == 0:
        filters = tl.arange(0, FILTERS)
        from_parts = bias_sums + (part * size + member) * FILTERS + filters[None, :]
        biases = tl.sum(tl.load(from_parts, mask=part < parts, other=0.0), 0)
        tl.store(bias + member * FILTERS + filters, biases)


@triton.jit
def _backward_images(
    masked, kernels, gradient, images, pixels,
    HEIGHT: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    CHANNELS: tl.constexpr, FILTERS: tl.constexpr, ACROSS: tl.constexpr, STRIDE: tl.constexpr,
    SKIP: tl.constexpr, TAPS: tl.constexpr, TILE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    member = tl.program_id(1).to(tl.int64)
    masked += member * images * (ROWS * COLUMNS * FILTERS)
    gradient += member * pixels * CHANNELS
    kernels += member * (9 * CHANNELS * FILTERS)
    pixel = tl.program_id(0) * TILE + tl.arange(0, TILE)
    inside = pixel < pixels
    image, row, column = pixel // (HEIGHT * WIDTH), pixel // WIDTH % HEIGHT, pixel % WIDTH
    place = tl.arange(0, TAPS * FILTERS)
    filters = place % FILTERS
    channel = tl.arange(0, ACROSS)  # at least 16, the narrowest product
    real = channel < CHANNELS
    total = tl.zeros([TILE, ACROSS], tl.float32)
    for first in range(0, 9, TAPS):
        tap = first + place // FILTERS
        # The pixel of y at whose window's place ``tap`` this pixel of x lies, if there is one.
        down = row[:, None] + (1 - tap // 3)[None, :]
        right = column[:, None] + (1 - tap % 3)[None, :]
        seen = (down >= 0) & (down < ROWS * STRIDE) & (right >= 0) & (right < COLUMNS * STRIDE)
        seen = seen & (down % STRIDE == 0) & (right % STRIDE == 0) & inside[:, None] & (tap < 9)[None, :]
        at = ((image[:, None] * ROWS + down // STRIDE) * COLUMNS + right // STRIDE) * FILTERS + filters[
            None, :
        ]
        slopes = tl.load(masked + at, mask=seen, other=0.0)
        at = (tap[:, None] * CHANNELS + channel[None, :]) * FILTERS + filters[:, None]
        weights = tl.load(kernels + at, mask=(tap < 9)[:, None] & real[None, :], other=0.0)
        total = tl.dot(slopes, weights, total, input_precision=PRECISION)
    if SKIP:
        met = inside & (row % STRIDE == 0) & (column % STRIDE == 0)
        centre = (image * ROWS + row // STRIDE) * COLUMNS + column // STRIDE
        at = centre[:, None] * FILTERS + channel[None, :]
        passed = tl.load(masked + at, mask=met[:, None] & real[None, :], other=0.0)
        total += passed.to(tl.float32)
    at = pixel[:, None] * CHANNELS + channel[None, :]
    tl.store(gradient + at, total.to(gradient.dtype.element_ty), mask=inside[:, None] & real[None, :])
