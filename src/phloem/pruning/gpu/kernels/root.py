"""At the root: site likelihoods, what starts the pre-order pass, and totals."""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.pruning.gpu.kernels.postorder import block, exponents_below, node_columns
from phloem.pruning.gpu.kernels.product import magnitude, power_of_two, rescale_shift, scale_down
from phloem.pruning.gpu.kernels.transition import process_of

# At the root: site likelihoods, and what starts the pre-order pass.


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
    item, live, left, right, sizes, columns, messages, exponents, shifts, process, R, frequencies,
    weights, invariant, invariant_frequencies, invariant_states, column_weights, mantissa, power, site_log,
    q, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, CHUNKS: tl.constexpr, TILE: tl.constexpr, DTYPE: tl.constexpr,
    UNROLL: tl.constexpr, KEEP: tl.constexpr, ADJOINT: tl.constexpr,
):  # fmt: skip
    """One root item of site_likelihoods. live, left, right: node_columns. sizes: only for ADJOINT."""
    rows = tl.arange(0, TILE)
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
    """L = mantissa · 2**power of every root column, and log L (reference/recursion.py). Grid: root items.

    ADJOINT: also what root_adjoint does, where no pattern is ascertained and the weights are thus known.

    frequencies: (models, R, WIDTH), weights: (models, C), invariant: (models,), invariant_frequencies:
    (models, WIDTH) float64; process: (models, C) int64, numbers below R.
    """
    item = items + tl.program_id(0).to(tl.int64) * 16
    live, left, right = node_columns(item, tl.arange(0, TILE), left_class, right_class)
    root_tile(
        item, live, left, right, sizes, tl.load(sizes), messages, exponents, shifts, process, R, frequencies,
        weights, invariant, invariant_frequencies, invariant_states, column_weights, mantissa, power,
        site_log, q, C, WIDTH, BLOCK, CHUNKS, TILE, DTYPE, UNROLL, KEEP, ADJOINT,
    )  # fmt: skip


@triton.jit
def root_q(
    item, c, sizes, exponents, shifts, process, R, frequencies, weights, column_weights, ascertained,
    mantissa, power, site_log, result, stride, q, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, CHUNKS: tl.constexpr, TILE: tl.constexpr, DTYPE: tl.constexpr,
    ASCERTAINED: tl.constexpr,
):  # fmt: skip
    """q of one tile of a root and one category, with its own shift applied."""
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


@triton.jit
def root_adjoint(
    items, sizes, exponents, shifts, process, R, frequencies, weights, column_weights, ascertained,
    mantissa, power,
    site_log, result, stride, q, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, CHUNKS: tl.constexpr, TILE: tl.constexpr, DTYPE: tl.constexpr,
    ASCERTAINED: tl.constexpr,
):  # fmt: skip
    """q of the root with its own shift applied, as the children's sums want it. Grid: (root items, C)."""
    root_q(
        items + tl.program_id(0).to(tl.int64) * 16, tl.program_id(1), sizes, exponents, shifts, process, R,
        frequencies, weights, column_weights, ascertained, mantissa, power, site_log, result, stride, q, C,
        WIDTH, BLOCK, CHUNKS, TILE, DTYPE, ASCERTAINED,
    )  # fmt: skip


@triton.jit
def root_sums(
    places, sizes, messages, exponents, column_weights, ascertained, mantissa, power, site_log, result,
    stride, invariant_states, out, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr, ASCERTAINED: tl.constexpr,
):  # fmt: skip
    """out[tree, c, s] = Σ over root columns of weight / L · p[s] of category c, and behind the categories
    that of weight / L over the columns that allow s (root_adjoint of reference/recursion.py).

    places: (n, 5) int64 of every tree: model, first column of the root's messages, first one and number of
    its root columns, row of result. messages: kept by site_likelihoods. out: (n, C + 1, WIDTH) float64. Grid:
    (n, C + 1, blocks of states).
    """
    of, c, columns = places + tl.program_id(0).to(tl.int64) * 5, tl.program_id(1), tl.load(sizes)
    message, first, n = tl.load(of + 1), tl.load(of + 2), tl.load(of + 3)
    state = tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float64)
    for start in range(0, n, TILE):
        rows = start + tl.arange(0, TILE)
        live = rows < n
        place = first + rows
        weight = tl.load(column_weights + place, mask=live, other=0.0)
        if ASCERTAINED:
            hidden = tl.load(ascertained + place, mask=live, other=0) != 0
            beside = tl.load(result + tl.load(of + 4) * stride + 1)
            seen = tl.exp(tl.load(site_log + place, mask=live, other=0.0))
            weight += tl.where(hidden, beside * seen, 0.0)
        scale = tl.where(weight > 0, weight / tl.load(mantissa + place, mask=live, other=1.0), 0.0)
        down = tl.load(power + place, mask=live, other=0)
        inside = live[:, None] & (state < WIDTH)[None, :]
        if c < C:
            column = c * columns + message + rows
            down -= tl.load(exponents + column, mask=live, other=0)
            kept = messages + column[:, None] * WIDTH + state[None, :]
            p = tl.load(kept, mask=inside, other=0.0).to(tl.float64)
        else:
            allowed = invariant_states + place[:, None] * WIDTH + state[None, :]
            p = tl.load(allowed, mask=inside, other=0).to(tl.float64)
        scale = scale_down(scale, tl.minimum(tl.maximum(down, -1000), 1900), tl.float64)
        total += tl.sum(tl.where(p > 0, scale[:, None] * p, 0.0), axis=0)
    place = (tl.program_id(0).to(tl.int64) * (C + 1) + c) * WIDTH + state
    tl.store(out + place, total, mask=state < WIDTH)


