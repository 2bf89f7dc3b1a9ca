"""The way down of many chains: roots, then every branch's columns by tickets, then sums over tiles.

The list comes from pruning/cpu/chain_gradients.py, which names its words; the same numbers stand here. What a
node's columns are summed from is in the lists of pruning/cpu/chain_sums.py.
"""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.pruning.cpu import chain_gradients as lists
from phloem.pruning.cpu import chain_steps
from phloem.pruning.gpu.kernels.postorder import block, node_columns
from phloem.pruning.gpu.kernels.product import announce, await_ready, fetch, next_step, scale_down, times
from phloem.pruning.gpu.kernels.root import root_q, root_tile, sum_of_partials
from phloem.pruning.gpu.kernels.transition import process_of

N_STEPS = tl.constexpr(lists.N_STEPS)
N_ROOT = tl.constexpr(lists.N_ROOT)
N_DOWN = tl.constexpr(lists.N_DOWN)
N_MESSAGES = tl.constexpr(lists.N_MESSAGES)
N_U = tl.constexpr(lists.N_U)
N_Q = tl.constexpr(lists.N_Q)
HEAD = tl.constexpr(lists.HEAD)
STEP = tl.constexpr(lists.STEP)
LIST = tl.constexpr(lists.LIST)
SIZE = tl.constexpr(lists.SIZE)
ABOVE = tl.constexpr(lists.ABOVE)
BESIDE = tl.constexpr(lists.BESIDE)
MATRIX = tl.constexpr(lists.MATRIX)
ENTRY = tl.constexpr(lists.ENTRY)
AWAITS = tl.constexpr(lists.AWAITS)
TARGET = tl.constexpr(lists.TARGET)
RAISES = tl.constexpr(lists.RAISES)
Q = tl.constexpr(lists.Q)
OWN = tl.constexpr(lists.OWN)
IS_SEVERAL = tl.constexpr(lists.IS_SEVERAL)
WITH_MODEL = tl.constexpr(lists.WITH_MODEL)
U = tl.constexpr(lists.U)
ROW = tl.constexpr(lists.ROW)
TIP = tl.constexpr(lists.TIP)
COMBINE = tl.constexpr(lists.COMBINE)
AT_ROOT = tl.constexpr(lists.AT_ROOT)
LOW = tl.constexpr(0xFFFFFFFF)
TIMES = tl.constexpr(chain_steps.TIMES)


@triton.jit
def cut(words, first_step, rows, TILE: tl.constexpr, ROOT_TILE: tl.constexpr, LANES: tl.constexpr):
    """Cut every step into tiles. Grid: steps; further ones do nothing."""
    if tl.program_id(0) < tl.load(words + N_STEPS):
        step = words + first_step + tl.program_id(0).to(tl.int64) * STEP
        column, kind, size = tl.arange(0, STEP), tl.load(step), tl.load(step + SIZE)
        row = tl.load(step + column)
        tile = tl.where(kind == AT_ROOT, ROOT_TILE, TILE)
        of_root = (column == 1) | (column == 6) | (column == 10) | (column == 12)
        of_node = (column == LIST) | ((column == U) & (kind != COMBINE))
        forward = tl.where(kind == AT_ROOT, of_root, of_node).to(tl.int64)
        forward -= ((column == IS_SEVERAL) & (kind != AT_ROOT)).to(tl.int64)
        rows += tl.load(step + ROW) * STEP
        n_tiles = tl.cdiv(size, tile)
        for first in range(0, n_tiles, LANES):
            begin = (first + tl.arange(0, LANES)) * tile
            value = row[None, :] + forward[None, :] * begin[:, None]
            value = tl.where((column == SIZE)[None, :], tl.minimum(size - begin, tile)[:, None], value)
            place = (first + tl.arange(0, LANES))[:, None] * STEP + column[None, :]
            tl.store(rows + place, value, mask=(first + tl.arange(0, LANES) < n_tiles)[:, None])


