"""Hamiltonian dynamics of everything but the topology, and of dates where distances are held.

The joint move has as coordinates z of heights, ε of branch rates and all numbers, and asks the likelihood
for its gradient at every step. The other holds every branch length in substitutions (density/clocks.py), so
that the data are constant: z and the numbers of clock and tree prior, at the cost of the prior alone.
Alternating them interweaves the two parametrisations (Yu and Meng 2011, J. Comput. Graph. Stat. 20:531).

Leapfrog (Neal 2011, Handbook of MCMC, chapter 5) with a random number of steps and a scale for every
coordinate. Scales are functions of the topology, by the clade below, and of what was learnt before sampling
began: a trajectory changes neither, so no scale needs a correction.
"""

from __future__ import annotations

import math

import numpy as np

from phloem.density import clocks, heights
from phloem.density.local_clocks import Branches
from phloem.hardware.numba_compile import merged, uncounted
from phloem.inference.mcmc.compiled.random import normal, uniform
from phloem.inference.time.compiled.by_address import LENGTHS_ALONG, PULL_BACK_ALONG
from phloem.inference.time.compiled.coordinates import (
    from_coordinates,
    pull_back_numbers,
    to_coordinates,
)
from phloem.inference.time.compiled.density import log_spread
from phloem.inference.time.records import (
    CENTRE,
    COUNT,
    JOINT,
    LOG_MEAN,
    LOG_STEP,
    OF_HEIGHT,
    OF_RATE,
    SHORTFALL,
)

WORST = 1000.0  # energy error of a trajectory that has left its range
TARGET = 0.8  # acceptance aimed at

set_anchors = uncounted(heights.set_anchors)
to_ratios = uncounted(heights.to_ratios)
from_ratios = uncounted(heights.from_ratios)
pull_back = uncounted(heights.pull_back)
set_lengths = uncounted(clocks.set_lengths)
pull_back_lengths = uncounted(clocks.pull_back_lengths)
set_deviations = uncounted(clocks.set_deviations)
held_by_distances = uncounted(clocks.held_by_distances)
spread_slope = uncounted(clocks.spread_slope)
lengths_along, pull_back_along = LENGTHS_ALONG.call, PULL_BACK_ALONG.call


@uncounted
def clade_entry(state, key):
    """Where a clade is in the table, or the free place where it would be; -1 where there is none."""
    size = state.clade.shape[0]
    at = np.int64(key % np.uint64(size))
    for _ in range(64):
        if state.clade[at] == key or state.clade[at] == 0:
            return at
        at = at + 1 if at + 1 < size else 0
    return -1


@merged
def set_scales(data, state, scratch, which):
    """scratch.scale (D,): 0 for coordinates that the move does not change."""
    n, scale, clock = state.parent.shape[1], scratch.scale, data.clock
    slot, with_rates = state.slot[0], which == JOINT and clock.smooth == 1
    for x in range(n):
        at = clade_entry(state, scratch.keys[x])
        known = at >= 0 and state.clade[at] == scratch.keys[x]
        for row in (OF_HEIGHT, OF_RATE):
            there = with_rates and state.parent[slot, x] >= 0 if row == OF_RATE else x >= data.n_tips
            variance = state.usual[row]
            if known and state.variance[row, at] > 0.0:
                variance = state.variance[row, at]
            scale[row * n + x] = math.sqrt(variance) if there else 0.0
    blocks = data.blocks
    for b in range(blocks.first.shape[0]):
        end = blocks.coordinate[b + 1] if b + 1 < blocks.first.shape[0] else state.number_variance.shape[0]
        for i in range(blocks.coordinate[b], end):
            moves = blocks.in_joint[b] != 0 if which == JOINT else blocks.in_dates[b] != 0
            scale[2 * n + i] = math.sqrt(state.number_variance[i]) if moves else 0.0


