"""Hamiltonian motion of joinings across times at which their density jumps: a skygrid's cells.

A step of leapfrog would pay for a jump with its acceptance, and no step is short enough to help. So the
motion between two kicks is that of the Hamiltonian with the jumps: where a joining comes to the end of its
cell, the square of the momentum across loses twice what the potential gains, or it turns back where it has
not so much (refraction and reflection: Mohasel Afshar and Domke 2015, Adv. Neural Inf. Process. Syst.
28:3007). That map, too, is reversible and keeps volumes, wherever the crossings are.
"""

from __future__ import annotations

import math

from phloem.density import heights, tip_heights
from phloem.hardware.numba_compile import uncounted
from phloem.inference.time.compiled.tree_coordinates import set_anchors_by
from phloem.inference.time.records import OF_PRIOR

MOST, NEAR = 10_000, 1e-14  # crossings in a step; how near to a cell's end, in cells, counts as there
AHEAD, THERE, SHARE, OWN, BY_ANCHOR, TIP, OF_TIP = range(7)
"""Rows of Field.motion: coordinates and heights; slopes on a way up; of tips coordinates, then those of the
height that crosses by them."""

from_ratios = uncounted(heights.from_ratios)
from_shares = uncounted(tip_heights.from_shares)


@uncounted
def cell_of(field, height):
    """Which cell a height is in."""
    at = height / field.spacing
    return int(at) if at < field.n - 1 else field.n - 1


@uncounted
def set_cells(data, state, scratch):
    """Where the accepted state's joinings are."""
    for x in range(data.n_tips, state.parent.shape[1]):
        scratch.field.cell[x] = cell_of(scratch.field, state.heights[state.slot[0], x])


@uncounted
def drift(data, state, scratch, step):
    """Let coordinates go on for a time, momenta changing at crossings. False where these never end."""
    field, slot, y, n = scratch.field, state.slot[0], scratch.y, state.parent.shape[1]
    ahead, there = field.motion[AHEAD], field.motion[THERE]
    for x in range(data.n_tips):
        there[x] = state.heights[slot, x]
    for _ in range(MOST):
        for x in range(n):
            ahead[x] = y[x] + step * scratch.scale[x] * scratch.momentum[x]
        _move_anchors(data, state, scratch, step)
        tree = state.left[slot], state.parent[slot], state.order[slot]
        from_ratios(*tree, scratch.anchors, scratch.tops, ahead, there)
        first, when = -1, 1.0
        for x in range(data.n_tips, n):
            if cell_of(field, there[x]) != field.cell[x]:
                share = _crossing(data, state, scratch, x, step, there[x])
                if share < when:
                    first, when = x, share
        upwards = first >= 0 and there[first] > field.cell[first] * field.spacing
        for i in range(y.shape[0]):
            y[i] += when * step * scratch.scale[i] * scratch.momentum[i]
        if first < 0:
            return True
        step *= 1.0 - when
        _refract(data, state, scratch, first, upwards)
    return False


@uncounted
def _move_anchors(data, state, scratch, time):
    """To where they are so much time from now: tips move with the nodes above them."""
    if data.moving.shape[0] > 0:
        z, there = scratch.field.motion[TIP], scratch.field.motion[THERE]
        for x in data.moving:
            z[x] = scratch.y[x] + time * scratch.scale[x] * scratch.momentum[x]
        from_shares(scratch.tip_limits, z, there)
        set_anchors_by(data, state, scratch, there)


@uncounted
def _crossing(data, state, scratch, x, step, end):
    """The share of a step at which x, which would be at height `end` after it, comes to the end of its cell:
    Newton's method within a bracket."""
    field = scratch.field
    edge = field.cell[x] * field.spacing
    upwards = end > edge
    if upwards:
        edge += field.spacing
    low, high = 0.0, 1.0
    n = _way_up(state, scratch, x)
    start = _height(data, state, scratch, n, 0.0)[0]
    if (start >= edge) == upwards:
        return 0.0
    share = (edge - start) / (end - start)
    for _ in range(60):
        height, slope = _height(data, state, scratch, n, share * step)
        off = height - edge
        if abs(off) < NEAR * field.spacing:
            break
        if (off > 0.0) == upwards:
            high = share
        else:
            low = share
        share -= off / (slope * step)
        if not low < share < high:
            share = 0.5 * (low + high)
    return share