@triton.jit
def roots(
    rows, words, messages, exponents, shifts, left_class, right_class, process, R, frequencies, weights,
    invariant, invariant_frequencies, invariant_states, column_weights, mantissa, power, site_log, q, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, CHUNKS: tl.constexpr, TILE: tl.constexpr, DTYPE: tl.constexpr,
    UNROLL: tl.constexpr, KEEP: tl.constexpr, ADJOINT: tl.constexpr,
):  # fmt: skip
    """What root.site_likelihoods does, for the roots of a list. Grid: tiles of the roots of all chains."""
    if tl.program_id(0) < tl.load(words + N_ROOT):
        item = rows + tl.program_id(0).to(tl.int64) * STEP
        live, left, right = node_columns(item, tl.arange(0, TILE), left_class, right_class)
        root_tile(
            item, live, left, right, words + N_MESSAGES, tl.load(words + N_MESSAGES), messages, exponents,
            shifts, process, R, frequencies, weights, invariant, invariant_frequencies, invariant_states,
            column_weights, mantissa, power, site_log, q, C,
            WIDTH, BLOCK, CHUNKS, TILE, DTYPE, UNROLL, KEEP, ADJOINT,
        )  # fmt: skip


@triton.jit
def ascertained_roots(
    rows, words, exponents, shifts, process, R, frequencies, weights, column_weights, ascertained, mantissa,
    power, site_log, result, q, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, CHUNKS: tl.constexpr, TILE: tl.constexpr, DTYPE: tl.constexpr,
):  # fmt: skip
    """What root.root_adjoint does, for the roots of a list. Grid: (tiles of the roots of all chains, C)."""
    if tl.program_id(0) < tl.load(words + N_ROOT):
        root_q(
            rows + tl.program_id(0).to(tl.int64) * STEP, tl.program_id(1), words + N_MESSAGES, exponents,
            shifts, process, R, frequencies, weights, column_weights, ascertained, mantissa, power, site_log,
            result, 2, q, C, WIDTH, BLOCK, CHUNKS, TILE, DTYPE, True,
        )  # fmt: skip


@triton.jit
def _groups(item, sums, rows):
    """Of the groups of a tile: which there are, their class, where the entries of each begin and how many it
    has."""
    live = rows < tl.load(item + SIZE)
    place = sums + tl.load(item + LIST) + rows
    word = tl.load(place, mask=live, other=0)
    first = (word >> 32).to(tl.int32)
    end = (tl.load(place + 1, mask=live, other=0) >> 32).to(tl.int32)
    return live, (word & LOW).to(tl.int32), first, end - first


@triton.jit
def _entry(entries, first, count, step):
    """One entry of every group: whether there is one, a column of the parent's q and one of the sibling."""
    inside = count > step
    word = tl.load(entries + first + step, mask=inside, other=0)
    return inside, (word & LOW).to(tl.int32), (word >> 32).to(tl.int32)


@triton.jit
def _sum_entries(u, entries, first, count, start, longest, above, beside, state, WIDTH: tl.constexpr):
    """Add the groups' entries from `start` on to u = Σ q_parent ∘ m_sibling, in their order.

    Two at a time, and the places of the next two are fetched along with them. above: the parent's q,
    beside: the sibling's messages.
    """
    there, a, b = _entry(entries, first, count, start)
    there_next, a_next, b_next = _entry(entries, first, count, start + 1)
    for step in range(start, longest, 2):
        x, y = block(above, a, there, state, WIDTH), block(beside, b, there, state, WIDTH)
        z = block(above, a_next, there_next, state, WIDTH)
        w = block(beside, b_next, there_next, state, WIDTH)
        there, a, b = _entry(entries, first, count, step + 2)
        there_next, a_next, b_next = _entry(entries, first, count, step + 3)
        u += x * y
        u += z * w
    return u


@triton.jit
def _sum_pieces(u, first, count, longest, pieces, state, WIDTH: tl.constexpr):
    """Add the pieces of every class to u, in their order."""
    for step in range(0, longest, 2):
        x = block(pieces, first + step, count > step, state, WIDTH)
        y = block(pieces, first + step + 1, count > step + 1, state, WIDTH)
        u += x
        u += y
    return u