# Totals: the log-likelihood and the branch derivatives as compensated sums in a fixed order.


@triton.jit
def two_sum(high_a, low_a, high_b, low_b):
    """Sum of two unevaluated pairs, with the rounding error kept (Knuth)."""
    total = high_a + high_b
    part = total - high_a
    error = (high_a - (total - part)) + (high_b - part)
    return total, low_a + low_b + error


@triton.jit
def sum_of_columns(
    first, n, column_weights, ascertained, site_log, total_weight, LANES: tl.constexpr,
    ASCERTAINED: tl.constexpr,
):  # fmt: skip
    """(log-likelihood, what stands beside it) of n root columns from the first on: total_log_likelihood."""
    lane = tl.arange(0, LANES)
    high = tl.zeros((LANES,), tl.float64)
    low, hidden, impossible, broken = high, high, high, high
    for start in range(0, n, LANES):
        live = start + lane < n
        w = tl.load(column_weights + first + start + lane, mask=live, other=0.0)
        log_l = tl.load(site_log + first + start + lane, mask=live, other=0.0)
        possible = (w != 0) & (log_l > -1e300)
        impossible += tl.where(log_l == float("-inf"), tl.abs(w), 0.0)
        broken += tl.where(log_l != log_l, 1.0, 0.0)
        log_l = tl.where(possible, log_l, 0.0)
        term = w * log_l
        rest = tl.fma(w, log_l, 0.0 - term)
        high, low = two_sum(high, low, term, rest)
        if ASCERTAINED:
            is_hidden = tl.load(ascertained + first + start + lane, mask=live, other=0) != 0
            seen_log = tl.load(site_log + first + start + lane, mask=live, other=0.0)
            hidden += tl.where(is_hidden, tl.exp(seen_log), 0.0)
    high, low = tl.reduce((high, low), 0, two_sum)
    rounded = high + low
    log_likelihood = tl.where(tl.sum(impossible, axis=0) > 0, float("-inf"), rounded)
    log_likelihood = tl.where(tl.sum(broken, axis=0) > 0, float("nan"), log_likelihood)
    beside = low - (rounded - high)
    if ASCERTAINED:
        total, seen = tl.load(total_weight), 1.0 - tl.sum(hidden, axis=0)
        log_likelihood -= total * tl.log(seen)
        beside = total / seen
    return log_likelihood, beside


@triton.jit
def _total(
    chain, chains, column_weights, ascertained, site_log, total_weight, result, stride,
    LANES: tl.constexpr, ASCERTAINED: tl.constexpr,
):  # fmt: skip
    """What total_log_likelihood does for one chain."""
    first, n = tl.load(chains + 2 * chain), tl.load(chains + 2 * chain + 1)
    log_likelihood, beside = sum_of_columns(first, n, column_weights, ascertained, site_log,
                                            total_weight + chain, LANES, ASCERTAINED)  # fmt: skip
    tl.store(result + chain * stride, log_likelihood)
    tl.store(result + chain * stride + 1, beside)


@triton.jit
def total_log_likelihood(
    chains, column_weights, ascertained, site_log, total_weight, result, stride,
    LANES: tl.constexpr, ASCERTAINED: tl.constexpr,
):  # fmt: skip
    """result[chain] = Σ w log L - W log(1 - Σ hidden L), and W / (1 - Σ hidden L) behind it; without hidden
    columns what Σ w log L loses by rounding stands there. Grid: chains.

    chains: (H, 2) int64, first root column and number of them. total_weight: (H,) W, which counts columns of
    other blocks too.
    """
    _total(tl.program_id(0), chains, column_weights, ascertained, site_log, total_weight, result, stride,
           LANES, ASCERTAINED)  # fmt: skip


@triton.jit
def sum_of_partials(partial, first, n, c, C, CHUNKS: tl.constexpr, LANES: tl.constexpr):
    """Σ of the partials of n items from the first on, of one category, compensated."""
    lane, n = tl.arange(0, LANES), n * CHUNKS
    high = tl.zeros((LANES,), tl.float64)
    low = high
    for start in range(0, n, LANES):
        part = start + lane
        place = ((first + part // CHUNKS) * C + c) * CHUNKS + part % CHUNKS
        term = tl.load(partial + place, mask=part < n, other=0.0)
        high, low = two_sum(high, low, term, term * 0)
    high, low = tl.reduce((high, low), 0, two_sum)
    return high + low


@triton.jit
def branch_sums(
    ranges, partial, chains, n_chains, column_weights, ascertained, site_log, total_weight, result, stride, C,
    CHUNKS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """D[branch, c] = Σ of its items' partials, compensated, in a fixed order; and the chains' totals.

    ranges: (branches, 3) int64: first partial, end, place in result. Grid: (n_chains + branches, C). Totals
    under ascertainment are known by then (total_log_likelihood): n_chains is 0.
    """
    c = tl.program_id(1)
    if tl.program_id(0) < n_chains:
        if c == 0:
            _total(tl.program_id(0), chains, column_weights, ascertained, site_log, total_weight, result,
                   stride, LANES, False)  # fmt: skip
    else:
        job = ranges + (tl.program_id(0) - n_chains).to(tl.int64) * 3
        n = tl.load(job + 1) - tl.load(job)
        value = sum_of_partials(partial, tl.load(job), n, c, C, CHUNKS, LANES)
        tl.store(result + tl.load(job + 2) + c, value)
