"""Hamiltonian dynamics of everything but the topology, and of dates where distances are held.

The joint move has as coordinates z of heights, ε of branch rates and all numbers, and asks the likelihood
for its gradient. Another holds every branch length in substitutions (density/clocks.py), so that the data are
constant: z and the numbers of clock and tree prior, at the cost of the prior alone. Alternating them
interweaves the two parametrisations (Yu and Meng 2011, J. Comput. Graph. Stat. 20:531). Where a substitution
model has many numbers, they have a move of their own.

The slope of a coalescent jumps where two events change places, most where a group of a skyline ends: the
error of a trajectory is then of the first order in its steps, which must be a hundred times shorter than the
likelihood asks for. So one step of the likelihood's force holds `inner` steps of the prior's, which cost
microseconds (multiple time steps: Tuckerman, Berne and Martyna 1992, J. Chem. Phys. 97:1990; Neal 2011,
5.5.1).

Leapfrog (Neal 2011, Handbook of MCMC, chapter 5) with a random number of steps and a scale for every
coordinate. Scales are functions of the topology, by the clade below, and of what was learnt before sampling
began: a trajectory changes neither, so no scale needs a correction.
"""

from __future__ import annotations

import math

from phloem.density import clocks
from phloem.density.clocks import WHITE_NOISE
from phloem.density.local_clocks import Branches
from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.compiled.random import normal, uniform
from phloem.inference.time.compiled.by_address import LENGTHS_ALONG, PULL_BACK_ALONG
from phloem.inference.time.compiled.coordinates import (
    from_coordinates,
    pull_back_numbers,
    to_coordinates,
)
from phloem.inference.time.compiled.crossings import drift, set_cells
from phloem.inference.time.compiled.density import log_spread
from phloem.inference.time.compiled.known_places import entry
from phloem.inference.time.compiled.tree_coordinates import (
    has_coordinate,
    place_heights,
    pull_back_heights,
    set_heights,
)
from phloem.inference.time.records import (
    CENTRE,
    COUNT,
    DATES,
    INNER,
    JOINT,
    LENGTH,
    LOG_MEAN,
    LOG_STEP,
    MODEL,
    OF_HEIGHT,
    OF_PRIOR,
    OF_RATE,
    SHORTFALL,
    STEP,
    STEPS,
)

LOG_LEAST = math.log(0.02)
"""Of white noise: rates of branches that last next to nothing are spread so wide that steps which follow them
cost a hundred times as much and go nowhere. Some trajectories then fail, and other moves do that work."""
WORST = 1000.0  # energy error of a trajectory that has left its range
TARGET, OF_KINKS = 0.8, 0.6  # acceptance aimed at; where errors are of the first order in a step
OUTER, MOST_INNER = 0.15, 100  # a step of the likelihood's force, in scales; and of the prior's in one

branches_last = uncounted(clocks.branches_last)
set_lengths = uncounted(clocks.set_lengths)
pull_back_lengths = uncounted(clocks.pull_back_lengths)
set_deviations = uncounted(clocks.set_deviations)
held_by_distances = uncounted(clocks.held_by_distances)
spread_slope = uncounted(clocks.spread_slope)
lengths_along, pull_back_along = LENGTHS_ALONG.call, PULL_BACK_ALONG.call


@uncounted
def set_scales(data, state, scratch, which):
    """scratch.scale (D,): 0 for coordinates that the move does not change."""
    n, scale, clock, rows = state.parent.shape[1], scratch.scale, data.clock, state.usual.shape[0]
    slot, with_rates = state.slot[0], which == JOINT and clock.smooth == 1
    for x in range(n):
        at = entry(state.clade, scratch.keys[x])
        known = at >= 0 and state.clade[at] == scratch.keys[x]
        for row in range(rows):
            there = with_rates and state.parent[slot, x] >= 0
            if row == OF_HEIGHT:
                there = which != MODEL and has_coordinate(data, scratch, x)
            variance = state.usual[row]
            if known and state.variance[row, at] > 0.0:
                variance = state.variance[row, at]
            scale[row * n + x] = math.sqrt(variance) if there else 0.0
    blocks = data.blocks
    for b in range(blocks.first.shape[0]):
        end = blocks.coordinate[b + 1] if b + 1 < blocks.first.shape[0] else state.number_variance.shape[0]
        for i in range(blocks.coordinate[b], end):
            moves = blocks.taken[which, b] != 0
            scale[rows * n + i] = math.sqrt(state.number_variance[i]) if moves else 0.0


