"""Single linkage from one pass over the rows of a triangle, which stays as it is.

Pointers and levels are those of Sibson (1973, Computer J. 16:30): at the distance levels[j] leaf j comes into
one cluster with the leaf pointers[j] after it, so that these links make the right clusters at every distance.
Distances are compared as integers: non-negative floating-point numbers order as their bits do.
"""

from __future__ import annotations

import numpy as np

from phloem.clustering.cpu.triangle import row_start
from phloem.hardware.numba_compile import compiled


@compiled
def link_rows(bits, first, last, pointers, levels):
    """Clusters by the distances of the rows first … last-1; returns the smallest and the largest of these.

    pointers: (n,) each leaf itself; levels: (n,) infinity. Threads may take ranges of rows each: all their
    links together make the clusters of the whole.
    """
    reach = np.empty(last, bits.dtype)
    smallest, largest = levels[0], levels[0] * 0
    for i in range(first, last):
        at = row_start(i)
        for j in range(i):
            d = bits[at + np.uint64(j)]
            reach[j] = d
            smallest, largest = min(smallest, d), max(largest, d)
        for j in range(i):
            d, level, p = reach[j], levels[j], pointers[j]
            if level > d:
                levels[j], pointers[j] = d, i
                d = level
            reach[p] = min(reach[p], d)
        for j in range(i):
            if levels[j] >= levels[pointers[j]]:
                pointers[j] = i
    return smallest, largest


@compiled
def _root(names, x):
    """Name of x's cluster, its smallest leaf."""
    while names[x] != x:
        names[x] = names[names[x]]
        x = names[x]
    return x


@compiled
def _touch(bits, a, b, following, level):
    """Whether a leaf of cluster a is as near as `level` to one of cluster b."""
    x = a
    while x >= 0:
        y = b
        while y >= 0:
            if bits[row_start(max(x, y)) + np.uint64(min(x, y))] == level:
                return True
            y = following[y]
        x = following[x]
    return False


@compiled
def _take_up(bits, members, following, level, left, compared):
    """Put members[1:] in the order in which members[0] takes them up, all at distance level.

    members: (k,) names in ascending order, connected at that distance; the smallest one that touches what was
    taken up so far is next. left, compared: (≥ k,) scratch: those left, and with how many each was compared.
    """
    k, order = len(members), members.copy()
    left[: k - 1], compared[: k - 1] = members[1:], 0
    for step in range(1, k):
        q = 0
        while q < k - step - 1:  # the last one touches if none before does
            while compared[q] < step and not _touch(bits, order[compared[q]], left[q], following, level):
                compared[q] += 1
            if compared[q] < step:
                break
            q += 1
        order[step] = left[q]
        for r in range(q, k - step - 1):
            left[r], compared[r] = left[r + 1], compared[r + 1]
    members[:] = order


@compiled
def merges_of_links(bits, links, levels, lower, upper, merged_levels):
    """The merges of n leaves, one pair at a time by (distance, smaller name, larger name).

    links: (m, 2) leaves, levels: (m,) ascending; they connect all. lower, upper, merged_levels: (n-1,).
    Where more than two clusters meet at one distance the links do not tell who touches whom: what the order
    depends on is looked up, each pair of leaves at most once.
    """
    n, made, start = len(lower) + 1, 0, 0
    names, groups, met = np.arange(n), np.arange(n), np.zeros(n, np.bool_)
    following, final = np.full(n, -1), np.arange(n)
    left, compared = np.empty(n, np.int64), np.empty(n, np.int64)
    while made < n - 1:
        stop, level, count = start, levels[start], 0
        while stop < len(levels) and levels[stop] == level:
            a, b = _root(names, links[stop, 0]), _root(names, links[stop, 1])
            for x in (a, b):
                if a != b and not met[x]:
                    met[x], left[count] = True, x
                    count += 1
            a, b = _root(groups, a), _root(groups, b)
            groups[max(a, b)] = min(a, b)
            stop += 1
        keys = np.empty(count, np.int64)
        for q in range(count):
            keys[q] = _root(groups, left[q]) * n + left[q]
        keys.sort()
        q = 0
        while q < count:
            a, end = keys[q] // n, q
            while end < count and keys[end] // n == a:
                end += 1
            members = keys[q:end] % n
            if len(members) > 2:
                _take_up(bits, members, following, level, left, compared)
            for x in members:
                groups[x], met[x] = x, False
            for x in members[1:]:
                lower[made], upper[made], merged_levels[made] = a, x, level
                names[x] = a
                following[final[a]], final[a] = x, final[x]
                made += 1
            q = end
        start = stop
