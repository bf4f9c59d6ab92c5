"""Triton kernels after the passes: gradients of weights, who is alive, and Adam, apart or at the gradients' end.

Numbers come in one part or two, and sums have one order, as in the kernels of the passes.
"""

from __future__ import annotations

import triton
import triton.language as tl

from skiplab.ensembles.fused.kernels import keep, read, second


@triton.jit
def over_samples(
    deltas,  # (count, TALL), of one member and layer
    sources,  # (count, …), likewise, or the table with GATHER
    index,  # (count,)
    delta_plane,
    source_plane,
    source_row,
    m,
    columns,
    count,
    TALL: tl.constexpr,
    WIDE: tl.constexpr,
    DEEP: tl.constexpr,
    GATHER: tl.constexpr,
    PARTS: tl.constexpr,
    STAGES: tl.constexpr,
    HIGH: tl.constexpr,
):
    """δᵀ x (TALL, WIDE) of the columns m, and δ beside it (TALL, 16), summed over a batch."""
    n = tl.arange(0, TALL)
    valid = m < columns
    total = tl.zeros((TALL, WIDE), HIGH)
    # Sums as a product with ones: tensor cores take next to no time for it, sums across threads much.
    ones = tl.full((DEEP, 16), 1.0, deltas.dtype.element_ty)
    sums = tl.zeros((TALL, 16), HIGH)
    for start in tl.range(0, count, DEEP, num_stages=STAGES):
        k = start + tl.arange(0, DEEP)
        inside = k < count
        here = deltas + k[None, :] * TALL + n[:, None]
        delta = read(here, inside[None, :], True)
        delta_rest = second(here, delta_plane, inside[None, :], delta, True, PARTS)
        sample = tl.load(index + k, mask=inside, other=0) if GATHER else k
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
    return total, sums


@triton.jit
def summed(pointer, count, BLOCK: tl.constexpr, SQUARE: tl.constexpr):
    """The sum of so many numbers, or of their squares, in one order."""
    at = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), pointer.dtype.element_ty)
    for start in range(0, count, BLOCK):
        each = tl.load(pointer + start + at, mask=start + at < count, other=0)
        total += each * each if SQUARE else each
    return tl.sum(total, 0)


