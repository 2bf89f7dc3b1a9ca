"""The second look at a regraft (pruning/cpu/directed_insertions.py): a program fits the three lengths around
one place, one after the other, with all patterns."""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.pruning.gpu.kernels.directed import (
    beside_invariant,
    log_sites,
    own_column,
    own_exponents,
    shift_of,
)
from phloem.pruning.gpu.kernels.directed_lengths import newton
from phloem.pruning.gpu.kernels.directed_scores import set_out
from phloem.pruning.gpu.kernels.postorder import block
from phloem.pruning.gpu.kernels.product import fetch, magnitude, scale_down, times

# A look (int32): 0 steps of the way · 1 half-edge whose message sets out · 2 matrix of the branch that it
# crosses first · 3, 4 own column beyond · 5, 6 of the subtree · from 8 on, of every step: half-edge whose
# message joins, matrix


@triton.jit
def put_end(
    x, k, c, rows, live, state, left, ends, n_patterns, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """ends[k] = x in the eigenbasis, of one tile and category."""
    operand = fetch(left + c * WIDTH * WIDTH, False, WIDTH, BLOCK, tl.float64)
    y = times(x, operand, False, WIDTH, TILE, tl.float64, "ieee")
    place = ((k * C + c) * n_patterns + rows)[:, None] * WIDTH + state[None, :]
    tl.store(ends + place, y, mask=live[:, None] & (state < WIDTH)[None, :])


@triton.jit
def send(
    k, t, right, values, ends, sent, n_patterns, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """sent[k] = R exp(Λ t) ends[k]."""
    lane, state = tl.arange(0, TILE), tl.arange(0, BLOCK)
    used = state < WIDTH
    for first in range(0, n_patterns, TILE):
        rows = first + lane
        live = rows < n_patterns
        for c in range(C):
            own = (k * C + c) * n_patterns * WIDTH
            growth = tl.exp(tl.load(values + c * WIDTH + state, mask=used, other=0.0) * t)
            x = block(ends + own, rows, live, state, WIDTH) * growth[None, :]
            operand = fetch(right + c * WIDTH * WIDTH, False, WIDTH, BLOCK, tl.float64)
            y = times(x, operand, False, WIDTH, TILE, tl.float64, "ieee")
            mask = live[:, None] & used[None, :]
            tl.store(sent + own + (rows[:, None] * WIDTH + state[None, :]), y, mask=mask)


@triton.jit
def _write_ends(
    look, rows, live, codes, state_sets, messages, exponents, whole, left, ends, powers, arrival, n_patterns,
    C, WIDTH: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """What is at the three far ends, of a tile of patterns. arrival: (C, TILE, WIDTH) scratch."""
    lane, state = tl.arange(0, TILE), tl.arange(0, BLOCK)
    place, used = lane[:, None] * WIDTH + state[None, :], (state < WIDTH)[None, :]
    source, first = tl.load(look + 1).to(tl.int64), tl.load(look + 2).to(tl.int64)
    for c in range(C):
        y = set_out(source, first, c, rows, live, state, messages, whole, n_patterns, C, WIDTH, BLOCK, TILE)
        tl.store(arrival + c * TILE * WIDTH + place, y, mask=used)
    power = tl.load(exponents + source * n_patterns + rows, mask=live, other=0)
    shift, n_steps = tl.zeros((TILE,), tl.int32), tl.load(look)
    for k in range(n_steps):
        tl.debug_barrier()
        joins, matrix = tl.load(look + 8 + 2 * k).to(tl.int64), tl.load(look + 9 + 2 * k).to(tl.int64)
        power += shift + tl.load(exponents + joins * n_patterns + rows, mask=live, other=0)
        largest = tl.zeros((TILE,), tl.int32)
        for c in range(C):
            near = tl.load(arrival + c * TILE * WIDTH + place, mask=used, other=0.0)
            near = scale_down(near, shift[:, None], tl.float64)
            near *= block(messages + (joins * C + c) * n_patterns * WIDTH, rows, live, state, WIDTH)
            largest = tl.maximum(largest, tl.max(magnitude(near, tl.float64), axis=1))
            if k == n_steps - 1:
                put_end(near, 0, c, rows, live, state, left, ends, n_patterns, C, WIDTH, BLOCK, TILE)
            else:
                operand = fetch(whole + (matrix * C + c) * WIDTH * WIDTH, False, WIDTH, BLOCK, tl.float64)
                y = times(near, operand, False, WIDTH, TILE, tl.float64, "ieee")
                tl.store(arrival + c * TILE * WIDTH + place, y, mask=used)
        shift = shift_of(largest)
    for k in range(2):
        a, b = tl.load(look + 3 + 2 * k).to(tl.int64), tl.load(look + 4 + 2 * k).to(tl.int64)
        power += own_exponents(a, b, rows, live, exponents, n_patterns)
        for c in range(C):
            x = own_column(a, b, c, rows, live, state, messages, codes, state_sets, n_patterns, C, WIDTH)
            put_end(x, 1 + k, c, rows, live, state, left, ends, n_patterns, C, WIDTH, BLOCK, TILE)
    tl.store(powers + rows, power, mask=live)


@triton.jit
def _star_theta(
    k, into, ends, sent, powers, invariant, theta, n_patterns, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """θ at branch k of the three."""
    lane, state = tl.arange(0, TILE), tl.arange(0, BLOCK)
    one, two = (k + 1) % 3, (k + 2) % 3
    for first in range(0, n_patterns, TILE):
        rows = first + lane
        live = rows < n_patterns
        power = tl.load(powers + rows, mask=live, other=0)
        factor = beside_invariant(power, tl.load(invariant + rows, mask=live, other=0.0))[:, None]
        for c in range(C):
            x = block(sent + (one * C + c) * n_patterns * WIDTH, rows, live, state, WIDTH)
            x *= block(sent + (two * C + c) * n_patterns * WIDTH, rows, live, state, WIDTH)
            operand = fetch(into + c * WIDTH * WIDTH, False, WIDTH, BLOCK, tl.float64)
            y = times(x, operand, False, WIDTH, TILE, tl.float64, "ieee")
            y *= block(ends + (k * C + c) * n_patterns * WIDTH, rows, live, state, WIDTH) * factor
            place = (c * n_patterns + rows)[:, None] * WIDTH + state[None, :]
            tl.store(theta + place, y, mask=live[:, None] & (state < WIDTH)[None, :])


@triton.jit
def _star_value(
    start, sent, powers, weights, invariant, sites, wanted, n_patterns, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """The log-likelihood where the three branches meet; of every pattern into sites, if wanted."""
    lane, state = tl.arange(0, TILE), tl.arange(0, BLOCK)
    result = tl.zeros((TILE,), tl.float64)
    for first in range(0, n_patterns, TILE):
        rows = first + lane
        live = rows < n_patterns
        total = tl.zeros((TILE,), tl.float64)
        for c in range(C):
            x = block(sent + c * n_patterns * WIDTH, rows, live, state, WIDTH)
            x *= block(sent + (C + c) * n_patterns * WIDTH, rows, live, state, WIDTH)
            x *= block(sent + (2 * C + c) * n_patterns * WIDTH, rows, live, state, WIDTH)
            s = tl.load(start + c * WIDTH + state, mask=state < WIDTH, other=0.0)
            total += tl.sum(x * s[None, :], axis=1)
        power = tl.load(powers + rows, mask=live, other=0)
        log = log_sites(total, power, tl.load(invariant + rows, mask=live, other=0.0))
        tl.store(sites + rows, log, mask=rows < n_patterns * wanted)
        result += log * tl.load(weights + rows, mask=live, other=0.0)
    return tl.sum(result, axis=0)


@triton.jit(do_not_specialize=["n_looks", "width", "n_steps", "wanted", "n_patterns"])
def fit_stars(
    looks, n_looks, width, codes, state_sets, messages, exponents, whole, right, left, into, values, start,
    weights, invariant, columns, powers, growths, found, sites, wanted, n_steps, n_patterns, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """found: in and out, (n, 4): a log-likelihood and three lengths: on the gap's side, beyond, the
    subtree's. looks: (n, width). sites: (n, P), if wanted. Scratch of every program: columns (7 C, P,
    WIDTH), and a tile of C more; powers (P,); growths (C, WIDTH)."""
    program, size = tl.program_id(0).to(tl.int64), C * n_patterns * WIDTH
    ends = columns + program * (7 * size + C * TILE * WIDTH)
    sent, theta, arrival = ends + 3 * size, ends + 6 * size, ends + 7 * size
    powers += program * n_patterns
    growth = growths + program * C * WIDTH
    for i in range(tl.program_id(0), n_looks, tl.num_programs(0)):
        tl.debug_barrier()
        for first in range(0, n_patterns, TILE):
            rows = first + tl.arange(0, TILE)
            tl.debug_barrier()
            _write_ends(looks + i * width, rows, rows < n_patterns, codes, state_sets, messages, exponents,
                        whole, left, ends, powers, arrival, n_patterns, C, WIDTH, BLOCK, TILE)  # fmt: skip
        tl.debug_barrier()
        own = found + i * 4
        for k in range(3):
            send(k, tl.load(own + 1 + k), right, values, ends, sent, n_patterns, C, WIDTH, BLOCK, TILE)
        for j in range(3):
            k = (j + 2) % 3
            tl.debug_barrier()
            _star_theta(k, into, ends, sent, powers, invariant, theta, n_patterns, C, WIDTH, BLOCK, TILE)
            tl.debug_barrier()
            t, _ = newton(theta, tl.load(own + 1 + k), n_steps, growth, values, weights, invariant,
                          n_patterns, C, WIDTH, BLOCK, TILE)  # fmt: skip
            tl.store(own + 1 + k, t)
            send(k, t, right, values, ends, sent, n_patterns, C, WIDTH, BLOCK, TILE)
        tl.debug_barrier()
        by_site = sites + tl.cast(i, tl.int64) * n_patterns
        value = _star_value(start, sent, powers, weights, invariant, by_site, wanted, n_patterns, C, WIDTH,
                            BLOCK, TILE)  # fmt: skip
        tl.store(own, value)
