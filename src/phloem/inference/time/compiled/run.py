"""One chain over dated trees, many moves in one call.

Every move of the tree can be made so that the data do not notice: with probability `held` (MoveTable) the
branches whose durations it changed keep their lengths in substitutions, their deviations shifting by
log(τ / τ') / s (Zhang and Drummond 2020, BMC Evol. Biol. 20:54, as a property of any move). By deviations
that is a shift with Jacobian 1, and the move that undoes it shifts them back.
"""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted
from phloem.hardware.numba_records import by_reference
from phloem.inference.mcmc.compiled.random import uniform
from phloem.inference.mcmc.compiled.run import TUNING_BATCH
from phloem.inference.mcmc.compiled.undefined import note
from phloem.inference.time.compiled.ancestors import move_ancestors, other_topology, set_keys
from phloem.inference.time.compiled.density import sort_by_height
from phloem.inference.time.compiled.dispatch import Proposal, propose_kind
from phloem.inference.time.compiled.groups import Grouped, follow
from phloem.inference.time.compiled.hamilton import (
    WORST,
    add_slopes,
    begin_trajectory,
    end_trajectory,
    is_whole,
    land,
    lands,
    leap,
    learn_scales,
    place,
    plan_trajectory,
    set_all_lengths,
    spread_of,
)
from phloem.inference.time.compiled.known_places import learn_places
from phloem.inference.time.compiled.likelihood import (
    BY_CALLER,
    SAME,
    WRITTEN,
    Wanted,
    assess,
    mark_topology,
    propose_model,
    settle,
)
from phloem.inference.time.records import (
    ADAPTS,
    ENERGY,
    FOR_LIKELIHOOD,
    FOR_MODEL,
    JACOBIAN,
    JOINT,
    LAST_LIKELIHOOD,
    LAST_PRIOR,
    LAST_TREE,
    LAST_WORKING,
    LOG_MEAN,
    LOG_STEP,
    MOVE,
    MOVES,
    NOTHING,
    OF_ANCESTORS,
    OF_HAMILTON,
    OF_LIKELIHOOD,
    OF_NUMBERS,
    OF_PRIOR,
    OF_TREE,
    OF_WORKING,
    OTHER_MODEL,
    RATIO,
    STEP,
    STEPS,
    TOPOLOGY,
    TOUCHED,
    UNDEFINED,
    WAITING,
    WITHIN,
    KnownPlaces,
)

FINISHED, WAITS = range(2)
SAMPLE, TUNE, LEARN, WATCH, REFRESH = range(5)  # tasks
LOOK = 25  # moves between two looks at where subtrees are


@uncounted
def begin(state):
    """Copy the accepted state into the proposal's slot."""
    old, new = state.slot[0], 1 - state.slot[0]
    for x in range(state.parent.shape[1]):
        state.parent[new, x], state.left[new, x] = state.parent[old, x], state.left[old, x]
        state.right[new, x], state.order[new, x] = state.right[old, x], state.order[old, x]
        state.heights[new, x] = state.heights[old, x]
        for c in range(state.lengths.shape[1]):
            state.deviations[new, c, x] = state.deviations[old, c, x]
            state.lengths[new, c, x] = state.lengths[old, c, x]
    for i in range(state.values.shape[1]):
        state.values[new, i] = state.values[old, i]
    for i in range(state.groups.shape[1]):
        state.groups[new, i] = state.groups[old, i]


@uncounted
def _take(state, scratch, topology):
    """Take the proposal over, as it was assessed."""
    state.log_likelihood[0], state.log_prior[0] = scratch.last[LAST_LIKELIHOOD], scratch.last[LAST_PRIOR]
    state.log_tree[0], state.log_working[0] = scratch.last[LAST_TREE], scratch.last[LAST_WORKING]
    if topology:
        for x in range(scratch.keys.shape[0]):
            scratch.keys[x] = scratch.new_keys[x]
    state.slot[0] = 1 - state.slot[0]


@uncounted
def advance(data, state, scratch, n_moves, task):
    return _advance(by_reference(data), by_reference(state), by_reference(scratch), n_moves, task)


