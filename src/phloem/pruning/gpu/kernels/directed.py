"""Directed messages of an unrooted tree (pruning/cpu/directed.py), and the likelihood where two of them meet.

Messages lie as (half-edge, category, pattern, state): a program has a tile of patterns, states along the last
axis. Exponents, one a half-edge and pattern, are those of the column that a message was made of; a column is
scaled where its largest entry of all categories is below 2**-64, so that products of several need no more.
"""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.pruning.gpu.kernels.postorder import block
from phloem.pruning.gpu.kernels.product import (
    announce,
    await_ready,
    fetch,
    magnitude,
    next_step,
    power_of_two,
    scale_down,
    times,
)

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


@triton.jit
def beside_invariant(exponents, invariant):
    """What 2**exponent is written as beside the share of invariable sites: 1 where there is none."""
    moved = tl.where(invariant == 0.0, 0, tl.maximum(exponents, -1000))
    return power_of_two(moved, tl.float64)


@triton.jit
def log_sites(total, exponents, invariant):
    """Log-likelihoods of patterns from those of variable sites, total · 2**exponents."""
    likelihood = total * beside_invariant(exponents, invariant) + invariant
    kept = tl.where(invariant == 0.0, exponents, 0).to(tl.float64)
    least = total * 0.0 + 1e-300
    return tl.log(tl.maximum(likelihood, least)) + kept * 0.6931471805599453


# A task (int32): 0 half-edge · 1, 2 own column · 3 matrix · 4 what to write: 1 the message, 2 that to the
# middle of its branch, 3 both · 5, 6 whether the two are tasks of this launch, to be awaited


@triton.jit
def _hand_on(
    task, rows, live, ready, raised, codes, state_sets, messages, halves, exponents, whole, half, n_patterns,
    C, WIDTH: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """One task of one tile of patterns, all categories."""
    state = tl.arange(0, BLOCK)
    h, what = tl.load(task).to(tl.int64), tl.load(task + 4)
    a, b, matrix = (
        tl.load(task + 1).to(tl.int64),
        tl.load(task + 2).to(tl.int64),
        tl.load(task + 3).to(tl.int64),
    )
    await_ready(ready + a * (a >= 0), tl.load(task + 5))
    await_ready(ready + b * (a >= 0), tl.load(task + 6))
    largest = tl.zeros((TILE,), tl.int32)
    if a >= 0:
        for c in range(C):
            p = own_column(a, b, c, rows, live, state, messages, codes, state_sets, n_patterns, C, WIDTH)
            largest = tl.maximum(largest, tl.max(magnitude(p, tl.float64), axis=1))
    shift = shift_of(largest)
    below = own_exponents(a, b, rows, live, exponents, n_patterns)
    tl.store(exponents + h * n_patterns + rows, below + shift, mask=live)
    inside = live[:, None] & (state < WIDTH)[None, :]
    place = rows[:, None] * WIDTH + state[None, :]
    for c in range(C):
        p = own_column(a, b, c, rows, live, state, messages, codes, state_sets, n_patterns, C, WIDTH)
        p = scale_down(p, shift[:, None], tl.float64)
        out, square = (h * C + c) * n_patterns * WIDTH, (matrix * C + c) * WIDTH * WIDTH
        if (what & 1) != 0:
            operand = fetch(whole + square, False, WIDTH, BLOCK, tl.float64)
            y = times(p, operand, False, WIDTH, TILE, tl.float64, "ieee")
            tl.store(messages + out + place, y, mask=inside)
        if (what & 2) != 0:
            operand = fetch(half + square, False, WIDTH, BLOCK, tl.float64)
            y = times(p, operand, False, WIDTH, TILE, tl.float64, "ieee")
            tl.store(halves + out + place, y, mask=inside)
    announce(raised)


@triton.jit(do_not_specialize=["n_tasks", "n_tiles", "n_edges", "n_patterns"])
def directed_messages(
    tasks, n_tasks, n_tiles, n_edges, counters, codes, state_sets, messages, halves, exponents, whole, half,
    n_patterns, C, WIDTH: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Messages of all tasks, which come after those they wait for, in one launch.

    counters: int32, zeros: a ticket, and from 16 on one a tile and half-edge. codes: (T, P); state_sets:
    (codes, WIDTH); messages, halves: (4T-6, C, P, WIDTH); exponents: (4T-6, P) int32; whole, half: (branch,
    C, WIDTH, WIDTH) of transition.py.
    """
    n_steps = tl.cast(n_tasks, tl.int64) * n_tiles
    step = next_step(counters)
    while step < n_steps:
        following = next_step(counters)
        task, tile = tasks + (step // n_tiles) * 8, step % n_tiles
        rows = (tile * TILE).to(tl.int32) + tl.arange(0, TILE)
        ready = counters + 16 + tile * n_edges
        raised = ready + tl.load(task)
        _hand_on(task, rows, rows < n_patterns, ready, raised, codes, state_sets, messages, halves, exponents,
                 whole, half, n_patterns, C, WIDTH, BLOCK, TILE)  # fmt: skip
        step = following


@triton.jit(do_not_specialize=["a", "b", "other", "n_patterns"])
def tree_likelihood(
    a, b, other, codes, state_sets, messages, exponents, start, weights, invariant, sites, sums, n_patterns,
    C, WIDTH: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Log-likelihoods of the patterns, read off at a branch: the column (a, b) at one end, and the message of
    half-edge `other`. start: (C, WIDTH) weight × frequency. sums: out, of every tile. Grid: tiles."""
    rows, state = tl.program_id(0) * TILE + tl.arange(0, TILE), tl.arange(0, BLOCK)
    live = rows < n_patterns
    a, b, other = tl.cast(a, tl.int64), tl.cast(b, tl.int64), tl.cast(other, tl.int64)
    total = tl.zeros((TILE,), tl.float64)
    for c in range(C):
        x = own_column(a, b, c, rows, live, state, messages, codes, state_sets, n_patterns, C, WIDTH)
        x *= block(messages + (other * C + c) * n_patterns * WIDTH, rows, live, state, WIDTH)
        s = tl.load(start + c * WIDTH + state, mask=state < WIDTH, other=0.0)
        total += tl.sum(x * s[None, :], axis=1)
    power = own_exponents(a, b, rows, live, exponents, n_patterns)
    power += tl.load(exponents + other * n_patterns + rows, mask=live, other=0)
    log = log_sites(total, power, tl.load(invariant + rows, mask=live, other=0.0))
    tl.store(sites + rows, log, mask=live)
    weight = tl.load(weights + rows, mask=live, other=0.0)
    tl.store(sums + tl.program_id(0), tl.sum(weight * log, axis=0))
