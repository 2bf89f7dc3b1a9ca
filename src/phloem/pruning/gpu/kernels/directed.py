"""Directed messages of an unrooted tree (pruning/cpu/directed.py), and the likelihood where two of them meet.

Messages lie as (half-edge, category, pattern, state), of all seats (directed_patterns.py): a program has a
tile of patterns, states along the last axis. Exponents, one a half-edge and pattern, are those of the column
that a message was made of; a column is scaled where its largest entry of all categories is below 2**-64, so
that products of several need no more.
"""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.pruning.gpu.kernels.directed_patterns import (
    log_sites,
    model_of,
    models_of,
    numbers_of,
    put_column,
    through,
    weighted,
)
from phloem.pruning.gpu.kernels.postorder import block
from phloem.pruning.gpu.kernels.product import announce, await_ready, magnitude, next_step, scale_down

# Two half-edges a, b stand for the column at a node: what arrives by them; a = -1 - i for that of tip i.


@triton.jit
def own_column(
    a, b, c, rows, live, state, messages, codes, state_sets, n_patterns, C, WIDTH: tl.constexpr,
):  # fmt: skip
    """The column at a node in one category, unscaled."""
    if a < 0:
        code = tl.load(codes + (-1 - a) * n_patterns + rows, mask=live, other=0).to(tl.int32)
        x = block(state_sets, code, live, state, WIDTH)
    else:
        x = block(messages + (a * C + c) * n_patterns * WIDTH, rows, live, state, WIDTH)
        x *= block(messages + (b * C + c) * n_patterns * WIDTH, rows, live, state, WIDTH)
    return x


@triton.jit
def own_exponents(a, b, rows, live, exponents, n_patterns):
    """Of own_column."""
    if a < 0:
        total = rows * 0
    else:
        total = tl.load(exponents + a * n_patterns + rows, mask=live, other=0)
        total += tl.load(exponents + b * n_patterns + rows, mask=live, other=0)
    return total


@triton.jit
def shift_of(largest):
    """Power of two of a column's largest magnitude (product.magnitude, float64) where that is below 2**-64,
    else 0."""
    power = (largest >> 20) - (1022 + 512)
    return tl.where((largest > 0) & (power < -64), power, 0)


# A task (int32): 0 half-edge · 1, 2 own column · 3 branch · 5, 6 whether the two are tasks of this launch, to
# be awaited


