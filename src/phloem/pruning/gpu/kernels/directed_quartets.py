"""The three resolutions of an inner branch (pruning/cpu/directed_quartets.py): a program fits the five
lengths around one branch in one resolution, with all patterns."""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.pruning.gpu.kernels.directed import own_column, own_exponents
from phloem.pruning.gpu.kernels.directed_lengths import newton
from phloem.pruning.gpu.kernels.directed_patterns import (
    column,
    factor_of,
    log_sites,
    model_of,
    models_of,
    numbers_of,
    put_column,
    put_theta,
    through,
    weighted,
)
from phloem.pruning.gpu.kernels.directed_stars import put_end, send
from phloem.pruning.gpu.kernels.transition import expm1

# A quartet (int32): two entries of every corner's own column · 8 the corner that is paired with the first · 9
# seat


@triton.jit
def _pair(sent, i, j, c, rows, live, state, n_patterns, C, WIDTH: tl.constexpr):
    """sent[i] ∘ sent[j]"""
    x = column(sent, i, c, rows, live, state, n_patterns, C, WIDTH)
    return x * column(sent, j, c, rows, live, state, n_patterns, C, WIDTH)


@triton.jit
def _write_corners(
    quartet, models, codes, state_sets, messages, exponents, left, ends, powers, n_patterns, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """What lies beyond the four branches beside the inner one."""
    lane, state = tl.arange(0, TILE), tl.arange(0, BLOCK)
    for first in range(0, n_patterns, TILE):
        rows, model = first + lane, model_of(models, first)
        live, power = rows < n_patterns, tl.zeros((TILE,), tl.int32)
        for k in range(4):
            a, b = tl.load(quartet + 2 * k).to(tl.int64), tl.load(quartet + 2 * k + 1).to(tl.int64)
            power += own_exponents(a, b, rows, live, exponents, n_patterns)
            for c in range(C):
                x = own_column(a, b, c, rows, live, state, messages, codes, state_sets, n_patterns, C, WIDTH)
                put_end(x, k, c, rows, live, state, model, left, ends, n_patterns, C, WIDTH, BLOCK, TILE)
        tl.store(powers + rows, power, mask=live)


@triton.jit
def _cross(
    i, j, t, sent, across, models, right, left, values, n_patterns, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """across = what branches i and j send over the inner one, x + R expm1(Λ t) L x."""
    lane, state = tl.arange(0, TILE), tl.arange(0, BLOCK)
    for first in range(0, n_patterns, TILE):
        rows, model = first + lane, model_of(models, first)
        live = rows < n_patterns
        for c in range(C):
            x = _pair(sent, i, j, c, rows, live, state, n_patterns, C, WIDTH)
            y = through(x, left, model, c, C, WIDTH, BLOCK, TILE)
            y *= expm1(numbers_of(values, model, c, state, C, WIDTH) * t)[None, :]
            x += through(y, right, model, c, C, WIDTH, BLOCK, TILE)
            put_column(x, across, 0, c, rows, live, state, n_patterns, C, WIDTH)


@triton.jit
def _inner_theta(
    i, j, k, l, models, into, left, sent, powers, invariant, theta, n_patterns, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """θ at the branch between the node of branches i and j and that of k and l."""
    lane, state = tl.arange(0, TILE), tl.arange(0, BLOCK)
    for first in range(0, n_patterns, TILE):
        rows, model = first + lane, model_of(models, first)
        live = rows < n_patterns
        factor = factor_of(tl.load(powers + rows, mask=live, other=0), rows, live, invariant)
        for c in range(C):
            y = _pair(sent, k, l, c, rows, live, state, n_patterns, C, WIDTH)
            y = through(y, left, model, c, C, WIDTH, BLOCK, TILE)
            x = _pair(sent, i, j, c, rows, live, state, n_patterns, C, WIDTH)
            put_theta(x, y, factor, into, theta, model, c, rows, live, state, n_patterns, C, WIDTH, BLOCK,
                      TILE)  # fmt: skip


@triton.jit
def _corner_theta(
    k, other, models, into, ends, sent, across, powers, invariant, theta, n_patterns, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """θ at branch k, whose node branch `other` and the inner one share."""
    lane, state = tl.arange(0, TILE), tl.arange(0, BLOCK)
    for first in range(0, n_patterns, TILE):
        rows, model = first + lane, model_of(models, first)
        live = rows < n_patterns
        factor = factor_of(tl.load(powers + rows, mask=live, other=0), rows, live, invariant)
        for c in range(C):
            x = column(sent, other, c, rows, live, state, n_patterns, C, WIDTH)
            x *= column(across, 0, c, rows, live, state, n_patterns, C, WIDTH)
            y = column(ends, k, c, rows, live, state, n_patterns, C, WIDTH)
            put_theta(x, y, factor, into, theta, model, c, rows, live, state, n_patterns, C, WIDTH, BLOCK,
                      TILE)  # fmt: skip


@triton.jit
def _quartet_value(
    partner, models, start, sent, across, powers, weights, invariant, sites, n_patterns, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """The log-likelihood, of every pattern into sites; across is of the other two."""
    lane, state = tl.arange(0, TILE), tl.arange(0, BLOCK)
    result = tl.zeros((TILE,), tl.float64)
    for first in range(0, n_patterns, TILE):
        rows, model = first + lane, model_of(models, first)
        live, total = rows < n_patterns, tl.zeros((TILE,), tl.float64)
        for c in range(C):
            x = _pair(sent, 0, partner, c, rows, live, state, n_patterns, C, WIDTH)
            x *= column(across, 0, c, rows, live, state, n_patterns, C, WIDTH)
            total += tl.sum(x * numbers_of(start, model, c, state, C, WIDTH)[None, :], axis=1)
        log = log_sites(total, tl.load(powers + rows, mask=live, other=0), rows, live, invariant)
        tl.store(sites + rows, log, mask=live)
        result += weighted(log, rows, live, weights)
    return tl.sum(result, axis=0)


@triton.jit(do_not_specialize=["n_quartets", "n_models", "n_rounds", "n_steps", "n_patterns"])
def fit_quartets(
    quartets, n_quartets, codes, state_sets, messages, exponents, models, right, left, into, values, start,
    weights, invariant, columns, powers, growths, n_models, found, sites, n_rounds, n_steps, n_patterns, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """found: in and out, (n, 6): a log-likelihood, the lengths of the corners' branches and of the inner one;
    sites: out, (n, P). Rounds over the lengths until one gains less than 0.01. Scratch of every program:
    columns (10 C, P, WIDTH), powers (P,), growths (n_models, C, WIDTH)."""
    program, size = tl.program_id(0).to(tl.int64), C * n_patterns * WIDTH
    ends = columns + program * 10 * size
    sent, across, theta = ends + 4 * size, ends + 8 * size, ends + 9 * size
    powers += program * n_patterns
    growth = growths + program * n_models * C * WIDTH
    for n in range(tl.program_id(0), n_quartets, tl.num_programs(0)):
        tl.debug_barrier()
        quartet, own = quartets + n * 16, found + 1 + n * 6
        seat = tl.load(quartet + 9).to(tl.int64)
        parts, still, counts = (
            models_of(models, seat, n_patterns), invariant + seat * n_patterns, weights + seat * n_patterns
        )  # fmt: skip
        _write_corners(quartet, parts, codes, state_sets, messages, exponents, left, ends, powers, n_patterns,
                       C, WIDTH, BLOCK, TILE)  # fmt: skip
        partner = tl.load(quartet + 8)
        k = tl.where(partner != 1, 1, 2)
        l = 6 - partner - k
        tl.debug_barrier()
        for corner in range(4):
            send(corner, tl.load(own + corner), parts, right, values, ends, sent, n_patterns, C, WIDTH, BLOCK,
                 TILE)  # fmt: skip
        before, value, done = tl.load(own) * 0.0 - 1e300, tl.load(own) * 0.0, 0
        while done < n_rounds:
            tl.debug_barrier()
            _inner_theta(0, partner, k, l, parts, into, left, sent, powers, still, theta, n_patterns, C,
                         WIDTH, BLOCK, TILE)  # fmt: skip
            tl.debug_barrier()
            middle, _ = newton(theta, tl.load(own + 4), n_steps, growth, parts, values, counts, still,
                               n_patterns, C, WIDTH, BLOCK, TILE)  # fmt: skip
            tl.store(own + 4, middle)
            for turn in range(4):  # two corners beside each other, then the other two
                near = turn < 2
                first, second = tl.where(near, 0, k), tl.where(near, partner, l)
                if turn % 2 == 0:
                    tl.debug_barrier()
                    _cross(tl.where(near, k, 0), tl.where(near, l, partner), middle, sent, across, parts,
                           right, left, values, n_patterns, C, WIDTH, BLOCK, TILE)  # fmt: skip
                corner = tl.where(turn % 2 == 0, first, second)
                tl.debug_barrier()
                _corner_theta(corner, first + second - corner, parts, into, ends, sent, across, powers, still,
                              theta, n_patterns, C, WIDTH, BLOCK, TILE)  # fmt: skip
                tl.debug_barrier()
                t, _ = newton(theta, tl.load(own + corner), n_steps, growth, parts, values, counts, still,
                              n_patterns, C, WIDTH, BLOCK, TILE)  # fmt: skip
                tl.store(own + corner, t)
                send(corner, t, parts, right, values, ends, sent, n_patterns, C, WIDTH, BLOCK, TILE)
            tl.debug_barrier()
            _cross(k, l, middle, sent, across, parts, right, left, values, n_patterns, C, WIDTH, BLOCK, TILE)
            tl.debug_barrier()
            value = _quartet_value(partner, parts, start, sent, across, powers, counts, still,
                                   sites + tl.cast(n, tl.int64) * n_patterns, n_patterns, C, WIDTH, BLOCK,
                                   TILE)  # fmt: skip
            done = tl.where(value - before < 0.01, n_rounds, done + 1)
            before = value
        tl.store(own - 1, value)
