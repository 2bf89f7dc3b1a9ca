"""Begin a proposal, and make it by the move chosen."""

from __future__ import annotations

from phloem.inference.mcmc.compiled.compile import merged
from phloem.inference.mcmc.compiled.move_branch_multiplier import branch_multiplier
from phloem.inference.mcmc.compiled.move_nni import nearest_neighbour_interchange
from phloem.inference.mcmc.compiled.move_node_slider import node_slider
from phloem.inference.mcmc.compiled.move_number import positive_multiplier, unit_slider
from phloem.inference.mcmc.compiled.move_simplex import simplex_dirichlet, simplex_slider
from phloem.inference.mcmc.compiled.move_spr import extending_spr
from phloem.inference.mcmc.compiled.move_tbr import extending_tbr
from phloem.inference.mcmc.compiled.move_tree_multiplier import tree_multiplier
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
)


@merged
def begin(state, h):
    """Copy the accepted tree and parameters (not the caches) into the proposal's slot."""
    old, new = state.slot[h], 1 - state.slot[h]
    for x in range(state.parent.shape[2]):
        state.parent[h, new, x] = state.parent[h, old, x]
        state.left[h, new, x] = state.left[h, old, x]
        state.right[h, new, x] = state.right[h, old, x]
        state.length[h, new, x] = state.length[h, old, x]
    for at in range(state.postorder.shape[2]):
        state.postorder[h, new, at] = state.postorder[h, old, at]
    for i in range(state.parameters.shape[2]):
        state.parameters[h, new, i] = state.parameters[h, old, i]


@merged
def propose(data, state, work, h, move):
    """Change the proposal's slot by one move; returns the log Hastings ratio, -inf for an impossible
    proposal."""
    kind, tuned, rng = data.move_kind[move], state.tuning[state.rank[h], move], state.rng[h]
    s, n_tips, bounds = 1 - state.slot[h], data.tip_codes.shape[0], data.length_bounds
    lengths, left, right = state.length[h, s], state.left[h, s], state.right[h, s]
    ratio = 0.0
    if kind == BRANCH_MULTIPLIER:
        ratio = branch_multiplier(lengths, bounds, rng, tuned)
    elif kind == TREE_MULTIPLIER:
        ratio = tree_multiplier(lengths, bounds, rng, tuned)
    elif kind == NODE_SLIDER:
        ratio = node_slider(lengths, left, right, n_tips, bounds, rng, tuned)
    elif kind <= TBR:
        adjacency, edge = work.adjacency, work.edge
        unroot(state.parent[h, s], left, right, lengths, n_tips, adjacency, edge)
        if kind == NNI:
            ratio = nearest_neighbour_interchange(adjacency, edge, n_tips, rng)
        elif kind == SPR:
            ratio = extending_spr(adjacency, edge, n_tips, bounds, rng, tuned, data.p_extend)
        else:
            ratio = extending_tbr(adjacency, edge, n_tips, bounds, rng, tuned, data.p_extend)
        hang(
            adjacency,
            edge,
            n_tips,
            state.parent[h, s],
            left,
            right,
            lengths,
            state.postorder[h, s],
            work.stack,
        )
    else:
        first = data.block_start[data.move_block[move]]
        size = data.block_size[data.move_block[move]]
        x = state.parameters[h, s, first : first + size]
        low, high = data.block_bounds[data.move_block[move], 0], data.block_bounds[data.move_block[move], 1]
        if kind == SIMPLEX_DIRICHLET:
            ratio = simplex_dirichlet(x, rng, tuned, low, work.shares)
        elif kind == SIMPLEX_SLIDER:
            ratio = simplex_slider(x, rng, tuned, low)
        elif kind == POSITIVE_MULTIPLIER:
            ratio = positive_multiplier(x, rng, tuned, low, high)
        else:
            ratio = unit_slider(x, rng, tuned, low, high)
    return ratio