@uncounted
def _way_up(state, scratch, x):
    """Nodes from x to the root: into scratch.stack; returns how many."""
    n, parent = 0, state.parent[state.slot[0]]
    while x >= 0:
        scratch.stack[n] = x
        n, x = n + 1, parent[x]
    return n


@uncounted
def _height(data, state, scratch, n, time):
    """Of the first of the n nodes on a way up, so much time from now, and its slope in time. SHARE of the
    motion: of every node on the way the slope of its height by that of the next, OWN by its own coordinate,
    BY_ANCHOR by the height of the oldest tip below it."""
    motion, tips_move = scratch.field.motion, data.moving.shape[0] > 0
    by_parent, by_own, by_anchor = motion[SHARE], motion[OWN], motion[BY_ANCHOR]
    height, slope = 0.0, 0.0
    _move_anchors(data, state, scratch, time)
    for j in range(n - 1, -1, -1):
        x = scratch.stack[j]
        velocity, anchor = scratch.scale[x] * scratch.momentum[x], scratch.anchors[x]
        z, top = scratch.y[x], scratch.tops[x]
        by_anchor[j] = 1.0
        if z == -math.inf:
            by_parent[j], by_own[j], height = 0.0, 0.0, anchor
        elif j == n - 1 and top == math.inf:
            by_parent[j], by_own[j] = 0.0, math.exp(z + time * velocity)
            height = anchor + by_own[j]
        else:
            z += time * velocity
            below_parent = j < n - 1 and height < top
            small, room = math.exp(-abs(z)), (height if below_parent else top) - anchor
            share = (1.0 if z >= 0.0 else small) / (1.0 + small)
            by_parent[j] = share if below_parent else 0.0
            by_own[j] = room * small / ((1.0 + small) * (1.0 + small))
            by_anchor[j] = 1.0 - share
            height = anchor + share * room
        slope = by_parent[j] * slope + by_own[j] * velocity
        tip = scratch.oldest[x] if tips_move else -1
        if tip >= 0:
            slope += by_anchor[j] * _slope_of_tip(scratch, tip) * scratch.scale[tip] * scratch.momentum[tip]
    return height, slope


@uncounted
def _slope_of_tip(scratch, tip):
    """Of its height by its coordinate, where _move_anchors left it."""
    low, high = scratch.tip_limits[tip, 0], scratch.tip_limits[tip, 1]
    height = scratch.field.motion[THERE, tip]
    return (height - low) * (high - height) / (high - low)


@uncounted
def _refract(data, state, scratch, x, upwards):
    """Momenta of x at the end of its cell, and the cell that it is in then."""
    field, n, tips_move = scratch.field, _way_up(state, scratch, x), data.moving.shape[0] > 0
    _height(data, state, scratch, n, 0.0)
    by_parent, normal, of_tip = field.motion[SHARE], field.motion[OWN], field.motion[OF_TIP]
    across, square, momentum = 1.0, 0.0, 0.0
    for t in data.moving:
        of_tip[t] = 0.0
    for j in range(n):
        i = scratch.stack[j]
        normal[j] *= across * scratch.scale[i]
        tip = scratch.oldest[i] if tips_move else -1
        if tip >= 0:
            slope = _slope_of_tip(scratch, tip) * scratch.scale[tip]
            of_tip[tip] += across * field.motion[BY_ANCHOR, j] * slope
        across *= by_parent[j]
        square += normal[j] * normal[j]
        momentum += normal[j] * scratch.momentum[i]
    for t in data.moving:
        square += of_tip[t] * of_tip[t]
        momentum += of_tip[t] * scratch.momentum[t]
    norm = math.sqrt(square)
    momentum /= norm
    to = field.cell[x] + (1 if upwards else -1)
    theta = scratch.y[field.place + state.usual.shape[0] * state.parent.shape[1] :]
    gain = scratch.power[OF_PRIOR] * (theta[to] - theta[field.cell[x]])
    left, after = momentum * momentum - 2.0 * gain, -momentum
    if left > 0.0:
        after = math.sqrt(left) if momentum > 0.0 else -math.sqrt(left)
        field.cell[x] = to
    for j in range(n):
        scratch.momentum[scratch.stack[j]] += (after - momentum) / norm * normal[j]
    for t in data.moving:
        scratch.momentum[t] += (after - momentum) / norm * of_tip[t]