@uncounted
def begin_trajectory(data, state, scratch, which):
    """Coordinates of the accepted state, scales, and momenta drawn anew; returns their energy."""
    n, old = state.parent.shape[1], state.slot[0]
    y, momentum, energy = scratch.y, scratch.momentum, 0.0
    set_heights(data, state, scratch)
    for c in range(state.deviations.shape[1]):
        for x in range(n):
            y[(OF_RATE + c) * n + x] = state.deviations[old, c, x]
    to_coordinates(data.blocks, state.values[old], y[state.usual.shape[0] * n :])
    set_scales(data, state, scratch, which)
    if scratch.field.spacing > 0.0:
        set_cells(data, state, scratch)
    for i in range(y.shape[0]):
        momentum[i] = normal(state.rng) if scratch.scale[i] > 0.0 else 0.0
        scratch.kick[i] = 0.0
        energy += 0.5 * momentum[i] * momentum[i]
    return energy


@uncounted
def plan_trajectory(data, state, scratch, which, step):
    """How many steps of a length, at random, so that no trajectory comes back to where it began; and how many
    of them make one of the likelihood's."""
    pending, inner = scratch.pending, 1
    if which != MODEL:
        inner = max(1, min(int(OUTER / step), MOST_INNER))
    wanted = data.path * (0.5 + uniform(state.rng)) / step
    outer = max(1, min(int(wanted / inner + 0.5), data.most_steps))
    pending[STEP], pending[STEPS], pending[INNER], pending[LENGTH] = 0, inner * outer, inner, step


@uncounted
def lands(pending):
    """Whether a step ends where the likelihood acts, or may: only there is the momenta's half step done apart
    from the next one's."""
    return pending[STEP] % pending[INNER] == 0


@uncounted
def is_whole(pending, which):
    """Whether the likelihood acts at this step."""
    return which != DATES and lands(pending)


@uncounted
def leap(data, state, scratch):
    """Half a step of the momenta, after steps that did not land a whole one, and one of the coordinates.
    False where that leads nowhere."""
    pending = scratch.pending
    step = pending[LENGTH]
    outer = step * pending[INNER] if lands(pending) else 0.0
    inner = step if lands(pending) else 2.0 * step
    for i in range(scratch.y.shape[0]):
        scratch.momentum[i] += 0.5 * scratch.scale[i] * (inner * scratch.slope[i] + outer * scratch.kick[i])
    pending[STEP] += 1
    if scratch.field.spacing > 0.0:
        return drift(data, state, scratch, step)
    for i in range(scratch.y.shape[0]):
        scratch.y[i] += step * scratch.scale[i] * scratch.momentum[i]
    return True


@uncounted
def land(scratch):
    """The other half, where a step lands; returns the energy of the momenta."""
    pending, energy = scratch.pending, 0.0
    step = pending[LENGTH]
    outer = step * pending[INNER]
    for i in range(scratch.y.shape[0]):
        scratch.momentum[i] += 0.5 * scratch.scale[i] * (step * scratch.slope[i] + outer * scratch.kick[i])
        energy += 0.5 * scratch.momentum[i] * scratch.momentum[i]
    return energy


@uncounted
def branches(data, state, scratch, c):
    """The proposal as a clock along the tree, the c-th, sees it."""
    new, first, end = 1 - state.slot[0], data.clock.rate[c], data.clock.rate[c] + data.clock.size
    return Branches(
        data.clock.kind, data.n_tips, state.parent[new], state.left[new], state.right[new], state.order[new],
        state.heights[new], state.deviations[new, c], state.values[new, first:end], data.clock.member,
        scratch.edges, scratch.stack, scratch.spots,
    )  # fmt: skip


@uncounted
def spread_of(clock, values, c):
    """The parameter of a clock's spread, 0 without, and s."""
    spread = values[clock.spread[c]] if clock.spread[c] >= 0 else 0.0
    return spread, log_spread(clock.kind, spread)


@uncounted
def set_all_lengths(data, state, scratch):
    """Branch lengths of the proposal by every clock; False where a branch lasts no time."""
    new, clock, possible = 1 - state.slot[0], data.clock, True
    parent, heights_, values = state.parent[new], state.heights[new], state.values[new]
    if not branches_last(parent, heights_, data.ancestral_tips):
        return False
    for c in range(clock.rate.shape[0]):
        lengths = state.lengths[new, c]
        if clock.along == 0:
            rate, s = values[clock.rate[c]], spread_of(clock, values, c)[1]
            own = state.deviations[new, c]
            set_lengths(clock.kind, rate, s, parent, heights_, own, lengths)
        else:
            point = branches(data, state, scratch, c)
            possible = lengths_along(clock.along, (point, lengths)) > 0.0 and possible
    return possible


