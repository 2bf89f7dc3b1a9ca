"""Heights of a state's tree as coordinates of trajectories, and back (density/heights.py, tip_heights.py)."""

from __future__ import annotations

import math

from phloem.density import calibrations, heights, tip_heights
from phloem.hardware.numba_compile import uncounted

set_ancestors = uncounted(calibrations.set_ancestors)
set_anchors = uncounted(heights.set_anchors)
set_limits = uncounted(heights.set_limits)
to_ratios = uncounted(heights.to_ratios)
from_ratios = uncounted(heights.from_ratios)
pull_back = uncounted(heights.pull_back)
set_tip_limits = uncounted(tip_heights.set_tip_limits)
set_oldest = uncounted(tip_heights.set_oldest)
to_shares = uncounted(tip_heights.to_shares)
from_shares = uncounted(tip_heights.from_shares)
pull_back_shares = uncounted(tip_heights.pull_back_shares)


@uncounted
def has_coordinate(data, scratch, x):
    """Whether a node's height has one: not that of a tip whose date is known, nor of a node as old as a tip
    below it."""
    if x < data.n_tips:
        return data.moving.shape[0] > 0 and scratch.tip_limits[x, 0] < scratch.tip_limits[x, 1]
    return scratch.y[x] > -math.inf


@uncounted
def set_anchors_by(data, state, scratch, tips):
    """What nodes begin at where the tips have heights (N,), of the accepted topology."""
    slot, known = state.slot[0], data.calibrations
    left, right, order = state.left[slot], state.right[slot], state.order[slot]
    set_anchors(left, right, order, tips, scratch.anchors)
    set_limits(state.parent[slot], scratch.ancestors, known.least, known.most, scratch.anchors, scratch.tops)
    if data.moving.shape[0] > 0:
        set_oldest(left, right, order, scratch.tip_limits, scratch.anchors, scratch.oldest)


@uncounted
def set_heights(data, state, scratch):
    """Coordinates of the accepted heights, between limits of ages, into scratch.y."""
    slot, known, y = state.slot[0], data.calibrations, scratch.y
    parent, left, right, order = state.parent[slot], state.left[slot], state.right[slot], state.order[slot]
    set_ancestors(left, right, order, known, data.n_tips, scratch.counts, scratch.ancestors)
    set_anchors_by(data, state, scratch, state.heights[slot])
    to_ratios(left, parent, state.heights[slot], scratch.anchors, scratch.tops, y[: parent.shape[0]])
    if data.moving.shape[0] > 0:
        limits = scratch.tip_limits
        set_tip_limits(parent, state.heights[slot], data.tip_bounds, scratch.tops, limits)
        set_oldest(left, right, order, limits, scratch.anchors, scratch.oldest)
        to_shares(limits, state.heights[slot], y)


@uncounted
def place_heights(data, state, scratch, where, proposed):
    """Heights (N,) by coordinates scratch.y, into where; returns the log Jacobian. proposed: False of the
    point where a trajectory begins, whose anchors are known."""
    slot, y, total = state.slot[0], scratch.y, 0.0
    if data.moving.shape[0] > 0:
        total = from_shares(scratch.tip_limits, y, where)
        if proposed:
            set_anchors_by(data, state, scratch, where)
    tree = state.left[slot], state.parent[slot], state.order[1 - slot]
    return total + from_ratios(*tree, scratch.anchors, scratch.tops, y[: where.shape[0]], where)


@uncounted
def pull_back_heights(data, state, scratch, heights_):
    """scratch.by_height (N,): d/dt changed to those by coordinates, with the Jacobian."""
    slot, by_height = state.slot[0], scratch.by_height
    tree = state.left[slot], state.parent[slot], state.order[1 - slot]
    pull_back(*tree, scratch.anchors, scratch.tops, heights_, scratch.oldest, by_height)
    if data.moving.shape[0] > 0:
        pull_back_shares(scratch.tip_limits, heights_, by_height)