@merged
def begin_trajectory(data, state, scratch, which):
    """Coordinates of the accepted state, scales, and momenta drawn anew; returns their energy."""
    n, old = state.parent.shape[1], state.slot[0]
    y, momentum, energy = scratch.y, scratch.momentum, 0.0
    set_anchors(state.left[old], state.right[old], state.order[old], state.heights[old], scratch.anchors)
    to_ratios(state.left[old], state.parent[old], state.heights[old], scratch.anchors, y[:n])
    for x in range(n):
        y[n + x] = state.deviations[old, x]
    to_coordinates(data.blocks, state.values[old], y[2 * n :])
    set_scales(data, state, scratch, which)
    for i in range(y.shape[0]):
        momentum[i] = normal(state.rng) if scratch.scale[i] > 0.0 else 0.0
        energy += 0.5 * momentum[i] * momentum[i]
    return energy


@merged
def number_of_steps(data, state, which, step):
    """Random, so that no trajectory comes back to where it began."""
    count = int(data.path * (0.5 + uniform(state.rng)) / step + 0.5)
    return max(1, min(count, data.most_steps))


@merged
def leap(scratch, step):
    """Half a step of the momenta and a whole one of the coordinates."""
    for i in range(scratch.y.shape[0]):
        scratch.momentum[i] += 0.5 * step * scratch.scale[i] * scratch.slope[i]
        scratch.y[i] += step * scratch.scale[i] * scratch.momentum[i]


@merged
def land(scratch, step):
    """The other half; returns the energy of the momenta."""
    energy = 0.0
    for i in range(scratch.y.shape[0]):
        scratch.momentum[i] += 0.5 * step * scratch.scale[i] * scratch.slope[i]
        energy += 0.5 * scratch.momentum[i] * scratch.momentum[i]
    return energy


@merged
def branches(data, state, scratch):
    """The proposal as a clock along the tree sees it."""
    new, first, end = 1 - state.slot[0], data.clock.rate, data.clock.rate + data.clock.size
    return Branches(
        data.clock.kind, data.n_tips, state.parent[new], state.left[new], state.right[new], state.order[new],
        state.heights[new], state.deviations[new], state.values[new, first:end], data.clock.member,
        scratch.edges, scratch.stack, scratch.spots,
    )  # fmt: skip


@merged
def place(data, state, scratch, which, proposed):
    """Write the point of the coordinates scratch.y into the proposal's slot, unless that holds it (proposed:
    False, the start); returns the log Jacobian, -inf where a branch lasts no time."""
    new, n, clock, y = 1 - state.slot[0], state.parent.shape[1], data.clock, scratch.y
    parent, left, heights_ = state.parent[new], state.left[new], state.heights[new]
    values = state.values[new] if proposed else scratch.room
    total = from_coordinates(data.blocks, y[2 * n :], values)
    where = heights_ if proposed else scratch.spots
    total += from_ratios(left, parent, state.order[new], scratch.anchors, y[:n], where)
    if proposed and total > -math.inf:
        possible, deviations = True, state.deviations[new]
        rate = values[clock.rate]
        s = log_spread(clock.kind, values[clock.spread] if clock.spread >= 0 else 0.0)
        if which == JOINT:
            for x in range(n):
                deviations[x] = y[n + x]
            lengths = state.lengths[new, 0]
            if clock.along == 0:
                possible = set_lengths(clock.kind, rate, s, parent, heights_, deviations, lengths)
            else:
                possible = lengths_along(clock.along, (branches(data, state, scratch), lengths)) > 0.0
        else:
            for x in range(n - 1):
                possible = possible and heights_[parent[x]] > heights_[x]
            if possible:
                set_deviations(clock.kind, rate, s, parent, heights_, state.lengths[new, 0], deviations)
        if not possible:
            total = -math.inf
    return total if total == total else -math.inf