@uncounted
def place(data, state, scratch, which, proposed):
    """Write the point of the coordinates scratch.y into the proposal's slot, unless that holds it (proposed:
    False, the start); returns the log Jacobian, -inf where a branch lasts no time. Branch lengths are written
    where the likelihood acts."""
    new, n, clock, y = 1 - state.slot[0], state.parent.shape[1], data.clock, scratch.y
    parent, heights_ = state.parent[new], state.heights[new]
    values = state.values[new] if proposed else scratch.room  # of blocks that are not taken as they are
    total = from_coordinates(data.blocks, data.blocks.taken[which], y[state.usual.shape[0] * n :], values)
    if which == MODEL:
        return total if total == total else -math.inf
    total += place_heights(data, state, scratch, heights_ if proposed else scratch.spots[:n], proposed)
    if proposed and total > -math.inf:
        possible, deviations, lengths = True, state.deviations[new], state.lengths[new]
        if which == JOINT:
            for c in range(deviations.shape[0]):
                for x in range(n):
                    deviations[c, x] = y[(OF_RATE + c) * n + x]
            if is_whole(scratch.pending, which):
                possible = set_all_lengths(data, state, scratch)
        else:
            possible = branches_last(parent, heights_, data.ancestral_tips)
            for c in range(deviations.shape[0] if possible else 0):
                rate, s = values[clock.rate[c]], spread_of(clock, values, c)[1]
                set_deviations(clock.kind, rate, s, parent, heights_, lengths[c], deviations[c])
        if not possible:
            total = -math.inf
    return total if total == total else -math.inf


@uncounted
def add_slopes(data, state, scratch, which):
    """From what prior_of and the likelihood left to slopes by coordinates: of the prior and the Jacobian in
    scratch.slope (D,), and where the likelihood acts its own in scratch.kick. Returns what the log density
    gains besides: where distances are held, that of the deviations is one of distances."""
    new, n, extra, rows = 1 - state.slot[0], state.parent.shape[1], 0.0, state.usual.shape[0]
    heights_, values = state.heights[new], state.values[new]
    by_height, by_deviation, by_value = scratch.by_height, scratch.by_deviation, scratch.by_value
    spare = scratch.spots
    if which == DATES:
        extra = _hold_distances(data, state, scratch)
    likelihood = is_whole(scratch.pending, which) and data.use_data != 0
    trait = data.trait_density != 0 and lands(scratch.pending)
    for part in range(2 if likelihood or trait else 1):  # of the prior, then of all
        if part == 1:
            for x in range(n):
                by_height[x] = spare[x]
                if trait:
                    by_height[x] += scratch.power[OF_PRIOR] * scratch.trait.by_height[x]
            if likelihood:
                _pull_back_clocks(data, state, scratch)
            for i in range(scratch.by_engine.shape[0] if likelihood else 0):
                if data.model_from[i] >= 0:
                    by_value[data.model_from[i]] += scratch.by_engine[i]
        elif likelihood or trait:
            for x in range(n):
                spare[x] = by_height[x]
        slope = scratch.kick if part == 1 else scratch.slope
        pull_back_heights(data, state, scratch, heights_)
        for x in range(n):
            slope[x] = by_height[x]
            for c in range(by_deviation.shape[0]):
                slope[(OF_RATE + c) * n + x] = by_deviation[c, x]
        pull_back_numbers(data.blocks, data.blocks.taken[which], values, by_value, slope[rows * n :])
    if likelihood or trait:
        for i in range(scratch.kick.shape[0]):
            scratch.kick[i] -= scratch.slope[i]
    return extra


@uncounted
def _hold_distances(data, state, scratch):
    """Slopes of every clock's deviations where distances are held; returns what the log density gains."""
    new, clock, extra = 1 - state.slot[0], data.clock, 0.0
    parent, heights_, values = state.parent[new], state.heights[new], state.values[new]
    for c in range(clock.rate.shape[0]):
        s, own = spread_of(clock, values, c)[1], state.deviations[new, c]
        gain, by_rate, by_s = held_by_distances(
            clock.kind, s, parent, heights_, own, scratch.by_deviation[c], scratch.by_height
        )
        extra += gain
        _add_clock_slopes(clock, values, c, by_rate, by_s, scratch.by_value)
    return extra