@uncounted
def _advance(data, state, scratch, n_moves, task):
    """Go on until so many moves are done since scratch.done[MOVES] was 0. task: SAMPLE; TUNE: adapt moves and
    steps, which only burn-in may; LEARN: and scales; WATCH: and where subtrees are; REFRESH: one evaluation
    that trusts no cache, at a start and from a checkpoint (models that Python makes must be written).
    Returns FINISHED, or WAITS for what scratch.done[WAITING] says and call again: FOR_MODEL, the caller must
    write the model of the proposal, which is kept; FOR_LIKELIHOOD, it must answer scratch.asked.
    Every turn of the loop evaluates one point: a proposal, or a step of a trajectory.
    """
    done, pending, tuning, fresh = scratch.done, scratch.pending, task != SAMPLE, task == REFRESH
    done[ADAPTS] = tuning
    while done[MOVES] < n_moves:
        move, waited, model, possible = done[MOVE], done[WAITING], SAME, True
        done[WAITING] = NOTHING
        if move < 0:
            move = _draw(data, state) if not fresh else 0
            done[MOVE], pending[STEPS] = move, 0
            begin(state)
        on = data.moves.on[move] if not fresh else OF_TREE
        if on == OF_ANCESTORS:
            move_ancestors(data, state, scratch, move, tuning)
            done[MOVES], done[MOVE] = done[MOVES] + 1, -1
            continue
        by_steps = on >= OF_HAMILTON
        which = on - OF_HAMILTON if by_steps else JOINT
        if waited == NOTHING:
            possible = _go_on(data, state, scratch, which) if by_steps else True
            if not by_steps:
                possible = _prepare(data, state, scratch, move, fresh)
            if possible:
                sort_by_height(state.heights[1 - state.slot[0]], state.order[1 - state.slot[0]])
                if on == OF_TREE:
                    kept = data.ancestors == 0
                    topology = mark_topology(data, state, scratch) if kept else other_topology(data, state)
                    pending[TOUCHED] = pending[TOUCHED] != 0.0 or topology
                    pending[TOPOLOGY] = topology or fresh
                by_model = on == OF_NUMBERS or (by_steps and pending[TOUCHED] != 0.0 and pending[STEP] > 0)
                if data.use_data != 0 and (fresh or by_model):
                    model = propose_model(data, state, scratch, fresh)
                    if model == BY_CALLER:
                        done[WAITING] = FOR_MODEL
                        return WAITS
        start = by_steps and pending[STEP] == 0.0
        changed, value = waited == FOR_MODEL or model == WRITTEN, -math.inf
        if waited == FOR_LIKELIHOOD:
            changed = scratch.asked[OTHER_MODEL] != 0
        touched = pending[TOUCHED] != 0.0 or changed
        if possible:
            wanted = Wanted(
                touched, not start, changed, pending[TOPOLOGY] != 0.0, fresh, by_steps,
                which, by_steps and data.model_moves[which] != 0, waited == FOR_LIKELIHOOD,
                not by_steps or lands(pending),
            )  # fmt: skip
            value = assess(data, state, scratch, wanted)
            if value != value:
                done[WAITING] = FOR_LIKELIHOOD
                return WAITS
        if by_steps:
            pending[RATIO] = -math.inf
            if value > -math.inf:
                value += pending[JACOBIAN] + add_slopes(data, state, scratch, which)
                if start:
                    pending[ENERGY] -= value
                    continue
                if not lands(pending):
                    continue
                change = pending[WITHIN] = pending[ENERGY] + value - land(scratch)
                if change > -WORST:
                    if pending[STEP] < pending[STEPS]:
                        continue
                    pending[RATIO] = change
            end_trajectory(data, state, scratch, which, _of_its_steps(pending, value), tuning)
        elif value > -math.inf:
            before = scratch.power[OF_LIKELIHOOD] * state.log_likelihood[0]
            before += scratch.power[OF_WORKING] * state.log_working[0]
            pending[RATIO] += value - before - scratch.power[OF_PRIOR] * state.log_prior[0]
        taken = fresh
        if not fresh and value > -math.inf:
            taken = math.log(uniform(state.rng)) < pending[RATIO]
        if taken:
            if data.use_data != 0 and touched:
                settle(data, state, scratch, changed)
            _take(state, scratch, pending[TOPOLOGY] != 0.0 and data.ancestors == 0)
        done[MOVES], done[MOVE] = done[MOVES] + 1, -1
        if not fresh:
            if pending[UNDEFINED] != 0.0 and not by_steps:
                _note_undefined(state, scratch, move)
            _count(data, state, move, taken, tuning)
            if LEARN <= task <= WATCH:
                _learn(data, state, scratch, on, task)
    return FINISHED


