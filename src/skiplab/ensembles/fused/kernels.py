"""Triton kernels of the passes through fully connected ensembles, forward and backward.

A program of the passes takes some rows of one member's batch from the first layer to the last and keeps the residual
stream in registers; members share nothing, so one that diverges leaves the others alone. Every sum has one order,
without atomics: equal inputs give equal bits. Matrices are stored as torch does, (out, in), with the width padded to
a power of two in what the kernels keep for themselves; parameters and gradients are never padded.

Matrix products are in the type of the weights they are given, all else in the type of ``rows``. With PARTS = 2 what
enters a product is the sum of two bfloat16, the second what the first leaves of a float32: 16 binary places, where
tf32 has ten, from three fast products. First parts lie in one plane of memory, second ones in the next.
"""

from __future__ import annotations

import triton
import triton.language as tl
from triton import knobs

INTERPRETED = bool(knobs.runtime.interpret)  # TRITON_INTERPRET=1 when this was imported: kernels run on a CPU
# How a layer's input is added to its output.
NONE, IDENTITY, MATRIX, PATH = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2), tl.constexpr(3)


@triton.jit
def read(pointer, mask, MASKED: tl.constexpr):
    """What lies at the pointers, 0 where the mask says no; whole tiles are read without one, which is faster."""
    if MASKED:
        return tl.load(pointer, mask=mask, other=0.0)
    else:  # noqa: RET505 (Triton compiles one of two branches)
        return tl.load(pointer)


@triton.jit
def second(pointer, plane, mask, first, MASKED: tl.constexpr, PARTS: tl.constexpr):
    """The second part of what lies at the pointers, in the next plane; without one, the first as a stand-in."""
    if PARTS == 2:
        return read(pointer + plane, mask, MASKED)
    else:  # noqa: RET505 (Triton compiles one of two branches)
        return first


@triton.jit
def keep(pointer, plane, x, mask, PARTS: tl.constexpr):
    """Store numbers as products take them: as one part or two."""
    first = x.to(pointer.dtype.element_ty)
    tl.store(pointer, first, mask=mask)
    if PARTS == 2:
        tl.store(pointer + plane, (x - first.to(x.dtype)).to(first.dtype), mask=mask)


@triton.jit
def multiplied(x, matrix, rest, y, PARTS: tl.constexpr):
    """y + x · matrix, the matrix given in parts; of two parts each, the product of the small ones is left out."""
    first = x.to(matrix.dtype)
    if PARTS == 2:
        y = tl.dot((x - first.to(x.dtype)).to(matrix.dtype), matrix, y)
        y = tl.dot(first, rest, y)
    return tl.dot(first, matrix, y, input_precision="ieee")


