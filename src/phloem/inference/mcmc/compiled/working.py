"""The working distribution of generalised stepping stones, compiled: log density of a slot of a chain."""

from __future__ import annotations

import math

import numpy as np

from phloem.density.terms.compiled.dispatch import log_prior
from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.compiled.known_splits import beside


@uncounted
def chain_working(data, state, h, slot, keys):
    """Log working density at a slot of chain h; 0 where there is none. keys: (N,) uint64 with those
    of the tips, others to work in."""
    table = data.working
    if table.lengths.shape[0] == 0:
        return 0.0
    total = table.constant + log_prior(table.numbers, state.values[h, slot])
    left, right, lengths = state.left[h, slot], state.right[h, slot], state.lengths[h, slot]
    root = 2 * data.n_tips - 2
    top = left[root] if right[root] == 0 else right[root]
    for x in state.order[h, slot]:
        if x == root:
            continue
        if x >= data.n_tips:
            keys[x] = keys[left[x]] + keys[right[x]]
            if table.is_free != 0:
                total += of_split(table.splits, table.of_split, keys[x], keys[left[x]], keys[right[x]])
        if x != top:  # which has no branch of its own
            place = place_of_key(table.clades, keys[x])
            row = table.rows[place] if place >= 0 else 0
            for g in range(lengths.shape[0]):
                b = lengths[g, x]
                total += table.lengths[row, g, 0] * math.log(b) - table.lengths[row, g, 1] * b
                total += table.lengths[row, g, 2]
    return total


@uncounted
def of_split(splits, values, clade, a, b):
    """That a clade falls into these two, over how probable it is under uniform topologies. splits, values: as
    WorkingTable has splits and of_split."""
    unseen = place_of_key(splits, beside(clade, clade))
    if unseen < 0:
        return 0.0
    own = place_of_key(splits, beside(clade, min(a, b)))
    return values[own if own >= 0 else unseen]


@uncounted
def place_of_key(keys, key):
    """Of a key in an open table, -1 where it is not there."""
    mask = keys.shape[0] - 1
    at = np.int64(key & np.uint64(mask))
    while keys[at] != key:
        if keys[at] == 0:
            return -1
        at = (at + 1) & mask
    return at
