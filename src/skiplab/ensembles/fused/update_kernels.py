"""Triton kernels after the passes: gradients of weights, who is alive, and Adam.

Numbers come in one part or two, and sums have one order, as in the kernels of the passes.
"""

from __future__ import annotations

import triton
import triton.language as tl

from skiplab.ensembles.fused.kernels import keep, read, second


@triton.jit(do_not_specialize=["count", "layers"])
def weight_gradients(
    deltas,  # (members, layers, count, TALL)
    sources,  # (members, layers, count, …), or the table with GATHER
    index,  # (members, count)
    gradient,  # (members, row), from the first matrix on
    biases,  # (members, row), from the first bias on
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
    """δᵀ x and δ, summed over a batch: of one matrix (HEIGHT, columns) and its biases per member and layer."""
    member = (tl.program_id(0) // layers).to(tl.int64)
    layer = tl.program_id(0) % layers
    high: tl.constexpr = gradient.dtype.element_ty
    n = tl.arange(0, TALL)
    m = tl.program_id(1) * WIDE + tl.arange(0, WIDE)
    valid = m < columns
    deltas += member * delta_member + layer * delta_layer
    sources += member * source_member + layer * source_layer
    total = tl.zeros((TALL, WIDE), high)
    # Sums as a product with ones: tensor cores take next to no time for it, sums across threads much.
    ones = tl.full((DEEP, 16), 1.0, deltas.dtype.element_ty)
    sums = tl.zeros((TALL, 16), high)
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
            sums = tl.dot(delta_rest, ones, sums)
        total = tl.dot(delta, source, total, input_precision="ieee")
        sums = tl.dot(delta, ones, sums, input_precision="ieee")
    # Before the gradient is stored, which changes how registers hold it.
    piece = layer * tl.num_programs(1) + tl.program_id(1)
    tl.store(squares + member * pieces + piece, tl.sum(tl.sum(total * total, 1), 0))
    first = (tl.arange(0, 16) == 0)[None, :]
    at = biases + member * row + layer * HEIGHT + n
    written = n < tl.where(tl.program_id(1) == 0, HEIGHT, 0)  # once, whatever the number of columns
    tl.store(at, tl.sum(tl.where(first, sums, 0.0), 1), mask=written)
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
