"""A proposal of many chains in three launches: what changed comes up, matrices and tiles, and then all steps.

The list comes from pruning/cpu/chain_steps.py, which names its words; the same numbers stand here.
"""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.pruning.cpu import chain_steps as lists
from phloem.pruning.gpu.kernels.postorder import node_columns, node_tile
from phloem.pruning.gpu.kernels.product import announce, await_ready, next_step
from phloem.pruning.gpu.kernels.root import root_tile, sum_of_columns
from phloem.pruning.gpu.kernels.transition import matrix_tile, process_of

N_STEPS = tl.constexpr(lists.N_STEPS)
N_COPIES = tl.constexpr(lists.N_COPIES)
FIRST_COPY = tl.constexpr(lists.FIRST_COPY)
N_POST = tl.constexpr(lists.N_POST)
N_ROOT = tl.constexpr(lists.N_ROOT)
N_TOTALS = tl.constexpr(lists.N_TOTALS)
N_COLUMNS = tl.constexpr(lists.N_COLUMNS)
HEAD = tl.constexpr(lists.HEAD)
STEP = tl.constexpr(lists.STEP)
KIND = tl.constexpr(lists.KIND)
OUT = tl.constexpr(lists.OUT)
SIZE = tl.constexpr(lists.SIZE)
MATRIX = tl.constexpr(lists.MATRIX)
CLASSES = tl.constexpr(lists.CLASSES)
ROW = tl.constexpr(lists.ROW)
TIMES = tl.constexpr(lists.TIMES)
ROOT = tl.constexpr(lists.ROOT)
WITH_MODEL = tl.constexpr(lists.WITH_MODEL)
CHAIN = tl.constexpr(lists.CHAIN)
AWAITS = tl.constexpr(lists.AWAITS)
TARGET = tl.constexpr(lists.TARGET)
RAISES = tl.constexpr(lists.RAISES)
HOPS = tl.constexpr(lists.HOPS)
AT_ROOT = tl.constexpr(lists.AT_ROOT)
TOTAL = tl.constexpr(lists.TOTAL)
COPY = tl.constexpr(lists.COPY)
OF_NUMBERS = tl.constexpr(lists.OF_NUMBERS)
LOW = tl.constexpr(0xFFFFFFFF)


@triton.jit
def upload(host, words, numbers, left_class, right_class, counters, n_counters, CHUNK: tl.constexpr):
    """Bring the list up, and copies to where they belong; clear the counters. One program a chunk of CHUNK
    words or a copy, and one for the counters; further ones do nothing.

    host: the list, in memory of the host that the device reads. numbers: those of models, as int64.
    """
    program, lane = tl.program_id(0), tl.arange(0, CHUNK)
    end, n_copies = tl.load(host + FIRST_COPY), tl.load(host + N_COPIES)
    n_chunks = tl.cdiv(end, CHUNK)
    if program < n_chunks:
        place = program * CHUNK + lane
        tl.store(words + place, tl.load(host + place, mask=place < end, other=0), mask=place < end)
    elif program < n_chunks + n_copies:
        copy = host + end + (program - n_chunks) * COPY
        what, source, place = tl.load(copy), tl.load(copy + 1), tl.load(copy + 2)
        inside = lane < tl.load(copy + 3)
        word = tl.load(host + source + lane, mask=inside, other=0)
        if what == OF_NUMBERS:
            tl.store(numbers + place + lane, word, mask=inside)
        else:
            tl.store(left_class + place + lane, (word & LOW).to(tl.int32), mask=inside)
            tl.store(right_class + place + lane, (word >> 32).to(tl.int32), mask=inside)
    elif program == n_chunks + n_copies:
        for start in range(0, n_counters, CHUNK):
            tl.store(counters + start + lane, (lane * 0).to(tl.int32), mask=start + lane < n_counters)


@triton.jit
def _cut(step, rows, tile, LANES: tl.constexpr):
    """Rows of the tiles of a node, as the passes want them (postorder.py, root.py)."""
    kind, size = tl.load(step + KIND), tl.load(step + SIZE)
    column = tl.arange(0, STEP)
    row = tl.load(step + column)
    at_root = kind == AT_ROOT
    moves = (column == OUT) | (column == CLASSES) | (at_root & (column == ROOT))
    n_tiles = tl.where(kind == TOTAL, 1, tl.cdiv(size, tile))
    rows += tl.load(step + ROW) * STEP
    for first in range(0, n_tiles, LANES):
        begin = (first + tl.arange(0, LANES)) * tile
        left = tl.where(kind == TOTAL, size, tl.minimum(size - begin, tile))
        value = row[None, :] + tl.where(moves[None, :], begin[:, None], 0)
        value = tl.where((column == SIZE)[None, :], left[:, None], value)
        place = (first + tl.arange(0, LANES))[:, None] * STEP + column[None, :]
        tl.store(rows + place, value, mask=(first + tl.arange(0, LANES) < n_tiles)[:, None])


