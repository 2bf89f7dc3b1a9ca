"""The way down of many chains as a list of steps for a device, compiled: what a gradient costs the host.

The list lies in one buffer of 64-bit words that the device reads (gpu/kernels/chain_gradients.py): a head,
rates and sets of lengths of every chain's categories, steps, copies, and what is copied, which are the lists
of sums (chain_sums.py) that the device does not have yet. A step is a whole node, or its classes that have
several groups; the device cuts it into tiles. Steps are in the order of depth, so that a step waits for
earlier ones only.
"""

from __future__ import annotations

import numpy as np

from phloem.hardware.numba_compile import compiled
from phloem.pruning.cpu import chain_state as state
from phloem.pruning.cpu.chain_evaluation import NO_ANSWER, NO_GRAPH, NOTHING_YET, room, start_graph
from phloem.pruning.cpu.chain_state import (
    COLUMNS_IN,
    MATRIX_IN,
    MESSAGE,
    MESSAGE_IN,
    PARENT,
    ROWS,
    ROWS_WRITTEN,
)
from phloem.pruning.cpu.chain_steps import (
    COPY,
    FIRST_COPY,
    HEAD,
    N_COPIES,
    N_STEPS,
    N_WORDS,
    OF_NUMBERS,
    STEP,
)  # fmt: skip
from phloem.pruning.cpu.chain_sums import (
    CLASSES,
    ENTRIES,
    FIRST,
    GROUPS,
    MADE_FROM,
    SEVERAL,
    is_made,
    make_lists,
    most_words,
)
from phloem.pruning.cpu.chain_versions import CHUNK, NO_ROOM, READY, tiles
from phloem.pruning.cpu.schedule import read_shared

# The head of a list: the first words are those of chain_steps. Rows of tiles of roots and of what follows;
# columns of messages, of the pieces u and of q, in the order that kernels/root.py wants.
N_ROOT, N_DOWN, N_MESSAGES, N_U, N_Q = 4, 5, 10, 11, 12
# A step: a node's groups (KIND: TIP or INTERNAL) or its classes that have several (COMBINE); a step of a
# root is one of chain_steps. ABOVE: first q column of the parent; BESIDE, OWN: first messages of the sibling
# and of the node; LIST, ENTRY: words of the device's lists; IS_SEVERAL: groups before this one are pieces.
KIND, LIST, SIZE, ABOVE, BESIDE, MATRIX, ENTRY, AWAITS = range(8)
TARGET, RAISES, Q, OWN, IS_SEVERAL, WITH_MODEL, U, ROW = range(8, STEP)
TIP, INTERNAL, COMBINE, AT_ROOT = range(4)


@compiled
def _version(trees, chain):
    """What a chain proposes, else what it accepted."""
    return 1 - trees.accepted[chain] if trees.pending[chain] else trees.accepted[chain]


