"""One proposal of many chains as a list of steps for a device, compiled: what a generation costs the host.

The list lies in one buffer of 64-bit words that the device reads (gpu/kernels/chains.py): a head, steps of
nodes, times of the matrices they want, hops, copies, and what is copied. A step here is a whole node; the
device cuts it into tiles. Steps of all chains are in one order, deepest nodes first, so that a step waits for
earlier ones only.

One thread has a set of chains: what it takes of the room that they share is counted without locks.
"""

from __future__ import annotations

import numpy as np

from phloem.hardware.numba_compile import uncounted
from phloem.pruning.cpu import chain_state as state
from phloem.pruning.cpu.chain_columns import n_hops, write_hops
from phloem.pruning.cpu.chain_state import (
    BRANCH,
    COLUMNS_IN,
    DIRTY,
    MATRIX_IN,
    MESSAGE,
    MESSAGE_IN,
    MODEL,
    MOVED,
    PARENT,
    RENUMBERED,
    ROWS,
)  # fmt: skip
from phloem.pruning.cpu.chain_versions import (
    ACTIVE,
    CHUNK,
    DEEPEST,
    NO_ROOM,
    PART_COPIES,
    PART_HOPS,
    PART_TIMES,
    PART_WORDS,
    PLACES,
    READY,
    ROOT_TILE,
    WANTED_ROWS,
    tiles,
)  # fmt: skip

# The head of a list.
N_STEPS, N_COPIES, FIRST_COPY, N_WORDS, N_POST, N_ROOT, N_TOTALS, N_COLUMNS, N_ROWS, N_MATRICES = range(10)
HEAD = 16
# A step: a node's columns in one row. CLASSES: its class rows; or where its columns begin, if HOPS is not 0:
# then they are columns of the top of its region, and (place of hops << 32) + (hops to the left child's column
# << 16) + those to the right child's. TIMES: place of its times in the list, -1 where it wants no matrix.
STEP = 16
KIND, OUT, SIZE, LEFT, RIGHT, MATRIX, CLASSES, AWAITS = range(8)
TARGET, RAISES, ROW, TIMES, ROOT, WITH_MODEL, CHAIN, HOPS = range(8, STEP)
TIP, INTERNAL, AT_ROOT, TOTAL = range(4)
# A copy: what, from which word of the list, to where, how many words.
COPY = 4
OF_NUMBERS, OF_CLASSES = range(2)


@uncounted
def _share_depths(scratch, active, first, first_row):
    """Where the steps of every chain and depth begin, the deepest first, and their rows of tiles. Returns
    (steps of nodes, rows)."""
    deepest, k, row = 0, first, first_row
    for chain in range(len(active)):
        if active[chain]:
            deepest = max(deepest, scratch.part[chain, DEEPEST])
    for d in range(deepest, 0, -1):
        for chain in range(len(active)):
            if active[chain] and d <= scratch.part[chain, DEEPEST]:
                n, tiles = scratch.at_depth[chain, d], scratch.tiles_at[chain, d]
                scratch.at_depth[chain, d], scratch.tiles_at[chain, d] = k, row
                k += n
                row += tiles
    return k, row