@triton.jit
def matrices_and_rows(
    words, rows, process, R, values, right, left, n_states, transition, C,
    POST_TILE: tl.constexpr, ROOT_TILE: tl.constexpr,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, CHUNKS: tl.constexpr, DTYPE: tl.constexpr,
):  # fmt: skip
    """Cut every step into tiles, and make the matrices of branches that want one. Grid: (steps, C,
    CHUNKS²)."""
    if tl.program_id(0) < tl.load(words + N_STEPS):
        step, c = words + HEAD + tl.program_id(0).to(tl.int64) * STEP, tl.program_id(1)
        if c + tl.program_id(2) == 0:
            _cut(step, rows, tl.where(tl.load(step + KIND) == AT_ROOT, ROOT_TILE, POST_TILE), 16)
        times = tl.load(step + TIMES)
        if times >= 0:
            g = process_of(process, R, tl.load(step + WITH_MODEL), c, C)
            time = tl.load(words + times + c).to(tl.float64, bitcast=True)
            matrix_tile(
                time, values + g * WIDTH, right + g * WIDTH * WIDTH, left + g * WIDTH * WIDTH, n_states,
                transition + (tl.load(step + MATRIX) * C + c) * WIDTH * WIDTH, tl.program_id(2),
                WIDTH, BLOCK, CHUNKS, DTYPE,
            )  # fmt: skip


@triton.jit
def _after_hops(column, live, first, n, words, left_class, right_class):
    """Columns of a node from those of one above, by the n hops from words[first] on."""
    for k in range(n):
        hop = tl.load(words + first + k)
        if (hop & 1) == 0:
            column = tl.load(left_class + (hop >> 1) + column, mask=live, other=0)
        else:
            column = tl.load(right_class + (hop >> 1) + column, mask=live, other=0)
    return column


@triton.jit
def _columns(item, rows, words, left_class, right_class, LAZY: tl.constexpr):
    """postorder.node_columns, or by hops where the step has any, which LAZY lists have only."""
    live, left, right = node_columns(item, rows, left_class, right_class)
    if LAZY:
        hops = tl.load(item + HOPS)
        if hops != 0:
            own = rows + tl.load(item + CLASSES).to(tl.int32)
            n_left, n_right = (hops >> 16) & 65535, hops & 65535
            left = _after_hops(own, live, hops >> 32, n_left, words, left_class, right_class)
            right = _after_hops(own, live, (hops >> 32) + n_left, n_right, words, left_class, right_class)
    return live, left, right


@triton.jit
def up_to_the_values(
    rows, words, counters, messages, exponents, shifts, transition, left_class, right_class, state_sets,
    process, R, frequencies, weights, invariant, invariant_frequencies, invariant_states, column_weights,
    ascertained, mantissa, power, site_log,
    total_weight, result, found, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, CHUNKS: tl.constexpr, TILE: tl.constexpr,
    ROOT_TILE: tl.constexpr,
    DTYPE: tl.constexpr, PRODUCT: tl.constexpr, UNROLL: tl.constexpr, LANES: tl.constexpr,
    ASCERTAINED: tl.constexpr, LAZY: tl.constexpr,
):  # fmt: skip
    """All steps of all chains in one launch: nodes, then roots, then sums (schedule.py).

    found: (H,) float64, in memory of the host; result: (H, 2), the same and what stands beside it
    (totals.py).
    """
    columns, n_rows = tl.load(words + N_COLUMNS), tl.load(words + N_POST)
    parts = C * CHUNKS
    end_of_post = n_rows * parts
    end_of_roots = end_of_post + tl.load(words + N_ROOT)
    end = end_of_roots + tl.load(words + N_TOTALS)
    step = next_step(counters)
    while step < end:
        following = next_step(counters)
        if step < end_of_post:
            node = rows + (step // parts) * STEP
            live, left, right = _columns(node, tl.arange(0, TILE), words, left_class, right_class, LAZY)
            node_tile(node, step % parts, live, left, right, columns, counters, messages, exponents, shifts,
                      transition, state_sets, C, WIDTH, BLOCK, CHUNKS, TILE, DTYPE, PRODUCT)  # fmt: skip
        else:
            item = rows + (n_rows + step - end_of_post) * STEP
            await_ready(counters + tl.load(item + AWAITS), tl.load(item + TARGET))
            if step < end_of_roots:
                of = tl.arange(0, ROOT_TILE)
                at, one, two = _columns(item, of, words, left_class, right_class, LAZY)
                root_tile(item, at, one, two, words, columns, messages, exponents, shifts, process, R,
                          frequencies, weights, invariant, invariant_frequencies, invariant_states,
                          column_weights, mantissa, power, site_log, messages,
                          C, WIDTH, BLOCK, CHUNKS, ROOT_TILE, DTYPE, UNROLL, False, False)  # fmt: skip
                announce(counters + tl.load(item + RAISES))
            else:
                chain = tl.load(item + CHAIN)
                value, beside = sum_of_columns(
                    tl.load(item + ROOT), tl.load(item + SIZE), column_weights, ascertained, site_log,
                    total_weight + chain, LANES, ASCERTAINED,
                )  # fmt: skip
                tl.store(result + 2 * chain, value)
                tl.store(result + 2 * chain + 1, beside)
                tl.store(found + chain, value)
        step = following
