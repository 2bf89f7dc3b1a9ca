"""The pre-order pass: one tile of columns of the branch above one node and one category a step."""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.kernels.triton.scaling import scale_down
from phloem.kernels.triton.schedule import announce, await_ready

# Columns of a pre-order item (int64): 0 kind (0 tip, 1 internal) · 1 first pre-order column · 2 columns in the
# tile · 3 first pre-order column of the parent · 4 first column of the sibling · 5 matrix · 6 first entry ·
# 7 counter to await · 8 its target · 9 counter to raise · 10 first column of this node · 11 longest sum ·
# 12 place of the partial derivative · 13 model


@triton.jit
def gather_sum(
    item, columns, rows, state, q, messages, entry_parent, entry_sibling,
    WIDTH: tl.constexpr, TILE: tl.constexpr, UNROLL: tl.constexpr, DTYPE: tl.constexpr,
):  # fmt: skip
    """u[column, state] = Σ over the column's entries of q_parent ∘ m_sibling: no atomics, a fixed order."""
    entries = tl.load(item + 6) + rows
    parent, sibling = tl.load(item + 3), tl.load(item + 4)
    longest = tl.load(item + 11).to(tl.int32)
    u = tl.zeros((rows.shape[0], state.shape[0]), DTYPE)
    for start in range(0, longest, UNROLL):
        for ahead in tl.static_range(UNROLL):
            place = entries + (start + ahead) * TILE
            inside = rows * 0 + start + ahead < longest
            a = tl.load(entry_parent + place, mask=inside, other=-1).to(tl.int64)
            b = tl.load(entry_sibling + place, mask=inside, other=0).to(tl.int64)
            inside = (a >= 0)[:, None] & (state < WIDTH)[None, :]
            x = tl.load(q + (parent + a)[:, None] * WIDTH + state[None, :], mask=inside, other=0.0)
            y = tl.load(messages + (sibling + b)[:, None] * WIDTH + state[None, :], mask=inside, other=0.0)
            u += x * y
    return u


@triton.jit
def _tile(
    item, c, chunk, columns, pre_columns, messages, shifts, q, u_kept, transition, generator, pre_class,
    entry_parent, entry_sibling, partial, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, CHUNKS: tl.constexpr, TILE: tl.constexpr, UNROLL: tl.constexpr,
    DTYPE: tl.constexpr, PRODUCT: tl.constexpr, KEEP_U: tl.constexpr,
):  # fmt: skip
    """q = u P and the partial ⟨u, Q m⟩ of the branch derivative."""
    rows = tl.arange(0, TILE)
    live = rows < tl.load(item + 2)
    messages += c * columns * WIDTH
    q += c * pre_columns * WIDTH
    u_kept += c * pre_columns * WIDTH
    own = tl.load(pre_class + tl.load(item + 1) + rows, mask=live, other=0).to(tl.int64) + tl.load(item + 10)
    matrix = transition + (tl.load(item + 5) * C + c) * WIDTH * WIDTH
    generator += tl.load(item + 13) * WIDTH * WIDTH
    out = tl.load(item + 1) + rows
    target = chunk * BLOCK + tl.arange(0, BLOCK)
    change = tl.zeros((TILE, BLOCK), DTYPE)
    passed = tl.zeros((TILE, BLOCK), DTYPE)
    derivative = tl.zeros((1,), tl.float64)
    for step in tl.static_range(CHUNKS):
        state = step * BLOCK + tl.arange(0, BLOCK)
        inside = live[:, None] & (state < WIDTH)[None, :]
        m = tl.load(messages + own[:, None] * WIDTH + state[None, :], mask=inside, other=0.0)
        inside = (state < WIDTH)[:, None] & (target < WIDTH)[None, :]
        g = tl.load(generator + state[:, None] * WIDTH + target[None, :], mask=inside, other=0.0).to(DTYPE)
        change = tl.dot(m, g, acc=change, input_precision=PRODUCT, out_dtype=DTYPE)
    for step in tl.static_range(CHUNKS):
        state = step * BLOCK + tl.arange(0, BLOCK)
        u = gather_sum(item, columns, rows, state, q, messages, entry_parent, entry_sibling,
                       WIDTH, TILE, UNROLL, DTYPE)  # fmt: skip
        if step == chunk:
            derivative += tl.sum(tl.sum(u.to(tl.float64) * change.to(tl.float64), axis=1), axis=0)
            if KEEP_U:
                place = u_kept + out[:, None] * WIDTH + target[None, :]
                tl.store(place, u, mask=live[:, None] & (target < WIDTH)[None, :])
        if tl.load(item) == 1:
            inside = (state < WIDTH)[:, None] & (target < WIDTH)[None, :]
            p = tl.load(matrix + target[None, :] * WIDTH + state[:, None], mask=inside, other=0.0)
            passed = tl.dot(u, p, acc=passed, input_precision=PRODUCT, out_dtype=DTYPE)
    if tl.load(item) == 1:
        shift = tl.load(shifts + c * columns + own, mask=live, other=0)
        passed = scale_down(passed, shift[:, None], DTYPE)
        place = q + out[:, None] * WIDTH + target[None, :]
        tl.store(place, passed, mask=live[:, None] & (target < WIDTH)[None, :])
    place = partial + (tl.load(item + 12) * C + c) * CHUNKS + chunk + tl.arange(0, 1)
    tl.store(place, derivative)


@triton.jit
def _entry_4(
    item, rows, step, longest, parent, sibling, q, messages, entry_parent, entry_sibling, TILE: tl.constexpr
):
    """Addresses of one entry of every column: the parent's q and the sibling's message."""
    place = tl.load(item + 6) + rows + step * TILE
    inside = rows * 0 + step < longest
    a = tl.load(entry_parent + place, mask=inside, other=-1).to(tl.int64)
    b = tl.load(entry_sibling + place, mask=inside, other=0).to(tl.int64)
    return a >= 0, q + (parent + a) * 4, messages + (sibling + b) * 4


