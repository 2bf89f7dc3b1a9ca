"""What the loop of a chain asks where ancestors are sampled, and what it need not keep then."""

from __future__ import annotations

import math

from phloem.density import clocks
from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.compiled.undefined import note
from phloem.inference.time.ancestors.sequences import (
    LAST,
    LEAP,
    ONE,
    SITE_RATES,
    SLIDE,
    TAKE,
    UNDEFINED_STEPS,
    VALUE,
    Lineages,
    Walk,
)
from phloem.inference.time.compiled.by_address import ANCESTORS, WALK
from phloem.inference.time.compiled.density import log_spread, prior_of
from phloem.inference.time.records import LAST_TREE, WALKS

with_ancestors, walk = ANCESTORS.call, WALK.call
FARTHER = 0.25  # acceptance of steps that go a distance
A_SWEEP = 16  # taxa for each ancestor that is drawn in one move


@uncounted
def lineages(state, slot):
    """The tree of a slot, its lengths by the only clock."""
    return Lineages(
        state.parent[slot], state.left[slot], state.right[slot], state.order[slot], state.heights[slot],
        state.lengths[slot, 0],
    )  # fmt: skip


@uncounted
def ask_ancestors(data, state, scratch, what, flags, now):
    """compiled code of ancestors/chain.py. flags: the model is another, the topology, everything; slopes of
    the proposal, and by the model's numbers. now: the slot of the proposal, or of what is accepted."""
    asked = scratch.asked
    asked[0] = what
    for i in range(5):
        asked[i + 1] = flags[i]
    cell = data.numbers[0], data.addresses[0], data.downs[0]
    before, after = lineages(state, state.slot[0]), lineages(state, now)
    given = (scratch.ancestral, before, after, cell, state.rng, asked, scratch.by_length[0])
    return with_ancestors(data.ancestors, given)


@uncounted
def move_ancestors(data, state, scratch, move, tuning):
    """A move that is always taken: of ancestors alone, or a walk; counted here."""
    if data.moves.kind[move] == WALKS:
        walk_about(data, state, scratch, move, tuning)
        return
    state.log_likelihood[0] = draw_ancestors(data, state, scratch, data.moves.kind[move])
    state.tried[move] += 1
    state.accepted[move] += 1


@uncounted
def draw_ancestors(data, state, scratch, rates):
    """Draw some ancestors of the accepted state from their conditional distributions, or the categories of
    all sites (rates: 1); the log-likelihood with them."""
    value, nothing, slot = state.log_likelihood[0], (0, 0, 0, 0, 0), state.slot[0]
    for k in range(2 if rates != 0 else 2 + 2 * (data.n_tips // A_SWEEP)):
        what, flags = ONE if k % 2 == 0 else TAKE, nothing
        if rates != 0 and k == 0:
            ask_ancestors(data, state, scratch, SITE_RATES, nothing, slot)
            what, flags = VALUE, (0, 0, 1, 0, 0)
        value = ask_ancestors(data, state, scratch, what, flags, slot)
    return value


@uncounted
def walk_about(data, state, scratch, move, tuning):
    """ancestors/walk.py from the accepted state, which the proposal's slot is a copy of: a step for every
    taxon. In burn-in, distances adapt to an acceptance of FARTHER."""
    old, new, clock, room = state.slot[0], 1 - state.slot[0], data.clock, scratch.walk
    values, spread = state.values[old], 0.0
    if clock.spread[0] >= 0:
        spread = log_spread(clock.kind, values[clock.spread[0]])
    shift = 0.5 * spread * spread if clock.kind in clocks.OF_MEAN_RATE else 0.0
    first, end = data.tree_first, data.tree_first + data.tree_size
    own = Walk(
        data.n_tips, state.rng, state.tuning[move], state.parent[new], state.left[new], state.right[new],
        state.order[new], state.heights[new], state.lengths[new, 0], state.deviations[new, 0],
        lineages(state, old), state.deviations[old, 0], scratch.edges, scratch.stack, scratch.spots,
        scratch.counts[0], scratch.counts[1], scratch.by_height, data.joining, values[first:end],
        data.tree_settings, values[clock.rate[0]], spread, shift, clock.reference[0], room[0],
        room[1], scratch.gained[0], scratch.gained[1], room[2], room[3],
    )  # fmt: skip
    given = (scratch.ancestral, data.numbers[0], data.addresses[0], own, data.n_tips)
    state.log_likelihood[0] = walk(data.walk, given)
    found = scratch.gained[0]
    if found[UNDEFINED_STEPS] > 0.0:
        state.undefined[move] += int(found[UNDEFINED_STEPS])
        note(state.undefined_last, move, found[LAST], found[LAST + 1], found[LAST + 2], state.values[old])
    for i in range(state.order.shape[1]):
        state.order[old, i] = state.order[new, i]
    state.log_prior[0] = prior_of(data, state, scratch, old)
    state.log_tree[0] = scratch.last[LAST_TREE]
    far_tried, far_taken = room[2, SLIDE] + room[2, LEAP], room[3, SLIDE] + room[3, LEAP]
    for k in range(room.shape[1]):
        state.tried[move] += room[2, k]
        state.accepted[move] += room[3, k]
    if tuning and far_tried > 0:
        state.batch_tried[move] += 1
        change = min(0.5, 1.0 / math.sqrt(float(state.batch_tried[move])))
        wider = far_taken > FARTHER * far_tried
        value = state.tuning[move] * math.exp(change if wider else -change)
        state.tuning[move] = min(max(value, data.moves.bounds[move, 0]), data.moves.bounds[move, 1])


@uncounted
def other_topology(data, state):
    """Whether some node of the proposal has other children."""
    old, new, other = state.slot[0], 1 - state.slot[0], False
    for x in range(data.n_tips, state.left.shape[1]):
        other = (
            other or state.left[old, x] != state.left[new, x] or state.right[old, x] != state.right[new, x]
        )
    return other


@uncounted
def set_keys(data, state, scratch):
    """scratch.keys of the accepted topology, which moves of topologies do not keep where ancestors are
    sampled."""
    old = state.slot[0]
    for x in state.order[old]:
        if x >= data.n_tips:
            scratch.keys[x] = scratch.keys[state.left[old, x]] + scratch.keys[state.right[old, x]]
