"""One proposal of many chains as a list of steps for a device, compiled: what a generation costs the host.

The list lies in one buffer of 64-bit words that the device reads (gpu/kernels/chains.py): a head, steps of
nodes, times of the matrices they want, copies, and what is copied. A step here is a whole node; the device
cuts it into tiles. Steps of all chains are in one order, deepest nodes first, so that a step waits for
earlier ones only.
"""

from __future__ import annotations

import numpy as np

from phloem.hardware.numba_compile import compiled
from phloem.pruning.cpu import chain_state as state
from phloem.pruning.cpu.chain_columns import renumber
from phloem.pruning.cpu.chain_state import (
    BRANCH,
    COLUMNS_IN,
    EDITED,
    MATRIX_IN,
    MESSAGE,
    MESSAGE_IN,
    MESSAGE_ROOM,
    MODEL,
    MOVED,
    N_BRANCHES,
    N_EDITS,
    PARENT,
    ROWS,
)

# The head of a list.
N_STEPS, N_COPIES, FIRST_COPY, N_WORDS, N_POST, N_ROOT, N_TOTALS, N_COLUMNS, N_ROWS, N_MATRICES = range(10)
HEAD = 16
# A step: a node's columns in one row. TIMES: place of its times in the list, -1 where it wants no matrix.
STEP = 16
KIND, OUT, SIZE, LEFT, RIGHT, MATRIX, CLASSES, AWAITS = range(8)
TARGET, RAISES, ROW, TIMES, ROOT, WITH_MODEL, CHAIN, NODE = range(8, STEP)
TIP, INTERNAL, AT_ROOT, TOTAL = range(4)
# A copy: what, from which word of the list, to where, how many words.
COPY = 4
OF_NUMBERS, OF_CLASSES = range(2)
CHUNK = 1024  # words of a copy at most

# What prepare answers.
READY, NO_ROOM = range(2)


@compiled
def _mark(own, x, marked, stamp):
    """A node and everything above it."""
    while x >= 0 and marked[x] != stamp:
        marked[x] = stamp
        x = own[x, PARENT]


@compiled
def _apply(chains, change, chain, own, was):
    """Write the new version of a chain; its dirty nodes, the root first, go to scratch.order."""
    trees, scratch = chains.trees, chains.scratch
    old, root, want, marked = trees.accepted[chain], len(own) - 1, scratch.want[chain], scratch.marked
    new, n_edits = 1 - old, change.counts[chain, N_EDITS]
    own[:] = was
    want[:] = 0
    trees.lengths[new, chain] = trees.lengths[old, chain]
    trees.model_in[new, chain] = trees.model_in[old, chain]
    trees.rates[new, chain], trees.length_set[new, chain] = (
        trees.rates[old, chain],
        trees.length_set[old, chain],
    )
    scratch.stamp[0] += 1
    stamp = scratch.stamp[0]
    for k in range(n_edits):
        x, a, b = change.edits[chain, k, 0], change.edits[chain, k, 1], change.edits[chain, k, 2]
        own[x, state.LEFT], own[x, state.RIGHT] = a, b
        own[a, PARENT] = own[b, PARENT] = x
        want[x] |= EDITED
    _mark(own, root, marked, stamp)
    for k in range(n_edits):
        _mark(own, change.edits[chain, k, 0], marked, stamp)
    for k in range(change.counts[chain, N_BRANCHES]):
        x = change.branches[chain, k]
        for s in range(trees.lengths.shape[2]):
            trees.lengths[new, chain, s, x] = change.lengths[chain, s, x]
        if x != root:
            want[x] |= BRANCH
            _mark(own, x, marked, stamp)
    if change.counts[chain, MODEL]:
        trees.model_in[new, chain] = 1 - trees.model_in[old, chain]
        trees.rates[new, chain], trees.length_set[new, chain] = change.rates[chain], change.length_set[chain]
        for x in range(root):
            want[x] |= BRANCH
            marked[x] = stamp
    order, depth = scratch.order[chain], scratch.depth[chain]
    order[0], depth[root], n, k = root, 0, 1, 0
    while k < n:
        x = order[k]
        a, b = own[x, state.LEFT], own[x, state.RIGHT]
        if a >= 0:
            if marked[a] == stamp:
                order[n], depth[a] = a, depth[x] + 1
                n += 1
            if marked[b] == stamp:
                order[n], depth[b] = b, depth[x] + 1
                n += 1
        k += 1
    scratch.n_order[chain] = n