@uncounted
def _learn(data, state, scratch, on, task):
    """Learn from the accepted tree: now and then where subtrees are, after trajectories the scales."""
    if task == WATCH and (state.generation[0] + scratch.done[MOVES]) % LOOK == 0:
        if data.ancestors != 0:
            set_keys(data, state, scratch)
        old = state.slot[0]
        tree = state.parent[old], state.left[old], state.right[old], state.heights[old]
        learn_places(state.place, state.place_ages, state.place_looks, tree, scratch.keys)
    if on == OF_HAMILTON:
        learn_scales(data, state, scratch)


@uncounted
def _of_its_steps(pending, value):
    """What a trajectory's steps have won of energy. Shorter ones end as often where the density is 0, so that
    there it is what the last point before says: at the ends of a uniform age they would become 1,000 times
    too short."""
    return pending[WITHIN] if value == -math.inf else pending[RATIO]


@uncounted
def _go_on(data, state, scratch, which):
    """Begin a trajectory, or take its next step; False where that leads nowhere."""
    pending, begun = scratch.pending, scratch.pending[STEPS] > 0.0
    if begun:
        if not leap(data, state, scratch):
            return False
    else:
        if data.ancestors != 0:
            set_keys(data, state, scratch)
        energy = begin_trajectory(data, state, scratch, which)
        step = math.exp(state.steps[which, LOG_STEP if scratch.done[ADAPTS] != 0 else LOG_MEAN])
        plan_trajectory(data, state, scratch, which, step)
        pending[ENERGY], pending[WITHIN] = energy, -math.inf
    pending[JACOBIAN] = place(data, state, scratch, which, begun)
    pending[TOUCHED], pending[TOPOLOGY] = is_whole(pending, which), False
    return pending[JACOBIAN] > -math.inf


@uncounted
def _draw(data, state):
    """Which move comes next."""
    u, move = uniform(state.rng), 0
    while data.moves.cumulative[move] < u:
        move += 1
    return move


@uncounted
def _prepare(data, state, scratch, move, fresh):
    """Make the proposal of a move; its log Hastings ratio and whether branches changed into scratch.pending.
    Returns False for an impossible one."""
    pending, possible, changed = scratch.pending, True, 1
    pending[RATIO], pending[TOPOLOGY], pending[UNDEFINED] = 0.0, False, False
    if not fresh:
        of_tree = data.moves.on[move] == OF_TREE
        held = of_tree and data.moves.held[move] > 0.0 and uniform(state.rng) < data.moves.held[move]
        pending[RATIO] = _propose(data, state, scratch, move)
        if of_tree and state.groups.shape[1] > 1 and pending[RATIO] > -math.inf:
            pending[RATIO] += _follow(data, state)
        pending[UNDEFINED] = not pending[RATIO] < math.inf
        possible = pending[RATIO] > -math.inf and pending[UNDEFINED] == 0.0
        if possible and data.ancestral_tips > 0 and data.moves.pins[move] == 0:
            possible = _same_ancestors(data, state)
        if possible:
            changed = _set_branches(data, state, scratch, held)
            possible = changed >= 0
    pending[TOUCHED] = changed > 0
    return possible


@uncounted
def _follow(data, state):
    """Let groups follow the proposal's joinings, one time in two; returns the log Hastings ratio."""
    if uniform(state.rng) < 0.5:
        return 0.0
    old, new, k = state.slot[0], 1 - state.slot[0], state.groups.shape[1]
    sort_by_height(state.heights[new], state.order[new])
    first, end = data.tree_first, data.tree_first + k
    return follow(
        state.rng,
        Grouped(state.order[old], state.heights[old], state.groups[old], state.values[old, first:end]),
        Grouped(state.order[new], state.heights[new], state.groups[new], state.values[new, first:end]),
    )