@triton.jit
def _hand_on(
    task, what, matrix, rows, live, ready, raised, codes, state_sets, messages, halves, exponents, whole,
    half, n_patterns, C, WIDTH: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """One task of one tile of patterns, all categories."""
    state, h = tl.arange(0, BLOCK), tl.load(task).to(tl.int64)
    a, b = tl.load(task + 1).to(tl.int64), tl.load(task + 2).to(tl.int64)
    awaited = (what & 1) != 0
    await_ready(ready + a * (a >= 0), tl.where(awaited, tl.load(task + 5), 0))
    await_ready(ready + b * (a >= 0), tl.where(awaited, tl.load(task + 6), 0))
    largest = tl.zeros((TILE,), tl.int32)
    if a >= 0:
        for c in range(C):
            p = own_column(a, b, c, rows, live, state, messages, codes, state_sets, n_patterns, C, WIDTH)
            largest = tl.maximum(largest, tl.max(magnitude(p, tl.float64), axis=1))
    shift = shift_of(largest)
    below = own_exponents(a, b, rows, live, exponents, n_patterns)
    tl.store(exponents + h * n_patterns + rows, below + shift, mask=live)
    for c in range(C):
        p = own_column(a, b, c, rows, live, state, messages, codes, state_sets, n_patterns, C, WIDTH)
        p = scale_down(p, shift[:, None], tl.float64)
        if (what & 1) != 0:
            y = through(p, whole, matrix, c, C, WIDTH, BLOCK, TILE)
            put_column(y, messages, h, c, rows, live, state, n_patterns, C, WIDTH)
        if (what & 2) != 0:
            y = through(p, half, matrix, c, C, WIDTH, BLOCK, TILE)
            put_column(y, halves, h, c, rows, live, state, n_patterns, C, WIDTH)
    announce(raised)


@triton.jit(
    do_not_specialize=["n_seats", "n_tasks", "n_tiles", "n_edges", "n_branches", "what", "n_patterns"]
)
def directed_messages(
    seats, n_seats, tasks, n_tasks, n_tiles, n_edges, n_branches, what, counters, models, codes, state_sets,
    messages, halves, exponents, whole, half, n_patterns, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Messages of some seats in one launch. tasks: (seats, n_tasks, 8), of every seat those that others wait
    for first. what: 1 the messages over branches, 2 those to the middles of branches.

    counters: int32, zeros: a ticket, and from 16 on one a tile and half-edge, n_edges of all seats. codes:
    (tips, P); state_sets: (codes, WIDTH); messages, halves: (half-edges, C, P, WIDTH); exponents:
    (half-edges, P) int32; whole, half: (model, branch, C, WIDTH, WIDTH) of transition.py.
    """
    n_steps = tl.cast(n_seats, tl.int64) * n_tasks * n_tiles
    step = next_step(counters)
    while step < n_steps:
        following = next_step(counters)
        place, tile = step // n_tiles, step % n_tiles
        seat = tl.load(seats + place % n_seats).to(tl.int64)
        task = tasks + (seat * n_tasks + place // n_seats) * 8
        rows = (tile * TILE).to(tl.int32) + tl.arange(0, TILE)
        ready = counters + 16 + tile * n_edges
        raised = ready + tl.load(task)
        model = model_of(models_of(models, seat, n_patterns), tile * TILE)
        matrix = model * n_branches + tl.load(task + 3)
        _hand_on(task, what, matrix, rows, rows < n_patterns, ready, raised, codes, state_sets, messages,
                 halves, exponents, whole, half, n_patterns, C, WIDTH, BLOCK, TILE)  # fmt: skip
        step = following


@triton.jit(do_not_specialize=["n_patterns"])
def tree_likelihood(
    seats, ends, models, codes, state_sets, messages, exponents, start, weights, invariant, sites, sums,
    n_patterns, C, WIDTH: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Log-likelihoods of the patterns of some seats, read off at a branch: ends, int32 (seats, 4), has the
    column (a, b) at one end, and the half-edge whose message is at the other. start: (model, C, WIDTH)
    weight × frequency. sums: out, of every tile. Grid: tiles, seats."""
    first, state = tl.program_id(0) * TILE, tl.arange(0, BLOCK)
    seat = tl.load(seats + tl.program_id(1)).to(tl.int64)
    rows = first + tl.arange(0, TILE)
    live = rows < n_patterns
    a, b = tl.load(ends + seat * 4).to(tl.int64), tl.load(ends + seat * 4 + 1).to(tl.int64)
    other, total = tl.load(ends + seat * 4 + 2).to(tl.int64), tl.zeros((TILE,), tl.float64)
    model = model_of(models_of(models, seat, n_patterns), first)
    for c in range(C):
        x = own_column(a, b, c, rows, live, state, messages, codes, state_sets, n_patterns, C, WIDTH)
        x *= block(messages + (other * C + c) * n_patterns * WIDTH, rows, live, state, WIDTH)
        total += tl.sum(x * numbers_of(start, model, c, state, C, WIDTH)[None, :], axis=1)
    power = own_exponents(a, b, rows, live, exponents, n_patterns)
    power += tl.load(exponents + other * n_patterns + rows, mask=live, other=0)
    log = log_sites(total, power, rows, live, invariant + seat * n_patterns)
    tl.store(sites + seat * n_patterns + rows, log, mask=live)
    log = weighted(log, rows, live, weights + seat * n_patterns)
    tl.store(sums + seat * tl.num_programs(0) + tl.program_id(0), tl.sum(log, axis=0))


@triton.jit(do_not_specialize=["n_rows", "n_columns"])
def sums_of_rows(table, n_rows, n_columns, sums, TILE: tl.constexpr):
    """sums of (n_rows, n_columns) by row, one after the other: the same however many rows there are."""
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    live, total = rows < n_rows, tl.zeros((TILE,), tl.float64)
    for k in range(n_columns):
        total += tl.load(table + tl.cast(rows, tl.int64) * n_columns + k, mask=live, other=0.0)
    tl.store(sums + rows, total, mask=live)
