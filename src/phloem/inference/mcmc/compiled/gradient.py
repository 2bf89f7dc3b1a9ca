"""Proposals of moves that ask for gradients: made here, outside the loop that advances chains, which so is
compiled without the way down and stays quick to start."""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import compiled, uncounted
from phloem.hardware.numba_records import by_reference
from phloem.inference.mcmc.compiled.propose import begin, propose
from phloem.inference.mcmc.compiled.run import chain_prior
from phloem.inference.mcmc.records import LIKELIHOOD, PRIOR
from phloem.pruning.cpu.cell_loops import gradient_cell, propose_cell
from phloem.pruning.cpu.cell_records import D_LENGTHS, ProposedTree, cell_numbers
from phloem.pruning.cpu.storage import float64_at

STEP = 1e-5  # of a log length, in differences of the prior


@compiled
def propose_by_gradients(data, state, shared, scratch, downs, room, h):
    """All turns of the move that waits in shared.move[h], on the proposal's slot; shared.ratio[h] is then the
    log Hastings ratio, -inf for an impossible proposal.

    downs: (H, L, ·) table of ways down; room: what a thread needs for them.
    """
    _propose(
        by_reference(data), by_reference(state), by_reference(shared), by_reference(scratch), downs, room, h
    )


@uncounted
def _propose(data, state, shared, scratch, downs, room, h):
    move, total, turn = shared.move[h], 0.0, 0
    begin(state, h)
    while turn < data.moves.gradients[move] and total > -math.inf:
        shared.turn[h] = turn
        set_slope(data, state, shared, scratch, downs, room, h, turn > 0)
        total += propose(data, state, shared, scratch, h, move)
        turn += 1
    shared.ratio[h] = total


@uncounted
def set_slope(data, state, shared, scratch, downs, room, h, proposed):
    """Fill shared.slope[h] at the lengths in the proposal's slot; proposed: not the accepted ones."""
    old, new = state.slot[h], 1 - state.slot[h]
    lengths, slope = state.lengths[h, new], shared.slope[h]
    for g in range(slope.shape[0]):
        for x in range(slope.shape[1]):
            slope[g, x] = 0.0
    tree = ProposedTree(
        state.left[h, new], state.right[h, new], state.parent[h, new], state.order[h, new], 0,
        shared.moved[h], lengths, state.lengths[h, old],
    )  # fmt: skip
    for cell in range(data.numbers.shape[1] if data.use_data else 0):
        numbers, addresses = data.numbers[h, cell], data.addresses[h, cell]
        if proposed:
            propose_cell(numbers, addresses, tree, False, False, scratch.cell)
        down = downs[h, cell]
        gradient_cell(numbers, addresses, down, tree, int(proposed), False, scratch.cell, room)
        n = cell_numbers(numbers)
        by_length = float64_at(down[D_LENGTHS], (n.length_classes, slope.shape[1]))
        for k in range(n.length_classes):
            for x in range(slope.shape[1]):
                slope[n.first_lengths + k, x] += by_length[k, x]
    _add_prior(data, state, h, new, lengths, slope, data.heat[state.rank[h]])


@uncounted
def _add_prior(data, state, h, slot, lengths, slope, heat):
    """From d log likelihood / d length to the slope of the heated posterior by log lengths. The prior's is a
    difference: every family then has one."""
    for g in range(lengths.shape[0]):
        for x in range(lengths.shape[1]):
            b = lengths[g, x]
            if b == 0.0:  # the root, and the node beside tip 0
                slope[g, x] = 0.0
            else:
                lengths[g, x] = b * math.exp(STEP)
                above = chain_prior(data, state, h, slot)
                lengths[g, x] = b * math.exp(-STEP)
                below = chain_prior(data, state, h, slot)
                lengths[g, x] = b
                slope[g, x] = 1.0 + heat[LIKELIHOOD] * b * slope[g, x]
                slope[g, x] += heat[PRIOR] * (above - below) / (2.0 * STEP)