@uncounted
def _propose(data, state, scratch, move):
    new, first, size, low, high, own = 1 - state.slot[0], 0, 0, 0.0, 0.0, 0
    if data.moves.on[move] == OF_TREE:
        own = data.moves.block[move]
    elif data.moves.on[move] == OF_NUMBERS:
        block = data.moves.block[move]
        first, size = data.blocks.first[block], data.blocks.size[block]
        low, high = data.blocks.low[block], data.blocks.high[block]
    known = KnownPlaces(scratch.keys, scratch.new_keys, state.place, state.place_ages, state.place_looks)
    proposal = Proposal(
        data.n_tips, state.rng, state.tuning[move], low, high, state.values[new, first : first + size],
        first, scratch.room, state.parent[new], state.left[new], state.right[new], state.heights[new],
        state.order[new], state.deviations[new, own], state.deviations[new], state.values[new],
        data.clock.rate, data.clock.spread, data.clock.free, own, data.clock.kind, data.tree_first,
        state.groups[new], data.tip_bounds, data.moving, scratch.edges, scratch.stack, scratch.spots,
        scratch.parsimony, scratch.field, known, scratch.power,
    )  # fmt: skip
    return propose_kind(data.moves.kind[move], by_reference(proposal))


@uncounted
def _set_branches(data, state, scratch, held):
    """Lengths of the proposal, by every clock; held: of branches whose durations changed the deviations
    instead. Returns how many lengths are others, -1 where a branch lasts no time."""
    old, new, changed = state.slot[0], 1 - state.slot[0], 0
    parent, heights = state.parent[new], state.heights[new]
    if held:
        for x in range(parent.shape[0] - 1):
            time = heights[parent[x]] - heights[x]
            before = state.heights[old, state.parent[old, x]] - state.heights[old, x]
            if time > 0.0 and time != before:
                shift = math.log(before / time)
                for c in range(data.clock.rate.shape[0]):
                    s = spread_of(data.clock, state.values[new], c)[1]
                    state.deviations[new, c, x] += shift / s
    if data.clock.along != 0:
        sort_by_height(heights, state.order[new])
    if not set_all_lengths(data, state, scratch):
        return -1
    for c in range(state.lengths.shape[1]):
        was, now = state.lengths[old, c], state.lengths[new, c]
        for x in range(parent.shape[0] - 1):
            if held and _alike(now[x], was[x]):
                now[x] = was[x]
            if now[x] != was[x]:
                changed += 1
    return changed


@uncounted
def _same_ancestors(data, state):
    """Whether the proposal has the same tips as ancestors, as old as their parents: only some moves change
    which."""
    old, new = state.slot[0], 1 - state.slot[0]
    for x in range(data.n_tips):
        was = state.heights[old, state.parent[old, x]] == state.heights[old, x]
        if (state.heights[new, state.parent[new, x]] == state.heights[new, x]) != was:
            return False
    return True


@uncounted
def _alike(a, b):
    """The same but for rounding."""
    return abs(a - b) < 1e-13 * b


@uncounted
def _note_undefined(state, scratch, move):
    """Count a proposal that nobody can judge; steps of trajectories are not, which count as diverged."""
    ratio, new = scratch.pending[RATIO], 1 - state.slot[0]
    prior, likelihood = 0.0, 0.0
    if ratio < math.inf:
        prior, likelihood = scratch.last[LAST_PRIOR], scratch.last[LAST_LIKELIHOOD]
    state.undefined[move] += 1
    note(state.undefined_last, move, ratio, prior, likelihood, state.values[new])


@uncounted
def _count(data, state, move, taken, tuning):
    """Count a move, and adapt it as mcmc.compiled.run.tune_move does."""
    state.tried[move] += 1
    state.accepted[move] += taken
    tunes = tuning and data.moves.target[move] > 0.0
    if tunes:
        state.batch_tried[move] += 1
        state.batch_accepted[move] += taken
    if tunes and state.batch_tried[move] == TUNING_BATCH:
        batch = (state.tried[move] - 1) // TUNING_BATCH + 1
        change = min(0.5, 1.0 / math.sqrt(float(batch)))
        wider = state.batch_accepted[move] > data.moves.target[move] * TUNING_BATCH
        if wider == (data.moves.narrows[move] != 0):
            change = -change
        value = state.tuning[move] * math.exp(change)
        state.tuning[move] = min(max(value, data.moves.bounds[move, 0]), data.moves.bounds[move, 1])
        state.batch_tried[move] = 0
        state.batch_accepted[move] = 0