@triton.jit
def _tile_whole(
    item, row, c, words, sums, counters, messages, shifts, q, pieces, transition, generator, partial, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr, DTYPE: tl.constexpr,
    PRODUCT: tl.constexpr, KEEP_U: tl.constexpr,
):  # fmt: skip
    """u = Σ q_parent ∘ m_sibling, q = u P and the partial ⟨Qᵀu, m⟩ of the branch derivative, all states in
    one block; of a class that has several groups, u of each is a piece, and COMBINE adds the pieces and makes
    q.

    Only q of the parent is awaited, and others only await q and pieces: the rest comes before or after. m
    comes last: fetched any earlier, it takes registers that the products want (measured).
    """
    rows, state = tl.arange(0, TILE), tl.arange(0, BLOCK)
    kind, columns = tl.load(item), tl.load(words + N_MESSAGES)
    live, own, first, count = _groups(item, sums, rows)
    longest = tl.max(count, axis=0)
    ready, target_count = counters + tl.load(item + AWAITS), tl.load(item + TARGET)
    messages += c * columns * WIDTH
    q += c * tl.load(words + N_Q) * WIDTH
    pieces += (c * tl.load(words + N_U) + tl.load(item + U)) * WIDTH
    several = rows < tl.load(item + IS_SEVERAL)
    matrix = transition + (tl.load(item + MATRIX) * C + c) * WIDTH * WIDTH
    shift = tl.load(shifts + c * columns + tl.load(item + OWN) + own, mask=live, other=0)
    operand = fetch(matrix, True, WIDTH, BLOCK, DTYPE)
    if kind == COMBINE:
        await_ready(ready, target_count)
        u = _sum_pieces(tl.zeros((TILE, BLOCK), DTYPE), first, count, longest, pieces, state, WIDTH)
    else:
        above, beside = q + tl.load(item + ABOVE) * WIDTH, messages + tl.load(item + BESIDE) * WIDTH
        entries = sums + tl.load(item + ENTRY)
        there, a, b = _entry(entries, first, count, 0)
        y = block(beside, b, there, state, WIDTH)
        await_ready(ready, target_count)
        u = block(above, a, there, state, WIDTH) * y
        if longest > 1:
            u = _sum_entries(u, entries, first, count, 1, longest, above, beside, state, WIDTH)
    inside = (state < WIDTH)[None, :]
    if kind != TIP:
        passed = scale_down(times(u, operand, True, WIDTH, TILE, DTYPE, PRODUCT), shift[:, None], DTYPE)
        out = q + (tl.load(item + Q) + own)[:, None] * WIDTH + state[None, :]
        tl.store(out, passed, mask=(live & (several == 0))[:, None] & inside)
    if kind != COMBINE:
        kept = live & (several | KEEP_U)
        tl.store(pieces + rows[:, None] * WIDTH + state[None, :], u, mask=kept[:, None] & inside)
    if kind != TIP:
        announce(counters + tl.load(item + RAISES))
    if kind != COMBINE:
        change = times(u, fetch(generator, True, WIDTH, BLOCK, DTYPE), True, WIDTH, TILE, DTYPE, PRODUCT)
        m = block(messages + tl.load(item + OWN) * WIDTH, own, live, state, WIDTH)
        tl.store(partial + row * C + c, tl.sum(change.to(tl.float64) * m.to(tl.float64)))


