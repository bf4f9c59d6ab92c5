"""Triton kernels of the passes through fully connected ensembles: forward, backward and weight gradients.

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
    masks,  # the same as bytes: which units were active
    slopes,  # (members at once, count, SOFT), derivatives by the outputs
    losses,  # (E, blocks)
    hits,  # (E, blocks)
    table_plane,
    weight_plane,
    near_plane,
    far_plane,
    layer_plane,  # of activities and masks
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
    masks += place * layers * count * WIDE
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
    tl.store(masks + tile, (z > 0).to(tl.int8), mask=inside[:, None])
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
        tl.store(masks + layer * count * WIDE + tile, (z > 0).to(tl.int8), mask=inside[:, None])
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
    partials,  # (E, blocks, biases of one member), their sums over a program's rows
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
    """From the derivative by the outputs to those by all pre-activations, and sums of them for the biases."""
    place = (tl.program_id(0) // blocks).to(tl.int64)
    block = tl.program_id(0) % blocks
    member = place + first
    high: tl.constexpr = partials.dtype.element_ty
    r = block * ROWS + tl.arange(0, ROWS)
    w = tl.arange(0, WIDE)
    c = tl.arange(0, SOFT)
    inside, valid, real = r < count, w < WIDTH, c < CLASSES
    weights += member * row + WIDTH * inputs
    partials += (member * blocks + block) * (layers * WIDTH + CLASSES)
    slopes += place * count * SOFT
    slopes += r[:, None] * SOFT + c[None, :]
    slope = read(slopes, inside[:, None], True).to(high)
    if PARTS == 2:
        slope += read(slopes + slope_plane, inside[:, None], True).to(high)
    tl.store(partials + layers * WIDTH + c, tl.sum(slope, 0), mask=real)
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
    masks += place * layers * count * WIDE
    deltas += place * layers * count * WIDE
    tile = r[:, None] * WIDE + w[None, :]
    for back in tl.range(1, layers, num_stages=STAGES):
        layer = layers - back
        active = tl.load(masks + layer * count * WIDE + tile, mask=inside[:, None], other=0)
        delta = tl.where(active != 0, g, 0.0)
        keep(deltas + layer * count * WIDE + tile, layer_plane, delta, inside[:, None], PARTS)
        tl.store(partials + layer * WIDTH + w, tl.sum(delta, 0), mask=valid)
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
    active = tl.load(masks + tile, mask=inside[:, None], other=0)
    delta = tl.where(active != 0, g, 0.0)
    keep(deltas + tile, layer_plane, delta, inside[:, None], PARTS)
    tl.store(partials + w, tl.sum(delta, 0), mask=valid)


@triton.jit(do_not_specialize=["count", "layers"])
def weight_gradients(
    deltas,  # (members, layers, count, TALL)
    sources,  # (members, layers, count, …), or the table with GATHER
    index,  # (members, count)
    gradient,  # (members, row), from the first matrix on
    squares,  # (members, pieces), from the first piece on: sums of squares of what each program writes
    delta_plane,
    source_plane,
    delta_member,
    delta_layer,
    source_member,
    source_layer,
    source_row,
    row,
    columns,
    pieces,
    count,
    layers,
    HEIGHT: tl.constexpr,
    TALL: tl.constexpr,
    WIDE: tl.constexpr,
    DEEP: tl.constexpr,
    GATHER: tl.constexpr,
    PARTS: tl.constexpr,
    STAGES: tl.constexpr,
):
    """δᵀ x, summed over a batch, of one matrix (HEIGHT, columns) per member and layer, put where it belongs."""
    member = (tl.program_id(0) // layers).to(tl.int64)
    layer = tl.program_id(0) % layers
    high: tl.constexpr = gradient.dtype.element_ty
    n = tl.arange(0, TALL)
    m = tl.program_id(1) * WIDE + tl.arange(0, WIDE)
    valid = m < columns
    deltas += member * delta_member + layer * delta_layer
    sources += member * source_member + layer * source_layer
    total = tl.zeros((TALL, WIDE), high)
    for start in tl.range(0, count, DEEP, num_stages=STAGES):
        k = start + tl.arange(0, DEEP)
        inside = k < count
        here = deltas + k[None, :] * TALL + n[:, None]
        delta = read(here, inside[None, :], True)
        delta_rest = second(here, delta_plane, inside[None, :], delta, True, PARTS)
        sample = tl.load(index + member * count + k, mask=inside, other=0) if GATHER else k
        here = sources + sample[:, None] * source_row + m[None, :]
        both = inside[:, None] & valid[None, :]
        source = read(here, both, True)
        if PARTS == 2:
            source_rest = second(here, source_plane, both, source, True, PARTS)
            total = tl.dot(delta_rest, source, total)
            total = tl.dot(delta, source_rest, total)
        total = tl.dot(delta, source, total, input_precision="ieee")
    # Before the gradient is stored, which changes how registers hold it.
    piece = layer * tl.num_programs(1) + tl.program_id(1)
    tl.store(squares + member * pieces + piece, tl.sum(tl.sum(total * total, 1), 0))
    gradient += member * row + layer * HEIGHT * columns
    at = n[:, None] * columns + m[None, :]
    tl.store(gradient + at, total, mask=(n < HEIGHT)[:, None] & valid[None, :])


@triton.jit
def summed(pointer, count, BLOCK: tl.constexpr, SQUARE: tl.constexpr):
    """The sum of so many numbers, or of their squares, in one order."""
    at = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), pointer.dtype.element_ty)
    for start in range(0, count, BLOCK):
        each = tl.load(pointer + start + at, mask=start + at < count, other=0)
        total += each * each if SQUARE else each
    return tl.sum(total, 0)


@triton.jit(do_not_specialize=["blocks", "pieces", "biases"])
def tally(
    losses,  # (E, blocks)
    hits,  # (E, blocks)
    squares,  # (E, pieces)
    gradient,  # (E, row), from the first bias on
    alive,  # (E,)
    loss_sum,  # (E,)
    hit_sum,  # (E,)
    row,
    blocks,
    pieces,
    biases,
    BLOCK: tl.constexpr,
):
    """Add up one member's losses and right answers; it stays alive if the loss and the gradient's norm are finite."""
    member = tl.program_id(0).to(tl.int64)
    loss = summed(losses + member * blocks, blocks, BLOCK, False)
    square = summed(squares + member * pieces, pieces, BLOCK, False)
    square += summed(gradient + member * row, biases, BLOCK, True)
    # Comparisons with NaN are false.
    finite = (tl.abs(loss) < float("inf")) & (square < float("inf"))
    tl.store(alive + member, (tl.load(alive + member) != 0) & finite)
    tl.store(loss_sum + member, tl.load(loss_sum + member) + loss.to(tl.float64))
    hit = summed(hits + member * blocks, blocks, BLOCK, False)
    tl.store(hit_sum + member, tl.load(hit_sum + member) + hit.to(tl.int64))


@triton.jit
def adam(
    rows,
    gradient,
    first,
    second,
    copy,  # the weights as products take them
    rates,  # (E,), learning rates
    steps,  # (1,), how many there were with this one
    alive,  # (E,)
    copy_plane,
    row,
    BETA1: tl.constexpr,
    BETA2: tl.constexpr,
    LOG1: tl.constexpr,  # log β₁
    LOG2: tl.constexpr,  # log β₂
    EPS: tl.constexpr,
    PARTS: tl.constexpr,
    COPY: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Kingma & Ba (2015), algorithm 1, on one piece of one member's row, which is frozen unless it is alive."""
    member = tl.program_id(1).to(tl.int64)
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    high: tl.constexpr = rows.dtype.element_ty
    at = member * row + column
    valid = column < row
    living = tl.load(alive + member) != 0
    step = tl.load(steps)
    scale = tl.where(living, tl.load(rates + member) / (1 - tl.exp(step * LOG1)), 0.0).to(high)
    correction = tl.sqrt(1 - tl.exp(step * LOG2)).to(high)
    g = tl.where(living, tl.load(gradient + at, mask=valid, other=0.0), 0.0)
    m = tl.load(first + at, mask=valid, other=0.0)
    v = tl.load(second + at, mask=valid, other=0.0)
    theta = tl.load(rows + at, mask=valid, other=0.0)
    m += (g - m) * (1 - BETA1)
    v = v * BETA2 + g * g * (1 - BETA2)
    theta -= scale * (m / (tl.sqrt(v) / correction + EPS))
    tl.store(first + at, m, mask=valid)
    tl.store(second + at, v, mask=valid)
    tl.store(rows + at, theta, mask=valid)
    if COPY:
        keep(copy + at, copy_plane, theta, valid, PARTS)
