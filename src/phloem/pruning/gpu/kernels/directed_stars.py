"""The second look at a regraft (pruning/cpu/directed_insertions.py): a program fits the three lengths around
one place, one after the other, with all patterns."""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.pruning.gpu.kernels.directed import own_column, own_exponents, shift_of
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
from phloem.pruning.gpu.kernels.directed_scores import set_out
from phloem.pruning.gpu.kernels.postorder import block
from phloem.pruning.gpu.kernels.product import magnitude, scale_down

# A look (int32): 0 steps of the way · 1 half-edge whose message sets out · 2 the branch that it crosses first
# · 3, 4 own column beyond · 5, 6 of the subtree · 7 seat · from 8 on, of every step: half-edge whose message
# joins, branch


@triton.jit
def put_end(
    x, k, c, rows, live, state, model, left, ends, n_patterns, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """ends[k] = x in the eigenbasis, of one tile and category."""
    y = through(x, left, model, c, C, WIDTH, BLOCK, TILE)
    put_column(y, ends, k, c, rows, live, state, n_patterns, C, WIDTH)


@triton.jit
def send(
    k, t, models, right, values, ends, sent, n_patterns, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """sent[k] = R exp(Λ t) ends[k]."""
    lane, state = tl.arange(0, TILE), tl.arange(0, BLOCK)
    for first in range(0, n_patterns, TILE):
        rows, model = first + lane, model_of(models, first)
        live = rows < n_patterns
        for c in range(C):
            x = column(ends, k, c, rows, live, state, n_patterns, C, WIDTH)
            x *= tl.exp(numbers_of(values, model, c, state, C, WIDTH) * t)[None, :]
            y = through(x, right, model, c, C, WIDTH, BLOCK, TILE)
            put_column(y, sent, k, c, rows, live, state, n_patterns, C, WIDTH)


@triton.jit
def _write_ends(
    look, model, matrices, rows, live, codes, state_sets, messages, exponents, whole, left, ends, powers,
    arrival, n_patterns, C, WIDTH: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """What is at the three far ends, of a tile of patterns. arrival: (C, TILE, WIDTH) scratch."""
    lane, state = tl.arange(0, TILE), tl.arange(0, BLOCK)
    place, used = lane[:, None] * WIDTH + state[None, :], (state < WIDTH)[None, :]
    source, first = tl.load(look + 1).to(tl.int64), matrices + tl.load(look + 2)
    for c in range(C):
        y = set_out(source, first, c, rows, live, state, messages, whole, n_patterns, C, WIDTH, BLOCK, TILE)
        tl.store(arrival + c * TILE * WIDTH + place, y, mask=used)
    power = tl.load(exponents + source * n_patterns + rows, mask=live, other=0)
    shift, n_steps = tl.zeros((TILE,), tl.int32), tl.load(look)
    for k in range(n_steps):
        tl.debug_barrier()
        joins, matrix = tl.load(look + 8 + 2 * k).to(tl.int64), matrices + tl.load(look + 9 + 2 * k)
        power += shift + tl.load(exponents + joins * n_patterns + rows, mask=live, other=0)
        largest = tl.zeros((TILE,), tl.int32)
        for c in range(C):
            near = tl.load(arrival + c * TILE * WIDTH + place, mask=used, other=0.0)
            near = scale_down(near, shift[:, None], tl.float64)
            near *= block(messages + (joins * C + c) * n_patterns * WIDTH, rows, live, state, WIDTH)
            largest = tl.maximum(largest, tl.max(magnitude(near, tl.float64), axis=1))
            if k == n_steps - 1:
                put_end(near, 0, c, rows, live, state, model, left, ends, n_patterns, C, WIDTH, BLOCK, TILE)
            else:
                y = through(near, whole, matrix, c, C, WIDTH, BLOCK, TILE)
                tl.store(arrival + c * TILE * WIDTH + place, y, mask=used)
        shift = shift_of(largest)
    for k in range(2):
        a, b = tl.load(look + 3 + 2 * k).to(tl.int64), tl.load(look + 4 + 2 * k).to(tl.int64)
        power += own_exponents(a, b, rows, live, exponents, n_patterns)
        for c in range(C):
            x = own_column(a, b, c, rows, live, state, messages, codes, state_sets, n_patterns, C, WIDTH)
            put_end(x, 1 + k, c, rows, live, state, model, left, ends, n_patterns, C, WIDTH, BLOCK, TILE)
    tl.store(powers + rows, power, mask=live)


@triton.jit
def _star_theta(
    k, models, into, ends, sent, powers, invariant, theta, n_patterns, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """θ at branch k of the three."""
    lane, state = tl.arange(0, TILE), tl.arange(0, BLOCK)
    one, two = (k + 1) % 3, (k + 2) % 3
    for first in range(0, n_patterns, TILE):
        rows, model = first + lane, model_of(models, first)
        live = rows < n_patterns
        factor = factor_of(tl.load(powers + rows, mask=live, other=0), rows, live, invariant)
        for c in range(C):
            x = column(sent, one, c, rows, live, state, n_patterns, C, WIDTH)
            x *= column(sent, two, c, rows, live, state, n_patterns, C, WIDTH)
            y = column(ends, k, c, rows, live, state, n_patterns, C, WIDTH)
            put_theta(x, y, factor, into, theta, model, c, rows, live, state, n_patterns, C, WIDTH, BLOCK,
                      TILE)  # fmt: skip


@triton.jit
def _star_value(
    models, start, sent, powers, weights, invariant, sites, wanted, n_patterns, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """The log-likelihood where the three branches meet; of every pattern into sites, if wanted."""
    lane, state = tl.arange(0, TILE), tl.arange(0, BLOCK)
    result = tl.zeros((TILE,), tl.float64)
    for first in range(0, n_patterns, TILE):
        rows, model = first + lane, model_of(models, first)
        live, total = rows < n_patterns, tl.zeros((TILE,), tl.float64)
        for c in range(C):
            x = column(sent, 0, c, rows, live, state, n_patterns, C, WIDTH)
            x *= column(sent, 1, c, rows, live, state, n_patterns, C, WIDTH)
            x *= column(sent, 2, c, rows, live, state, n_patterns, C, WIDTH)
            total += tl.sum(x * numbers_of(start, model, c, state, C, WIDTH)[None, :], axis=1)
        log = log_sites(total, tl.load(powers + rows, mask=live, other=0), rows, live, invariant)
        tl.store(sites + rows, log, mask=rows < n_patterns * wanted)
        result += weighted(log, rows, live, weights)
    return tl.sum(result, axis=0)


@triton.jit(
    do_not_specialize=["n_looks", "width", "n_branches", "n_models", "n_steps", "wanted", "n_patterns"]
)
def fit_stars(
    looks, n_looks, width, n_branches, codes, state_sets, messages, exponents, whole, models, right, left,
    into, values, start, weights, invariant, columns, powers, growths, n_models, found, sites, wanted,
    n_steps, n_patterns, C, WIDTH: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """found: in and out, (n, 4): a log-likelihood and three lengths: on the gap's side, beyond, the
    subtree's. looks: (n, width). sites: (n, P), if wanted. Scratch of every program: columns (7 C, P,
    WIDTH), and a tile of C more; powers (P,); growths (n_models, C, WIDTH)."""
    program, size = tl.program_id(0).to(tl.int64), C * n_patterns * WIDTH
    ends = columns + program * (7 * size + C * TILE * WIDTH)
    sent, theta, arrival = ends + 3 * size, ends + 6 * size, ends + 7 * size
    powers += program * n_patterns
    growth = growths + program * n_models * C * WIDTH
    for i in range(tl.program_id(0), n_looks, tl.num_programs(0)):
        look, own = looks + i * width, found + i * 4
        seat = tl.load(look + 7).to(tl.int64)
        parts, still, counts = (
            models_of(models, seat, n_patterns), invariant + seat * n_patterns, weights + seat * n_patterns
        )  # fmt: skip
        tl.debug_barrier()
        for first in range(0, n_patterns, TILE):
            rows, model = first + tl.arange(0, TILE), model_of(parts, first)
            matrices = model * n_branches
            tl.debug_barrier()
            _write_ends(look, model, matrices, rows, rows < n_patterns, codes, state_sets, messages,
                        exponents, whole, left, ends, powers, arrival, n_patterns, C, WIDTH, BLOCK,
                        TILE)  # fmt: skip
        tl.debug_barrier()
        for k in range(3):
            send(k, tl.load(own + 1 + k), parts, right, values, ends, sent, n_patterns, C, WIDTH, BLOCK,
                 TILE)  # fmt: skip
        for j in range(3):
            k = (j + 2) % 3
            tl.debug_barrier()
            _star_theta(k, parts, into, ends, sent, powers, still, theta, n_patterns, C, WIDTH, BLOCK, TILE)
            tl.debug_barrier()
            t, _ = newton(theta, tl.load(own + 1 + k), n_steps, growth, parts, values, counts, still,
                          n_patterns, C, WIDTH, BLOCK, TILE)  # fmt: skip
            tl.store(own + 1 + k, t)
            send(k, t, parts, right, values, ends, sent, n_patterns, C, WIDTH, BLOCK, TILE)
        tl.debug_barrier()
        by_site = sites + tl.cast(i, tl.int64) * n_patterns
        value = _star_value(parts, start, sent, powers, counts, still, by_site, wanted, n_patterns, C, WIDTH,
                            BLOCK, TILE)  # fmt: skip
        tl.store(own, value)
