"""Distinct columns after a topology was edited: only of nodes that have other children, and without patterns.

Where a node keeps the tips below it, its columns are the same, whatever lies between. All that is renumbered
below such a node, the top of a region, is numbered over the top's columns instead of over the patterns: they
come in the order of their first patterns, so that the numbers are those that an alignment would give
(column_classes.py).

Which column of a node belongs to a column of the top follows from the class rows on the way down, as they
were before the edit: a few hops. A device that takes the hops itself evaluates the region in the top's
columns, and nothing has to be numbered but for what is accepted (ListShape.lazy).
"""

from __future__ import annotations

import numpy as np

from phloem.hardware.numba_compile import uncounted
from phloem.pruning.cpu.chain_state import (
    CLADE,
    COLUMNS_IN,
    EDITED,
    LEFT,
    MOVED,
    PARENT,
    RENUMBERED,
    RIGHT,
    ROWS,
    ROWS_ROOM,
    ROWS_WRITTEN,
    SIZE,
    STALE,
)
from phloem.pruning.cpu.column_classes import number_pairs

LOW = 0xFFFFFFFF


@uncounted
def mark_moved(chains, chain, own, was):
    """Mark what is MOVED and RENUMBERED among a chain's dirty nodes (scratch.order, the root first) in its
    new version (own; was: the old one), where nodes with other children are EDITED. Gives them their other
    place, with the columns of the top of their region. Returns the class rows that numbering may take."""
    scratch, at = chains.scratch, chains.places.of[chain]
    order, n_order, want = scratch.order[chain], scratch.n_order[chain], scratch.want[chain]
    top = scratch.top[chain]
    for k in range(n_order - 1, -1, -1):
        x = order[k]
        a, b = own[x, LEFT], own[x, RIGHT]
        if a >= 0:
            own[x, CLADE] = own[a, CLADE] + own[b, CLADE]
            if want[x] & EDITED or want[a] & RENUMBERED or want[b] & RENUMBERED:
                want[x] |= MOVED
            if own[x, CLADE] != was[x, CLADE]:
                want[x] |= RENUMBERED
    wanted = 0
    for k in range(n_order):
        x = order[k]
        if want[x] & MOVED:
            top[x] = top[own[x, PARENT]] if want[x] & RENUMBERED else x
            size, place = at[was[top[x], COLUMNS_IN], top[x], SIZE], 1 - was[x, COLUMNS_IN]
            own[x, COLUMNS_IN] = place
            at[place, x, SIZE] = size
            if at[place, x, ROWS_ROOM] < size:
                wanted += size + size // 4
    return wanted


@uncounted
def n_hops(was, top, x):
    """Edges from top down to x before the edit."""
    n = 0
    while x != top:
        x = was[x, PARENT]
        n += 1
    return n


@uncounted
def write_hops(was, at, top, x, out, end):
    """The hops from top down to x, the last one before out[end]: 2 · first class row, and 1 more on the
    right. Returns where they begin."""
    while x != top:
        above = was[x, PARENT]
        end -= 1
        out[end] = 2 * at[was[above, COLUMNS_IN], above, ROWS] + (was[above, LEFT] != x)
        x = above
    return end


@uncounted
def renumber(chains, chain, own, was):
    """Number the columns of what mark_moved marked: class rows, which the device wants then (scratch.fresh),
    and sizes. Marks as STALE what was evaluated in more columns; returns how many are."""
    scratch, places, repeats = chains.scratch, chains.places, chains.shape.repeats
    numbering = chains.numbering
    at, want, top, slot = places.of[chain], scratch.want[chain], scratch.top[chain], numbering.slot
    cells, used, stale = numbering.cells, 4, 0
    for k in range(scratch.n_order[chain] - 1, -1, -1):
        x = scratch.order[chain, k]
        if want[x] & MOVED == 0:
            continue
        n_columns = at[was[top[x], COLUMNS_IN], top[x], SIZE]
        a, b = own[x, LEFT], own[x, RIGHT]
        first, second = slot[a], slot[b]
        if want[a] & RENUMBERED == 0:
            first = 0
            _columns_at(was, at, places.rows, top[x], a, numbering.hops, cells[0, :n_columns])
        if want[b] & RENUMBERED == 0:
            second = 1
            _columns_at(was, at, places.rows, top[x], b, numbering.hops, cells[1, :n_columns])
        place, size = own[x, COLUMNS_IN], n_columns
        one, two = cells[first, :n_columns], cells[second, :n_columns]
        if want[x] & RENUMBERED:
            slot[x] = used
            used += 1
        if want[x] & RENUMBERED and repeats:
            left, right = cells[2], cells[3]
            counts = at[own[a, COLUMNS_IN], a, SIZE], at[own[b, COLUMNS_IN], b, SIZE]
            size = number_pairs(
                one, two, counts, True, numbering.table, numbering.base[0], cells[slot[x], :n_columns], left,
                right,
            )  # fmt: skip
            numbering.base[0] += size
            one, two = left, right
        elif want[x] & RENUMBERED:
            for j in range(n_columns):
                cells[slot[x], j] = j
        start = _reserve(places.used, at[place, x], size)
        for j in range(size):
            places.rows[start + j] = np.int64(one[j]) | (np.int64(two[j]) << 32)
        at[place, x, SIZE] = size
        at[place, x, ROWS_WRITTEN] += 1
        own[x, STALE] = size < n_columns
        stale += size < n_columns
        scratch.fresh[chain, scratch.n_fresh[chain, 1]] = 2 * x + place
        scratch.n_fresh[chain, 1] += 1
    return stale


@uncounted
def _columns_at(was, at, rows, top, x, hops, out):
    """Column of x, a node below top before the edit, of every column of top."""
    n = n_hops(was, top, x)
    write_hops(was, at, top, x, hops, n)
    for j in range(len(out)):
        out[j] = j
    for k in range(n):
        start, shift = hops[k] >> 1, 32 * (hops[k] & 1)
        for j in range(len(out)):
            out[j] = (rows[start + out[j]] >> shift) & LOW


@uncounted
def _reserve(used, at, size):
    """Room for the class rows of a node; its region moves to the end where it was too small. Returns the
    start."""
    if at[ROWS_ROOM] < size:
        room = size + size // 4 if at[ROWS_ROOM] > 0 else size
        at[ROWS], at[ROWS_ROOM] = used[0], room
        used[0] += room
    return at[ROWS]
