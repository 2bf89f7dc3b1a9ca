"""Derivatives of every root column's likelihood in every branch length (reference/recursion.py).

A program takes a tile of root columns in one category from the root to the tips. Every column keeps a
pre-order vector of its own; only messages are shared, by class. The vectors of the nodes whose children are
still to come lie in a few slots (pruning/gpu/sites.py orders the walk so that log2(tips) + 2 suffice), which
stay in the second-level cache.
"""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.pruning.gpu.kernels.postorder import block
from phloem.pruning.gpu.kernels.product import fetch, scale_down, times
from phloem.pruning.gpu.kernels.root import two_sum

# A step of the walk, one a branch (int64): 0 kind (0 tip, 1 internal) · 1 whether it is its parent's left
# child · 2, 3 slot of the parent and of the node itself · 4 the parent's place in the class arrays · 5, 6
# first column of the node's and of its sibling's message · 7 matrix · 8 node


@triton.jit
def _start(
    c, column, live, first, columns, exponents, shifts, mantissa, power, frequencies, weight, q, slot_class,
    rows, WIDTH: tl.constexpr, BLOCK: tl.constexpr, CHUNKS: tl.constexpr, DTYPE: tl.constexpr,
):  # fmt: skip
    """q of the root in slot 0: 1 / L · weight · π, its own shift applied, as root.root_adjoint."""
    place = c * columns + first + column
    down = tl.load(power + column, mask=live, other=0) - tl.load(exponents + place, mask=live, other=0)
    scale = weight / tl.load(mantissa + column, mask=live, other=1.0)
    scale = scale_down(scale, tl.minimum(tl.maximum(down, -1000), 1900), tl.float64)
    shift = tl.load(shifts + place, mask=live, other=0)
    for step in tl.static_range(CHUNKS):
        state = step * BLOCK + tl.arange(0, BLOCK)
        f = tl.load(frequencies + state, mask=state < WIDTH, other=0.0)
        value = scale_down(scale[:, None] * f[None, :], shift[:, None], tl.float64).to(DTYPE)
        mask = live[:, None] & (state < WIDTH)[None, :]
        tl.store(q + (rows[:, None] * WIDTH + state[None, :]), value, mask=mask)
    tl.store(slot_class + rows, column.to(tl.int32), mask=live)


@triton.jit
def _whole(
    kind, above, beside, m_own, matrix, generator, own, other, out, shift, rows, live, ratio, ratio_stride,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr, DTYPE: tl.constexpr,
    PRODUCT: tl.constexpr, SECOND: tl.constexpr,
):  # fmt: skip
    """One branch, all states in one block: ⟨Qᵀu, m⟩, ⟨(Q²)ᵀu, m⟩ and q = Pᵀu."""
    state = tl.arange(0, BLOCK)
    u = block(above, rows, live, state, WIDTH) * block(beside, other, live, state, WIDTH)
    m = block(m_own, own, live, state, WIDTH).to(tl.float64)
    change = times(u, fetch(generator, True, WIDTH, BLOCK, DTYPE), True, WIDTH, TILE, DTYPE, PRODUCT)
    tl.store(ratio, tl.sum(change.to(tl.float64) * m, axis=1), mask=live)
    if SECOND:
        square = fetch(generator + WIDTH * WIDTH, True, WIDTH, BLOCK, DTYPE)
        change = times(u, square, True, WIDTH, TILE, DTYPE, PRODUCT)
        tl.store(ratio + ratio_stride, tl.sum(change.to(tl.float64) * m, axis=1), mask=live)
    if kind == 1:
        passed = times(u, fetch(matrix, True, WIDTH, BLOCK, DTYPE), True, WIDTH, TILE, DTYPE, PRODUCT)
        passed = scale_down(passed, shift[:, None], DTYPE)
        mask = live[:, None] & (state < WIDTH)[None, :]
        tl.store(out + (rows[:, None] * WIDTH + state[None, :]), passed, mask=mask)


@triton.jit
def _operand(matrix, step, target, WIDTH: tl.constexpr, BLOCK: tl.constexpr, DTYPE: tl.constexpr):
    """A block of the transpose of a stored matrix, rows `step`, columns `target`."""
    state, other = step * BLOCK + tl.arange(0, BLOCK), target * BLOCK + tl.arange(0, BLOCK)
    inside = (state < WIDTH)[:, None] & (other < WIDTH)[None, :]
    return tl.load(matrix + (other[None, :] * WIDTH + state[:, None]), mask=inside, other=0.0).to(DTYPE)


