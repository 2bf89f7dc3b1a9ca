"""Heights of tips that are known within limits as free numbers, and derivatives the other way.

Such a tip has z = logit x with x = (t - low) / (high - low), whatever the nodes above it do: these are above
the oldest tip below them in the coordinates of heights.py, which are given all tips' heights. So the whole
map is triangular, tips before nodes, and

    log |dt/dz| = Σ_tips [log(high - low) + log x + log(1 - x)] + (1) of heights.py.

A node follows its anchor a, the oldest tip below it, with dt/da = 1 - x. With G of (2) the tip that is the
anchor of node i gets from it

    d/da_i = (1 - x_i) G_i - 1 / (t_parent - a_i),   d/da_root = G,                                       (4)

and G itself of a node as old as its anchor. Where another tip becomes the oldest these slopes jump, and the
density is continuous.

Plain functions over arrays, as in heights.py. limits: (T, 2), low = high of a tip whose height stays.
"""

from __future__ import annotations

import math


def set_tip_limits(parent, heights, bounds, tops, limits):
    """limits (T, 2), out: of every tip between which heights it is: bounds (T, 2), and below what the nodes
    above it are at most (tops as heights.set_limits has them). A tip at an end stays, as one whose date is
    known does."""
    for x in range(limits.shape[0]):
        low, high = bounds[x, 0], bounds[x, 1]
        if low < high:
            above = parent[x]
            while above >= 0:
                high = min(high, tops[above])
                above = parent[above]
        if not low < heights[x] < high:
            low = high = heights[x]
        limits[x, 0], limits[x, 1] = low, high


def set_oldest(left, right, order, limits, anchors, oldest):
    """oldest (N,) int64, out: the tip whose height is the anchor of a node, -1 where that stays."""
    for i in range(order.shape[0]):
        x = order[i]
        if left[x] < 0:
            oldest[x] = x if limits[x, 0] < limits[x, 1] else -1
        elif anchors[left[x]] == anchors[x]:
            oldest[x] = oldest[left[x]]
        elif anchors[right[x]] == anchors[x]:
            oldest[x] = oldest[right[x]]
        else:
            oldest[x] = -1  # the least that an age may be


def to_shares(limits, heights, z):
    """z (N,), out: coordinates of tips, 0 of those that stay."""
    for x in range(limits.shape[0]):
        low, high = limits[x, 0], limits[x, 1]
        z[x] = math.log((heights[x] - low) / (high - heights[x])) if low < high else 0.0


def from_shares(limits, z, heights):
    """heights (N,), out, of tips that do not stay; returns log |dt/dz| of these, -inf where numbers do not
    tell one from its limits."""
    total, product = 0.0, 1.0
    for x in range(limits.shape[0]):
        low, high = limits[x, 0], limits[x, 1]
        if low < high:
            small = math.exp(-abs(z[x]))
            share = 1.0 / (1.0 + small) if z[x] >= 0.0 else small / (1.0 + small)
            heights[x] = low + share * (high - low)
            if not low < heights[x] < high:
                return -math.inf
            product *= (high - low) * small / ((1.0 + small) * (1.0 + small))
            if not 1e-150 < product < 1e150:
                total += math.log(product)
                product = 1.0
    return total + math.log(product)


def pull_back_shares(limits, heights, by_height):
    """by_height (N,): d/dt of tips, (4) with it; changed to d/dz with the Jacobian, 0 of tips that stay."""
    for x in range(limits.shape[0]):
        low, high = limits[x, 0], limits[x, 1]
        if low < high:
            share = (heights[x] - low) / (high - low)
            by_height[x] = share * (high - heights[x]) * by_height[x] + 1.0 - 2.0 * share
        else:
            by_height[x] = 0.0
