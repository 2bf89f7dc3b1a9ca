"""What the loop of a chain asks where ancestors are sampled, and what it need not keep then."""

from __future__ import annotations

from phloem.hardware.numba_compile import merged, uncounted
from phloem.inference.time.ancestors.sequences import ONE, SITE_RATES, TAKE, VALUE, Lineages
from phloem.inference.time.compiled.by_address import ANCESTORS

with_ancestors = ANCESTORS.call
A_SWEEP = 16  # taxa for each ancestor that is drawn in one move


@merged
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


@merged
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


@merged
def other_topology(data, state):
    """Whether some node of the proposal has other children."""
    old, new, other = state.slot[0], 1 - state.slot[0], False
    for x in range(data.n_tips, state.left.shape[1]):
        other = (
            other or state.left[old, x] != state.left[new, x] or state.right[old, x] != state.right[new, x]
        )
    return other


@merged
def set_keys(data, state, scratch):
    """scratch.keys of the accepted topology, which moves of topologies do not keep where ancestors are
    sampled."""
    old = state.slot[0]
    for x in state.order[old]:
        if x >= data.n_tips:
            scratch.keys[x] = scratch.keys[state.left[old, x]] + scratch.keys[state.right[old, x]]
