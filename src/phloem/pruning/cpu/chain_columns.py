"""Distinct columns after a topology was edited: only of nodes that have other children, and without patterns.

Where a node keeps the tips below it, its columns are the same, whatever lies between. All that is renumbered
below such a node is renumbered over its columns instead of over the patterns: they come in the order of their
first patterns, so that the numbers are those that an alignment would give (column_classes.py). An interchange
of neighbours takes as many steps as the upper node has columns.
"""

from __future__ import annotations

import numpy as np

from phloem.hardware.numba_compile import compiled
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
    SIZE,
)
from phloem.pruning.cpu.column_classes import number_pairs

LOW = 0xFFFFFFFF


@compiled
def _classes_at(was, at, x, rows, cells, row_of, path):
    """Classes at x, and at what lies above it up to the nearest node with a row already: cells[row_of[node]].

    was: (N, 8) the version before; at: its places; row_of: (N + 1,), -1 where there is none yet, and the
    number of rows last.
    """
    steps, y, last = 0, x, len(row_of) - 1
    while row_of[y] < 0:
        path[steps] = y
        steps += 1
        y = was[y, PARENT]
    for step in range(steps - 1, -1, -1):
        child = path[step]
        start, shift = at[was[y, COLUMNS_IN], y, ROWS], 0 if was[y, LEFT] == child else 32
        from_row, to_row = cells[row_of[y]], cells[row_of[last]]
        for j in range(len(to_row)):
            to_row[j] = (rows[start + from_row[j]] >> shift) & LOW
        row_of[child] = row_of[last]
        row_of[last] += 1
        y = child


@compiled
def _region_below(own, want, top, nodes):
    """The renumbered nodes below top, parents first, into nodes. Returns how many."""
    n, done, x = 0, -1, top
    while True:
        for side in (LEFT, RIGHT):
            child = own[x, side]
            if want[child] & RENUMBERED:
                nodes[n] = child
                n += 1
        done += 1
        if done == n:
            return n
        x = nodes[done]


@compiled
def _number(first, second, n_second, scratch, classes):
    """Classes (column_classes.number_pairs) of pairs, and each class's pair in rows: (K, packed pairs)."""
    table, base, n = scratch.table, scratch.base[0], len(first)
    left, right, pairs, largest = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int64), 0
    for j in range(n):
        largest = max(largest, np.int64(first[j]))
    counts = largest + 1, np.int64(n_second)
    size = number_pairs(first, second, counts, True, table, base, classes, left, right)
    for j in range(size):
        pairs[j] = np.int64(left[j]) | (np.int64(right[j]) << 32)
    scratch.base[0] = base + size
    return size, pairs


@compiled
def _cells(scratch, n_rows, n_columns):
    """(n_rows, n_columns) of scratch; what is large has been in use before and costs no new pages."""
    flat = scratch.cells.reshape(scratch.cells.size)
    if n_rows * n_columns > len(flat):
        flat = np.empty(n_rows * n_columns, np.int32)
    return flat[: n_rows * n_columns].reshape((n_rows, n_columns))


@compiled
def _count_rows(own, was, want, top, nodes, n_region, row_of):
    """Rows that _classes_at will fill, its row_of prepared. Returns how many."""
    row_of[:] = -1
    row_of[top], n = 0, 1
    for k in range(-1, n_region):
        x = nodes[k] if k >= 0 else top
        for side in (LEFT, RIGHT):
            y = own[x, side]
            if want[y] & RENUMBERED == 0:
                while row_of[y] < 0:
                    row_of[y] = 0
                    n += 1
                    y = was[y, PARENT]
    row_of[:] = -1
    row_of[top], row_of[len(row_of) - 1] = 0, 1
    return n


@compiled
def _renumber_below(chains, chain, own, was, top):
    """Classes of everything renumbered below top, and the class rows of top itself."""
    scratch, places, repeats = chains.scratch, chains.places, chains.shape.repeats
    at, rows, want, nodes = places.of[chain], places.rows, scratch.want[chain], scratch.nodes
    from_old, from_new = np.empty(len(own) + 1, np.int64), scratch.from_new
    n_region = _region_below(own, want, top, nodes)
    n_columns = at[was[top, COLUMNS_IN], top, SIZE]
    n_rows = _count_rows(own, was, want, top, nodes, n_region, from_old)
    cells = _cells(scratch, n_rows + n_region, n_columns)
    for j in range(n_columns):
        cells[0, j] = j
    for k in range(-1, n_region):
        x = nodes[k] if k >= 0 else top
        for side in (LEFT, RIGHT):
            child = own[x, side]
            if want[child] & RENUMBERED == 0:
                _classes_at(was, at, child, rows, cells, from_old, scratch.path)
    for k in range(n_region - 1, -2, -1):
        x = nodes[k] if k >= 0 else top
        a, b = own[x, LEFT], own[x, RIGHT]
        first = cells[from_new[a] if want[a] & RENUMBERED else from_old[a]]
        second = cells[from_new[b] if want[b] & RENUMBERED else from_old[b]]
        place = 1 - was[x, COLUMNS_IN]
        own[x, COLUMNS_IN] = place
        size = n_columns
        if k >= 0 and repeats:
            from_new[x] = n_rows + k
            n_second = at[own[b, COLUMNS_IN], b, SIZE]
            size, pairs = _number(first, second, n_second, scratch, cells[n_rows + k])
        else:
            pairs = np.empty(n_columns, np.int64)
            for j in range(n_columns):
                pairs[j] = np.int64(first[j]) | (np.int64(second[j]) << 32)
            if k >= 0:
                from_new[x] = 0  # every column is a class
        at[place, x, SIZE] = size
        start = _reserve(places.used, at[place, x], size)
        if places.used[0] <= len(rows):
            rows[start : start + size] = pairs[:size]


@compiled
def _reserve(used, at, size):
    """Room for the class rows of a node; its region moves to the end where it was too small. Returns the
    start."""
    if at[ROWS_ROOM] < size:
        room = size + size // 4 if at[ROWS_ROOM] > 0 else size
        at[ROWS], at[ROWS_ROOM] = used[0], room
        used[0] += room
    return at[ROWS]


@compiled
def renumber(chains, chain, own, was):
    """Columns of a chain's new version (own; was: the old one), whose dirty nodes scratch.order has, the root
    first.

    Nodes with other children are marked EDITED in scratch.want. Marks nodes with new class rows as MOVED; the
    rows are written unless places.used says that there is no room for them: then make some and call again.
    """
    scratch = chains.scratch
    order, n_order, want = scratch.order[chain], scratch.n_order[chain], scratch.want[chain]
    for k in range(n_order - 1, -1, -1):
        x = order[k]
        a, b = own[x, LEFT], own[x, RIGHT]
        if a >= 0:
            own[x, CLADE] = own[a, CLADE] + own[b, CLADE]
            if want[x] & EDITED or want[a] & RENUMBERED or want[b] & RENUMBERED:
                want[x] |= MOVED
            if own[x, CLADE] != was[x, CLADE]:
                want[x] |= RENUMBERED
    for k in range(n_order):
        x = order[k]
        if want[x] & MOVED and want[x] & RENUMBERED == 0:
            _renumber_below(chains, chain, own, was, x)
