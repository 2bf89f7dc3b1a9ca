"""What chains have learnt of splits, looked up: how frequent each was, and how long branches beside it were
(records.KnownSplits, inference/mcmc/split_memory.py)."""

from __future__ import annotations

import math

import numpy as np

from phloem.hardware.numba_compile import uncounted

KNOWN = 8  # looks from which on a length beside a split is known
NARROWEST = 0.01  # variance of a log length


@uncounted
def beside(split, branch):
    """The key of a branch, that of the tips beyond it, next to a split, or of the split's own."""
    return (split ^ (split >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15) + branch


@uncounted
def place_of(splits, split, branch):
    """Of a branch beside a split in the table, -1 if it is not there."""
    key, mask = beside(split, branch), splits.keys.shape[0] - 1
    at = np.int64(key & np.uint64(mask))
    while splits.keys[at] != key:
        if splits.keys[at] == 0:
            return -1
        at = (at + 1) & mask
    return at


@uncounted
def seen_share(splits, split):
    """In what share of the looks a split was there."""
    at = place_of(splits, split, split)
    return splits.sums[at, 0] / splits.looks[0] if at >= 0 else 0.0


@uncounted
def name_splits(splits, order):
    """Fill splits.below and up from the tree; order: children before parents."""
    below, up, left, right = splits.below, splits.up, splits.left, splits.right
    for x in order:
        if left[x] >= 0:
            below[x] = below[left[x]] + below[right[x]]
            up[left[x]], up[right[x]] = x, x


@uncounted
def fit_length(sums, lengths, bounds, branch, before, after):
    """Give a branch the length that it has at one place of the table, from that at another: in every set of
    lengths y = log b becomes m' + (s' / s) (y - m), m and s the mean and the standard deviation there. It
    stays where one of them is not known. Returns the log of the Jacobian, -inf where it leaves its bounds.
    sums: of the table; lengths: (G, N)."""
    ratio = 0.0
    if before < 0 or after < 0 or min(sums[before, 0], sums[after, 0]) < KNOWN:
        return ratio
    for g in range(lengths.shape[0]):
        (mean, spread), (mean_then, spread_then) = _moments(sums, before, g), _moments(sums, after, g)
        y = math.log(lengths[g, branch])
        then = mean_then + spread_then / spread * (y - mean)
        ratio += then - y + math.log(spread_then / spread)
        lengths[g, branch] = math.exp(then)
        if not bounds[0] <= lengths[g, branch] <= bounds[1]:
            return -math.inf
    return ratio


@uncounted
def _moments(sums, at, g):
    """Mean and standard deviation of log lengths in set g."""
    n, n_sets = sums[at, 0], sums.shape[1] // 2
    mean = sums[at, 1 + g] / n
    return mean, math.sqrt(max(sums[at, 1 + n_sets + g] / n - mean * mean, 0.0) + NARROWEST)