@compiled
def _bounds(chains, sums, active):
    """(steps, copies, words copied) at most."""
    trees, places, n_nodes = chains.trees, chains.places, chains.trees.node.shape[2]
    n_steps, n_copies, n_words = 0, 0, 0
    for chain in range(len(active)):
        if active[chain] == 0:
            continue
        own = trees.node[_version(trees, chain), chain]
        n_steps += 2 * n_nodes
        for x in range((n_nodes + 1) // 2, n_nodes):
            if not is_made(places, sums, chain, own, x):
                n_columns = places.of[chain, own[x, COLUMNS_IN], x, state.SIZE]
                for side in (state.LEFT, state.RIGHT):
                    child = own[x, side]
                    n_classes = places.of[chain, own[child, COLUMNS_IN], child, state.SIZE]
                    n = most_words(n_columns, n_classes, sums.longest[0])
                    n_words += n
                    n_copies += n // CHUNK + 1
    return n_steps, n_copies, n_words


@compiled
def _new_lists(chains, sums, active, words, payload, copies):
    """Make the lists of sums that are missing, in words from payload on. copies: (n, COPY), what goes where.
    Returns how many copies there are, and the end of the words."""
    trees, places, n_nodes = chains.trees, chains.places, chains.trees.node.shape[2]
    n_copies, n_tips = 0, (n_nodes + 1) // 2
    for chain in range(len(active)):
        if active[chain] == 0:
            continue
        own = trees.node[_version(trees, chain), chain]
        for x in range(n_tips, n_nodes):
            if is_made(places, sums, chain, own, x):
                continue
            make_lists(places, sums, chain, own, x, words[payload:], n_tips)
            for side in range(2):
                of = sums.of[chain, own[x, COLUMNS_IN], x, side]
                n = of[GROUPS] + 1 + of[ENTRIES] + of[CLASSES] + 1
                for begin in range(0, n, CHUNK):
                    copies[n_copies, 0], copies[n_copies, 1] = OF_NUMBERS, payload + begin
                    copies[n_copies, 2], copies[n_copies, 3] = of[FIRST] + begin, min(n - begin, CHUNK)
                    n_copies += 1
                payload += n
    return n_copies, payload


@compiled
def _order(own, sums):
    """Nodes of a tree from the root down, by depth: sums.order, sums.depth."""
    order, depth, n = sums.order, sums.depth, 1
    order[0], depth[len(own) - 1] = len(own) - 1, 0
    for k in range(len(own)):
        x = order[k]
        if own[x, state.LEFT] >= 0:
            for side in (state.LEFT, state.RIGHT):
                order[n] = own[x, side]
                depth[order[n]] = depth[x] + 1
                n += 1


@compiled
def _list_of(own, sums, chain, x):
    """The list of x's sums, which its parent's columns decide."""
    k = own[x, PARENT]
    return sums.of[chain, own[k, COLUMNS_IN], k, 0 if own[k, state.LEFT] == x else 1]


@compiled
def _count_by_depth(chains, sums, active):
    """Where the steps of every depth begin, and behind them those of COMBINE: sums.first. Returns how many
    steps there are, the roots' left out."""
    trees, first = chains.trees, sums.first
    n_tips, n, deepest = (trees.node.shape[2] + 1) // 2, 0, 0
    first[:] = 0
    for chain in range(len(active)):
        if active[chain]:
            own = trees.node[_version(trees, chain), chain]
            _order(own, sums)
            for k in range(1, len(own)):
                x = sums.order[k]
                d = 2 * sums.depth[x]
                first[d + 1] += 1
                n += 1
                if x >= n_tips and _list_of(own, sums, chain, x)[CLASSES] > 0:
                    first[d + 2] += 1
                    n += 1
                deepest = max(deepest, d)
    for d in range(deepest + 2):
        first[d + 1] += first[d]
    return n


@compiled
def _write_steps(chains, sums, chain, tile, keep_u, steps, at):
    """The steps of a chain, but for their rows. tile: columns of a step; at: (2,) columns of q and of u that
    are taken, which rise."""
    trees, shape = chains.trees, chains.shape
    version, n_chains, n_nodes = _version(trees, chain), len(trees.accepted), trees.node.shape[2]
    own, places, first = trees.node[version, chain], chains.places.of[chain], sums.first
    n_tips, root, counters = (n_nodes + 1) // 2, n_nodes - 1, 1 + 2 * chain * n_nodes
    _order(own, sums)
    for j in range(1, n_nodes):
        x = sums.order[j]
        parent = own[x, PARENT]
        sibling = own[parent, state.LEFT] + own[parent, state.RIGHT] - x
        of, above = _list_of(own, sums, chain, x), _list_of(own, sums, chain, parent)
        internal = x >= n_tips
        k = first[2 * sums.depth[x]]
        first[2 * sums.depth[x]] += 1
        step = steps[k]
        step[KIND], step[LIST], step[SIZE] = INTERNAL if internal else TIP, of[FIRST], of[GROUPS]
        step[ABOVE], step[Q], step[U] = sums.q_at[parent], at[0], at[1]
        sums.q_at[x] = at[0]
        if internal:
            at[0] += places[own[x, COLUMNS_IN], x, state.SIZE]
        step[IS_SEVERAL] = of[SEVERAL] if internal else 0
        at[1] += of[GROUPS] if keep_u else step[IS_SEVERAL]
        step[BESIDE] = places[own[sibling, MESSAGE_IN], sibling, MESSAGE]
        step[OWN] = places[own[x, MESSAGE_IN], x, MESSAGE]
        step[MATRIX] = (own[x, MATRIX_IN] * n_chains + chain) * (n_nodes - 1) + x
        step[ENTRY] = of[FIRST] + of[GROUPS] + 1
        step[WITH_MODEL] = 2 * chain + trees.model_in[version, chain]
        # Of each node the first counter says that its q is there, the second that its pieces are.
        step[AWAITS], step[RAISES], step[TARGET] = counters + 2 * parent, counters + 2 * x, 0
        if parent != root:
            n = above[CLASSES] if above[CLASSES] > 0 else above[GROUPS]
            step[TARGET] = tiles(n, tile) * shape.parts
        if internal and of[CLASSES] > 0:
            k = first[2 * sums.depth[x] + 1]
            first[2 * sums.depth[x] + 1] += 1
            steps[k] = step
            step[RAISES] += 1
            combine = steps[k]
            combine[KIND], combine[LIST] = COMBINE, step[ENTRY] + of[ENTRIES]
            combine[SIZE], combine[IS_SEVERAL] = of[CLASSES], 0
            combine[AWAITS] = step[RAISES]
            combine[TARGET] = tiles(of[GROUPS], tile) * shape.parts


@compiled
def _write_root(chains, sums, chain, step, at):
    """The step of a chain's root, but for its row (chain_steps)."""
    trees = chains.trees
    version, root = _version(trees, chain), trees.node.shape[2] - 1
    own, places = trees.node[version, chain], chains.places.of[chain]
    a, b, n_root = own[root, state.LEFT], own[root, state.RIGHT], places[0, root, state.SIZE]
    step[:] = 0
    step[0], step[1] = AT_ROOT, places[own[root, MESSAGE_IN], root, MESSAGE]
    step[2], step[6] = n_root, places[own[root, COLUMNS_IN], root, ROWS]
    step[3], step[4] = places[own[a, MESSAGE_IN], a, MESSAGE], places[own[b, MESSAGE_IN], b, MESSAGE]
    step[10], step[12], step[14] = at[0], places[0, root, state.FIRST_ROOT], chain
    step[13] = 2 * chain + trees.model_in[version, chain]
    sums.q_at[root] = at[0]
    at[0] += n_root


@compiled
def prepare(chains, sums, device, tile, keep_u):
    """Write what the device has to do for the gradients of all chains that device.active names.

    tile: columns of a step; keep_u: u of every group is kept, for derivatives of the model's numbers. READY,
    or NO_ROOM where words[N_WORDS] or sums.used is beyond what there is: make room and call again.
    """
    trees, active, words = chains.trees, device.active, device.words
    n_chains, n_categories = len(active), trees.rates.shape[2]
    most_steps, most_copies, most = _bounds(chains, sums, active)
    first_step = HEAD + 2 * n_chains * n_categories
    payload = first_step + STEP * most_steps + COPY * most_copies
    words[N_WORDS] = payload + most + COPY * most_copies
    if words[N_WORDS] > len(words):
        return NO_ROOM
    descriptions = words[payload + most : words[N_WORDS]].reshape((most_copies, COPY))
    n_copies, _ = _new_lists(chains, sums, active, words, payload, descriptions)
    n_active = active.sum()
    n_steps = _count_by_depth(chains, sums, active) + n_active
    first_copy = first_step + STEP * n_steps
    steps = words[first_step:first_copy].reshape((n_steps, STEP))
    k, at = 0, np.zeros(2, np.int64)
    numbers = words[HEAD:first_step].reshape((n_chains, 2, n_categories))
    for chain in range(n_chains):
        if active[chain]:
            version = _version(trees, chain)
            numbers[chain, 0] = trees.rates[version, chain].view(np.int64)
            numbers[chain, 1] = trees.length_set[version, chain]
            _write_root(chains, sums, chain, steps[k], at)
            _write_steps(chains, sums, chain, tile, keep_u, steps[n_active:], at)
            k += 1
    row = 0
    for k in range(n_steps):
        steps[k, ROW] = row
        row += tiles(steps[k, SIZE], chains.shape.root_tile if k < n_active else tile)
        if k == n_active - 1:
            words[N_ROOT] = row
    words[N_STEPS], words[N_DOWN], words[N_COPIES], words[FIRST_COPY] = (
        n_steps,
        row - words[N_ROOT],
        n_copies,
        first_copy,
    )
    words[N_MESSAGES], words[N_Q], words[N_U] = device.limits[4], at[0], at[1]
    for j in range(n_copies):
        for i in range(COPY):
            words[first_copy + COPY * j + i] = descriptions[j, i]
    return READY


@compiled
def graph_key(words, parts):
    """Sizes of the launches for a list: programs that bring it up, steps, programs that do them."""
    up = room(words[FIRST_COPY] // CHUNK + 2 + words[N_COPIES])
    return up, room(words[N_STEPS]), room(words[N_DOWN] * parts)


@compiled
def gradient(chains, sums, device, tile, keep_u):
    """Gradients of the chains that device.active names; device.found (H · K · N) then has them. READY or why
    not."""
    if not device.active.any():
        return READY  # a launch that nobody waits for would still read its list while the next is written
    status = prepare(chains, sums, device, tile, keep_u)
    if status != READY:
        return status
    words, limits = device.words, device.limits
    if words[N_Q] > limits[0] or words[N_U] > limits[1] or sums.used[0] > limits[2]:
        return NO_ROOM
    if words[N_ROOT] + words[N_DOWN] > limits[3]:
        return NO_ROOM
    graph = device.graphs[graph_key(words, chains.shape.parts)]
    if graph == 0:
        return NO_GRAPH
    expect(chains, device)
    if start_graph(device, graph) != READY:
        return NO_ANSWER
    return receive(chains, sums, device)


@compiled
def expect(chains, device):
    n_nodes = chains.trees.node.shape[2]
    found = device.found.reshape((len(device.active), chains.trees.lengths.shape[2], n_nodes))
    for chain in range(len(device.active)):
        if device.active[chain]:
            found[chain] = NOTHING_YET
            found[chain, :, n_nodes - 1] = 0  # the root has no branch


@compiled
def receive(chains, sums, device):
    """Wait for every number; then the lists that went along lie on the device."""
    trees, places = chains.trees, chains.places
    n_nodes = trees.node.shape[2]
    each = trees.lengths.shape[2] * n_nodes
    for chain in range(len(device.active)):
        if device.active[chain] == 0:
            continue
        for k in range(chain * each, (chain + 1) * each):
            turns = 0
            while read_shared(device.found, k) == NOTHING_YET:
                turns += 1
                if turns > 1_000_000_000:
                    return NO_ANSWER
        own = trees.node[_version(trees, chain), chain]
        for x in range((n_nodes + 1) // 2, n_nodes):
            place = own[x, COLUMNS_IN]
            sums.of[chain, place, x, :, MADE_FROM] = places.of[chain, place, x, ROWS_WRITTEN]
    return READY
