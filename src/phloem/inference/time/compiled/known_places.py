"""What a chain has learnt, while it learns its scales, of where subtrees are: how often one was beside the
same sibling, and how old their parent then was (records.KnownPlaces)."""

from __future__ import annotations

import math

import numpy as np

from phloem.hardware.numba_compile import uncounted

PROBES = 64  # entries of the table that a key may be at
LOOKS, MEAN, SQUARE = range(3)  # columns of what is known of a place
KNOWN = 4.0  # looks from which on an age is known
DOUBT, WIDE = 2.0, 0.1  # looks that would have an age spread by this share of it


@uncounted
def entry(table, key):
    """Where a key is in a table, or the free entry where it would be; -1 where there is none."""
    size = table.shape[0]
    at = np.int64(key % np.uint64(size))
    for _ in range(PROBES):
        if table[at] == key or table[at] == 0:
            return at
        at = at + 1 if at + 1 < size else 0
    return -1


@uncounted
def place_key(subtree, beside):
    """Of a subtree beside another, by the keys of their tips."""
    both = subtree + beside
    return (both ^ (both >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15) + subtree


@uncounted
def learn_places(table, ages, looks, tree, keys):
    """One more look, at a tree (parent, left, right, heights) with these keys of the tips below its nodes."""
    parent, left, right, heights = tree
    looks[0] += 1.0
    for x in range(parent.shape[0]):
        if left[x] >= 0:
            _learn(table, ages, place_key(keys[left[x]], keys[right[x]]), heights[x])
            _learn(table, ages, place_key(keys[right[x]], keys[left[x]]), heights[x])


@uncounted
def _learn(table, ages, key, age):
    """After Welford 1962."""
    at = entry(table, key)
    if at >= 0:
        table[at] = key
        ages[at, LOOKS] += 1.0
        off = age - ages[at, MEAN]
        ages[at, MEAN] += off / ages[at, LOOKS]
        ages[at, SQUARE] += off * (age - ages[at, MEAN])


@uncounted
def place_of(known, subtree, beside):
    """Where the table has a subtree beside another, -1 where it never was."""
    key = place_key(subtree, beside)
    at = entry(known.table, key)
    return at if at >= 0 and known.table[at] == key else -1


@uncounted
def seen_share(known, subtree, beside):
    """In what share of the looks a subtree was beside another."""
    at = place_of(known, subtree, beside)
    return known.ages[at, LOOKS] / known.looks[0] if at >= 0 else 0.0


@uncounted
def age_there(known, subtree, beside):
    """Mean and scale of a logistic distribution of their parent's age; scale 0 where it is not known."""
    at = place_of(known, subtree, beside)
    if at < 0 or known.ages[at, LOOKS] < KNOWN:
        return 0.0, 0.0
    n, mean = known.ages[at, LOOKS], known.ages[at, MEAN]
    variance = (known.ages[at, SQUARE] + DOUBT * (WIDE * mean) ** 2) / (n + DOUBT)
    return mean, math.sqrt(3.0 * variance) / math.pi


@uncounted
def name_clades(p):
    """Fill p.known.below with the keys of the sets of tips below the nodes of a proposal's tree, which may
    lack a subtree; nodes in the order before."""
    below = p.known.below
    for x in p.order:
        below[x] = p.known.keys[x] if x < p.n_tips else below[p.left[x]] + below[p.right[x]]
