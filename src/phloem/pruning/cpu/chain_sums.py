"""Which columns of a node are summed into those of its children on the way down, kept as long as they hold.

The pre-order vector of a class of x is a sum over the columns of x's parent that have that class
(reference/recursion.py). Which ones they are depends on the class rows of the parent alone. So the lists
belong to the place where these rows lie: an interchange makes those of two nodes anew, and a rejected one
leaves the lists of the accepted tree as they were.

A class that gathers many columns is cut into groups, so that no sum is long: of internal nodes into about as
many as each has columns, and then the groups are summed, too. At tips nothing goes further down, and groups
stay as they are.

The list of one child, 64-bit words, the lower half first: groups (class, first entry), one more for the end
of the last; entries (column of the parent, its class at the sibling), group after group; classes that have
more than one group (class, first group), and one more for the end. Groups of such classes come first, others
in the order of their sizes, the longest first, so that those of one tile are as long as each other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from phloem.hardware.numba_compile import compiled
from phloem.pruning.cpu.chain_columns import LOW
from phloem.pruning.cpu.chain_state import COLUMNS_IN, LEFT, RIGHT, ROWS, ROWS_WRITTEN, SIZE

# Of one child's list (Sums.of): where it begins, the room there, which writing of the parent's rows it was
# made from, groups, entries, how many of the groups belong to a class with several, and how many such classes
# there are.
FIRST, ROOM, MADE_FROM, GROUPS, ENTRIES, SEVERAL, CLASSES = range(7)


class Sums(NamedTuple):
    """of: (H, 2, N, 2, 8) by chain, place of the class rows, node, and its left or right child. used: (1,)
    words on the device that are taken. longest: (1,) columns of a sum, at most, where nothing calls for more.

    Scratch: order, depth, q_at: (N,), first: (2N + 2,), gathered, begin, group_at, entry_at: (columns of the
    root + longest + 2,)."""

    of: np.ndarray
    used: np.ndarray
    longest: np.ndarray
    order: np.ndarray
    depth: np.ndarray
    q_at: np.ndarray
    first: np.ndarray
    gathered: np.ndarray
    begin: np.ndarray
    group_at: np.ndarray
    entry_at: np.ndarray


def no_sums(n_chains: int, n_nodes: int, n_root: int, longest: int) -> Sums:
    """No list is made yet."""
    of = np.zeros((n_chains, 2, n_nodes, 2, 8), np.int64)
    of[..., MADE_FROM] = -1
    node, column = n_nodes, n_root + longest + 2

    def whole(n: int) -> np.ndarray:
        return np.zeros(n, np.int64)

    return Sums(
        of=of,
        used=whole(1),
        longest=np.array([longest]),
        order=whole(node),
        depth=whole(node),
        q_at=whole(node),
        first=whole(2 * node + 2),
        gathered=whole(column),
        begin=whole(column),
        group_at=whole(column),
        entry_at=whole(column),
    )


@compiled
def most_words(n_columns, n_classes, longest):
    """Words of a list, at most."""
    return n_columns + n_classes + 2 * (n_columns // longest) + 3


@compiled
def is_made(places, sums, chain, own, x):
    """Whether the lists of x's children are those of its class rows."""
    place = own[x, COLUMNS_IN]
    return sums.of[chain, place, x, 0, MADE_FROM] == places.of[chain, place, x, ROWS_WRITTEN]


@compiled
def make_lists(places, sums, chain, own, x, words, n_tips):
    """Write the lists of x's children into words, left and right, and where they belong on the device into
    sums.of. Returns the words written. They count as made once a caller writes MADE_FROM."""
    place = own[x, COLUMNS_IN]
    start, size = places.of[chain, place, x, ROWS], places.of[chain, place, x, SIZE]
    rows, n = places.rows[start : start + size], 0
    for side in range(2):
        child = own[x, LEFT] if side == 0 else own[x, RIGHT]
        n_classes, of = places.of[chain, own[child, COLUMNS_IN], child, SIZE], sums.of[chain, place, x, side]
        length = _list(rows, 32 * side, n_classes, child < n_tips, of, words[n:], sums)
        if of[ROOM] < length:
            room = length + length // 4 if of[ROOM] > 0 else length
            of[FIRST], of[ROOM] = sums.used[0], room
            sums.used[0] += room
        n += length
    return n


@compiled
def _list(rows, shift, n_classes, at_tip, of, words, sums):
    """One list; shift: of the child's class in a row, 0 or 32. Returns its length."""
    count, begin, longest, largest = sums.gathered, sums.begin, sums.longest[0], 0
    count[:n_classes] = 0
    for j in range(len(rows)):
        count[(rows[j] >> shift) & LOW] += 1
    for k in range(n_classes):
        largest = max(largest, count[k])
    if largest > longest and not at_tip:
        longest = max(longest, np.int64(np.ceil(np.sqrt(largest))))
    n_several, n_groups = _room_by_size(n_classes, longest, sums)
    entries = n_groups + 1
    classes, group, entry, n = entries + len(rows), 0, 0, 0
    for k in range(n_classes):
        left = count[k]
        if left > longest:
            words[classes + n], begin[k] = k | (group << 32), entries + entry
            n += 1
            while left > 0:
                words[group] = k | (entry << 32)
                group += 1
                entry += min(left, longest)
                left -= longest
        else:
            words[sums.group_at[left]] = k | (sums.entry_at[left] << 32)
            begin[k] = entries + sums.entry_at[left]
            sums.group_at[left] += 1
            sums.entry_at[left] += left
    words[n_groups], words[classes + n] = len(rows) << 32, n_several << 32
    for j in range(len(rows)):
        k = (rows[j] >> shift) & LOW
        words[begin[k]] = j | (((rows[j] >> (32 - shift)) & LOW) << 32)
        begin[k] += 1
    of[GROUPS], of[ENTRIES], of[SEVERAL], of[CLASSES] = n_groups, len(rows), n_several, n
    return classes + n + 1


@compiled
def _room_by_size(n_classes, longest, sums):
    """Where the groups and entries of classes of each size begin that have one group: group_at, entry_at.
    Returns (groups of classes that have several, groups in all)."""
    count, group_at, entry_at = sums.gathered, sums.group_at, sums.entry_at
    group_at[: longest + 1] = 0
    group, entry = 0, 0
    for k in range(n_classes):
        if count[k] > longest:
            group += (count[k] + longest - 1) // longest
            entry += count[k]
        else:
            group_at[count[k]] += 1
    n_several = group
    for size in range(longest, 0, -1):
        n = group_at[size]
        group_at[size], entry_at[size] = group, entry
        group += n
        entry += n * size
    return n_several, group