@uncounted
def lay_out(chains, active, words):
    """Give every active chain its place in the list, and write the list's head.

    active: (H,) 1 for chains that take part, whose version was written; words: the list, int64. READY, or
    NO_ROOM where places.used (class rows, with those that settling may take) or words[N_WORDS] is beyond what
    there is: make room and begin again.
    """
    scratch, shape, n_chains, n_nodes = chains.scratch, chains.shape, len(active), chains.trees.node.shape[2]
    n_categories, n_active, places, wanted, root_rows = chains.trees.rates.shape[2], 0, 0, 0, 0
    for chain in range(n_chains):
        if active[chain]:
            scratch.part[chain, ACTIVE], scratch.part[chain, ROOT_TILE] = n_active, root_rows
            n_active += 1
            root_rows += tiles(chains.places.of[chain, 0, n_nodes - 1, state.SIZE], shape.root_tile)
            places = max(places, scratch.part[chain, PLACES])
            wanted += scratch.part[chain, WANTED_ROWS]
    n_post, post_rows = _share_depths(scratch, active, 0, 0)
    words[N_STEPS], words[N_POST], words[N_ROOT] = n_post + 2 * n_active, post_rows, root_rows
    words[N_TOTALS], words[N_ROWS] = n_active, post_rows + root_rows + n_active
    words[N_MATRICES] = places * n_chains * (n_nodes - 1)
    at = HEAD + STEP * words[N_STEPS]
    for what, size in ((PART_TIMES, n_categories), (PART_HOPS, 1), (PART_COPIES, COPY), (PART_WORDS, 1)):
        if what == PART_COPIES:
            words[FIRST_COPY] = at
        first = at
        for chain in range(n_chains):
            if active[chain]:
                n = scratch.part[chain, what]
                scratch.part[chain, what] = at
                at += n * size
        if what == PART_COPIES:
            words[N_COPIES] = (at - first) // COPY
    words[N_WORDS] = at
    chains.places.used[2] = 0 if not shape.lazy else wanted
    missing = chains.places.used[0] + chains.places.used[2] > len(chains.places.rows)
    return NO_ROOM if missing or at > len(words) else READY


@uncounted
def write_part(chains, change, chain, words):
    """The steps of a chain, their times and hops, and what is copied for it, where lay_out says."""
    trees, scratch = chains.trees, chains.scratch
    old = trees.accepted[chain]
    own, was, part = trees.node[1 - old, chain], trees.node[old, chain], scratch.part[chain]
    times, hops = part[PART_TIMES], part[PART_HOPS]
    model = 2 * chain + trees.model_in[1 - old, chain]
    lengths, length_set = trees.lengths[1 - old, chain], trees.length_set[1 - old, chain]
    rates, real = trees.rates[1 - old, chain], words.view(np.float64)
    for j in range(1, scratch.n_order[chain]):
        x = scratch.order[chain, j]
        d = scratch.depth[chain, x]
        k, row = scratch.at_depth[chain, d], scratch.tiles_at[chain, d]
        size = _write_node(chains, chain, own, x, words[HEAD + STEP * k : HEAD + STEP * (k + 1)])
        scratch.at_depth[chain, d] = k + 1
        scratch.tiles_at[chain, d] = row + tiles(size, chains.shape.post_tile)
        step = words[HEAD + STEP * k : HEAD + STEP * (k + 1)]
        step[ROW], step[WITH_MODEL] = row, model
        if chains.shape.lazy and scratch.want[chain, x] & MOVED:
            hops = _hop(chains, chain, (own, was), x, words, step, hops)
        if scratch.want[chain, x] & BRANCH:
            step[TIMES] = times
            for c in range(len(rates)):
                real[times + c] = lengths[length_set[c], x] * rates[c]
            times += len(rates)
    _write_ends(chains, chain, (own, was), model, words, hops)
    _write_copies(chains, change, chain, words)


@uncounted
def _write_node(chains, chain, own, x, step):
    """The step of a node, as if it had class rows, without a matrix to be made. Returns its columns."""
    at, want, n_nodes = chains.places.of[chain], chains.scratch.want[chain], chains.trees.node.shape[2]
    a, b, place, first_counter = (
        own[x, state.LEFT],
        own[x, state.RIGHT],
        own[x, COLUMNS_IN],
        2 + chain * (n_nodes + 1),
    )
    step[KIND], step[LEFT], step[RIGHT], target = TIP, 0, 0, 0
    if a >= 0:
        step[KIND], step[LEFT] = INTERNAL, at[own[a, MESSAGE_IN], a, MESSAGE]
        step[RIGHT] = at[own[b, MESSAGE_IN], b, MESSAGE]
        if want[a] & DIRTY:
            target += tiles(at[own[a, COLUMNS_IN], a, state.SIZE], chains.shape.post_tile)
        if want[b] & DIRTY:
            target += tiles(at[own[b, COLUMNS_IN], b, state.SIZE], chains.shape.post_tile)
    step[SIZE], step[CLASSES] = at[place, x, state.SIZE], at[place, x, ROWS]
    step[OUT] = at[own[x, MESSAGE_IN], x, MESSAGE]
    step[MATRIX] = (own[x, MATRIX_IN] * len(chains.trees.accepted) + chain) * (n_nodes - 1) + x
    step[AWAITS], step[TARGET] = first_counter + x, target * chains.shape.parts
    step[RAISES] = first_counter + own[x, PARENT]
    step[TIMES], step[ROOT], step[CHAIN], step[HOPS] = -1, 0, chain, 0
    return step[SIZE]


