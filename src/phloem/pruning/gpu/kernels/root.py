"""At the root: site likelihoods, and what starts the pre-order pass."""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.pruning.gpu.kernels.postorder import block, exponents_below, node_columns
from phloem.pruning.gpu.kernels.scaling import magnitude, power_of_two, rescale_shift, scale_down
from phloem.pruning.gpu.kernels.transition import process_of

# A root item has the columns of a post-order item, and 10 first pre-order column · 13 model · 14 chain


@triton.jit
def _root_partials(item, messages, left, right, state, live, WIDTH: tl.constexpr):
    p = block(messages + tl.load(item + 3) * WIDTH, left, live, state, WIDTH)
    return p * block(messages + tl.load(item + 4) * WIDTH, right, live, state, WIDTH)


@triton.jit
def _category(
    item, c, columns, rows, live, left, right, messages, exponents, shifts, frequencies,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, CHUNKS: tl.constexpr, DTYPE: tl.constexpr, KEEP: tl.constexpr,
):  # fmt: skip
    """Σ_s π_s p[s] of one category (float64) and its exponent; keeps p itself where asked for."""
    messages += c * columns * WIDTH
    largest = rows * 0
    for step in tl.static_range(CHUNKS):
        state = step * BLOCK + tl.arange(0, BLOCK)
        p = _root_partials(item, messages, left, right, state, live, WIDTH)
        largest = tl.maximum(largest, tl.max(magnitude(p, DTYPE), axis=1))
    shift = rescale_shift(largest, DTYPE)
    value = (rows * 0).to(tl.float64)
    for step in tl.static_range(CHUNKS):
        state = step * BLOCK + tl.arange(0, BLOCK)
        p = _root_partials(item, messages, left, right, state, live, WIDTH)
        p = scale_down(p, shift[:, None], DTYPE)
        f = tl.load(frequencies + state, mask=state < WIDTH, other=0.0)
        value += tl.sum(p.to(tl.float64) * f[None, :], axis=1)
        if KEEP:
            place = messages + (tl.load(item + 1) + rows)[:, None] * WIDTH + state[None, :]
            tl.store(place, p, mask=live[:, None] & (state < WIDTH)[None, :])
    place = tl.load(item + 1) + rows
    exponent = (
        exponents_below(live, left, right, tl.load(item + 3), tl.load(item + 4), exponents + c * columns)
        + shift
    )
    tl.store(exponents + c * columns + place, exponent, mask=live)
    tl.store(shifts + c * columns + place, shift, mask=live)
    return value, exponent


@triton.jit
def _fold(total, top, value, exponent):
    """Add value · 2**exponent to total · 2**top."""
    larger = tl.where(value > 0, tl.maximum(top, exponent), top)
    down = power_of_two(tl.maximum(top - larger, -1023), tl.float64)
    up = power_of_two(tl.maximum(tl.where(value > 0, exponent - larger, 0), -1023), tl.float64)
    return total * down + value * up, larger


@triton.jit
def _write_q(
    item, c, sizes, rows, live, scale, top, exponents, shifts, frequencies, weight, q,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, CHUNKS: tl.constexpr, DTYPE: tl.constexpr,
):  # fmt: skip
    """q[column, state] = scale · 2**(exponent - top) · weight · π, less the root's own shift."""
    columns, pre_columns = tl.load(sizes), tl.load(sizes + 2)
    column = c * columns + tl.load(item + 1) + rows
    down = top - tl.load(exponents + column, mask=live, other=0)
    scale = scale_down(scale * weight, tl.minimum(tl.maximum(down, -1000), 1900), tl.float64)
    shift = tl.load(shifts + column, mask=live, other=0)
    out = q + (c * pre_columns + tl.load(item + 10) + rows)[:, None] * WIDTH
    for step in tl.static_range(CHUNKS):
        state = step * BLOCK + tl.arange(0, BLOCK)
        f = tl.load(frequencies + state, mask=state < WIDTH, other=0.0)
        value = scale_down(scale[:, None] * f[None, :], shift[:, None], tl.float64).to(DTYPE)
        tl.store(out + state[None, :], value, mask=live[:, None] & (state < WIDTH)[None, :])


