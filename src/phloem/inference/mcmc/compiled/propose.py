"""Begin a proposal, and make it by the move chosen."""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted
from phloem.hardware.numba_records import by_reference
from phloem.inference.mcmc.compiled.dispatch import Proposal, propose_kind
from phloem.inference.mcmc.compiled.random import below
from phloem.inference.mcmc.compiled.unrooted import hang, unroot
from phloem.inference.mcmc.records import (
    OF_ALL_NUMBERS,
    OF_LENGTHS,
    OF_NUMBERS,
    OF_TOPOLOGY,
    PRIOR,
    WORKING,
    Joint,
    KnownSplits,
)
from phloem.pruning.cpu.cell_records import OTHER_BELOW, OTHER_CHILDREN, OTHER_TIPS


@uncounted
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


@uncounted
def propose(data, state, shared, scratch, h, move):
    """Change the proposal's slot by one turn of a move; returns the log Hastings ratio, -inf for an
    impossible proposal."""
    on, s, root, rng = data.moves.on[move], 1 - state.slot[h], 2 * data.n_tips - 2, state.rng[h]
    lengths, left, right = state.lengths[h, s], state.left[h, s], state.right[h, s]
    first, size, low, high, chosen = 0, 0, data.length_bounds[0], data.length_bounds[1], 0
    if on == OF_ALL_NUMBERS:
        size = state.values.shape[2]
    elif on == OF_NUMBERS:
        block = data.moves.block[move]
        first, size = data.block_first[block], data.block_size[block]
        low, high = data.block_bounds[block, 0], data.block_bounds[block, 1]
    elif on == OF_LENGTHS and lengths.shape[0] > 1:
        chosen = below(rng, lengths.shape[0])
    rank = state.rank[h]
    heat = data.heat[rank, PRIOR] + data.heat[rank, WORKING]
    joint = Joint(
        data.joint.first, data.joint.size, data.joint.support, data.joint.bounds, state.factor,
        state.wander, state.mean[rank], 1.0 / math.sqrt(heat), data.joint.group,
    )  # fmt: skip
    splits = KnownSplits(
        state.split_keys, state.split_sums, state.split_looks, scratch.keys[0], scratch.branch,
        scratch.weights[0], scratch.weights[1], scratch.places, left, right,
    )  # fmt: skip
    proposal = Proposal(
        data.n_tips, rng, state.tuning[rank, move], low, high, data.p_extend,
        state.values[h, s, first : first + size], lengths, chosen, left, right,
        left[root] if right[root] == 0 else right[root], scratch.adjacency, scratch.edge, scratch.shares,
        shared.turn[h], shared.slope[h], shared.momentum[h], scratch.parsimony, joint,
        state.order[h, s], splits,
    )  # fmt: skip
    if on == OF_TOPOLOGY:
        unroot(state.parent[h, s], left, right, data.n_tips, scratch.adjacency, scratch.edge)
    ratio = propose_kind(data.moves.kind[move], by_reference(proposal))
    if on == OF_TOPOLOGY:
        hang(
            scratch.adjacency, scratch.edge, data.n_tips, state.parent[h, s], left, right, state.order[h, s],
            scratch.branch, scratch.stack,
        )  # fmt: skip
        _permute(lengths, scratch.branch, scratch.kept)
        if not obeys(data.splits, data.n_tips, left, right, state.order[h, s], shared.new_keys[h]):
            ratio = -math.inf
    return ratio


@uncounted
def obeys(rules, n_tips, left, right, order, sums):
    """Whether a tree obeys constraints.split_rules; one that does not has prior density 0. sums: (N,), to
    work in; those of inner nodes are overwritten."""
    for r in range(rules.shape[0]):
        found = False
        for x in order:
            if x >= n_tips:
                a, b = left[x], right[x]
                sums[x] = (rules[r, a] if a < n_tips else sums[a]) + (rules[r, b] if b < n_tips else sums[b])
                found = found or sums[x] == rules[r, n_tips] or sums[x] == rules[r, n_tips + 1]
        if found == (rules[r, n_tips + 2] != 0):
            return False
    return True


@uncounted
def _permute(lengths, branch, kept):
    """Give every node the length of the branch it now has; 0 to the root and the node beside tip 0."""
    for g in range(lengths.shape[0]):
        for x in range(lengths.shape[1]):
            kept[g, x] = lengths[g, x]
        for x in range(lengths.shape[1]):
            lengths[g, x] = kept[g, branch[x]] if branch[x] >= 0 else 0.0


@uncounted
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
