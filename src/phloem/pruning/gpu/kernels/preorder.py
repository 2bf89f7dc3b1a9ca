"""The pre-order pass: one tile of columns of the branch above one node and one category a step."""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.pruning.gpu.kernels.postorder import block
from phloem.pruning.gpu.kernels.product import (
    announce,
    await_ready,
    counters_of,
    fetch,
    next_step,
    scale_down,
    times,
)
from phloem.pruning.gpu.kernels.transition import process_of

# Columns of a pre-order item (int64): 0 kind (0 tip, 1 internal) · 1 first pre-order column · 2 columns in
# the tile · 3 first pre-order column of the parent · 4 first column of the sibling · 5 matrix · 6 first
# entry · 7 counter to await · 8 its target · 9 counter to raise · 10 first column of this node · 11 longest
# sum · 12 place of the partial derivative · 13 model


@triton.jit
def _entry(entry_parent, entry_sibling, rows, step, longest, TILE: tl.constexpr):
    """One entry of every column: a column of the parent's q (-1: there is none) and one of the sibling."""
    place = rows + step * TILE
    inside = rows * 0 + step < longest
    a = tl.load(entry_parent + place, mask=inside, other=-1)
    return a, tl.load(entry_sibling + place, mask=inside, other=0)


@triton.jit
def _sum_entries(
    u, rows, state, start, longest, above, beside, entry_parent, entry_sibling, WIDTH: tl.constexpr,
    TILE: tl.constexpr,
):  # fmt: skip
    """Add the column's entries from `start` on to u = Σ q_parent ∘ m_sibling: no atomics, a fixed order.

    Two at a time, and the places of the next two are fetched along with them. above: the parent's q,
    beside: the sibling's messages.
    """
    a, b = _entry(entry_parent, entry_sibling, rows, start, longest, TILE)
    a_next, b_next = _entry(entry_parent, entry_sibling, rows, start + 1, longest, TILE)
    for step in range(start, longest, 2):
        x, y = block(above, a, a >= 0, state, WIDTH), block(beside, b, a >= 0, state, WIDTH)
        z, w = (
            block(above, a_next, a_next >= 0, state, WIDTH),
            block(beside, b_next, a_next >= 0, state, WIDTH),
        )
        a, b = _entry(entry_parent, entry_sibling, rows, step + 2, longest, TILE)
        a_next, b_next = _entry(entry_parent, entry_sibling, rows, step + 3, longest, TILE)
        u += x * y
        u += z * w
    return u


@triton.jit
def _tile_whole(
    item, c, columns, pre_columns, counters, messages, shifts, q, u_kept, transition, generator, pre_class,
    entry_parent, entry_sibling, partial, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr, DTYPE: tl.constexpr,
    PRODUCT: tl.constexpr, KEEP_U: tl.constexpr,
):  # fmt: skip
    """q = u P and the partial ⟨Qᵀu, m⟩ of the branch derivative, all states in one block.

    Only q of the parent is awaited, and others only await q: the rest comes before or after. m comes last:
    fetched any earlier, it takes registers that the products want (measured).
    """
    rows, state = tl.arange(0, TILE), tl.arange(0, BLOCK)
    kind, out, n = tl.load(item), tl.load(item + 1), tl.load(item + 2)
    longest = tl.load(item + 11).to(tl.int32)
    ready, target_count, raised = counters_of(item, counters)
    partial += tl.load(item + 12) * C + c
    entry_parent += tl.load(item + 6)
    entry_sibling += tl.load(item + 6)
    live = rows < n
    messages += c * columns * WIDTH
    q += c * pre_columns * WIDTH
    above, beside = q + tl.load(item + 3) * WIDTH, messages + tl.load(item + 4) * WIDTH
    own = tl.load(pre_class + out + rows, mask=live, other=0)
    node = messages + tl.load(item + 10) * WIDTH
    matrix = transition + (tl.load(item + 5) * C + c) * WIDTH * WIDTH
    a, b = _entry(entry_parent, entry_sibling, rows, 0, longest, TILE)
    first = block(beside, b, a >= 0, state, WIDTH)
    shift = tl.load(shifts + c * columns + tl.load(item + 10) + own, mask=live, other=0)
    operand = fetch(matrix, True, WIDTH, BLOCK, DTYPE)
    await_ready(ready, target_count)
    u = block(above, a, a >= 0, state, WIDTH) * first
    if longest > 1:
        u = _sum_entries(u, rows, state, 1, longest, above, beside, entry_parent, entry_sibling, WIDTH, TILE)
    place = rows[:, None] * WIDTH + state[None, :]
    mask = live[:, None] & (state < WIDTH)[None, :]
    if kind == 1:
        passed = times(u, operand, True, WIDTH, TILE, DTYPE, PRODUCT)
        passed = scale_down(passed, shift[:, None], DTYPE)
        tl.store(q + out * WIDTH + place, passed, mask=mask)
        announce(raised)
    if KEEP_U:
        tl.store(u_kept + (c * pre_columns + out) * WIDTH + place, u, mask=mask)
    change = times(u, fetch(generator, True, WIDTH, BLOCK, DTYPE), True, WIDTH, TILE, DTYPE, PRODUCT)
    m = block(node, own, live, state, WIDTH)
    tl.store(partial, tl.sum(change.to(tl.float64) * m.to(tl.float64)))


