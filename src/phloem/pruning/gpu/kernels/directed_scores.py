"""Scores of moved subtrees (pruning/cpu/directed_regrafts.py): a program walks outwards from the gap that one
subtree leaves, in one tile of patterns."""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.pruning.gpu.kernels.directed import shift_of
from phloem.pruning.gpu.kernels.directed_patterns import (
    log_sites,
    model_of,
    models_of,
    numbers_of,
    operand_of,
    product,
    through,
    weighted,
)
from phloem.pruning.gpu.kernels.postorder import block
from phloem.pruning.gpu.kernels.product import magnitude, next_step, scale_down

# A step (int32), in preorder of its walk: 0 half-edge whose message joins · 1 the one whose message comes
# from beyond · 2 branch · 3 level, from 1 · 4 whether others come after it · 5 whether a walk sets out here
# · 6 half-edge whose message sets out · 7 the branch that it crosses first


@triton.jit
def set_out(
    source, matrix, c, rows, live, state, messages, whole, n_patterns, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """What crosses the gap in one category: the message of a half-edge through one branch more."""
    x = block(messages + (source * C + c) * n_patterns * WIDTH, rows, live, state, WIDTH)
    return through(x, whole, matrix, c, C, WIDTH, BLOCK, TILE)


@triton.jit
def _begin(
    step, matrices, rows, live, messages, exponents, whole, room, room_exponents, n_patterns, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Level 0 of the room: what crosses the gap."""
    lane, state = tl.arange(0, TILE), tl.arange(0, BLOCK)
    place = lane[:, None] * WIDTH + state[None, :]
    source, matrix = tl.load(step + 6).to(tl.int64), matrices + tl.load(step + 7)
    for c in range(C):
        y = set_out(source, matrix, c, rows, live, state, messages, whole, n_patterns, C, WIDTH, BLOCK, TILE)
        tl.store(room + c * TILE * WIDTH + place, y, mask=(state < WIDTH)[None, :])
    power = tl.load(exponents + source * n_patterns + rows, mask=live, other=0)
    tl.store(room_exponents + lane, power)
    tl.store(room_exponents + TILE + lane, power * 0)


@triton.jit
def _score(
    step, model, matrices, subtree, rows, live, messages, halves, exponents, whole, half, start, weights,
    invariant, room, room_exponents, n_patterns, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """What a tile of patterns adds to the log-likelihood with the subtree in the middle of the step's branch,
    at its old distance. Fills the level's room where the walk goes on."""
    lane, state = tl.arange(0, TILE), tl.arange(0, BLOCK)
    place, inside = lane[:, None] * WIDTH + state[None, :], (state < WIDTH)[None, :]
    sibling, far = tl.load(step).to(tl.int64), tl.load(step + 1).to(tl.int64)
    matrix, level, goes_on = matrices + tl.load(step + 2), tl.load(step + 3), tl.load(step + 4)
    before = room_exponents + (level - 1) * 2 * TILE + lane
    shift = tl.load(before + TILE)
    power = tl.load(before) + shift + tl.load(exponents + sibling * n_patterns + rows, mask=live, other=0)
    total, largest = tl.zeros((TILE,), tl.float64), tl.zeros((TILE,), tl.int32)
    for c in range(C):
        arrival = tl.load(room + ((level - 1) * C + c) * TILE * WIDTH + place, mask=inside, other=0.0)
        near = scale_down(arrival, shift[:, None], tl.float64)
        near *= block(messages + (sibling * C + c) * n_patterns * WIDTH, rows, live, state, WIDTH)
        largest = tl.maximum(largest, tl.max(magnitude(near, tl.float64), axis=1))
        operand = operand_of(half, matrix, c, C, WIDTH, BLOCK)
        across = product(near, operand, WIDTH, TILE)
        x = across * block(halves + (far * C + c) * n_patterns * WIDTH, rows, live, state, WIDTH)
        x *= block(messages + (subtree * C + c) * n_patterns * WIDTH, rows, live, state, WIDTH)
        total += tl.sum(x * numbers_of(start, model, c, state, C, WIDTH)[None, :], axis=1)
        if goes_on != 0:
            y = product(across, operand, WIDTH, TILE)
            tl.store(room + (level * C + c) * TILE * WIDTH + place, y, mask=inside)
    if goes_on != 0:
        after = room_exponents + level * 2 * TILE + lane
        tl.store(after, power)
        tl.store(after + TILE, shift_of(largest))
    power += tl.load(exponents + far * n_patterns + rows, mask=live, other=0)
    power += tl.load(exponents + subtree * n_patterns + rows, mask=live, other=0)
    log = log_sites(total, power, rows, live, invariant)
    return tl.sum(weighted(log, rows, live, weights), axis=0)


@triton.jit(do_not_specialize=["n_walks", "n_tiles", "n_branches", "n_patterns", "n_levels"])
def regraft_scores(
    walks, n_walks, n_tiles, steps, n_branches, ticket, messages, halves, exponents, whole, half, models,
    start, weights, invariant, rooms, rooms_exponents, scores, n_patterns, n_levels, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """scores: out, (steps, tiles). walks: (n, 4) int32: 0 first step · 1 behind the last · 2 half-edge whose
    message is the subtree's · 3 seat. Scratch of every program: rooms (levels, C, TILE, WIDTH),
    rooms_exponents (levels, 2, TILE): an exponent, and what is yet to be taken out."""
    program = tl.program_id(0).to(tl.int64) * n_levels
    room, room_exponents = rooms + program * C * TILE * WIDTH, rooms_exponents + program * 2 * TILE
    n_parts = tl.cast(n_walks, tl.int64) * n_tiles
    part = next_step(ticket)
    while part < n_parts:
        following = next_step(ticket)
        walk, tile = walks + (part % n_walks) * 4, part // n_walks  # walks of one tile share their messages
        rows = (tile * TILE).to(tl.int32) + tl.arange(0, TILE)
        live, subtree = rows < n_patterns, tl.load(walk + 2).to(tl.int64)
        seat = tl.load(walk + 3).to(tl.int64)
        model = model_of(models_of(models, seat, n_patterns), tile * TILE)
        matrices, shares = model * n_branches, seat * n_patterns
        for i in range(tl.load(walk), tl.load(walk + 1)):
            step = steps + tl.cast(i, tl.int64) * 8
            tl.debug_barrier()
            if tl.load(step + 5) != 0:
                _begin(step, matrices, rows, live, messages, exponents, whole, room, room_exponents,
                       n_patterns, C, WIDTH, BLOCK, TILE)  # fmt: skip
                tl.debug_barrier()
            value = _score(step, model, matrices, subtree, rows, live, messages, halves, exponents, whole,
                           half, start, weights + shares, invariant + shares, room, room_exponents,
                           n_patterns, C, WIDTH, BLOCK, TILE)  # fmt: skip
            tl.store(scores + tl.cast(i, tl.int64) * n_tiles + tile, value)
        part = following
