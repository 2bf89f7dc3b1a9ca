"""Heights of a dated tree as free numbers, and derivatives the other way.

The anchor a_i of a node is the height of the oldest tip below it. The root has z = log(t - a); another
internal node z = logit x with x = (t - a) / (t_parent - a), in (0, 1) whatever the other nodes do (Fourment
and Darling 2019, PeerJ 7:e8272; Ji et al. 2023, Syst. Biol. 72:1136). Where an age, the root's too, can be no
more than something, that stands for t_parent if it is less. The map is triangular from the root down:

    log |dt/dz| = z_root + Σ_{i ≠ root} [log(t_parent - a_i) + log x_i + log(1 - x_i)].                   (1)

With g_i = d/dt_i of everything, the terms log(t_parent - a_i) among it, all other heights held fixed, one
pass from the tips up gives

    G_i = g_i + Σ_{internal children c below t_i} x_c G_c,
    d/dz_i = x_i (1 - x_i) (t_parent - a_i) G_i + 1 - 2 x_i,   d/dz_root = (t - a) G + 1.                 (2)

A node as old as its anchor, a tip that is an ancestor of all else below, has no coordinate: z = -inf, and
nothing of it is in (1) and (2). So has a node whose age is fixed, which is its own anchor and bounds those
of the nodes above it. An age that can be no less than something has that as its anchor.

Plain functions over arrays (N,) in the order of tree/dated.py, which compiled samplers compile. order: of the
topology, children before parents; heights may have changed since.
"""

from __future__ import annotations

import math


def set_anchors(left, right, order, heights, anchors):
    """anchors (N,), out: the height of the oldest tip below, a tip's own."""
    for i in range(order.shape[0]):
        x = order[i]
        if left[x] < 0:
            anchors[x] = heights[x]
        else:
            anchors[x] = max(anchors[left[x]], anchors[right[x]])


def set_limits(parent, nodes, least, most, anchors, tops):
    """Of nodes (C,) whose heights are between these (C,), the same where they are fixed: anchors, none above
    which is lower, and tops (N,), out, infinite elsewhere."""
    for x in range(tops.shape[0]):
        tops[x] = math.inf
    for c in range(nodes.shape[0]):
        x = nodes[c]
        tops[x] = min(tops[x], most[c])
        while x >= 0 and anchors[x] < least[c]:
            anchors[x] = least[c]
            x = parent[x]


def to_ratios(left, parent, heights, anchors, tops, z):
    """z (N,), out: coordinates of internal nodes, 0 of tips."""
    for x in range(heights.shape[0]):
        if left[x] < 0:
            z[x] = 0.0
        elif heights[x] <= anchors[x]:
            z[x] = -math.inf
        elif parent[x] < 0 and tops[x] == math.inf:
            z[x] = math.log(heights[x] - anchors[x])
        else:
            top = tops[x] if parent[x] < 0 else min(tops[x], heights[parent[x]])
            z[x] = math.log((heights[x] - anchors[x]) / (top - heights[x]))


def from_ratios(left, parent, order, anchors, tops, z, heights):
    """heights (N,), out, of internal nodes; returns log |dt/dz| (1). Its terms are multiplied as long as the
    product is far from the largest and smallest numbers: a logarithm costs as much as the rest of a node."""
    total, product = 0.0, 1.0
    for i in range(order.shape[0] - 1, -1, -1):
        x = order[i]
        if left[x] < 0:
            continue
        if z[x] == -math.inf:
            heights[x] = anchors[x]
        elif parent[x] < 0 and tops[x] == math.inf:
            heights[x] = anchors[x] + math.exp(z[x])
            total += z[x]
        else:
            top = tops[x] if parent[x] < 0 else min(tops[x], heights[parent[x]])
            room = top - anchors[x]
            small = math.exp(-abs(z[x]))
            share = 1.0 / (1.0 + small) if z[x] >= 0.0 else small / (1.0 + small)
            heights[x] = anchors[x] + share * room
            product *= room * small / ((1.0 + small) * (1.0 + small))
            if not 1e-150 < product < 1e150:
                total += math.log(product)
                product = 1.0
    return total + math.log(product)


def pull_back(left, parent, order, anchors, tops, heights, oldest, by_height):
    """by_height (N,): d/dt of internal nodes without the Jacobian; changed to d/dz with it (2). Of tips 0;
    or, where some move with the nodes above, d/dt with (4) of tip_heights.py, oldest (N,) as it has them;
    else that is (0,)."""
    n, tips_move = order.shape[0], oldest.shape[0] > 0
    for i in range(n):
        x = order[i]
        if left[x] >= 0 and parent[x] >= 0 and heights[x] != anchors[x] and heights[parent[x]] < tops[x]:
            by_height[parent[x]] += 1.0 / (heights[parent[x]] - anchors[x])
    for i in range(n):
        x = order[i]
        tip = oldest[x] if tips_move else -1
        if left[x] < 0:
            if not tips_move:
                by_height[x] = 0.0
        elif heights[x] == anchors[x]:
            if tip >= 0:
                by_height[tip] += by_height[x]
            by_height[x] = 0.0
        elif parent[x] < 0 and tops[x] == math.inf:
            if tip >= 0:
                by_height[tip] += by_height[x]
            by_height[x] = (heights[x] - anchors[x]) * by_height[x] + 1.0
        else:
            top = tops[x] if parent[x] < 0 else min(tops[x], heights[parent[x]])
            room = top - anchors[x]
            share = (heights[x] - anchors[x]) / room
            if top < tops[x]:
                by_height[parent[x]] += share * by_height[x]
            if tip >= 0:
                by_height[tip] += (1.0 - share) * by_height[x] - 1.0 / room
            by_height[x] = share * (top - heights[x]) * by_height[x] + 1.0 - 2.0 * share