@uncounted
def _hop(chains, chain, versions, x, words, step, first):
    """Columns of x's children by hops from the columns of the top of its region. Returns where the next hops
    go."""
    own, was = versions
    at, want, top = chains.places.of[chain], chains.scratch.want[chain], chains.scratch.top[chain, x]
    step[CLASSES], step[HOPS], end = 0, first, first
    for side in (state.LEFT, state.RIGHT):
        child = own[x, side]
        n = 0 if want[child] & RENUMBERED else n_hops(was, top, child)
        if n > 0:
            write_hops(was, at, top, child, words, end + n)
        end += n
        step[HOPS] = (step[HOPS] << 16) + n
    return end


@uncounted
def _write_ends(chains, chain, versions, model, words, hops):
    """The steps of a chain's root and of the sum over its columns."""
    shape, root = chains.shape, chains.trees.node.shape[2] - 1
    first, n_root = (
        chains.places.of[chain, 0, root, state.FIRST_ROOT],
        chains.places.of[chain, 0, root, state.SIZE],
    )
    own, n_tiles = versions[0], tiles(n_root, shape.root_tile)
    k = words[N_STEPS] - 2 * words[N_TOTALS] + chains.scratch.part[chain, ACTIVE]
    step = words[HEAD + STEP * k : HEAD + STEP * (k + 1)]
    _write_node(chains, chain, own, root, step)
    step[KIND], step[MATRIX], step[WITH_MODEL], step[ROOT] = AT_ROOT, 0, model, first
    step[RAISES], step[ROW] = (
        step[AWAITS] + 1,
        words[N_POST] + chains.scratch.part[chain, ROOT_TILE],
    )
    if shape.lazy and chains.scratch.want[chain, root] & MOVED:
        _hop(chains, chain, versions, root, words, step, hops)
    awaits, k = step[RAISES], k + words[N_TOTALS]
    step = words[HEAD + STEP * k : HEAD + STEP * (k + 1)]
    for i in range(STEP):
        step[i] = 0
    step[KIND], step[SIZE], step[TIMES], step[CHAIN] = TOTAL, n_root, -1, chain
    step[AWAITS], step[TARGET], step[ROOT] = awaits, n_tiles, first
    step[ROW] = words[N_POST] + words[N_ROOT] + chains.scratch.part[chain, ACTIVE]


@uncounted
def _describe(words, at, what, word, place, size):
    """Copies of `size` words. Returns where the next one is described."""
    for begin in range(0, size, CHUNK):
        words[at], words[at + 1], words[at + 2] = what, word + begin, place + begin
        words[at + 3] = min(size - begin, CHUNK)
        at += COPY
    return at


@uncounted
def _write_copies(chains, change, chain, words):
    """New class rows and numbers of a new model."""
    trees, places, scratch, blocks = chains.trees, chains.places, chains.scratch, chains.blocks
    at, word = scratch.part[chain, PART_COPIES], scratch.part[chain, PART_WORDS]
    for k in range(scratch.n_fresh[chain, 1]):
        node, place = scratch.fresh[chain, k] >> 1, scratch.fresh[chain, k] & 1
        start, size = places.of[chain, place, node, ROWS], places.of[chain, place, node, state.SIZE]
        at = _describe(words, at, OF_CLASSES, word, start, size)
        for j in range(size):
            words[word + j] = places.rows[start + j]
        word += size
    if change.counts[chain, MODEL]:
        numbers, real = change.numbers[chain], words.view(np.float64)
        model = 2 * chain + trees.model_in[1 - trees.accepted[chain], chain]
        for b in range(len(blocks)):
            place = blocks[b, 2] + model * blocks[b, 1]
            at = _describe(words, at, OF_NUMBERS, word + blocks[b, 0], place, blocks[b, 1])
        for j in range(len(numbers)):
            real[word + j] = numbers[j]