@triton.jit
def _tile_4(
    item, c, columns, pre_columns, messages, shifts, q, u_kept, transition, generator, pre_class,
    entry_parent, entry_sibling, partial, C,
    TILE: tl.constexpr, UNROLL: tl.constexpr, DTYPE: tl.constexpr, KEEP_U: tl.constexpr,
):  # fmt: skip
    """The same for four states or fewer, each a vector of columns."""
    rows = tl.arange(0, TILE)
    live = rows < tl.load(item + 2)
    messages += c * columns * 4
    q += c * pre_columns * 4
    own = tl.load(pre_class + tl.load(item + 1) + rows, mask=live, other=0).to(tl.int64) + tl.load(item + 10)
    m0 = tl.load(messages + own * 4, mask=live, other=0.0)
    m1 = tl.load(messages + own * 4 + 1, mask=live, other=0.0)
    m2 = tl.load(messages + own * 4 + 2, mask=live, other=0.0)
    m3 = tl.load(messages + own * 4 + 3, mask=live, other=0.0)
    parent, sibling = tl.load(item + 3), tl.load(item + 4)
    longest = tl.load(item + 11).to(tl.int32)
    u0 = tl.zeros((TILE,), DTYPE)
    u1, u2, u3 = u0, u0, u0
    for start in range(0, longest, UNROLL):
        for ahead in tl.static_range(UNROLL):
            inside, x, y = _entry_4(item, rows, start + ahead, longest, parent, sibling, q, messages,
                                    entry_parent, entry_sibling, TILE)  # fmt: skip
            u0 += tl.load(x, mask=inside, other=0.0) * tl.load(y, mask=inside, other=0.0)
            u1 += tl.load(x + 1, mask=inside, other=0.0) * tl.load(y + 1, mask=inside, other=0.0)
            u2 += tl.load(x + 2, mask=inside, other=0.0) * tl.load(y + 2, mask=inside, other=0.0)
            u3 += tl.load(x + 3, mask=inside, other=0.0) * tl.load(y + 3, mask=inside, other=0.0)
    g = generator + tl.load(item + 13) * 16
    change = tl.zeros((TILE,), tl.float64)
    for i in tl.static_range(4):
        u = u0 if i == 0 else (u1 if i == 1 else (u2 if i == 2 else u3))
        rate = m0 * tl.load(g + i).to(DTYPE) + m1 * tl.load(g + 4 + i).to(DTYPE)
        rate += m2 * tl.load(g + 8 + i).to(DTYPE) + m3 * tl.load(g + 12 + i).to(DTYPE)
        change += u.to(tl.float64) * rate.to(tl.float64)
    tl.store(partial + tl.load(item + 12) * C + c, tl.sum(change, axis=0))
    out = (tl.load(item + 1) + rows) * 4
    if KEEP_U:
        kept = u_kept + c * pre_columns * 4 + out
        tl.store(kept, u0, mask=live)
        tl.store(kept + 1, u1, mask=live)
        tl.store(kept + 2, u2, mask=live)
        tl.store(kept + 3, u3, mask=live)
    if tl.load(item) == 1:
        shift = tl.load(shifts + c * columns + own, mask=live, other=0)
        matrix = transition + (tl.load(item + 5) * C + c) * 16
        for j in tl.static_range(4):
            passed = u0 * tl.load(matrix + j * 4) + u1 * tl.load(matrix + j * 4 + 1)
            passed += u2 * tl.load(matrix + j * 4 + 2) + u3 * tl.load(matrix + j * 4 + 3)
            tl.store(q + out + j, scale_down(passed, shift, DTYPE), mask=live)


@triton.jit
def preorder(
    items, sizes, counters, messages, shifts, q, u_kept, transition, generator, pre_class, entry_parent,
    entry_sibling, partial, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, CHUNKS: tl.constexpr, TILE: tl.constexpr, UNROLL: tl.constexpr,
    DTYPE: tl.constexpr, PRODUCT: tl.constexpr, KEEP_U: tl.constexpr,
):  # fmt: skip
    """Every item from the root's children to the tips in one launch (reference/preorder.py, schedule.py).

    sizes: 0 columns, 2 pre-order columns, 3 items. q, u_kept: (C, pre-order columns, WIDTH).
    partial: float64, one derivative for each item, category and chunk; generator: Qᵀ of each model, float64.
    """
    columns, pre_columns = tl.load(sizes), tl.load(sizes + 2)
    parts = C * CHUNKS
    n_steps = tl.load(sizes + 3) * parts
    step = tl.atomic_add(counters + 1, 1).to(tl.int64)
    while step < n_steps:
        item = items + (step // parts) * 16
        c, chunk = (step % parts) // CHUNKS, step % CHUNKS
        await_ready(counters, item, 7)
        if WIDTH == 4:
            _tile_4(item, c, columns, pre_columns, messages, shifts, q, u_kept, transition, generator, pre_class,
                    entry_parent, entry_sibling, partial, C, TILE, UNROLL, DTYPE, KEEP_U)  # fmt: skip
        else:
            _tile(item, c, chunk, columns, pre_columns, messages, shifts, q, u_kept, transition, generator,
                  pre_class, entry_parent, entry_sibling, partial, C, WIDTH, BLOCK, CHUNKS, TILE, UNROLL, DTYPE,
                  PRODUCT, KEEP_U)  # fmt: skip
        announce(counters, item, 9)
        step = tl.atomic_add(counters + 1, 1).to(tl.int64)
