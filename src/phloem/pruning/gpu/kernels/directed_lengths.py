"""Branch lengths by Newton steps on directed messages (pruning/cpu/directed_lengths.py): a program has a
branch, with all its patterns, and its own θ."""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.pruning.gpu.kernels.directed import own_column, own_exponents
from phloem.pruning.gpu.kernels.directed_patterns import (
    column,
    factor_of,
    last_model,
    model_of,
    models_of,
    numbers_of,
    put_theta,
    through,
)

# Numbers of models, by category: right, left, into: transposed, the state that a product begins from comes
# first; values: (model, C, WIDTH) eigenvalue × rate; start: (model, C, WIDTH). models, weights, invariant:
# those of the seat.


@triton.jit
def slopes(
    theta, t, growth, models, values, weights, invariant, n_patterns, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """d log L / dt and d² log L / dt² at a branch: L = invariant + Σ θ exp(value t). growth: (models of the
    seat, C, WIDTH) scratch."""
    lane, state = tl.arange(0, TILE), tl.arange(0, BLOCK)
    begin, end = model_of(models, 0), last_model(models, n_patterns) + 1
    for k in range((end - begin) * C):
        rate = numbers_of(values + begin * C * WIDTH, 0, k, state, C, WIDTH)
        tl.store(growth + k * WIDTH + state, tl.exp(rate * t), mask=state < WIDTH)
    tl.debug_barrier()
    one, two = tl.zeros((TILE,), tl.float64), tl.zeros((TILE,), tl.float64)
    for first in range(0, n_patterns, TILE):
        rows, model = first + lane, model_of(models, first)
        live = rows < n_patterns
        value = tl.load(invariant + rows, mask=live, other=1.0)
        slope, curve = tl.zeros((TILE,), tl.float64), tl.zeros((TILE,), tl.float64)
        for c in range(C):
            rate = numbers_of(values, model, c, state, C, WIDTH)[None, :]
            x = column(theta, 0, c, rows, live, state, n_patterns, C, WIDTH)
            x *= numbers_of(growth, model - begin, c, state, C, WIDTH)[None, :]
            value += tl.sum(x, axis=1)
            x *= rate
            slope += tl.sum(x, axis=1)
            curve += tl.sum(x * rate, axis=1)
        weight = tl.load(weights + rows, mask=live, other=0.0)
        value = tl.maximum(value, value * 0.0 + 1e-300)
        ratio = slope / value
        one += weight * ratio
        two += weight * (curve / value - ratio * ratio)
    tl.debug_barrier()
    return tl.sum(one, axis=0), tl.sum(two, axis=0)


@triton.jit
def _next_length(t, low, high, d1, d2, SHORTEST: tl.constexpr, LONGEST: tl.constexpr):
    """A Newton step between lengths of known slope, as pruning/cpu/directed_lengths.newton takes it."""
    up, bent = d1 > 0.0, d2 < 0.0
    plain = t - d1 / tl.where(bent, d2, d2 * 0.0 - 1.0)
    bend = d2 * t + d1
    falling = bend < 0.0
    most = t * 0.0 + 2.0
    jump = t * tl.exp(tl.minimum(d1 / tl.where(falling, -bend, bend * 0.0 + 1.0), most))
    above = tl.maximum(tl.where(bent, plain, t), tl.where(falling, jump, 4.0 * t))
    above = tl.where(above < high, above, tl.where(high == LONGEST, high, tl.sqrt(t * high)))
    under = tl.maximum(tl.where(bent, plain, 0.25 * t), 0.1 * t)
    under = tl.where(under > low, under, tl.where(low == SHORTEST, low, tl.sqrt(t * low)))
    return tl.where(up, above, under)


@triton.jit
def newton(
    theta, t, n_steps, growth, models, values, weights, invariant, n_patterns, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """The length at which the slope vanishes, from t on, and the slope at t."""
    low, high = t * 0.0 + 1e-8, t * 0.0 + 100.0
    begun, k = t * 0.0, 0
    while k < n_steps:
        d1, d2 = slopes(theta, t, growth, models, values, weights, invariant, n_patterns, C, WIDTH, BLOCK,
                        TILE)  # fmt: skip
        begun = tl.where(k == 0, d1, begun)
        low, high = tl.where(d1 > 0.0, t, low), tl.where(d1 > 0.0, high, t)
        new = _next_length(t, low, high, d1, d2, 1e-8, 100.0)
        settled = tl.abs(new - t) <= 1e-3 * new + 1e-9
        t = new
        k = tl.where(settled, n_steps, k + 1)
    return t, begun


# A branch (int32): 0, 1 own column of one end · 2, 3 of the other · 4 its place in lengths · 5 seat


@triton.jit
def _write_theta(
    branch, codes, state_sets, messages, exponents, models, into, left, invariant, theta, n_patterns, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """θ at the branch between two columns, of all patterns."""
    lane, state = tl.arange(0, TILE), tl.arange(0, BLOCK)
    a, b = tl.load(branch).to(tl.int64), tl.load(branch + 1).to(tl.int64)
    d, e = tl.load(branch + 2).to(tl.int64), tl.load(branch + 3).to(tl.int64)
    for first in range(0, n_patterns, TILE):
        rows, model = first + lane, model_of(models, first)
        live = rows < n_patterns
        power = own_exponents(a, b, rows, live, exponents, n_patterns)
        power += own_exponents(d, e, rows, live, exponents, n_patterns)
        factor = factor_of(power, rows, live, invariant)
        for c in range(C):
            x = own_column(a, b, c, rows, live, state, messages, codes, state_sets, n_patterns, C, WIDTH)
            y = own_column(d, e, c, rows, live, state, messages, codes, state_sets, n_patterns, C, WIDTH)
            y = through(y, left, model, c, C, WIDTH, BLOCK, TILE)
            put_theta(x, y, factor, into, theta, model, c, rows, live, state, n_patterns, C, WIDTH, BLOCK,
                      TILE)  # fmt: skip


@triton.jit(do_not_specialize=["n_branches", "n_steps", "n_patterns", "n_models"])
def fit_branches(
    branches, n_branches, codes, state_sets, messages, exponents, models, into, left, values, weights,
    invariant, thetas, growths, n_models, lengths, dampings, moved, n_steps, n_patterns, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Every branch some way towards its best length, all others as they are. dampings: shares of the way,
    halved where the slope turned since the last time; moved: the last step of a length. Scratch of every
    program: thetas (C, P, WIDTH), growths (n_models, C, WIDTH)."""
    program = tl.program_id(0).to(tl.int64)
    theta = thetas + program * C * n_patterns * WIDTH
    growth = growths + program * n_models * C * WIDTH
    for i in range(tl.program_id(0), n_branches, tl.num_programs(0)):
        branch = branches + i * 8
        place, seat = tl.load(branch + 4), tl.load(branch + 5).to(tl.int64)
        own, shares = models_of(models, seat, n_patterns), seat * n_patterns
        tl.debug_barrier()
        _write_theta(branch, codes, state_sets, messages, exponents, own, into, left, invariant + shares,
                     theta, n_patterns, C, WIDTH, BLOCK, TILE)  # fmt: skip
        tl.debug_barrier()
        t, share = tl.load(lengths + place), tl.load(dampings + place)
        best, slope = newton(theta, t, n_steps, growth, own, values, weights + shares, invariant + shares,
                             n_patterns, C, WIDTH, BLOCK, TILE)  # fmt: skip
        whole = share * 0.0 + 1.0
        turned = slope * tl.load(moved + place) < 0.0
        share = tl.where(turned, 0.5 * share, tl.minimum(1.5 * share, whole))
        new = t + share * (best - t)
        tl.store(lengths + place, new)
        tl.store(moved + place, new - t)
        tl.store(dampings + place, share)
