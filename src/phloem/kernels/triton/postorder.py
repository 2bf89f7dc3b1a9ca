"""The post-order pass: one tile of columns of one node and one category a step."""

from __future__ import annotations

import triton
import triton.language as tl

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
def node_exponents(item, live, first, second, rows, exponents, shifts, shift, WRITE: tl.constexpr):
    """Sum of the children's exponents and this node's shift, and where they are kept."""
    total = tl.load(exponents + first, mask=live, other=0) + tl.load(exponents + second, mask=live, other=0) + shift
    if WRITE:
        place = tl.load(item + 1) + rows
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
def _tile(
    item, c, chunk, columns, messages, exponents, shifts, transition, left_class, right_class, state_sets, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, CHUNKS: tl.constexpr, TILE: tl.constexpr, DTYPE: tl.constexpr,
    PRODUCT: tl.constexpr,
):  # fmt: skip
    """m = p Pᵀ for TILE columns (reference/postorder.py), states along the last axis."""
    rows = tl.arange(0, TILE)
    is_tip = tl.load(item) == 0
    live, first, second = node_columns(item, rows, left_class, right_class)
    messages += c * columns * WIDTH
    exponents += c * columns
    shifts += c * columns
    largest = tl.zeros((TILE,), DTYPE)
    for step in tl.static_range(CHUNKS):
        state = step * BLOCK + tl.arange(0, BLOCK)
        p = _product(first, second, state, live, is_tip, state_sets, messages, WIDTH)
        largest = tl.maximum(largest, tl.max(p, axis=1))
    shift = rescale_shift(largest, DTYPE)
    target = chunk * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((TILE, BLOCK), DTYPE)
    matrix = transition + (tl.load(item + 5) * C + c) * WIDTH * WIDTH
    for step in tl.static_range(CHUNKS):
        state = step * BLOCK + tl.arange(0, BLOCK)
        if CHUNKS > 1:
            p = _product(first, second, state, live, is_tip, state_sets, messages, WIDTH)
        inside = (state < WIDTH)[:, None] & (target < WIDTH)[None, :]
        p_matrix = tl.load(matrix + state[:, None] * WIDTH + target[None, :], mask=inside, other=0.0)
        scaled = scale_down(p, shift[:, None], DTYPE)
        total = tl.dot(scaled, p_matrix, acc=total, input_precision=PRODUCT, out_dtype=DTYPE)
    if chunk == 0:
        if is_tip:
            first, second = rows.to(tl.int64) * 0, rows.to(tl.int64) * 0
            tl.store(exponents + tl.load(item + 1) + rows, rows * 0, mask=live)
            tl.store(shifts + tl.load(item + 1) + rows, rows * 0, mask=live)
        else:
            node_exponents(item, live, first, second, rows, exponents, shifts, shift, True)
    place = messages + (tl.load(item + 1) + rows)[:, None] * WIDTH + target[None, :]
    tl.store(place, total, mask=live[:, None] & (target < WIDTH)[None, :])


@triton.jit
def _tile_4(
    item, c, columns, messages, exponents, shifts, transition, left_class, right_class, state_sets, C,
    TILE: tl.constexpr, DTYPE: tl.constexpr,
):  # fmt: skip
    """The same for four states or fewer, each a vector of columns: one matrix, 16 scalars, a program."""
    rows = tl.arange(0, TILE)
    is_tip = tl.load(item) == 0
    live, first, second = node_columns(item, rows, left_class, right_class)
    messages += c * columns * 4
    exponents += c * columns
    shifts += c * columns
    if is_tip:
        p0 = tl.load(state_sets + first * 4, mask=live, other=0.0)
        p1 = tl.load(state_sets + first * 4 + 1, mask=live, other=0.0)
        p2 = tl.load(state_sets + first * 4 + 2, mask=live, other=0.0)
        p3 = tl.load(state_sets + first * 4 + 3, mask=live, other=0.0)
    else:
        x, y = messages + first * 4, messages + second * 4
        p0 = tl.load(x, mask=live, other=0.0) * tl.load(y, mask=live, other=0.0)
        p1 = tl.load(x + 1, mask=live, other=0.0) * tl.load(y + 1, mask=live, other=0.0)
        p2 = tl.load(x + 2, mask=live, other=0.0) * tl.load(y + 2, mask=live, other=0.0)
        p3 = tl.load(x + 3, mask=live, other=0.0) * tl.load(y + 3, mask=live, other=0.0)
    shift = rescale_shift(tl.maximum(tl.maximum(p0, p1), tl.maximum(p2, p3)), DTYPE)
    place = tl.load(item + 1) + rows
    if is_tip:
        tl.store(exponents + place, rows * 0, mask=live)
        tl.store(shifts + place, rows * 0, mask=live)
    else:
        node_exponents(item, live, first, second, rows, exponents, shifts, shift, True)
    p0, p1 = scale_down(p0, shift, DTYPE), scale_down(p1, shift, DTYPE)
    p2, p3 = scale_down(p2, shift, DTYPE), scale_down(p3, shift, DTYPE)
    matrix = transition + (tl.load(item + 5) * C + c) * 16
    out = messages + place * 4
    for i in tl.static_range(4):
        m = p0 * tl.load(matrix + i) + p1 * tl.load(matrix + 4 + i)
        m += p2 * tl.load(matrix + 8 + i) + p3 * tl.load(matrix + 12 + i)
        tl.store(out + i, m, mask=live)


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
        item = items + (step // parts) * 16
        c, chunk = (step % parts) // CHUNKS, step % CHUNKS
        await_ready(counters, item, 7)
        if WIDTH == 4:
            _tile_4(item, c, columns, messages, exponents, shifts, transition, left_class, right_class, state_sets,
                    C, TILE, DTYPE)  # fmt: skip
        else:
            _tile(item, c, chunk, columns, messages, exponents, shifts, transition, left_class, right_class,
                  state_sets, C, WIDTH, BLOCK, CHUNKS, TILE, DTYPE, PRODUCT)  # fmt: skip
        announce(counters, item, 9)
        step = tl.atomic_add(counters, 1).to(tl.int64)