@triton.jit
def _tile_blocks(
    item, row, c, chunk, words, sums, counters, messages, shifts, q, pieces, transition, generator, partial,
    C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, CHUNKS: tl.constexpr, TILE: tl.constexpr,
    DTYPE: tl.constexpr, PRODUCT: tl.constexpr, KEEP_U: tl.constexpr,
):  # fmt: skip
    """The same where the states take CHUNKS blocks: this program writes block `chunk` of all q and pieces."""
    rows = tl.arange(0, TILE)
    kind, columns = tl.load(item), tl.load(words + N_MESSAGES)
    live, own, first, count = _groups(item, sums, rows)
    longest = tl.max(count, axis=0)
    messages += c * columns * WIDTH
    q += c * tl.load(words + N_Q) * WIDTH
    pieces += (c * tl.load(words + N_U) + tl.load(item + U)) * WIDTH
    several = rows < tl.load(item + IS_SEVERAL)
    matrix = transition + (tl.load(item + MATRIX) * C + c) * WIDTH * WIDTH
    target = chunk * BLOCK + tl.arange(0, BLOCK)
    inside = (target < WIDTH)[None, :]
    change = tl.zeros((TILE, BLOCK), DTYPE)
    for step in range(CHUNKS):
        state = step * BLOCK + tl.arange(0, BLOCK)
        m = block(messages + tl.load(item + OWN) * WIDTH, own, live, state, WIDTH)
        in_g = (state < WIDTH)[:, None] & inside
        g = tl.load(generator + (state[:, None] * WIDTH + target[None, :]), mask=in_g, other=0.0).to(DTYPE)
        change = tl.dot(m, g, acc=change, input_precision=PRODUCT, out_dtype=DTYPE)
    shift = tl.load(shifts + c * columns + tl.load(item + OWN) + own, mask=live, other=0)
    above, beside = q + tl.load(item + ABOVE) * WIDTH, messages + tl.load(item + BESIDE) * WIDTH
    entries = sums + tl.load(item + ENTRY)
    await_ready(counters + tl.load(item + AWAITS), tl.load(item + TARGET))
    passed = tl.zeros((TILE, BLOCK), DTYPE)
    derivative = tl.zeros((1,), tl.float64)
    for step in range(CHUNKS):
        state = step * BLOCK + tl.arange(0, BLOCK)
        u = tl.zeros((TILE, BLOCK), DTYPE)
        if kind == COMBINE:
            u = _sum_pieces(u, first, count, longest, pieces, state, WIDTH)
        else:
            u = _sum_entries(u, entries, first, count, 0, longest, above, beside, state, WIDTH)
            if step == chunk:
                derivative += tl.sum(u.to(tl.float64) * change.to(tl.float64))
                kept = live & (several | KEEP_U)
                tl.store(pieces + rows[:, None] * WIDTH + target[None, :], u, mask=kept[:, None] & inside)
        if kind != TIP:
            in_p = (state < WIDTH)[:, None] & inside
            p = tl.load(matrix + (target[None, :] * WIDTH + state[:, None]), mask=in_p, other=0.0)
            passed = tl.dot(u, p, acc=passed, input_precision=PRODUCT, out_dtype=DTYPE)
    if kind != TIP:
        passed = scale_down(passed, shift[:, None], DTYPE)
        out = q + (tl.load(item + Q) + own)[:, None] * WIDTH + target[None, :]
        tl.store(out, passed, mask=(live & (several == 0))[:, None] & inside)
        announce(counters + tl.load(item + RAISES))
    if kind != COMBINE:
        tl.store(partial + (row * C + c) * CHUNKS + chunk + tl.arange(0, 1), derivative)


