"""Single linkage from distances that stay as they are: links between leaves, and the merges they make.

Links make the right clusters at every distance. Of some hundred taxa they are a shortest spanning tree (Prim
1957), whose passes are over single rows; of more they come from one pass over a triangle, in threads:
pointers and levels of Sibson (1973, Computer J. 16:30), where leaf j comes into one cluster with the leaf
pointers[j] after it at the distance levels[j].
Distances are compared as integers: non-negative floating-point numbers order as their bits do.
"""

from __future__ import annotations

import numpy as np

from phloem.clustering.cpu.forms import entry_of, row_of, row_start
from phloem.clustering.cpu.linkage_rounds import ROWS_BLOCK, block_of, first_lowest
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
def _touch(given, form, a, b, following, level):
    """Whether a leaf of cluster a is as near as `level` to one of cluster b."""
    n, x = len(following), a
    while x >= 0:
        y = b
        while y >= 0:
            if given[entry_of(form, n, max(x, y), min(x, y))] == level:
                return True
            y = following[y]
        x = following[x]
    return False


@compiled
def _take_up(given, form, members, following, level):
    """Put members[1:] in the order in which members[0] takes them up, all at distance level.

    members: (k,) names in ascending order, connected at that distance; the smallest one that touches what was
    taken up so far is next.
    """
    k, order = len(members), members.copy()
    left, compared = members[1:].copy(), np.zeros(k - 1, np.int64)  # with how many each was compared
    for step in range(1, k):
        q = 0
        while q < k - step - 1:  # the last one touches if none before does
            while compared[q] < step and not _touch(
                given, form, order[compared[q]], left[q], following, level
            ):
                compared[q] += 1
            if compared[q] < step:
                break
            q += 1
        order[step] = left[q]
        for r in range(q, k - step - 1):
            left[r], compared[r] = left[r + 1], compared[r + 1]
    members[:] = order


@compiled
def _groups(links, start, stop, names, groups, met):
    """The clusters that links[start:stop] make of others: their names, group after group."""
    left, count = np.empty(2 * (stop - start), np.int64), 0
    for link in range(start, stop):
        a, b = _root(names, links[link, 0]), _root(names, links[link, 1])
        for x in (a, b):
            if a != b and not met[x]:
                met[x], left[count] = True, x
                count += 1
        a, b = _root(groups, a), _root(groups, b)
        groups[max(a, b)] = min(a, b)
    keys = np.empty(count, np.int64)
    for q in range(count):
        keys[q] = _root(groups, left[q]) * len(names) + left[q]
    keys.sort()
    return keys


@compiled
def merges_of_links(given, form, links, levels, lower, upper, merged_levels):
    """The merges of n leaves, one pair at a time by (distance, smaller name, larger name).

    given: distances in a form; links: (m, 2) leaves, levels: (m,) ascending; they connect all. lower, upper,
    merged_levels: (n-1,).
    Where more than two clusters meet at one distance the links do not tell who touches whom: what the order
    depends on is looked up, each pair of leaves at most once.
    """
    n, made, start = len(lower) + 1, 0, 0
    names, groups, met = np.arange(n), np.arange(n), np.zeros(n, np.bool_)
    following, final = np.full(n, -1), np.arange(n)
    while made < n - 1:
        level, stop = levels[start], start + 1
        while stop < len(levels) and levels[stop] == level:
            stop += 1
        if stop == start + 1:
            a, b = _root(names, links[start, 0]), _root(names, links[start, 1])
            if a != b:
                a, b = min(a, b), max(a, b)
                lower[made], upper[made], merged_levels[made] = a, b, level
                names[b], groups[b] = a, b
                following[final[a]], final[a] = b, final[b]
                made += 1
            start = stop
            continue
        keys, q = _groups(links, start, stop, names, groups, met), 0
        while q < len(keys):
            a, end = keys[q] // n, q
            while end < len(keys) and keys[end] // n == a:
                end += 1
            members = keys[q:end] % n
            if len(members) > 2:
                _take_up(given, form, members, following, level)
            for x in members:
                groups[x], met[x] = x, False
            for x in members[1:]:
                lower[made], upper[made], merged_levels[made] = a, x, level
                names[x] = a
                following[final[a]], final[a] = x, final[x]
                made += 1
            q = end
        start = stop


@compiled
def _spanning_tree(given, form, infinity, links, levels):
    """A shortest tree that links all leaves; returns the smallest and the largest distance.

    links: (n-1, 2); levels: bits of their lengths.
    """
    n, x = links.shape[0] + 1, 0
    end = block_of(n + ROWS_BLOCK - 1)
    row, linked = np.zeros(end, given.dtype), np.full(end, infinity)
    bits, reach, through = row.view(levels.dtype), np.full(end, infinity), np.zeros(end, np.int64)
    linked[:n] = 0
    smallest, largest = infinity, infinity * 0
    for made in range(n - 1):
        row_of(given, form, n, x, row)
        linked[x] = reach[x] = infinity
        for k in range(end):
            smallest, largest = min(smallest, bits[k]), max(largest, bits[k])
            value = max(bits[k], linked[k])
            through[k] = x if value < reach[k] else through[k]
            reach[k] = min(reach[k], value)
        y = first_lowest(reach, n, infinity)
        links[made, 0], links[made, 1], levels[made] = through[y], y, reach[y]
        x = y
    return smallest, largest


@compiled
def merge_all(given, form, infinity, lower, upper, distance):
    """The merges of n leaves; returns the bits of the smallest and the largest distance.

    given: one-dimensional, in a form (cpu.forms). infinity: its bits; where the largest distance is not below
    it, or the smallest below zero, nothing is merged. lower, upper, distance: (n-1,) of clustering.merges.
    """
    n = len(lower) + 1
    levels, sorted_levels = np.full(block_of(n + ROWS_BLOCK - 1), infinity), np.full(n - 1, infinity)
    links, ordered = np.empty((n - 1, 2), np.int64), np.empty((n - 1, 2), np.int64)
    smallest, largest = _spanning_tree(given, form, infinity, links, levels)
    if smallest < 0 or largest >= infinity:
        return smallest, largest
    for made in range(n - 1):
        q = first_lowest(levels, n - 1, infinity)
        ordered[made, 0], ordered[made, 1], sorted_levels[made] = links[q, 0], links[q, 1], levels[q]
        levels[q] = infinity
    merges_of_links(given, form, ordered, sorted_levels.view(given.dtype), lower, upper, distance)
    return smallest, largest