@merged
def add_slopes(data, state, scratch, which):
    """From what assess left to the slope (D,) by coordinates in scratch.slope. Returns what the log density
    gains besides: where distances are held, that of the deviations is one of distances."""
    new, n, clock, extra = 1 - state.slot[0], state.parent.shape[1], data.clock, 0.0
    parent, heights_, values = state.parent[new], state.heights[new], state.values[new]
    deviations, slope = state.deviations[new], scratch.slope
    by_height, by_deviation, by_value = scratch.by_height, scratch.by_deviation, scratch.by_value
    rate, spread = values[clock.rate], values[clock.spread] if clock.spread >= 0 else 0.0
    s, by_rate, by_s = log_spread(clock.kind, spread), 0.0, 0.0
    if which != JOINT:
        extra, by_rate, by_s = held_by_distances(
            clock.kind, s, parent, heights_, deviations, by_deviation, by_height
        )
    elif data.use_data != 0 and clock.along != 0:
        own = by_value[clock.rate : clock.rate + clock.size]
        given = (
            branches(data, state, scratch),
            state.lengths[new, 0],
            slope[:n],
            by_height,
            by_deviation,
            own,
        )
        pull_back_along(clock.pull_back, given)
    elif data.use_data != 0:
        by_rate, by_s = pull_back_lengths(
            clock.kind, rate, s, parent, heights_, deviations, slope[:n], by_height, by_deviation
        )
    by_value[clock.rate] += by_rate / rate
    if clock.spread >= 0:
        by_value[clock.spread] += by_s * spread_slope(clock.kind, spread, s)
    pull_back(state.left[new], parent, state.order[new], scratch.anchors, heights_, by_height)
    for x in range(n):
        slope[x], slope[n + x] = by_height[x], by_deviation[x]
    pull_back_numbers(data.blocks, values, by_value, slope[2 * n :])
    return extra


@merged
def end_trajectory(data, state, scratch, which, change, tuning):
    """Count a trajectory that left its range (change: -inf), and adapt the step while tuning."""
    n, worst = state.parent.shape[1], data.n_tips
    if tuning:
        adapt_step(state.steps[which], min(1.0, math.exp(min(change, 0.0))))
    elif not change > -math.inf:
        for x in range(data.n_tips, n):
            if abs(scratch.slope[x]) * scratch.scale[x] > abs(scratch.slope[worst]) * scratch.scale[worst]:
                worst = x
        state.diverged[which] += 1
        state.diverged_at[worst] += 1


@uncounted
def adapt_step(steps, acceptance):
    """Dual averaging towards the target (Hoffman and Gelman 2014, J. Mach. Learn. Res. 15:1593)."""
    steps[COUNT] += 1.0
    m = steps[COUNT]
    steps[SHORTFALL] += (TARGET - acceptance - steps[SHORTFALL]) / (m + 10.0)
    steps[LOG_STEP] = steps[CENTRE] - math.sqrt(m) / 0.05 * steps[SHORTFALL]
    weight = m**-0.75
    steps[LOG_MEAN] = weight * steps[LOG_STEP] + (1.0 - weight) * steps[LOG_MEAN]


@merged
def learn_scales(data, state, scratch):
    """Add the accepted state's coordinates to means and squares of the window (Welford 1962)."""
    old, n, y = state.slot[0], state.parent.shape[1], scratch.y
    set_anchors(state.left[old], state.right[old], state.order[old], state.heights[old], scratch.anchors)
    to_ratios(state.left[old], state.parent[old], state.heights[old], scratch.anchors, y[:n])
    to_coordinates(data.blocks, state.values[old], y[2 * n :])
    state.number_seen[0] += 1.0
    for i in range(state.number_mean.shape[0]):
        off = y[2 * n + i] - state.number_mean[i]
        state.number_mean[i] += off / state.number_seen[0]
        state.number_square[i] += off * (y[2 * n + i] - state.number_mean[i])
    for x in range(n):
        at = clade_entry(state, scratch.keys[x])
        if at < 0:
            continue
        state.clade[at] = scratch.keys[x]
        state.seen[at] += 1.0
        for row in (OF_HEIGHT, OF_RATE):
            value = y[x] if row == OF_HEIGHT else state.deviations[old, x]
            off = value - state.mean[row, at]
            state.mean[row, at] += off / state.seen[at]
            state.square[row, at] += off * (value - state.mean[row, at])