@triton.jit
def halves(tile, TALL: tl.constexpr, WIDE: tl.constexpr):
    """The first and the second half of a tile's columns."""
    return tl.split(tl.permute(tl.reshape(tile, (TALL, 2, WIDE // 2)), (0, 2, 1)))


@triton.jit
def paces(rates, steps, living, member, HIGH: tl.constexpr, LOG1: tl.constexpr, LOG2: tl.constexpr):
    """Adam's rate of a member, the first correction in it, 0 unless it is alive; and the second correction's root."""
    step = tl.load(steps)
    scale = tl.where(living, tl.load(rates + member) / (1 - tl.exp(step * LOG1)), 0.0).to(HIGH)
    return scale, tl.sqrt(1 - tl.exp(step * LOG2)).to(HIGH)


@triton.jit
def adam_step(
    rows,
    first,
    second_moment,
    copy,
    at,
    valid,
    g,
    scale,
    correction,
    copy_plane,
    BETA1: tl.constexpr,
    BETA2: tl.constexpr,
    EPS: tl.constexpr,
    PARTS: tl.constexpr,
    COPY: tl.constexpr,
):
    """Kingma & Ba (2015), algorithm 1, with the gradient g of the parameters at some places."""
    m = tl.load(first + at, mask=valid, other=0.0)
    v = tl.load(second_moment + at, mask=valid, other=0.0)
    theta = tl.load(rows + at, mask=valid, other=0.0)
    m += (g - m) * (1 - BETA1)
    v = v * BETA2 + g * g * (1 - BETA2)
    theta -= scale * (m / (tl.sqrt(v) / correction + EPS))
    tl.store(first + at, m, mask=valid)
    tl.store(second_moment + at, v, mask=valid)
    tl.store(rows + at, theta, mask=valid)
    if COPY:
        keep(copy + at, copy_plane, theta, valid, PARTS)


@triton.jit(do_not_specialize=["count", "layers", "blocks"])
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
    rows,  # from here on for Adam, with UPDATE; the first four from the first matrix on, as the gradient
    first,
    second_moment,
    copy,
    losses,  # (members, blocks)
    rates,
    steps,
    alive,
    copy_plane,
    blocks,
    BETA1: tl.constexpr,
    BETA2: tl.constexpr,
    LOG1: tl.constexpr,
    LOG2: tl.constexpr,
    EPS: tl.constexpr,
    COPY: tl.constexpr,
    BLOCK: tl.constexpr,
    UPDATE: tl.constexpr,
    HEIGHT: tl.constexpr,
    TALL: tl.constexpr,
    WIDE: tl.constexpr,
    DEEP: tl.constexpr,
    GATHER: tl.constexpr,
    PARTS: tl.constexpr,
    STAGES: tl.constexpr,
):
    """δᵀ x and δ, summed over a batch: of one matrix (HEIGHT, columns) and its biases per member and layer.

    With UPDATE the matrix takes Adam's step at once, and its gradient is never stored. Whether the whole gradient is
    finite is not known then: a member whose loss is not finite stays as it is, and one whose gradient is not takes a
    last step where it is finite.
    """
    member = (tl.program_id(0) // layers).to(tl.int64)
    layer = tl.program_id(0) % layers
    n = tl.arange(0, TALL)
    m = tl.program_id(1) * WIDE + tl.arange(0, WIDE)
    total, sums = over_samples(
        deltas + member * delta_member + layer * delta_layer,
        sources + member * source_member + layer * source_layer,
        index + member * count,
        delta_plane,
        source_plane,
        source_row,
        m,
        columns,
        count,
        TALL,
        WIDE,
        DEEP,
        GATHER,
        PARTS,
        STAGES,
        gradient.dtype.element_ty,
    )
    # Before the gradient is stored, which changes how registers hold it.
    piece = layer * tl.num_programs(1) + tl.program_id(1)
    tl.store(squares + member * pieces + piece, tl.sum(tl.sum(total * total, 1), 0))
    once = (tl.arange(0, 16) == 0)[None, :]
    at = biases + member * row + layer * HEIGHT + n
    written = n < tl.where(tl.program_id(1) == 0, HEIGHT, 0)  # once, whatever the number of columns
    tl.store(at, tl.sum(tl.where(once, sums, 0.0), 1), mask=written)
    place = member * row + layer * HEIGHT * columns
    at = n[:, None] * columns + m[None, :]
    whole = (n < HEIGHT)[:, None] & (m < columns)[None, :]
    if UPDATE:
        loss = summed(losses + member * blocks, blocks, BLOCK, False)
        living = (tl.load(alive + member) != 0) & (tl.abs(loss) < float("inf"))
        total = tl.where(living & (tl.abs(total) < float("inf")), total, 0.0)
        scale, correction = paces(rates, steps, living, member, gradient.dtype.element_ty, LOG1, LOG2)
        # Columns in four parts: all at once do not fit into registers.
        QUARTER: tl.constexpr = WIDE // 4
        left, right = halves(total, TALL, WIDE)
        outer, inner = halves(left, TALL, WIDE // 2), halves(right, TALL, WIDE // 2)
        tiles = (outer[0], outer[1], inner[0], inner[1])
        for part in tl.static_range(4):
            m = tl.program_id(1) * WIDE + part * QUARTER + tl.arange(0, QUARTER)
            adam_step(
                rows + place, first + place, second_moment + place, copy + place,
                n[:, None] * columns + m[None, :], (n < HEIGHT)[:, None] & (m < columns)[None, :], tiles[part],
                scale, correction, copy_plane, BETA1, BETA2, EPS, PARTS, COPY,
            )  # fmt: skip
    else:
        tl.store(gradient + place + at, total, mask=whole)


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
    second_moment,
    copy,  # the weights as products take them
    rates,  # (E,), learning rates
    steps,  # (1,), how many there were with this one
    alive,  # (E,)
    copy_plane,
    row,
    START: tl.constexpr,  # the first column to be updated
    BETA1: tl.constexpr,
    BETA2: tl.constexpr,
    LOG1: tl.constexpr,  # log β₁
    LOG2: tl.constexpr,  # log β₂
    EPS: tl.constexpr,
    PARTS: tl.constexpr,
    COPY: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Adam on one piece of one member's row, which is frozen unless it is alive."""
    member = tl.program_id(1).to(tl.int64)
    column = START + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = member * row + column
    valid = column < row
    living = tl.load(alive + member) != 0
    scale, correction = paces(rates, steps, living, member, rows.dtype.element_ty, LOG1, LOG2)
    g = tl.where(living, tl.load(gradient + at, mask=valid, other=0.0), 0.0)
    adam_step(
        rows, first, second_moment, copy, at, valid, g, scale, correction,
        copy_plane, BETA1, BETA2, EPS, PARTS, COPY,
    )  # fmt: skip
