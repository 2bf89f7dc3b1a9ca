"""Totals: the log-likelihood and the branch derivatives as compensated sums in a fixed order."""

from __future__ import annotations

import triton
import triton.language as tl


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
    log_likelihood, beside = sum_of_columns(first, n, column_weights, ascertained, site_log, total_weight,
                                            LANES,
                                            ASCERTAINED)  # fmt: skip
    tl.store(result + chain * stride, log_likelihood)
    tl.store(result + chain * stride + 1, beside)


@triton.jit
def total_log_likelihood(
    chains, column_weights, ascertained, site_log, total_weight, result, stride,
    LANES: tl.constexpr, ASCERTAINED: tl.constexpr,
):  # fmt: skip
    """result[chain] = Σ w log L - W log(1 - Σ hidden L), and W / (1 - Σ hidden L) behind it; without hidden
    columns what Σ w log L loses by rounding stands there. Grid: chains.

    chains: (H, 2) int64, first root column and number of them. total_weight: (1,) W, which counts columns of
    other blocks too.
    """
    _total(tl.program_id(0), chains, column_weights, ascertained, site_log, total_weight, result, stride,
           LANES, ASCERTAINED)  # fmt: skip


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
        first, n = tl.load(job), (tl.load(job + 1) - tl.load(job)) * CHUNKS
        lane = tl.arange(0, LANES)
        high = tl.zeros((LANES,), tl.float64)
        low = high
        for start in range(0, n, LANES):
            part = start + lane
            place = ((first + part // CHUNKS) * C + c) * CHUNKS + part % CHUNKS
            term = tl.load(partial + place, mask=part < n, other=0.0)
            high, low = two_sum(high, low, term, term * 0)
        high, low = tl.reduce((high, low), 0, two_sum)
        tl.store(result + tl.load(job + 2) + c, high + low)
