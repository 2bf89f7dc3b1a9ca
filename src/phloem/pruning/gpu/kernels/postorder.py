"""The post-order pass: one tile of columns of one node and one category a step."""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.pruning.gpu.kernels.product import (
    announce,
    await_ready,
    counters_of,
    fetch,
    magnitude,
    next_step,
    rescale_shift,
    scale_down,
    times,
)

# Columns of a post-order item (int64): what pruning/gpu/step_schedule.py writes and the kernels read.
# 0 kind (0 tip, 1 internal) · 1 first column written · 2 columns in the tile · 3, 4 first column of the left
# and right child · 5 matrix · 6 place in the class arrays · 7 counter to await · 8 its target · 9 counter
# to raise


@triton.jit
def node_columns(item, rows, left_class, right_class):
    """Which columns of the children, counted from each one's first, make this tile; state sets at a tip.

    Offsets inside a node are 32-bit (the engine sees to it that they fit), those of nodes 64-bit.
    """
    live = rows < tl.load(item + 2)
    place = tl.load(item + 6)
    left = tl.load(left_class + place + rows, mask=live, other=0)
    right = tl.load(right_class + place + rows, mask=live, other=0)
    return live, left, right


@triton.jit
def exponents_below(live, left, right, first_left, first_right, exponents):
    """Sum of the children's exponents. exponents: those of one category."""
    total = tl.load(exponents + first_left + left, mask=live, other=0)
    return total + tl.load(exponents + first_right + right, mask=live, other=0)


@triton.jit
def block(base, column, live, state, WIDTH: tl.constexpr):
    """A tile of messages: columns of one node, states of one block."""
    inside = live[:, None] & (state < WIDTH)[None, :]
    return tl.load(base + (column[:, None] * WIDTH + state[None, :]), mask=inside, other=0.0)


@triton.jit
def _product(kind, left, right, state, live, state_sets, from_left, from_right, WIDTH: tl.constexpr):
    """p[column, state] of an internal node, or the indicator of the allowed states of a tip."""
    if kind == 0:
        p = block(state_sets, left, live, state, WIDTH)
    else:
        p = block(from_left, left, live, state, WIDTH) * block(from_right, right, live, state, WIDTH)
    return p


@triton.jit
def _write_exponents(place, rows, live, below, shift, exponents, shifts):
    tl.store(exponents + place + rows, below + shift, mask=live)
    tl.store(shifts + place + rows, shift, mask=live)


@triton.jit
def _tile_whole(
    item, c, live, left, right, columns, counters, messages, exponents, shifts, transition, state_sets, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr, DTYPE: tl.constexpr, PRODUCT: tl.constexpr,
):  # fmt: skip
    """m = p Pᵀ for TILE columns (reference/recursion.py), states along the last axis, all of them in one
    block.

    What does not depend on the children is fetched before they are awaited.
    """
    rows, state = tl.arange(0, TILE), tl.arange(0, BLOCK)
    kind, out = tl.load(item), tl.load(item + 1)
    first_left, first_right = tl.load(item + 3), tl.load(item + 4)
    internal = rows < tl.load(item + 2) * kind
    ready, target_count, raised = counters_of(item, counters)
    messages += c * columns * WIDTH
    from_left, from_right = messages + first_left * WIDTH, messages + first_right * WIDTH
    matrix = transition + (tl.load(item + 5) * C + c) * WIDTH * WIDTH
    operand = fetch(matrix, False, WIDTH, BLOCK, DTYPE)
    await_ready(ready, target_count)
    p = _product(kind, left, right, state, live, state_sets, from_left, from_right, WIDTH)
    below = exponents_below(internal, left, right, first_left, first_right, exponents + c * columns)
    shift = rescale_shift(tl.max(magnitude(p, DTYPE), axis=1), DTYPE)
    total = times(scale_down(p, shift[:, None], DTYPE), operand, False, WIDTH, TILE, DTYPE, PRODUCT)
    tl.store(messages + out * WIDTH + (rows[:, None] * WIDTH + state[None, :]), total,
             mask=live[:, None] & (state < WIDTH)[None, :])  # fmt: skip
    _write_exponents(c * columns + out, rows, live, below, shift, exponents, shifts)
    announce(raised)