@triton.jit
def root_tile(
    item, sizes, columns, messages, exponents, shifts, left_class, right_class, process, R, frequencies,
    weights, invariant,
    invariant_frequencies, invariant_states, column_weights, mantissa, power, site_log, q, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, CHUNKS: tl.constexpr, TILE: tl.constexpr, DTYPE: tl.constexpr,
    UNROLL: tl.constexpr, KEEP: tl.constexpr, ADJOINT: tl.constexpr,
):  # fmt: skip
    """One root item of site_likelihoods. sizes: only for ADJOINT."""
    rows = tl.arange(0, TILE)
    live, left, right = node_columns(item, rows, left_class, right_class)
    model = tl.load(item + 13)
    f = invariant_frequencies + model * WIDTH
    place = tl.load(item + 12) + rows
    share = tl.load(invariant + model)
    total = (rows * 0).to(tl.float64)
    top = rows * 0 - 1000000000
    if share > 0:
        for step in tl.static_range(CHUNKS):
            state = step * BLOCK + tl.arange(0, BLOCK)
            inside = live[:, None] & (state < WIDTH)[None, :]
            allowed = tl.load(
                invariant_states + place[:, None] * WIDTH + state[None, :], mask=inside, other=0
            )
            frequency = tl.load(f + state, mask=state < WIDTH, other=0.0)
            total += share * tl.sum(allowed.to(tl.float64) * frequency[None, :], axis=1)
        top = tl.where(total > 0, 0, top)
    for start in range(0, C, UNROLL):
        for ahead in tl.static_range(UNROLL):
            c = start + ahead
            there = live & (rows * 0 + c < C)
            of_process = frequencies + process_of(process, R, model, tl.minimum(c, C - 1), C) * WIDTH
            value, exponent = _category(item, c, columns, rows, there, left, right, messages, exponents,
                                        shifts, of_process, WIDTH, BLOCK, CHUNKS, DTYPE, KEEP)  # fmt: skip
            weight = tl.load(weights + model * C + c, mask=c < C, other=0.0)
            total, top = _fold(total, top, value * weight, exponent)
    if ADJOINT:
        tl.debug_barrier()
        weight = tl.load(column_weights + place, mask=live, other=0.0)
        scale = weight / tl.where(live, total, 1.0)
        for c in range(C):
            of_process = frequencies + process_of(process, R, model, c, C) * WIDTH
            _write_q(item, c, sizes, rows, live, scale, top, exponents, shifts, of_process,
                     tl.load(weights + model * C + c), q, WIDTH, BLOCK, CHUNKS, DTYPE)  # fmt: skip
    tl.store(mantissa + place, total, mask=live)
    tl.store(power + place, top, mask=live)
    tl.store(site_log + place, tl.log(total) + top.to(tl.float64) * 0.6931471805599453, mask=live)


@triton.jit
def site_likelihoods(
    items, sizes, messages, exponents, shifts, left_class, right_class, process, R, frequencies, weights,
    invariant,
    invariant_frequencies, invariant_states, column_weights, mantissa, power, site_log, q, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, CHUNKS: tl.constexpr, TILE: tl.constexpr, DTYPE: tl.constexpr,
    UNROLL: tl.constexpr, KEEP: tl.constexpr, ADJOINT: tl.constexpr,
):  # fmt: skip
    """L = mantissa · 2**power of every root column, and log L (reference/root.py). Grid: root items.

    ADJOINT: also what root_adjoint does, where no pattern is ascertained and the weights are thus known.

    frequencies: (models, R, WIDTH), weights: (models, C), invariant: (models,), invariant_frequencies:
    (models, WIDTH) float64; process: (models, C) int64, numbers below R.
    """
    root_tile(
        items + tl.program_id(0).to(tl.int64) * 16, sizes, tl.load(sizes), messages, exponents, shifts,
        left_class,
        right_class, process, R, frequencies, weights, invariant, invariant_frequencies, invariant_states,
        column_weights, mantissa, power, site_log,
        q, C, WIDTH, BLOCK, CHUNKS, TILE, DTYPE, UNROLL, KEEP, ADJOINT,
    )  # fmt: skip


@triton.jit
def root_adjoint(
    items, sizes, exponents, shifts, process, R, frequencies, weights, column_weights, ascertained,
    mantissa, power,
    site_log, result, stride, q, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, CHUNKS: tl.constexpr, TILE: tl.constexpr, DTYPE: tl.constexpr,
    ASCERTAINED: tl.constexpr,
):  # fmt: skip
    """q of the root with its own shift applied, as the children's sums want it. Grid: (root items, C)."""
    item = items + tl.program_id(0).to(tl.int64) * 16
    c = tl.program_id(1)
    rows = tl.arange(0, TILE)
    live = rows < tl.load(item + 2)
    place = tl.load(item + 12) + rows
    model = tl.load(item + 13)
    weight = tl.load(column_weights + place, mask=live, other=0.0)
    if ASCERTAINED:
        hidden = tl.load(ascertained + place, mask=live, other=0) != 0
        factor = tl.load(result + tl.load(item + 14) * stride + 1)
        weight += tl.where(hidden, factor * tl.exp(tl.load(site_log + place, mask=live, other=0.0)), 0.0)
    scale = weight / tl.load(mantissa + place, mask=live, other=1.0)
    top = tl.load(power + place, mask=live, other=0)
    of_process = frequencies + process_of(process, R, model, c, C) * WIDTH
    _write_q(item, c, sizes, rows, live, scale, top, exponents, shifts, of_process,
             tl.load(weights + model * C + c), q, WIDTH, BLOCK, CHUNKS, DTYPE)  # fmt: skip
