"""The post-order pass: one tile of columns of one node and one category a step."""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.kernels.triton.product import fetch, times
from phloem.kernels.triton.schedule import announce, await_ready
from phloem.kernels.triton.scaling import rescale_shift, scale_down

# Columns of a post-order item (int64): what engine/gpu_schedule.py writes and the kernels read.
# 0 kind (0 tip, 1 internal) · 1 first column written · 2 columns in the tile · 3, 4 first column of the left
# and right child · 5 matrix · 6 place in the class arrays · 7 counter to await · 8 its target · 9 counter to raise


@triton.jit
def node_columns(item, rows, left_class, right_class):
    """Which columns of the children, and of the state sets at a tip, make this tile."""
    live = rows < tl.load(item + 2)
    place = tl.load(item + 6) + rows
    left = tl.load(left_class + place, mask=live, other=0).to(tl.int64)
    right = tl.load(right_class + place, mask=live, other=0).to(tl.int64)
    return live, tl.load(item + 3) + left, tl.load(item + 4) + right


@triton.jit
def write_exponents(place, live, is_tip, first, second, exponents, shifts, shift):
    """Keep this node's shift, and the sum of it and the children's exponents, which is returned."""
    total = shift
    if is_tip:
        total = shift * 0
    else:
        total += tl.load(exponents + first, mask=live, other=0) + tl.load(exponents + second, mask=live, other=0)
    tl.store(exponents + place, total, mask=live)
    tl.store(shifts + place, shift, mask=live)
    return total


@triton.jit
def _product(first, second, state, live, is_tip, state_sets, messages, WIDTH: tl.constexpr):
    """p[column, state] of an internal node, or the indicator of the allowed states of a tip."""
    inside = live[:, None] & (state < WIDTH)[None, :]
    if is_tip:
        p = tl.load(state_sets + first[:, None] * WIDTH + state[None, :], mask=inside, other=0.0)
    else:
        p = tl.load(messages + first[:, None] * WIDTH + state[None, :], mask=inside, other=0.0)
        p *= tl.load(messages + second[:, None] * WIDTH + state[None, :], mask=inside, other=0.0)
    return p


@triton.jit
def _tile_whole(
    item, c, columns, counters, messages, exponents, shifts, transition, left_class, right_class, state_sets, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr, DTYPE: tl.constexpr, PRODUCT: tl.constexpr,
):  # fmt: skip
    """m = p Pᵀ for TILE columns (reference/postorder.py), states along the last axis, all of them in one block.

    What does not depend on the children is fetched before they are awaited.
    """
    rows, state = tl.arange(0, TILE), tl.arange(0, BLOCK)
    is_tip = tl.load(item) == 0
    place = tl.load(item + 1) + rows
    live, first, second = node_columns(item, rows, left_class, right_class)
    messages += c * columns * WIDTH
    exponents += c * columns
    shifts += c * columns
    matrix = transition + (tl.load(item + 5) * C + c) * WIDTH * WIDTH
    operand = fetch(matrix, False, WIDTH, BLOCK, DTYPE)
    await_ready(counters, item, 7)
    p = _product(first, second, state, live, is_tip, state_sets, messages, WIDTH)
    shift = rescale_shift(tl.max(p, axis=1), DTYPE)
    write_exponents(place, live, is_tip, first, second, exponents, shifts, shift)
    total = times(scale_down(p, shift[:, None], DTYPE), operand, False, WIDTH, TILE, DTYPE, PRODUCT)
    tl.store(messages + place[:, None] * WIDTH + state[None, :], total,
             mask=live[:, None] & (state < WIDTH)[None, :])  # fmt: skip
    announce(counters, item, 9)


@triton.jit
def _tile_blocks(
    item, c, chunk, columns, counters, messages, exponents, shifts, transition, left_class, right_class, state_sets,
    C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, CHUNKS: tl.constexpr, TILE: tl.constexpr, DTYPE: tl.constexpr,
    PRODUCT: tl.constexpr,
):  # fmt: skip
    """The same where the states take CHUNKS blocks: this program writes block `chunk` of every message."""
    rows = tl.arange(0, TILE)
    is_tip = tl.load(item) == 0
    live, first, second = node_columns(item, rows, left_class, right_class)
    messages += c * columns * WIDTH
    await_ready(counters, item, 7)
    largest = tl.zeros((TILE,), DTYPE)
    for step in tl.static_range(CHUNKS):
        state = step * BLOCK + tl.arange(0, BLOCK)
        p = _product(first, second, state, live, is_tip, state_sets, messages, WIDTH)
        largest = tl.maximum(largest, tl.max(p, axis=1))
    shift = rescale_shift(largest, DTYPE)
    target = chunk * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((TILE, BLOCK), DTYPE)
    matrix = transition + (tl.load(item + 5) * C + c) * WIDTH * WIDTH
    for step in range(CHUNKS):
        state = step * BLOCK + tl.arange(0, BLOCK)
        p = _product(first, second, state, live, is_tip, state_sets, messages, WIDTH)
        inside = (state < WIDTH)[:, None] & (target < WIDTH)[None, :]
        p_matrix = tl.load(matrix + state[:, None] * WIDTH + target[None, :], mask=inside, other=0.0)
        scaled = scale_down(p, shift[:, None], DTYPE)
        total = tl.dot(scaled, p_matrix, acc=total, input_precision=PRODUCT, out_dtype=DTYPE)
    place = tl.load(item + 1) + rows
    if chunk == 0:
        write_exponents(place, live, is_tip, first, second, exponents + c * columns, shifts + c * columns, shift)
    tl.store(messages + place[:, None] * WIDTH + target[None, :], total,
             mask=live[:, None] & (target < WIDTH)[None, :])  # fmt: skip
    announce(counters, item, 9)


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
    step = tl.atomic_add(counters, 1).to(tl.int64)
    while step < n_steps:
        following = tl.atomic_add(counters, 1).to(tl.int64)
        item = items + (step // parts) * 16
        c = (step % parts) // CHUNKS
        if CHUNKS == 1:
            _tile_whole(item, c, columns, counters, messages, exponents, shifts, transition, left_class,
                        right_class, state_sets, C, WIDTH, BLOCK, TILE, DTYPE, PRODUCT)  # fmt: skip
        else:
            _tile_blocks(item, c, step % CHUNKS, columns, counters, messages, exponents, shifts, transition,
                         left_class, right_class, state_sets, C, WIDTH, BLOCK, CHUNKS, TILE, DTYPE,
                         PRODUCT)  # fmt: skip
        step = following