@triton.jit
def _in_blocks(
    kind, above, beside, m_own, matrix, generator, own, other, out, shift, rows, live, ratio, ratio_stride,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, CHUNKS: tl.constexpr, TILE: tl.constexpr, DTYPE: tl.constexpr,
    PRODUCT: tl.constexpr, SECOND: tl.constexpr,
):  # fmt: skip
    """The same where the states take CHUNKS blocks."""
    slope, curve = (rows * 0).to(tl.float64), (rows * 0).to(tl.float64)
    for target in range(CHUNKS):
        change, bend = tl.zeros((TILE, BLOCK), DTYPE), tl.zeros((TILE, BLOCK), DTYPE)
        passed = tl.zeros((TILE, BLOCK), DTYPE)
        for step in range(CHUNKS):
            state = step * BLOCK + tl.arange(0, BLOCK)
            u = block(above, rows, live, state, WIDTH) * block(beside, other, live, state, WIDTH)
            g = _operand(generator, step, target, WIDTH, BLOCK, DTYPE)
            change = tl.dot(u, g, acc=change, input_precision=PRODUCT, out_dtype=DTYPE)
            if SECOND:
                g = _operand(generator + WIDTH * WIDTH, step, target, WIDTH, BLOCK, DTYPE)
                bend = tl.dot(u, g, acc=bend, input_precision=PRODUCT, out_dtype=DTYPE)
            if kind == 1:
                p = _operand(matrix, step, target, WIDTH, BLOCK, DTYPE)
                passed = tl.dot(u, p, acc=passed, input_precision=PRODUCT, out_dtype=DTYPE)
        state = target * BLOCK + tl.arange(0, BLOCK)
        m = block(m_own, own, live, state, WIDTH).to(tl.float64)
        slope += tl.sum(change.to(tl.float64) * m, axis=1)
        curve += tl.sum(bend.to(tl.float64) * m, axis=1)
        if kind == 1:
            passed = scale_down(passed, shift[:, None], DTYPE)
            mask = live[:, None] & (state < WIDTH)[None, :]
            tl.store(out + (rows[:, None] * WIDTH + state[None, :]), passed, mask=mask)
    tl.store(ratio, slope, mask=live)
    if SECOND:
        tl.store(ratio + ratio_stride, curve, mask=live)


