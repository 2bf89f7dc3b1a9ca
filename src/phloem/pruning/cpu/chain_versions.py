"""The version that a chain proposes: what of its tree is evaluated anew, where that goes, and how much of a
list it takes; and what becomes of it once it is accepted or rejected.
"""

from __future__ import annotations

from phloem.hardware.numba_compile import uncounted
from phloem.pruning.cpu import chain_state as state
from phloem.pruning.cpu.chain_columns import mark_moved, n_hops, renumber
from phloem.pruning.cpu.chain_state import (
    BRANCH,
    COLUMNS_IN,
    DIRTY,
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
    RENUMBERED,
    STALE,
)  # fmt: skip

# A chain's part (Scratch.part): matrices, hops, copies and words that are copied; how many of each, and from
# lay_out on, where they lie. Then: places of matrices in use, depth of the deepest node, class rows that
# settling may take, and the number of the chain among those that take part, and of its root's first tile.
PART_TIMES, PART_HOPS, PART_COPIES, PART_WORDS, PLACES, DEEPEST, WANTED_ROWS, ACTIVE, ROOT_TILE = range(9)

# What propose_version and chain_steps.lay_out answer.
READY, NO_ROOM = range(2)
CHUNK = 1024  # words of a copy at most


@uncounted
def tiles(size, tile):
    return (size + tile - 1) // tile


@uncounted
def _mark(own, x, want):
    """A node and everything above it."""
    while x >= 0 and want[x] & DIRTY == 0:
        want[x] |= DIRTY
        own[x, STALE] = 0
        x = own[x, PARENT]


@uncounted
def _copy_version(trees, change, chain, old, new):
    """The accepted version with the proposal's lengths and rates, its topology still the old one."""
    for x in range(trees.node.shape[2]):
        for k in range(8):
            trees.node[new, chain, x, k] = trees.node[old, chain, x, k]
        for s in range(trees.lengths.shape[2]):
            trees.lengths[new, chain, s, x] = trees.lengths[old, chain, s, x]
    for k in range(change.counts[chain, N_BRANCHES]):
        x = change.branches[chain, k]
        for s in range(trees.lengths.shape[2]):
            trees.lengths[new, chain, s, x] = change.lengths[chain, s, x]
    other_model = change.counts[chain, MODEL]
    trees.model_in[new, chain] = trees.model_in[old, chain] ^ other_model
    for c in range(trees.rates.shape[2]):
        trees.rates[new, chain, c] = change.rates[chain, c] if other_model else trees.rates[old, chain, c]
        of = change.length_set[chain, c] if other_model else trees.length_set[old, chain, c]
        trees.length_set[new, chain, c] = of


@uncounted
def _mark_changes(chains, change, chain, own, was, want):
    """Edit the new version's topology and mark what is to be evaluated anew, and whose branch wants
    a matrix."""
    root, n_edits = len(own) - 1, change.counts[chain, N_EDITS]
    for x in range(len(want)):
        want[x] = 0
    for k in range(n_edits):
        x, a, b = change.edits[chain, k, 0], change.edits[chain, k, 1], change.edits[chain, k, 2]
        own[x, state.LEFT], own[x, state.RIGHT] = a, b
        own[a, PARENT] = own[b, PARENT] = x
        want[x] |= EDITED
    _mark(own, root, want)
    for k in range(n_edits):
        _mark(own, change.edits[chain, k, 0], want)
    if chains.trees.stale[chains.trees.accepted[chain], chain] > 0:
        for x in range(root):
            if was[x, STALE]:
                _mark(own, x, want)
    for k in range(change.counts[chain, N_BRANCHES]):
        x = change.branches[chain, k]
        if x != root:
            want[x] |= BRANCH
            _mark(own, x, want)
    if change.counts[chain, MODEL]:
        for x in range(root):
            want[x] |= BRANCH | DIRTY
            own[x, STALE] = 0


@uncounted
def _order_nodes(chains, chain, own):
    """The dirty nodes of a chain, the root first, and how many there are of every depth. Returns the
    deepest."""
    scratch, want = chains.scratch, chains.scratch.want[chain]
    order, depth, at_depth = scratch.order[chain], scratch.depth[chain], scratch.at_depth[chain]
    root, deepest = len(own) - 1, 0
    order[0], depth[root], n, k = root, 0, 1, 0
    while k < n:
        x = order[k]
        for side in (state.LEFT, state.RIGHT):
            child = own[x, side]
            if child >= 0 and want[child] & DIRTY:
                order[n], depth[child] = child, depth[x] + 1
                n += 1
                if depth[child] > deepest:
                    deepest = depth[child]
                    at_depth[deepest] = 0
                at_depth[deepest] += 1
        k += 1
    scratch.n_order[chain] = n
    return deepest