@compiled
def _place_messages(chains, chain, own, was):
    """The other place of every dirty node's message and of every changed branch's matrix. Returns how many of
    these there are."""
    scratch, at, used, n = chains.scratch, chains.places.of[chain], chains.places.used, 0
    order, want = scratch.order[chain], scratch.want[chain]
    for k in range(1, scratch.n_order[chain]):
        x = order[k]
        place = 1 - was[x, MESSAGE_IN]
        own[x, MESSAGE_IN] = place
        size = at[own[x, COLUMNS_IN], x, state.SIZE]
        if at[place, x, MESSAGE_ROOM] < size:
            room = size + size // 4 if at[place, x, MESSAGE_ROOM] > 0 else size
            at[place, x, MESSAGE], at[place, x, MESSAGE_ROOM] = used[1], room
            used[1] += room
        if want[x] & BRANCH:
            own[x, MATRIX_IN] = 1 - was[x, MATRIX_IN]
            n += 1
    return n


@compiled
def _count_by_depth(scratch, active):
    """Where the steps of each depth begin, the deepest first: scratch.first, by edges below the deepest.
    Returns (steps of nodes, the root's left out; depth of the deepest)."""
    first, n, deepest = scratch.first, 0, 0
    for chain in range(len(active)):
        if active[chain]:
            n_order = scratch.n_order[chain]
            deepest = max(deepest, scratch.depth[chain, scratch.order[chain, n_order - 1]])
            n += n_order - 1
    first[: deepest + 2] = 0
    for chain in range(len(active)):
        if active[chain]:
            order, depth = scratch.order[chain], scratch.depth[chain]
            for k in range(1, scratch.n_order[chain]):
                first[deepest - depth[order[k]] + 1] += 1
    for d in range(deepest):
        first[d + 1] += first[d]
    return n, deepest


@compiled
def _tiles(own, at, x, tile):
    """Tiles of a node's columns."""
    return (at[own[x, COLUMNS_IN], x, state.SIZE] + tile - 1) // tile


@compiled
def _write_steps(chains, chain, deepest, steps, times, at_times):
    """The steps of a chain's dirty nodes, but for their rows; the root's is the chain's own. times:
    (matrices, C), at_times: (2,) place of the next one in the list, and its number."""
    trees, scratch, shape = chains.trees, chains.scratch, chains.shape
    new, n_chains, n_nodes = 1 - trees.accepted[chain], trees.node.shape[1], trees.node.shape[2]
    own, was, at = trees.node[new, chain], trees.node[1 - new, chain], chains.places.of[chain]
    order, depth, want, first = scratch.order[chain], scratch.depth[chain], scratch.want[chain], scratch.first
    lengths, length_set, rates = (
        trees.lengths[new, chain],
        trees.length_set[new, chain],
        trees.rates[new, chain],
    )
    model, first_counter = 2 * chain + trees.model_in[new, chain], 2 + chain * (n_nodes + 1)
    for j in range(1, scratch.n_order[chain]):
        x = order[j]
        d = deepest - depth[x]
        k = first[d]
        first[d] += 1
        a, b, place = own[x, state.LEFT], own[x, state.RIGHT], own[x, COLUMNS_IN]
        steps[k, KIND], steps[k, LEFT], steps[k, RIGHT], target = TIP, 0, 0, 0
        if a >= 0:
            steps[k, KIND] = INTERNAL
            steps[k, LEFT], steps[k, RIGHT] = (
                at[own[a, MESSAGE_IN], a, MESSAGE],
                at[own[b, MESSAGE_IN], b, MESSAGE],
            )
            # Dirty children lie in another place than in the version before.
            if own[a, MESSAGE_IN] != was[a, MESSAGE_IN]:
                target += _tiles(own, at, a, shape.post_tile)
            if own[b, MESSAGE_IN] != was[b, MESSAGE_IN]:
                target += _tiles(own, at, b, shape.post_tile)
        steps[k, SIZE], steps[k, CLASSES] = at[place, x, state.SIZE], at[place, x, ROWS]
        steps[k, OUT] = at[own[x, MESSAGE_IN], x, MESSAGE]
        steps[k, MATRIX] = (own[x, MATRIX_IN] * n_chains + chain) * (n_nodes - 1) + x
        steps[k, AWAITS], steps[k, TARGET] = first_counter + x, target * shape.parts
        steps[k, RAISES] = first_counter + own[x, PARENT]
        steps[k, TIMES], steps[k, ROOT] = -1, 0
        steps[k, WITH_MODEL], steps[k, CHAIN], steps[k, NODE] = model, chain, x
        if want[x] & BRANCH:
            steps[k, TIMES] = at_times[0]
            for c in range(len(rates)):
                times[at_times[1], c] = lengths[length_set[c], x] * rates[c]
            at_times[0] += len(rates)
            at_times[1] += 1