@triton.jit
def _tile_blocks(
    item, c, chunk, live, left, right, columns, counters, messages, exponents, shifts, transition, state_sets,
    C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, CHUNKS: tl.constexpr, TILE: tl.constexpr, DTYPE: tl.constexpr,
    PRODUCT: tl.constexpr,
):  # fmt: skip
    """The same where the states take CHUNKS blocks: this program writes block `chunk` of every message."""
    rows = tl.arange(0, TILE)
    kind, out = tl.load(item), tl.load(item + 1)
    first_left, first_right = tl.load(item + 3), tl.load(item + 4)
    internal = rows < tl.load(item + 2) * kind
    ready, target_count, raised = counters_of(item, counters)
    messages += c * columns * WIDTH
    from_left, from_right = messages + first_left * WIDTH, messages + first_right * WIDTH
    matrix = transition + (tl.load(item + 5) * C + c) * WIDTH * WIDTH
    await_ready(ready, target_count)
    below = exponents_below(internal, left, right, first_left, first_right, exponents + c * columns)
    largest = tl.zeros((TILE,), tl.int32)
    for step in tl.static_range(CHUNKS):
        state = step * BLOCK + tl.arange(0, BLOCK)
        p = _product(kind, left, right, state, live, state_sets, from_left, from_right, WIDTH)
        largest = tl.maximum(largest, tl.max(magnitude(p, DTYPE), axis=1))
    shift = rescale_shift(largest, DTYPE)
    target = chunk * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((TILE, BLOCK), DTYPE)
    for step in range(CHUNKS):
        state = step * BLOCK + tl.arange(0, BLOCK)
        p = _product(kind, left, right, state, live, state_sets, from_left, from_right, WIDTH)
        inside = (state < WIDTH)[:, None] & (target < WIDTH)[None, :]
        p_matrix = tl.load(matrix + (state[:, None] * WIDTH + target[None, :]), mask=inside, other=0.0)
        scaled = scale_down(p, shift[:, None], DTYPE)
        total = tl.dot(scaled, p_matrix, acc=total, input_precision=PRODUCT, out_dtype=DTYPE)
    if chunk == 0:
        _write_exponents(c * columns + out, rows, live, below, shift, exponents, shifts)
    tl.store(messages + out * WIDTH + (rows[:, None] * WIDTH + target[None, :]), total,
             mask=live[:, None] & (target < WIDTH)[None, :])  # fmt: skip
    announce(raised)


@triton.jit
def node_tile(
    item, part, live, left, right, columns, counters, messages, exponents, shifts, transition, state_sets, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, CHUNKS: tl.constexpr, TILE: tl.constexpr, DTYPE: tl.constexpr,
    PRODUCT: tl.constexpr,
):  # fmt: skip
    """One part (category and block of states) of one item. live, left, right: node_columns."""
    c = part // CHUNKS
    if CHUNKS == 1:
        _tile_whole(item, c, live, left, right, columns, counters, messages, exponents, shifts, transition,
                    state_sets, C, WIDTH, BLOCK, TILE, DTYPE, PRODUCT)  # fmt: skip
    else:
        _tile_blocks(item, c, part % CHUNKS, live, left, right, columns, counters, messages, exponents,
                     shifts, transition, state_sets, C, WIDTH, BLOCK, CHUNKS, TILE, DTYPE,
                     PRODUCT)  # fmt: skip


@triton.jit
def postorder(
    items, sizes, counters, messages, exponents, shifts, transition, left_class, right_class, state_sets, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, CHUNKS: tl.constexpr, TILE: tl.constexpr, DTYPE: tl.constexpr,
    PRODUCT: tl.constexpr,
):  # fmt: skip
    """Every item of every level in one launch (schedule.py). sizes: 0 columns in all, 1 items.

    messages: (C, columns, WIDTH); exponents, shifts: (C, columns) int32; transition: transition.py.
    """
    columns = tl.load(sizes)
    parts = C * CHUNKS
    n_steps = tl.load(sizes + 1) * parts
    step = next_step(counters)
    while step < n_steps:
        following = next_step(counters)
        item = items + (step // parts) * 16
        live, left, right = node_columns(item, tl.arange(0, TILE), left_class, right_class)
        node_tile(item, step % parts, live, left, right, columns, counters, messages, exponents, shifts,
                  transition, state_sets, C, WIDTH, BLOCK, CHUNKS, TILE, DTYPE, PRODUCT)  # fmt: skip
        step = following