@triton.jit
def down(
    rows, words, sums, counters, messages, shifts, q, pieces, transition, process, R, generators, partial, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, CHUNKS: tl.constexpr, TILE: tl.constexpr,
    DTYPE: tl.constexpr, PRODUCT: tl.constexpr, KEEP_U: tl.constexpr,
):  # fmt: skip
    """Every tile from the roots' children to the tips in one launch (product.py says how steps wait).

    sums: the lists of pruning/cpu/chain_sums.py. q, pieces: (C, N_Q or N_U columns, WIDTH). partial: float64,
    one derivative for each row, category and chunk; generators: (models, R, WIDTH, WIDTH) float64, Qᵀ of
    every process; process: (models, C) int64, numbers below R.
    """
    parts, n_root = C * CHUNKS, tl.load(words + N_ROOT)
    n_steps = tl.load(words + N_DOWN) * parts
    step = next_step(counters)
    while step < n_steps:
        following = next_step(counters)
        row = n_root + step // parts
        item, c = rows + row * STEP, (step % parts) // CHUNKS
        generator = generators + process_of(process, R, tl.load(item + WITH_MODEL), c, C) * WIDTH * WIDTH
        if CHUNKS == 1:
            _tile_whole(item, row, c, words, sums, counters, messages, shifts, q, pieces, transition,
                        generator, partial, C, WIDTH, BLOCK, TILE, DTYPE, PRODUCT, KEEP_U)  # fmt: skip
        else:
            _tile_blocks(item, row, c, step % CHUNKS, words, sums, counters, messages, shifts, q, pieces,
                         transition, generator, partial, C, WIDTH, BLOCK, CHUNKS, TILE, DTYPE, PRODUCT,
                         KEEP_U)  # fmt: skip
        step = following


@triton.jit
def branches(
    words, first_step, partial, derivatives, found, n_branches, n_chains, K, C,
    CHUNKS: tl.constexpr, TILE: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Derivatives by (branch, category), and d log L / d length = Σ rate · derivative over each set of
    lengths. Grid: steps; further ones do nothing.

    derivatives: (H, branches, C); found: (H, K, branches + 1), in memory of the host.
    """
    step = words + first_step + tl.program_id(0).to(tl.int64) * STEP
    if tl.program_id(0) < tl.load(words + N_STEPS):
        kind = tl.load(step)
        if kind <= 1:
            branch = tl.load(step + MATRIX) % (n_chains * n_branches)
            chain = branch // n_branches
            first, n = tl.load(step + ROW), tl.cdiv(tl.load(step + SIZE), TILE)
            rates = words + HEAD + chain * 2 * C
            for k in range(K):
                total = tl.full((), 0.0, tl.float64)
                for c in range(C):
                    if tl.load(rates + C + c) == k:
                        value = sum_of_partials(partial, first, n, c, C, CHUNKS, LANES)
                        tl.store(derivatives + branch * C + c, value)
                        total += tl.load(rates + c).to(tl.float64, bitcast=True) * value
                tl.store(found + (chain * K + k) * (n_branches + 1) + branch % n_branches, total)


@triton.jit
def leap(
    words, down_words, lengths, momenta, gradients, step_size, inverse_mass, n_branches, n_chains, K, C
):  # fmt: skip
    """p += ε ∇ and q += ε M⁻¹ p of every branch that a list of chain_steps makes a matrix of, and the times
    of that matrix in the list. Grid: steps of the list; further ones do nothing.

    lengths, momenta, gradients, inverse_mass: (H, K, branches + 1); step_size: (H,); down_words: the list of
    the way down, which has rates and sets of lengths.
    """
    step = words + HEAD + tl.program_id(0).to(tl.int64) * STEP
    if tl.program_id(0) < tl.load(words + N_STEPS):
        times = tl.load(step + TIMES)
        if times >= 0:
            branch = tl.load(step + MATRIX) % (n_chains * n_branches)
            chain = branch // n_branches
            first = chain * K * (n_branches + 1) + branch % n_branches
            epsilon = tl.load(step_size + chain)
            for k in range(K):
                place = first + k * (n_branches + 1)
                p = tl.load(momenta + place) + epsilon * tl.load(gradients + place)
                q = tl.load(lengths + place) + epsilon * tl.load(inverse_mass + place) * p
                tl.store(momenta + place, tl.where(q < 0, 0.0 - p, p))
                tl.store(lengths + place, tl.abs(q))
            tl.debug_barrier()
            rates = down_words + HEAD + chain * 2 * C
            for c in range(C):
                q = tl.load(lengths + first + tl.load(rates + C + c) * (n_branches + 1))
                time = q * tl.load(rates + c).to(tl.float64, bitcast=True)
                tl.store(words + times + c, time.to(tl.int64, bitcast=True))
