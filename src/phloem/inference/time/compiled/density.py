"""The prior of a dated tree and its numbers, by natural values, with derivatives."""

from __future__ import annotations

import math

from phloem.density import calibrations, clocks
from phloem.density.terms.compiled.dispatch import log_density_of_kind, log_prior
from phloem.density.tree_priors.tree_prior import Genealogy
from phloem.hardware.numba_compile import uncounted
from phloem.inference.time.compiled.by_address import DEVIATIONS, TREE_PRIOR
from phloem.inference.time.records import LAST_PRIOR, LAST_TREE

log_tree_prior, log_deviations = TREE_PRIOR.call, DEVIATIONS.call
STEP = 1e-6  # relative, of differences of the densities of single numbers: every family then has a slope
HALF_LOG_PI, HALF_LOG_2PI = 0.5 * math.log(math.pi), 0.5 * math.log(2.0 * math.pi)

set_ancestors = uncounted(calibrations.set_ancestors)
log_spread = uncounted(clocks.log_spread)


@uncounted
def sort_by_height(heights, order):
    """order (N,), nearly sorted, by height; of equal heights the order stays, but that tips come before inner
    nodes, one of which may be as old as a tip below it that is an ancestor."""
    n_tips = (order.shape[0] + 1) // 2
    for i in range(1, order.shape[0]):
        x = order[i]
        j = i - 1
        while j >= 0 and (
            heights[order[j]] > heights[x] or (x < n_tips <= order[j] and heights[order[j]] == heights[x])
        ):
            order[j + 1] = order[j]
            j -= 1
        order[j + 1] = x


@uncounted
def prior_of(data, state, scratch, slot):
    """Log prior density of a slot by heights, deviations and numbers; -inf outside, whatever a term that
    means nothing there comes to; else no number where a term is none. Writes derivatives by
    heights (scratch.by_height) and those of the tree prior and the clock's by numbers (scratch.by_value);
    those of numbers' own priors are add_table_slopes'."""
    by_height, by_value = scratch.by_height, scratch.by_value
    for x in range(by_height.shape[0]):
        by_height[x] = 0.0
    values = state.values[slot]
    for i in range(values.shape[0]):
        by_value[i] = 0.0
    if not _inside(data.blocks, values):
        return -math.inf
    total = log_prior(data.priors, values)
    if not total > -math.inf:
        return total
    if data.calibrations.size.shape[0] > 0 and not _set_ancestors(data, state, scratch, slot):
        return -math.inf
    heights, order = state.heights[slot], state.order[slot]
    groups, parent = state.groups[slot], state.parent[slot]
    g = Genealogy(heights, order, data.n_tips, groups, parent, scratch.dated, scratch.pieces)
    first, end = data.tree_first, data.tree_first + data.tree_size
    own = (g, values[first:end], data.tree_settings, by_height, by_value[first:end])
    tree = log_tree_prior(data.tree_density, own)
    scratch.last[LAST_TREE] = tree
    total += tree
    by_clock, known = _clock_prior(data, state, scratch, slot), 0.0
    if data.calibrations.size.shape[0] > 0:
        known = _known_ages(data, state, scratch, slot)
    if tree == -math.inf or by_clock == -math.inf or known == -math.inf:
        return -math.inf
    total += by_clock + known
    scratch.last[LAST_PRIOR] = total
    return total


@uncounted
def _inside(blocks, values):
    """Whether all numbers are inside their bounds."""
    inside = True
    for b in range(blocks.first.shape[0]):
        for i in range(blocks.first[b], blocks.first[b] + blocks.size[b]):
            inside = inside and blocks.low[b] <= values[i] <= blocks.high[b]
    return inside