@triton.jit
def site_ratios(
    walk, sizes, messages, exponents, shifts, left_class, right_class, mantissa, power, process,
    frequencies, weights, generator, transition, q, slot_class, ratios, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, CHUNKS: tl.constexpr, TILE: tl.constexpr, DTYPE: tl.constexpr,
    PRODUCT: tl.constexpr, SECOND: tl.constexpr,
):  # fmt: skip
    """⟨u, Q m⟩ and ⟨u, Q² m⟩ of every branch, category and root column from the first one asked for.

    sizes: int64, 0 columns in all · 1 steps · 2 slots · 3 nodes · 4 first root column asked for · 5 number of
    them · 6 first column of the root. process: (C,) numbers of processes; frequencies: (R, WIDTH),
    weights (C,), generator: (R, 2, WIDTH, WIDTH), Qᵀ and (Q²)ᵀ.
    mantissa, power: of all root columns. Scratch: q (programs, slots, TILE, WIDTH) and slot_class, the same
    without states. ratios: out, (1 + SECOND, C, nodes, columns asked for), the root's rows left alone.
    Grid: (tiles, C).
    """
    c, n_steps, n_slots = tl.program_id(1), tl.load(sizes + 1), tl.load(sizes + 2)
    columns, n_nodes, n_sites = tl.load(sizes), tl.load(sizes + 3), tl.load(sizes + 5)
    rows = tl.arange(0, TILE)
    site = tl.program_id(0) * TILE + rows
    live = site < n_sites
    program = (tl.program_id(0) * C + c).to(tl.int64) * n_slots * TILE
    q += program * WIDTH
    slot_class += program
    of_process = tl.load(process + c)
    generator += of_process * 2 * WIDTH * WIDTH
    _start(c, tl.load(sizes + 4) + site, live, tl.load(sizes + 6), columns, exponents, shifts, mantissa,
           power, frequencies + of_process * WIDTH, tl.load(weights + c), q, slot_class, rows, WIDTH, BLOCK,
           CHUNKS,
           DTYPE)  # fmt: skip
    messages += c * columns * WIDTH
    shifts += c * columns
    for number in range(n_steps):
        item = walk + number * 16
        kind, is_left, parent, slot = (
            tl.load(item),
            tl.load(item + 1),
            tl.load(item + 2),
            tl.load(item + 3),
        )
        tl.debug_barrier()
        at = tl.load(slot_class + parent * TILE + rows, mask=live, other=0)
        a = tl.load(left_class + tl.load(item + 4) + at, mask=live, other=0)
        b = tl.load(right_class + tl.load(item + 4) + at, mask=live, other=0)
        own, other = tl.where(is_left != 0, a, b), tl.where(is_left != 0, b, a)
        shift = tl.load(shifts + tl.load(item + 5) + own, mask=live, other=0)
        ratio = ratios + (c * n_nodes + tl.load(item + 8)) * n_sites + site
        above, out = q + parent * TILE * WIDTH, q + slot * TILE * WIDTH
        m_own, beside = messages + tl.load(item + 5) * WIDTH, messages + tl.load(item + 6) * WIDTH
        matrix = transition + (tl.load(item + 7) * C + c) * WIDTH * WIDTH
        if CHUNKS == 1:
            _whole(kind, above, beside, m_own, matrix, generator, own, other, out, shift, rows, live, ratio,
                   C * n_nodes * n_sites, WIDTH, BLOCK, TILE, DTYPE, PRODUCT, SECOND)  # fmt: skip
        else:
            _in_blocks(kind, above, beside, m_own, matrix, generator, own, other, out, shift, rows, live,
                       ratio, C * n_nodes * n_sites, WIDTH, BLOCK, CHUNKS, TILE, DTYPE, PRODUCT,
                       SECOND)  # fmt: skip
        if kind == 1:
            tl.store(slot_class + slot * TILE + rows, own, mask=live)


@triton.jit
def second_sums(
    ratios, rates, column_weights, ascertained, site_log, sums, n_sites, n_nodes, C, LANES: tl.constexpr,
):  # fmt: skip
    """Σ w (L''/L - (L'/L)²), and Σ L', Σ L'' over ascertained columns, compensated, in a fixed order.

    ratios: of site_ratios; column_weights, ascertained, site_log: of the same root columns. sums: out,
    (nodes, 3) float64. Grid: branches.
    """
    node = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, LANES)
    high = tl.zeros((LANES,), tl.float64)
    low, slope_high, slope_low, curve_high, curve_low = high, high, high, high, high
    for start in range(0, n_sites, LANES):
        site = start + lane
        live = site < n_sites
        first, second = tl.zeros((LANES,), tl.float64), tl.zeros((LANES,), tl.float64)
        for c in range(C):
            rate = tl.load(rates + c)
            place = ratios + (c * n_nodes + node) * n_sites + site
            first += rate * tl.load(place, mask=live, other=0.0)
            place += C * n_nodes.to(tl.int64) * n_sites
            second += rate * rate * tl.load(place, mask=live, other=0.0)
        weight = tl.load(column_weights + site, mask=live, other=0.0)
        high, low = two_sum(high, low, weight * (second - first * first), weight * 0)
        hidden = tl.load(ascertained + site, mask=live, other=0) != 0
        share = tl.where(hidden, tl.exp(tl.load(site_log + site, mask=live, other=0.0)), 0.0)
        slope_high, slope_low = two_sum(slope_high, slope_low, share * first, weight * 0)
        curve_high, curve_low = two_sum(curve_high, curve_low, share * second, weight * 0)
    high, low = tl.reduce((high, low), 0, two_sum)
    slope_high, slope_low = tl.reduce((slope_high, slope_low), 0, two_sum)
    curve_high, curve_low = tl.reduce((curve_high, curve_low), 0, two_sum)
    tl.store(sums + node * 3, high + low)
    tl.store(sums + node * 3 + 1, slope_high + slope_low)
    tl.store(sums + node * 3 + 2, curve_high + curve_low)