@compiled
def _write_root(chains, chain, step):
    """The step of a chain's root, but for its rows."""
    trees, shape = chains.trees, chains.shape
    new, n_nodes = 1 - trees.accepted[chain], trees.node.shape[2]
    own, was, at = trees.node[new, chain], trees.node[1 - new, chain], chains.places.of[chain]
    root, target = n_nodes - 1, 0
    a, b, first_counter = own[root, state.LEFT], own[root, state.RIGHT], 2 + chain * (n_nodes + 1)
    for child in (a, b):
        if own[child, MESSAGE_IN] != was[child, MESSAGE_IN]:
            target += _tiles(own, at, child, shape.post_tile)
    step[:] = 0
    step[KIND], step[SIZE], step[CLASSES] = AT_ROOT, shape.n_root, at[own[root, COLUMNS_IN], root, ROWS]
    step[OUT], step[ROOT] = at[own[root, MESSAGE_IN], root, MESSAGE], chain * shape.n_root
    step[LEFT], step[RIGHT] = at[own[a, MESSAGE_IN], a, MESSAGE], at[own[b, MESSAGE_IN], b, MESSAGE]
    step[AWAITS], step[TARGET], step[RAISES] = (
        first_counter + root,
        target * shape.parts,
        first_counter + n_nodes,
    )
    step[TIMES], step[WITH_MODEL], step[CHAIN] = -1, 2 * chain + trees.model_in[new, chain], chain


@compiled
def _write_total(chain, n_nodes, shape, step):
    """The last step of a chain: the sum over its root columns."""
    step[:] = 0
    step[KIND], step[SIZE], step[TIMES], step[CHAIN] = TOTAL, shape.n_root, -1, chain
    step[AWAITS] = 2 + chain * (n_nodes + 1) + n_nodes
    step[TARGET] = (shape.n_root + shape.root_tile - 1) // shape.root_tile
    step[ROOT] = chain * shape.n_root


@compiled
def _chunks(size):
    return (size + CHUNK - 1) // CHUNK


@compiled
def _new_versions(chains, change, active):
    """Write the new version of every active chain. Returns what its list holds: steps of nodes, matrices,
    copies, and words that are copied."""
    trees, places, scratch, blocks = chains.trees, chains.places, chains.scratch, chains.blocks
    n_matrices, n_words, n_copies, of_model = 0, 0, 0, 0
    for b in range(len(blocks)):
        of_model += _chunks(blocks[b, 1])
    for chain in range(len(active)):
        if active[chain] == 0:
            continue
        old = trees.accepted[chain]
        own, was = trees.node[1 - old, chain], trees.node[old, chain]
        _apply(chains, change, chain, own, was)
        if change.counts[chain, N_EDITS] > 0:
            renumber(chains, chain, own, was)
            for k in range(scratch.n_order[chain]):
                x = scratch.order[chain, k]
                if scratch.want[chain, x] & MOVED:
                    size = places.of[chain, own[x, COLUMNS_IN], x, state.SIZE]
                    n_copies += _chunks(size)
                    n_words += size
        if change.counts[chain, MODEL]:
            n_copies += of_model
            n_words += change.numbers.shape[1]
        n_matrices += _place_messages(chains, chain, own, was)
    return n_matrices, n_copies, n_words