@triton.jit
def packed(active, ROWS: tl.constexpr, WIDE: tl.constexpr):
    """Which units are active, as bits: bit b of number k is unit 8 b + k, so that threads pack what they hold."""
    bits = tl.reshape(active.to(tl.int32), (ROWS, WIDE // 8, 8))
    return tl.sum(bits << tl.arange(0, WIDE // 8)[None, :, None], 1).to(tl.int16)


@triton.jit
def unpacked(numbers, ROWS: tl.constexpr, WIDE: tl.constexpr):
    """Which units are active, from their bits."""
    bits = (numbers.to(tl.int32)[:, None, :] >> tl.arange(0, WIDE // 8)[None, :, None]) & 1
    return tl.reshape(bits, (ROWS, WIDE)) != 0


@triton.jit
def carried(x, matrix, rest, y, valid, kind: tl.constexpr, scale: tl.constexpr, PARTS: tl.constexpr):
    """Add a skip's product to y: x, x Qᵀ or the path skip, as ``kind`` says; ``matrix`` and ``rest`` hold Qᵀ."""
    if kind == IDENTITY:
        y += x
    elif kind == MATRIX:
        y = multiplied(x, matrix, rest, y, PARTS)
    elif kind == PATH:
        y += tl.where(valid[None, :], scale * tl.sum(x, 1)[:, None], 0.0)
    return y


# Integers that change from batch to batch are not specialised, so that no batch size compiles a kernel of its own.
@triton.jit(do_not_specialize=["count", "blocks", "first", "layers"])
def forward(
    table,  # (samples, inputs)
    labels,  # (samples,)
    index,  # (E, count), the samples of each member's batch
    weights,  # (E, row), parameters in the type of the products
    rows,  # (E, row), parameters
    near,  # (E, layers - 1, WIDE, WIDE)
    far,  # (E, layers - 1, WIDE, WIDE)
    activities,  # (members at once, layers, count, WIDE)
    masks,  # (members at once, layers, count, 8), which units were active, as bits
    slopes,  # (members at once, count, SOFT), derivatives by the outputs
    losses,  # (E, blocks)
    hits,  # (E, blocks)
    table_plane,
    weight_plane,
    near_plane,
    far_plane,
    layer_plane,  # of activities, as of deltas
    slope_plane,
    row,
    inputs,
    biases,  # where the biases begin in a row
    count,
    blocks,
    first,  # the first member of these programs
    layers,
    WIDTH: tl.constexpr,
    CLASSES: tl.constexpr,
    WIDE: tl.constexpr,
    SOFT: tl.constexpr,
    SKIP: tl.constexpr,
    FAR: tl.constexpr,
    SCALE: tl.constexpr,  # of the path skip
    PARTS: tl.constexpr,
    ROWS: tl.constexpr,
    SLICE: tl.constexpr,
    RAGGED: tl.constexpr,  # whether the inputs are no whole slices
    SLICES: tl.constexpr,  # on their way at once
    STAGES: tl.constexpr,  # layers whose matrices are
):
    """One batch per member through all layers to the mean cross-entropy and its derivative by the outputs."""
    place = (tl.program_id(0) // blocks).to(tl.int64)
    block = tl.program_id(0) % blocks
    member = place + first
    high: tl.constexpr = rows.dtype.element_ty
    r = block * ROWS + tl.arange(0, ROWS)
    w = tl.arange(0, WIDE)
    inside, valid = r < count, w < WIDTH
    weights += member * row
    bias = rows + member * row + biases
    activities += place * layers * count * WIDE
    masks += place * layers * count * 8
    tile = r[:, None] * WIDE + w[None, :]
    # The first layer, x_1 = f(W_0 x_0 + b_1), on samples read where they lie.
    sample = tl.load(index + member * count + r, mask=inside, other=0)
    z = tl.zeros((ROWS, WIDE), high)
    for start in tl.range(0, inputs, SLICE, num_stages=SLICES):
        i = start + tl.arange(0, SLICE)
        at = (i < inputs)[None, :]
        here = table + sample[:, None] * inputs + i[None, :]
        part = read(here, at, RAGGED)
        part_rest = second(here, table_plane, at, part, RAGGED, PARTS)
        here = weights + w[None, :] * inputs + i[:, None]
        both = (i < inputs)[:, None] & valid[None, :]
        matrix = read(here, both, RAGGED or WIDTH != WIDE)
        rest = second(here, weight_plane, both, matrix, RAGGED or WIDTH != WIDE, PARTS)
        if PARTS == 2:
            z = tl.dot(part_rest, matrix, z)
            z = tl.dot(part, rest, z)
        z = tl.dot(part, matrix, z, input_precision="ieee")
    z += tl.load(bias + w, mask=valid, other=0.0)[None, :]
    # Not a maximum, which would turn NaN into 0 and hide that a member diverged.
    x = tl.where(z < 0, 0.0, z)
    keep(activities + tile, layer_plane, x, inside[:, None], PARTS)
    eight = r[:, None] * 8 + tl.arange(0, 8)[None, :]
    tl.store(masks + eight, packed(z > 0, ROWS, WIDE), mask=inside[:, None])
    # Hidden layers, x_{l+1} = f(W_l x_l + b_{l+1}) + Q_l x_l + bracket / (l − 1).
    weights += WIDTH * inputs
    square = w[None, :] * WIDTH + w[:, None]
    both = valid[None, :] & valid[:, None]
    skips = w[None, :] * WIDE + w[:, None]
    near += member * (layers - 1) * WIDE * WIDE
    far += member * (layers - 1) * WIDE * WIDE
    bracket = tl.zeros((ROWS, WIDE), high)
    for layer in tl.range(1, layers, num_stages=STAGES):
        here = weights + (layer - 1) * WIDTH * WIDTH + square
        matrix = read(here, both, WIDTH != WIDE)
        rest = second(here, weight_plane, both, matrix, WIDTH != WIDE, PARTS)
        z = multiplied(x, matrix, rest, tl.zeros((ROWS, WIDE), high), PARTS)
        z += tl.load(bias + layer * WIDTH + w, mask=valid, other=0.0)[None, :]
        y = tl.where(z < 0, 0.0, z)
        if SKIP == MATRIX:
            matrix = tl.load(near + (layer - 1) * WIDE * WIDE + skips)
            rest = second(near + (layer - 1) * WIDE * WIDE + skips, near_plane, both, matrix, False, PARTS)
        y = carried(x, matrix, rest, y, valid, SKIP, SCALE, PARTS)
        if FAR != NONE:
            y += bracket / tl.maximum(layer - 1, 1).to(high)
            if FAR == MATRIX:
                matrix = tl.load(far + (layer - 1) * WIDE * WIDE + skips)
                rest = second(far + (layer - 1) * WIDE * WIDE + skips, far_plane, both, matrix, False, PARTS)
            bracket = carried(x, matrix, rest, bracket, valid, FAR, SCALE, PARTS)
        x = y
        keep(activities + layer * count * WIDE + tile, layer_plane, x, inside[:, None], PARTS)
        tl.store(masks + layer * count * 8 + eight, packed(z > 0, ROWS, WIDE), mask=inside[:, None])
    # The output and its cross-entropy.
    weights += (layers - 1) * WIDTH * WIDTH
    c = tl.arange(0, SOFT)
    real = c < CLASSES
    here = weights + c[None, :] * WIDTH + w[:, None]
    last = read(here, real[None, :] & valid[:, None], True)
    last_rest = second(here, weight_plane, real[None, :] & valid[:, None], last, True, PARTS)
    output = multiplied(x, last, last_rest, tl.zeros((ROWS, SOFT), high), PARTS)
    output += tl.load(bias + layers * WIDTH + c, mask=real, other=0.0)[None, :]
    output = tl.where(real[None, :], output, float("-inf"))
    label = tl.load(labels + sample, mask=inside, other=0)
    right = c[None, :] == label[:, None]
    top = tl.max(output, 1)
    powers = tl.exp(output - top[:, None])
    total = tl.sum(powers, 1)
    loss = tl.log(total) + top - tl.sum(tl.where(right, output, 0.0), 1)
    slope = (powers / total[:, None] - right.to(high)) / count.to(high)
    slopes += place * count * SOFT
    keep(slopes + r[:, None] * SOFT + c[None, :], slope_plane, slope, inside[:, None], PARTS)
    hit = inside & (tl.argmax(output, 1) == label)
    tl.store(losses + member * blocks + block, tl.sum(tl.where(inside, loss, 0.0), 0))
    tl.store(hits + member * blocks + block, tl.sum(hit.to(tl.int32), 0))


@triton.jit(do_not_specialize=["count", "blocks", "first", "layers"])
def backward(
    weights,
    near,
    far,
    masks,
    slopes,
    deltas,  # (members at once, layers, count, WIDE), derivatives by the pre-activations
    weight_plane,
    near_plane,
    far_plane,
    layer_plane,
    slope_plane,
    row,
    inputs,
    count,
    blocks,
    first,
    layers,
    WIDTH: tl.constexpr,
    CLASSES: tl.constexpr,
    WIDE: tl.constexpr,
    SOFT: tl.constexpr,
    SKIP: tl.constexpr,
    FAR: tl.constexpr,
    SCALE: tl.constexpr,  # of the path skip
    PARTS: tl.constexpr,
    ROWS: tl.constexpr,
    STAGES: tl.constexpr,
):
    """From the derivatives by the outputs to those by all pre-activations."""
    place = (tl.program_id(0) // blocks).to(tl.int64)
    block = tl.program_id(0) % blocks
    member = place + first
    high: tl.constexpr = tl.float64 if weights.dtype.element_ty == tl.float64 else tl.float32
    r = block * ROWS + tl.arange(0, ROWS)
    w = tl.arange(0, WIDE)
    c = tl.arange(0, SOFT)
    inside, valid, real = r < count, w < WIDTH, c < CLASSES
    weights += member * row + WIDTH * inputs
    slopes += place * count * SOFT
    slopes += r[:, None] * SOFT + c[None, :]
    slope = read(slopes, inside[:, None], True).to(high)
    if PARTS == 2:
        slope += read(slopes + slope_plane, inside[:, None], True).to(high)
    output = weights + (layers - 1) * WIDTH * WIDTH + c[:, None] * WIDTH + w[None, :]
    last = read(output, real[:, None] & valid[None, :], True)
    last_rest = second(output, weight_plane, real[:, None] & valid[None, :], last, True, PARTS)
    g = multiplied(slope, last, last_rest, tl.zeros((ROWS, WIDE), high), PARTS)
    square = w[:, None] * WIDTH + w[None, :]
    both = valid[None, :] & valid[:, None]
    skips = w[:, None] * WIDE + w[None, :]
    near += member * (layers - 1) * WIDE * WIDE
    far += member * (layers - 1) * WIDE * WIDE
    bracket = tl.zeros((ROWS, WIDE), high)
    masks += place * layers * count * 8
    deltas += place * layers * count * WIDE
    tile = r[:, None] * WIDE + w[None, :]
    eight = r[:, None] * 8 + tl.arange(0, 8)[None, :]
    for back in tl.range(1, layers, num_stages=STAGES):
        layer = layers - back
        active = tl.load(masks + layer * count * 8 + eight, mask=inside[:, None], other=0)
        delta = tl.where(unpacked(active, ROWS, WIDE), g, 0.0)
        keep(deltas + layer * count * WIDE + tile, layer_plane, delta, inside[:, None], PARTS)
        here = weights + (layer - 1) * WIDTH * WIDTH + square
        matrix = read(here, both, WIDTH != WIDE)
        rest = second(here, weight_plane, both, matrix, WIDTH != WIDE, PARTS)
        h = multiplied(delta, matrix, rest, tl.zeros((ROWS, WIDE), high), PARTS)
        if SKIP == MATRIX:
            matrix = tl.load(near + (layer - 1) * WIDE * WIDE + skips)
            rest = second(near + (layer - 1) * WIDE * WIDE + skips, near_plane, both, matrix, False, PARTS)
        h = carried(g, matrix, rest, h, valid, SKIP, SCALE, PARTS)
        if FAR != NONE:
            if FAR == MATRIX:
                matrix = tl.load(far + (layer - 1) * WIDE * WIDE + skips)
                rest = second(far + (layer - 1) * WIDE * WIDE + skips, far_plane, both, matrix, False, PARTS)
            h = carried(bracket, matrix, rest, h, valid, FAR, SCALE, PARTS)
            bracket += g / tl.maximum(layer - 1, 1).to(high)
        g = h
    active = tl.load(masks + eight, mask=inside[:, None], other=0)
    delta = tl.where(unpacked(active, ROWS, WIDE), g, 0.0)
    keep(deltas + tile, layer_plane, delta, inside[:, None], PARTS)