@triton.jit
def _tile_blocks(
    item, c, chunk, columns, pre_columns, counters, messages, shifts, q, u_kept, transition, generator,
    pre_class, entry_parent, entry_sibling, partial, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, CHUNKS: tl.constexpr, TILE: tl.constexpr,
    DTYPE: tl.constexpr, PRODUCT: tl.constexpr, KEEP_U: tl.constexpr,
):  # fmt: skip
    """The same where the states take CHUNKS blocks: this program writes block `chunk` of every q."""
    rows = tl.arange(0, TILE)
    kind, out, n = tl.load(item), tl.load(item + 1), tl.load(item + 2)
    longest = tl.load(item + 11).to(tl.int32)
    ready, target_count, raised = counters_of(item, counters)
    partial += (tl.load(item + 12) * C + c) * CHUNKS
    entry_parent += tl.load(item + 6)
    entry_sibling += tl.load(item + 6)
    live = rows < n
    messages += c * columns * WIDTH
    q += c * pre_columns * WIDTH
    above, beside = q + tl.load(item + 3) * WIDTH, messages + tl.load(item + 4) * WIDTH
    own = tl.load(pre_class + out + rows, mask=live, other=0)
    matrix = transition + (tl.load(item + 5) * C + c) * WIDTH * WIDTH
    target = chunk * BLOCK + tl.arange(0, BLOCK)
    change = tl.zeros((TILE, BLOCK), DTYPE)
    passed = tl.zeros((TILE, BLOCK), DTYPE)
    derivative = tl.zeros((1,), tl.float64)
    for step in range(CHUNKS):
        state = step * BLOCK + tl.arange(0, BLOCK)
        m = block(messages + tl.load(item + 10) * WIDTH, own, live, state, WIDTH)
        inside = (state < WIDTH)[:, None] & (target < WIDTH)[None, :]
        g = tl.load(generator + (state[:, None] * WIDTH + target[None, :]), mask=inside, other=0.0).to(DTYPE)
        change = tl.dot(m, g, acc=change, input_precision=PRODUCT, out_dtype=DTYPE)
    shift = tl.load(shifts + c * columns + tl.load(item + 10) + own, mask=live, other=0)
    await_ready(ready, target_count)
    place = rows[:, None] * WIDTH + target[None, :]
    mask = live[:, None] & (target < WIDTH)[None, :]
    for step in range(CHUNKS):
        state = step * BLOCK + tl.arange(0, BLOCK)
        u = tl.zeros((TILE, BLOCK), DTYPE)
        u = _sum_entries(u, rows, state, 0, longest, above, beside, entry_parent, entry_sibling, WIDTH, TILE)
        if step == chunk:
            derivative += tl.sum(u.to(tl.float64) * change.to(tl.float64))
            if KEEP_U:
                tl.store(u_kept + (c * pre_columns + out) * WIDTH + place, u, mask=mask)
        if kind == 1:
            inside = (state < WIDTH)[:, None] & (target < WIDTH)[None, :]
            p = tl.load(matrix + (target[None, :] * WIDTH + state[:, None]), mask=inside, other=0.0)
            passed = tl.dot(u, p, acc=passed, input_precision=PRODUCT, out_dtype=DTYPE)
    if kind == 1:
        passed = scale_down(passed, shift[:, None], DTYPE)
        tl.store(q + out * WIDTH + place, passed, mask=mask)
    tl.store(partial + chunk + tl.arange(0, 1), derivative)
    announce(raised)


@triton.jit
def preorder(
    items, sizes, counters, messages, shifts, q, u_kept, transition, process, R, generators, pre_class,
    entry_parent, entry_sibling, partial, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, CHUNKS: tl.constexpr, TILE: tl.constexpr,
    DTYPE: tl.constexpr, PRODUCT: tl.constexpr, KEEP_U: tl.constexpr,
):  # fmt: skip
    """Every item from the root's children to the tips in one launch (reference/recursion.py, schedule.py).

    sizes: 0 columns, 2 pre-order columns, 3 items. q, u_kept: (C, pre-order columns, WIDTH).
    partial: float64, one derivative for each item, category and chunk; generators: (models, R,
    WIDTH, WIDTH) float64, Qᵀ of every process; process: (models, C) int64, numbers below R.
    """
    columns, pre_columns = tl.load(sizes), tl.load(sizes + 2)
    parts = C * CHUNKS
    n_steps = tl.load(sizes + 3) * parts
    step = next_step(counters + 1)
    while step < n_steps:
        following = next_step(counters + 1)
        item = items + (step // parts) * 16
        c = (step % parts) // CHUNKS
        generator = generators + process_of(process, R, tl.load(item + 13), c, C) * WIDTH * WIDTH
        if CHUNKS == 1:
            _tile_whole(item, c, columns, pre_columns, counters, messages, shifts, q, u_kept, transition,
                        generator, pre_class, entry_parent, entry_sibling, partial, C, WIDTH, BLOCK, TILE,
                        DTYPE, PRODUCT, KEEP_U)  # fmt: skip
        else:
            _tile_blocks(item, c, step % CHUNKS, columns, pre_columns, counters, messages, shifts, q, u_kept,
                         transition, generator, pre_class, entry_parent, entry_sibling, partial, C, WIDTH,
                         BLOCK, CHUNKS, TILE, DTYPE, PRODUCT, KEEP_U)  # fmt: skip
        step = following
