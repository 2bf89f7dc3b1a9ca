"""Begin a proposal, and make it by the move chosen."""

from __future__ import annotations

from phloem.hardware.numba_compile import merged
from phloem.inference.mcmc.compiled.move_lengths import branch_multiplier, node_slider, tree_multiplier
from phloem.inference.mcmc.compiled.move_nni import nearest_neighbour_interchange
from phloem.inference.mcmc.compiled.move_number import positive_multiplier, real_slider, unit_slider
from phloem.inference.mcmc.compiled.move_simplex import simplex_dirichlet, simplex_slider
from phloem.inference.mcmc.compiled.move_spr import extending_spr
from phloem.inference.mcmc.compiled.move_tbr import extending_tbr
from phloem.inference.mcmc.compiled.random import below
from phloem.inference.mcmc.compiled.unrooted import hang, unroot
from phloem.inference.mcmc.records import (
    BRANCH_MULTIPLIER,
    NNI,
    NODE_SLIDER,
    POSITIVE_MULTIPLIER,
    SIMPLEX_DIRICHLET,
    SIMPLEX_SLIDER,
    SPR,
    TBR,
    TREE_MULTIPLIER,
    UNIT_SLIDER,
)
from phloem.pruning.cpu.cell_records import OTHER_BELOW, OTHER_CHILDREN, OTHER_TIPS


@merged
def begin(state, h):
    """Copy the accepted tree and numbers into the proposal's slot."""
    old, new = state.slot[h], 1 - state.slot[h]
    for x in range(state.parent.shape[2]):
        state.parent[h, new, x] = state.parent[h, old, x]
        state.left[h, new, x] = state.left[h, old, x]
        state.right[h, new, x] = state.right[h, old, x]
        state.order[h, new, x] = state.order[h, old, x]
        for g in range(state.lengths.shape[2]):
            state.lengths[h, new, g, x] = state.lengths[h, old, g, x]
    for i in range(state.values.shape[2]):
        state.values[h, new, i] = state.values[h, old, i]


@merged
def propose(data, state, shared, scratch, h, move):
    """Change the proposal's slot by one move; returns the log Hastings ratio, -inf for an impossible
    proposal."""
    kind, tuned, rng = data.move_kind[move], state.tuning[state.rank[h], move], state.rng[h]
    s, n_tips, bounds = 1 - state.slot[h], data.n_tips, data.length_bounds
    lengths, left, right = state.lengths[h, s], state.left[h, s], state.right[h, s]
    root = 2 * n_tips - 2
    beside = left[root] if right[root] == 0 else right[root]
    ratio = 0.0
    if kind <= NODE_SLIDER:
        own = lengths[below(rng, lengths.shape[0]) if lengths.shape[0] > 1 else 0]
        if kind == BRANCH_MULTIPLIER:
            ratio = branch_multiplier(own, beside, bounds, rng, tuned)
        elif kind == TREE_MULTIPLIER:
            ratio = tree_multiplier(own, beside, bounds, rng, tuned)
        else:
            ratio = node_slider(own, left, right, beside, bounds, rng, tuned)
    elif kind <= TBR:
        adjacency, edge, parent = scratch.adjacency, scratch.edge, state.parent[h, s]
        unroot(parent, left, right, n_tips, adjacency, edge)
        if kind == NNI:
            ratio = nearest_neighbour_interchange(adjacency, edge, n_tips, rng)
        elif kind == SPR:
            ratio = extending_spr(adjacency, edge, lengths, n_tips, bounds, rng, tuned, data.p_extend)
        else:
            ratio = extending_tbr(adjacency, edge, lengths, n_tips, bounds, rng, tuned, data.p_extend)
        hang(adjacency, edge, n_tips, parent, left, right, state.order[h, s], scratch.branch, scratch.stack)
        _permute(lengths, scratch.branch, scratch.kept)
    else:
        block = data.move_block[move]
        first, size = data.block_first[block], data.block_size[block]
        x = state.values[h, s, first : first + size]
        low, high = data.block_bounds[block, 0], data.block_bounds[block, 1]
        if kind == SIMPLEX_DIRICHLET:
            ratio = simplex_dirichlet(x, rng, tuned, low, scratch.shares)
        elif kind == SIMPLEX_SLIDER:
            ratio = simplex_slider(x, rng, tuned, low)
        else:
            one = below(rng, size) if size > 1 else 0
            if kind == POSITIVE_MULTIPLIER:
                ratio = positive_multiplier(x[one:], rng, tuned, low, high)
            elif kind == UNIT_SLIDER:
                ratio = unit_slider(x[one:], rng, tuned, low, high)
            else:
                ratio = real_slider(x[one:], rng, tuned, low, high)
    return ratio


@merged
def _permute(lengths, branch, kept):
    """Give every node the length of the branch it now has; 0 to the root and the node beside tip 0."""
    for g in range(lengths.shape[0]):
        for x in range(lengths.shape[1]):
            kept[g, x] = lengths[g, x]
        for x in range(lengths.shape[1]):
            lengths[g, x] = kept[g, branch[x]] if branch[x] >= 0 else 0.0


@merged
def mark_moved(n_tips, old, left, right, order, keys, new_keys, moved):
    """What of a proposed topology is other than it was (cell_records.ProposedTree.moved). old: (left, right)
    of the accepted one; keys, new_keys: (N,) of the sets of tips below. A node with the same two children
    keeps their order."""
    for x in order:
        if x < n_tips:
            continue
        l, r = left[x], right[x]
        a, b = old[0][x], old[1][x]
        if l == b and r == a:
            left[x], right[x] = a, b
            l, r = a, b
        new_keys[x] = new_keys[l] + new_keys[r]
        marks = 0
        if l != a or r != b:
            marks |= OTHER_CHILDREN
        if new_keys[x] != keys[x]:
            marks |= OTHER_TIPS
        if (l >= n_tips and moved[l] & OTHER_TIPS) or (r >= n_tips and moved[r] & OTHER_TIPS):
            marks |= OTHER_BELOW
        moved[x] = marks
