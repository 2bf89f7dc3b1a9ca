"""Which pre-order columns of a parent are summed into those of a child, for gpu/layout.py."""

from __future__ import annotations

import numpy as np

from phloem.hardware.numba_compile import compiled


@compiled
def group_columns(own, other, n_classes, tile, longest):
    """Group a parent's pre-order columns by the child's class, at most `longest` a group, long groups first.

    own, other: (n,) classes of the parent's columns at the child and at its sibling; n_classes: of the child.
    Returns stands_for (groups,), each one's class; tile_longest and tile_size, entries of the longest group
    and of all of every tile of groups; entry_parent, entry_sibling in (longest, tile) blocks: a column of the
    parent (-1 none) and its class at the sibling.
    """
    count = np.zeros(n_classes, np.int64)
    for k in own:
        count[k] += 1
    n_of_size = np.zeros(longest + 2, np.int64)
    for k in range(n_classes):
        n_of_size[longest] += count[k] // longest
        n_of_size[count[k] % longest] += 1
    n_of_size[0] = 0
    following = np.zeros(longest + 1, np.int64)  # the next group of each size
    for size in range(longest - 1, 0, -1):
        following[size] = following[size + 1] + n_of_size[size + 1]
    n_groups = n_of_size.sum()
    stands_for, group_size = np.empty(n_groups, np.int32), np.empty(n_groups, np.int64)
    first_full, last = np.empty(n_classes, np.int64), np.empty(n_classes, np.int64)
    for k in range(n_classes):
        full, rest = count[k] // longest, count[k] % longest
        first_full[k] = following[longest]
        stands_for[first_full[k] : first_full[k] + full] = k
        group_size[first_full[k] : first_full[k] + full] = longest
        following[longest] += full
        last[k] = following[rest]
        if rest > 0:
            stands_for[last[k]], group_size[last[k]] = k, rest
            following[rest] += 1
    tile_longest = group_size[::tile].copy()
    place, n_entries = np.empty(n_groups, np.int64), 0  # of a group's first entry
    for t in range(len(tile_longest)):
        for column in range(t * tile, min((t + 1) * tile, n_groups)):
            place[column] = n_entries + column - t * tile
        n_entries += tile_longest[t] * tile
    entry_parent, entry_sibling = np.full(n_entries, -1, np.int32), np.zeros(n_entries, np.int32)
    group, rank = first_full, np.zeros(n_classes, np.int64)  # of the next column of every class
    for k in range(n_classes):
        if count[k] < longest:
            group[k] = last[k]
    for j in range(len(own)):
        k = own[j]
        entry = place[group[k]] + rank[k] * tile
        entry_parent[entry], entry_sibling[entry] = j, other[j]
        rank[k] += 1
        if rank[k] == longest:
            rank[k] = 0
            count[k] -= longest
            group[k] = group[k] + 1 if count[k] >= longest else last[k]
    return stands_for, tile_longest, tile_longest * tile, entry_parent, entry_sibling