@compiled
def prepare(chains, change, active, words):
    """Write the proposed version of every active chain and the list of what the device has to do for it.

    active: (H,) 1 for chains that take part; words: the list, int64. READY, or NO_ROOM where places.used
    (class rows) or words[N_WORDS] is beyond what there is: make room and call again.
    """
    trees, places, scratch, shape = chains.trees, chains.places, chains.scratch, chains.shape
    n_chains, n_nodes, n_categories = len(active), trees.node.shape[2], trees.rates.shape[2]
    n_times, n_copies, n_words = _new_versions(chains, change, active)
    (n_post, deepest), n_active = _count_by_depth(scratch, active), 0
    for chain in range(n_chains):
        n_active += active[chain]
    n_steps, n_one_place = n_post + 2 * n_active, n_chains * (n_nodes - 1)
    first_times = HEAD + STEP * n_steps
    first_copy = first_times + n_times * n_categories
    payload = first_copy + COPY * n_copies
    words[N_WORDS] = payload + n_words
    if words[N_WORDS] > len(words) or places.used[0] > len(places.rows):
        return NO_ROOM
    steps = words[HEAD:first_times].reshape((n_steps, STEP))
    times = words[first_times:first_copy].view(np.float64).reshape((n_times, n_categories))
    at_times = scratch.path
    at_times[0], at_times[1] = first_times, 0
    k = n_post
    for chain in range(n_chains):
        if active[chain]:
            _write_steps(chains, chain, deepest, steps, times, at_times)
            _write_root(chains, chain, steps[k])
            _write_total(chain, n_nodes, shape, steps[k + n_active])
            k += 1
    row, n_matrices, words[N_POST], words[N_ROOT] = 0, 0, 0, 0
    for k in range(n_steps):
        steps[k, ROW] = row
        if k < n_post:
            row += (steps[k, SIZE] + shape.post_tile - 1) // shape.post_tile
            n_matrices = max(n_matrices, steps[k, MATRIX] + 1)
        else:
            row += 1 if k >= n_post + n_active else (shape.n_root + shape.root_tile - 1) // shape.root_tile
        if k == n_post - 1:
            words[N_POST] = row
        if k == n_post + n_active - 1:
            words[N_ROOT] = row - words[N_POST]
    words[N_STEPS], words[N_MATRICES] = n_steps, (n_matrices + n_one_place - 1) // n_one_place * n_one_place
    words[N_TOTALS], words[N_ROWS], words[N_COPIES], words[FIRST_COPY] = n_active, row, n_copies, first_copy
    if n_copies > 0:
        copy = words[first_copy:payload].reshape((n_copies, COPY))
        _write_copies(chains, change, active, copy, payload, words)
    return READY


@compiled
def _describe(copy, k, what, word, place, size):
    """Copies of `size` words, from the k-th on. Returns how many there are then."""
    for begin in range(0, size, CHUNK):
        copy[k, 0], copy[k, 1], copy[k, 2] = what, word + begin, place + begin
        copy[k, 3] = min(size - begin, CHUNK)
        k += 1
    return k


@compiled
def _write_copies(chains, change, active, copy, payload, words):
    """New class rows and numbers of new models."""
    trees, places, scratch, blocks = chains.trees, chains.places, chains.scratch, chains.blocks
    k, word = 0, payload
    for chain in range(len(active)):
        if active[chain] == 0:
            continue
        new = 1 - trees.accepted[chain]
        if change.counts[chain, N_EDITS] > 0:
            for j in range(scratch.n_order[chain]):
                x = scratch.order[chain, j]
                if scratch.want[chain, x] & MOVED:
                    in_use = places.of[chain, trees.node[new, chain, x, COLUMNS_IN], x]
                    start, size = in_use[ROWS], in_use[state.SIZE]
                    k = _describe(copy, k, OF_CLASSES, word, start, size)
                    words[word : word + size] = places.rows[start : start + size]
                    word += size
        if change.counts[chain, MODEL]:
            numbers = change.numbers[chain].view(np.int64)
            for b in range(len(blocks)):
                place = blocks[b, 2] + (2 * chain + trees.model_in[new, chain]) * blocks[b, 1]
                k = _describe(copy, k, OF_NUMBERS, word + blocks[b, 0], place, blocks[b, 1])
            words[word : word + len(numbers)] = numbers
            word += len(numbers)