@uncounted
def _clock_prior(data, state, scratch, slot):
    """Of every clock's deviations, standard normal each or as the clock has them, d/dε into
    scratch.by_deviation; and of its rate where the prior is the CTMC reference, Gamma(½) with the tree's
    length as its rate (Ferreira and Suchard 2008, Can. J. Stat. 36:355)."""
    total, length, slope, clock = 0.0, 0.0, 0.0, data.clock
    parent, heights = state.parent[slot], state.heights[slot]
    normal = clock.smooth == 1 and clock.density == 0
    for x in range(parent.shape[0] - 1):
        length += heights[parent[x]] - heights[x]
    for c in range(clock.rate.shape[0]):
        deviations, by_deviation = state.deviations[slot, c], scratch.by_deviation[c]
        for x in range(parent.shape[0] - 1):
            e = deviations[x] if normal else 0.0
            total -= 0.5 * e * e + (HALF_LOG_2PI if normal else 0.0)
            by_deviation[x] = -e
        first, end = clock.rate[c], clock.rate[c] + clock.size
        if clock.density != 0:
            values, by_value = state.values[slot, first:end], scratch.by_value[first:end]
            own = (parent, heights, deviations, values, by_deviation, scratch.by_height, by_value)
            total += log_deviations(clock.density, own)
        if clock.reference[c] == 1:
            rate = state.values[slot, first]
            total += 0.5 * math.log(length / rate) - rate * length - HALF_LOG_PI
            scratch.by_value[first] -= 0.5 / rate + length
            slope += 0.5 / length - rate
    for x in range(parent.shape[0] - 1):
        scratch.by_height[parent[x]] += slope
        scratch.by_height[x] -= slope
    return total


@uncounted
def _set_ancestors(data, state, scratch, slot):
    """Whether taxa that must be together are; sets which nodes have ages that are known."""
    known, left, right, order = data.calibrations, state.left[slot], state.right[slot], state.order[slot]
    found = set_ancestors(left, right, order, known, data.n_tips, scratch.counts, scratch.ancestors)
    for c in range(known.size.shape[0]):
        scratch.dated[c] = scratch.ancestors[c] if known.dated[c] == 1 else -1
    return found


@uncounted
def _known_ages(data, state, scratch, slot):
    """Of the ages of calibrated clades, _set_ancestors having found these."""
    known, ages, total = data.calibrations, scratch.ages, 0.0
    heights = state.heights[slot]
    for c in range(known.size.shape[0]):
        ages[c] = heights[scratch.ancestors[c]] - known.shift[c]
        if known.fixed[c] == known.fixed[c] and ages[c] != known.fixed[c]:
            return -math.inf
        if known.above[c] >= 0:
            ages[c] += state.values[slot, known.above[c]]
    for r in range(data.ages.kind.shape[0]):
        c = data.ages.first[r]
        numbers = data.ages.numbers[data.ages.numbers_first[r] : data.ages.numbers_first[r + 1]]
        here = ages[c : c + 1]
        if here[0] < 0.0:
            return -math.inf
        value = log_density_of_kind(data.ages.kind[r], here, numbers)
        total += value
        age = ages[c]
        ages[c] = age * (1.0 + STEP)
        above = log_density_of_kind(data.ages.kind[r], here, numbers)
        ages[c] = age * (1.0 - STEP)
        below = log_density_of_kind(data.ages.kind[r], here, numbers)
        ages[c] = age
        if above > -math.inf and below > -math.inf:
            slope = (above - below) / (2.0 * STEP * age)
            scratch.by_height[scratch.ancestors[c]] += slope
            if known.above[c] >= 0:
                scratch.by_value[known.above[c]] += slope
    return total


@uncounted
def add_table_slopes(table, blocks, values, which, by_value, weight):
    """Add derivatives, times weight, of a table of densities of the numbers that a Hamiltonian move changes,
    by differences: a row of the table at a time."""
    for r in range(table.kind.shape[0]):
        b = 0
        while b + 1 < blocks.first.shape[0] and blocks.first[b + 1] <= table.first[r]:
            b += 1
        if blocks.taken[which, b] == 0:
            continue
        here = values[table.first[r] : table.first[r] + table.size[r]]
        numbers = table.numbers[table.numbers_first[r] : table.numbers_first[r + 1]]
        for i in range(here.shape[0]):
            x = here[i]
            step = STEP * max(abs(x), 1e-3 if x == 0.0 else 0.0)
            here[i] = x + step
            above = log_density_of_kind(table.kind[r], here, numbers)
            here[i] = x - step
            below = log_density_of_kind(table.kind[r], here, numbers)
            here[i] = x
            if above > -math.inf and below > -math.inf:
                by_value[table.first[r] + i] += weight * ((above - below) / (2.0 * step))