@uncounted
def _pull_back_clocks(data, state, scratch):
    """Slopes of the likelihood by branch lengths to those by heights, which are of all clocks together, and
    by every clock's deviations and numbers."""
    new, clock, by_height = 1 - state.slot[0], data.clock, scratch.by_height
    parent, heights_, values = state.parent[new], state.heights[new], state.values[new]
    for c in range(clock.rate.shape[0]):
        by_length, by_deviation = scratch.by_length[c], scratch.by_deviation[c]
        if clock.along != 0:
            own = scratch.by_value[clock.rate[c] : clock.rate[c] + clock.size]
            point = branches(data, state, scratch, c)
            pull_back_along(
                clock.pull_back, (point, state.lengths[new, c], by_length, by_height, by_deviation, own)
            )
        else:
            rate, s = values[clock.rate[c]], spread_of(clock, values, c)[1]
            by_rate, by_s = pull_back_lengths(
                clock.kind, rate, s, parent, heights_, state.deviations[new, c], by_length, by_height,
                by_deviation,
            )  # fmt: skip
            _add_clock_slopes(clock, values, c, by_rate, by_s, scratch.by_value)


@uncounted
def _add_clock_slopes(clock, values, c, by_rate, by_s, by_value):
    """From those by the logarithm of a clock's rate and by s."""
    by_value[clock.rate[c]] += by_rate / values[clock.rate[c]]
    if clock.spread[c] >= 0:
        spread, s = spread_of(clock, values, c)
        by_value[clock.spread[c]] += by_s * spread_slope(clock.kind, spread, s)


@uncounted
def end_trajectory(data, state, scratch, which, change, tuning):
    """Count a trajectory that left its range (change: -inf), and adapt the step while tuning."""
    n, worst = state.parent.shape[1], data.n_tips
    if tuning:
        target = OF_KINKS if scratch.pending[INNER] > 1 else TARGET
        least = LOG_LEAST if data.clock.kind == WHITE_NOISE else -math.inf
        adapt_step(state.steps[which], target, min(1.0, math.exp(min(change, 0.0))), least)
    elif not change > -math.inf:
        for x in range(data.n_tips, n):
            if _force(scratch, x) > _force(scratch, worst):
                worst = x
        state.diverged[which] += 1
        state.diverged_at[worst] += 1


@uncounted
def _force(scratch, i):
    return abs(scratch.slope[i] + scratch.kick[i]) * scratch.scale[i]


@uncounted
def adapt_step(steps, target, acceptance, least):
    """Dual averaging towards the target (Hoffman and Gelman 2014, J. Mach. Learn. Res. 15:1593), not below
    the logarithm of the least step."""
    steps[COUNT] += 1.0
    m = steps[COUNT]
    steps[SHORTFALL] += (target - acceptance - steps[SHORTFALL]) / (m + 10.0)
    steps[LOG_STEP] = max(steps[CENTRE] - math.sqrt(m) / 0.05 * steps[SHORTFALL], least)
    weight = m**-0.75
    steps[LOG_MEAN] = weight * steps[LOG_STEP] + (1.0 - weight) * steps[LOG_MEAN]


@uncounted
def learn_scales(data, state, scratch):
    """Add the accepted state's coordinates to means and squares of the window (Welford 1962)."""
    old, n, y = state.slot[0], state.parent.shape[1], scratch.y
    set_heights(data, state, scratch)
    first = state.usual.shape[0] * n
    to_coordinates(data.blocks, state.values[old], y[first:])
    state.number_seen[0] += 1.0
    for i in range(state.number_mean.shape[0]):
        off = y[first + i] - state.number_mean[i]
        state.number_mean[i] += off / state.number_seen[0]
        state.number_square[i] += off * (y[first + i] - state.number_mean[i])
    for x in range(n):
        at = entry(state.clade, scratch.keys[x])
        if at < 0 or y[x] == -math.inf:
            continue
        state.clade[at] = scratch.keys[x]
        state.seen[at] += 1.0
        for row in range(state.usual.shape[0]):
            value = y[x] if row == OF_HEIGHT else state.deviations[old, row - OF_RATE, x]
            off = value - state.mean[row, at]
            state.mean[row, at] += off / state.seen[at]
            state.square[row, at] += off * (value - state.mean[row, at])
