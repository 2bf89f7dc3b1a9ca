"""Lists of partial likelihoods, the tree and the rates as flat arrays; where lists lie in memory.

A list says of every column of the reference what is known of the state at a node from one side of it (De Maio
et al. 2023): entries for runs of columns, ascending; a column without an entry has the reference's state.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from phloem.hardware.numba_compile import uncounted

# kind of an entry, beside the states 0 to 3, which stand in one column each and are not the reference's.
SAME, UNKNOWN, MIXED = 4, 5, 6  # the reference's state some way off; no data; a vector, in one column
FIRST, COUNT, ROOM, FIRST_VECTOR, VECTORS, VECTOR_ROOM = range(6)  # columns of Lists.place
LOW, UP, MIDDLE = 0, 1, 2  # of a branch: from below at its node, from above at its parent, both half way
LEFT, RIGHT = 0, 1  # columns of Tree.children
PRIOR = 0  # row of Rates.numbers: frequencies; below it the rate matrix


class Lists(NamedTuple):
    """place (lists, 6) int64: where the entries and vectors of a list are, how many, and room for how many.
    span (·, 2) int32, the first column and the one behind the last. kind (·,) int8. distance (·,): how far
    away, in substitutions per site, the state is known; of a vector 0. vector (·, 4), the largest entry 1,
    in the order of the MIXED entries. used (2,) int64: entries and vectors handed out so far."""

    place: np.ndarray
    span: np.ndarray
    kind: np.ndarray
    distance: np.ndarray
    vector: np.ndarray
    used: np.ndarray


class Rates(NamedTuple):
    """numbers (5, 4): frequencies, rate matrix. stay (L + 1,): sum of the diagonal rates of the reference's
    states in the columns before; prior (L + 1,): of the logarithms of their frequencies. reference (L,) int8.
    least (2,): entries of a vector below this share of the largest are taken for 0; and, where two states
    stand at the ends of branches of length 0, what their length is taken for: lists from two sides may both
    be certain where vectors would not be."""

    numbers: np.ndarray
    stay: np.ndarray
    prior: np.ndarray
    reference: np.ndarray
    least: np.ndarray


class Tree(NamedTuple):
    """parent (N,) int64, -1 of the root, which is tip 0 and has one child. children (N, 2) int64, -1 of none.
    length (N,) of the branch above. factor (N,): log of what was taken out of the list from below."""

    parent: np.ndarray
    children: np.ndarray
    length: np.ndarray
    factor: np.ndarray


@uncounted
def room_for(lists, a, b):
    """Entries that two lists joined have at most."""
    return 2 * (lists.place[a, COUNT] + lists.place[b, COUNT]) + 2


@uncounted
def same(lists, a, b, tolerance):
    """Whether two lists say the same, up to distances and vectors that differ by a share of tolerance."""
    p, q = lists.place[a], lists.place[b]
    if p[COUNT] != q[COUNT] or p[VECTORS] != q[VECTORS]:
        return False
    for k in range(p[COUNT]):
        i, j = p[FIRST] + k, q[FIRST] + k
        if lists.kind[i] != lists.kind[j]:
            return False
        if lists.span[i, 0] != lists.span[j, 0] or lists.span[i, 1] != lists.span[j, 1]:
            return False
        x, y = lists.distance[i], lists.distance[j]
        if abs(x - y) > tolerance * max(x, y):
            return False
    for k in range(p[VECTORS]):
        for s in range(4):
            x = lists.vector[p[FIRST_VECTOR] + k, s]
            y = lists.vector[q[FIRST_VECTOR] + k, s]
            if abs(x - y) > tolerance * max(x, y):
                return False
    return True


@uncounted
def store(lists, of, to):
    """Copies a list; False, and nothing done, where there is no memory for it."""
    p, q = lists.place[of], lists.place[to]
    n, vectors = p[COUNT], p[VECTORS]
    if q[ROOM] < n or q[VECTOR_ROOM] < vectors:
        room, vector_room = n + (n >> 2) + 2, vectors + (vectors >> 1) + 1
        if lists.used[0] + room > len(lists.kind) or lists.used[1] + vector_room > len(lists.vector):
            return False
        q[FIRST], q[ROOM] = lists.used[0], room
        q[FIRST_VECTOR], q[VECTOR_ROOM] = lists.used[1], vector_room
        lists.used[0] += room
        lists.used[1] += vector_room
    q[COUNT], q[VECTORS] = n, vectors
    for k in range(n):
        i, j = p[FIRST] + k, q[FIRST] + k
        lists.span[j, 0], lists.span[j, 1] = lists.span[i, 0], lists.span[i, 1]
        lists.kind[j], lists.distance[j] = lists.kind[i], lists.distance[i]
    for k in range(vectors):
        for s in range(4):
            lists.vector[q[FIRST_VECTOR] + k, s] = lists.vector[p[FIRST_VECTOR] + k, s]
    return True