@uncounted
def _place_messages(chains, chain, own, was):
    """The other place of every dirty node's message and of every changed branch's matrix, and the tiles of
    every depth. Returns how many matrices there are, and how many places they take."""
    scratch, at, used = chains.scratch, chains.places.of[chain], chains.places.used
    order, want, depth, tiles_at = (
        scratch.order[chain],
        scratch.want[chain],
        scratch.depth[chain],
        scratch.tiles_at[chain],
    )
    n, places = 0, 1
    for d in range(scratch.part[chain, DEEPEST] + 1):
        tiles_at[d] = 0
    for k in range(1, scratch.n_order[chain]):
        x = order[k]
        place = 1 - was[x, MESSAGE_IN]
        own[x, MESSAGE_IN] = place
        size = at[own[x, COLUMNS_IN], x, state.SIZE]
        if at[place, x, MESSAGE_ROOM] < size:
            room = size + size // 4 if at[place, x, MESSAGE_ROOM] > 0 else size
            at[place, x, MESSAGE], at[place, x, MESSAGE_ROOM] = used[1], room
            used[1] += room
        tiles_at[depth[x]] += tiles(size, chains.shape.post_tile)
        if want[x] & BRANCH:
            own[x, MATRIX_IN] = 1 - was[x, MATRIX_IN]
            n += 1
        places = max(places, own[x, MATRIX_IN] + 1)
    return n, places


@uncounted
def _count_hops(chains, chain, own, was):
    """Hops of all MOVED nodes' steps, in the columns of the tops of their regions."""
    scratch, n = chains.scratch, 0
    want, top = scratch.want[chain], scratch.top[chain]
    for k in range(scratch.n_order[chain]):
        x = scratch.order[chain, k]
        if want[x] & MOVED:
            for side in (state.LEFT, state.RIGHT):
                if want[own[x, side]] & RENUMBERED == 0:
                    n += n_hops(was, top[x], own[x, side])
    return n


@uncounted
def propose_version(chains, change, chain):
    """Write the proposed version of a chain, and what its part of the list will hold. READY, or NO_ROOM where
    there is none for its class rows (not asked where ListShape.lazy)."""
    trees, places, scratch, blocks = chains.trees, chains.places, chains.scratch, chains.blocks
    old, part, fresh = trees.accepted[chain], scratch.part[chain], scratch.n_fresh[chain]
    own, was = trees.node[1 - old, chain], trees.node[old, chain]
    _copy_version(trees, change, chain, old, 1 - old)
    _mark_changes(chains, change, chain, own, was, scratch.want[chain])
    trees.stale[1 - old, chain] = 0
    part[DEEPEST] = _order_nodes(chains, chain, own)
    part[WANTED_ROWS], part[PART_HOPS], fresh[1] = 0, 0, fresh[0]
    if change.counts[chain, N_EDITS] > 0:
        part[WANTED_ROWS] = mark_moved(chains, chain, own, was)
        if chains.shape.lazy:
            part[PART_HOPS] = _count_hops(chains, chain, own, was)
        elif places.used[0] + part[WANTED_ROWS] > len(places.rows):
            places.used[2] = part[WANTED_ROWS]
            return NO_ROOM
        else:
            renumber(chains, chain, own, was)
            for k in range(scratch.n_order[chain]):
                own[scratch.order[chain, k], STALE] = 0
    part[PART_TIMES], part[PLACES] = _place_messages(chains, chain, own, was)
    part[PART_COPIES] = part[PART_WORDS] = 0
    for k in range(fresh[1]):
        size = places.of[chain, scratch.fresh[chain, k] & 1, scratch.fresh[chain, k] >> 1, state.SIZE]
        part[PART_COPIES] += tiles(size, CHUNK)
        part[PART_WORDS] += size
    if change.counts[chain, MODEL]:
        for b in range(len(blocks)):
            part[PART_COPIES] += tiles(blocks[b, 1], CHUNK)
        part[PART_WORDS] += change.numbers.shape[1]
    return READY


@uncounted
def settle_version(chains, change, chain, accept):
    """Accept or reject the pending proposal of a chain; the columns of another topology are numbered now
    where that was put off. Its change is forgotten."""
    trees, scratch = chains.trees, chains.scratch
    if trees.pending[chain]:
        old = trees.accepted[chain]
        scratch.n_fresh[chain, 0] = scratch.n_fresh[chain, 1] = 0  # the device has them by now
        if accept:
            if chains.shape.lazy and change.counts[chain, N_EDITS] > 0:
                own, was = trees.node[1 - old, chain], trees.node[old, chain]
                trees.stale[1 - old, chain] = renumber(chains, chain, own, was)
                scratch.n_fresh[chain, 0] = scratch.n_fresh[chain, 1]
            trees.accepted[chain] = 1 - old
        trees.pending[chain] = 0
    change.counts[chain, N_BRANCHES] = change.counts[chain, N_EDITS] = change.counts[chain, MODEL] = 0
