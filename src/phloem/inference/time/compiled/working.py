"""The working distribution of generalised stepping stones of dated trees, compiled, with derivatives."""

from __future__ import annotations

import math

from phloem.density import heights as node_heights
from phloem.density.clocks import WHITE_NOISE
from phloem.density.terms.compiled.dispatch import log_prior
from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.compiled.working import of_split, place_of_key
from phloem.inference.time.compiled.density import add_table_slopes
from phloem.inference.time.records import OF_WORKING

set_limits = uncounted(node_heights.set_limits)


@uncounted
def working_of(data, state, scratch, slot, which, slopes):
    """Log working density of a slot, -inf where a node is no older than the tips below; 0 where there is
    none. slopes: adds its derivatives, times its power, to those of the prior: scratch.by_height,
    by_deviation, and by_value of what a Hamiltonian move (which) changes."""
    table = data.working
    if table.shares.shape[0] == 0:
        return 0.0
    values, weight = state.values[slot], scratch.power[OF_WORKING] if slopes else 0.0
    total = table.constant + log_prior(table.numbers, values)
    total += _of_tree(data, state, scratch, slot, weight) + _of_rates(data, state, scratch, slot, weight)
    if slopes and total > -math.inf:
        add_table_slopes(table.numbers, data.blocks, values, which, scratch.by_value, weight)
    return total


@uncounted
def _of_tree(data, state, scratch, slot, weight):
    """Of topology and heights, once prior_of has found the common ancestors; derivatives by heights times
    weight into scratch.by_height."""
    table, keys, lows, by = data.working, scratch.below, scratch.lows, scratch.by_height
    total = _of_topology(data, state, scratch, slot)
    parent, heights = state.parent[slot], state.heights[slot]
    known, caps, root = data.calibrations, scratch.caps, parent.shape[0] - 1
    set_limits(parent, scratch.ancestors, known.least, known.most, lows, caps)
    for x in range(data.n_tips, root + 1):
        above, p = heights[x] - lows[x], parent[x]
        if caps[x] == lows[x] == heights[x]:  # a fixed age
            continue
        if not above > 0.0:
            return -math.inf
        if x == root and caps[x] == math.inf:
            off = (math.log(above) - table.root[0]) * table.root[1]
            total += table.root[2] - math.log(above) - 0.5 * off * off
            by[x] -= weight * (1.0 + off * table.root[1]) / above
            continue
        below_parent = x < root and heights[p] <= caps[x]
        top = heights[p] if below_parent else caps[x]
        rest, whole = top - heights[x], top - lows[x]
        if not rest > 0.0:
            return -math.inf
        m, n, constant = table.shares[_row(table, keys[x])]
        total += constant + m * math.log(above) + n * math.log(rest) - (m + n + 1.0) * math.log(whole)
        by[x] += weight * (m / above - n / rest)
        if below_parent:
            by[p] += weight * (n / rest - (m + n + 1.0) / whole)
    return total


@uncounted
def _of_topology(data, state, scratch, slot):
    """Fills scratch.below with keys and scratch.lows with heights of the oldest tips below."""
    table, keys, lows, total = data.working, scratch.below, scratch.lows, 0.0
    left, right, heights = state.left[slot], state.right[slot], state.heights[slot]
    for x in state.order[slot]:
        if x < data.n_tips:
            lows[x] = heights[x]
            continue
        a, b = left[x], right[x]
        keys[x], lows[x] = keys[a] + keys[b], max(lows[a], lows[b])
        total += of_split(table.splits, table.of_split, keys[x], keys[a], keys[b])
    return total


@uncounted
def _of_rates(data, state, scratch, slot, weight):
    """Of the deviations of branches, where a clock has them, once _of_topology has filled scratch.below."""
    total, table = 0.0, data.working
    for c in range(data.clock.rate.shape[0] if data.clock.smooth != 0 else 0):
        e = state.deviations[slot, c]
        for x in range(e.shape[0] - 1):
            own = table.deviations[_row(table, scratch.below[x]), c]
            if data.clock.kind == WHITE_NOISE:
                falls = own[1] * math.exp(e[x])
                total += own[2] + own[0] * e[x] - falls
                scratch.by_deviation[c, x] += weight * (own[0] - falls)
                continue
            off = (e[x] - own[0]) * own[1]
            total += own[2] - 0.5 * off * off
            scratch.by_deviation[c, x] -= weight * off * own[1]
    return total


@uncounted
def _row(table, key):
    """Of a clade in shares and deviations: 0 of one that few draws had."""
    place = place_of_key(table.clades, key)
    return table.rows[place] if place >= 0 else 0
