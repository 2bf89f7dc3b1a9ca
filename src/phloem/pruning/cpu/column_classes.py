"""Distinct columns below every node, by hashing pairs of classes; keys of sets of tips; ancestors."""

from __future__ import annotations

import numpy as np

from phloem.hardware.numba_compile import compiled, uncounted
from phloem.pruning.interface import ColumnClasses

# What lies above nodes of a tree.


@compiled
def mark_ancestors(parent, marked):
    """Mark everything above marked nodes. parent: (N,) int64, parents after their children, -1 at the root;
    marked: (N,) bool, changed."""
    for x in range(len(parent) - 1):
        if marked[x]:
            marked[parent[x]] = True


# Keys of the sets of tips below nodes, to find the same subtree under another number.


def tip_keys(n_tips: int) -> np.ndarray:
    """(T,) uint64, each tip's hash (splitmix64: Steele, Lea and Flood 2014); a set of tips has their sum. Two
    different sets among N agree by chance once in 2**64 / N² trees."""
    z = np.arange(1, n_tips + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compiled
def clade_keys(of_tips, left, right):
    """(2T-1,) uint64, equal where the same tips lie below.

    of_tips: (T,) tip_keys. left, right: (T-1,) children of internal node T+k, below their parents.
    """
    n_tips = len(left) + 1
    keys = np.empty(2 * n_tips - 1, np.uint64)
    keys[:n_tips] = of_tips
    for k in range(n_tips - 1):
        keys[n_tips + k] = keys[left[k]] + keys[right[k]]
    return keys


# Distinct columns below every node, by hashing pairs of classes.


_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio: Fibonacci hashing (Knuth, vol. 3, 6.4)


@uncounted
def number_tip(codes, code_class, class_of, left):
    """Classes of a tip are its character codes, in order of first appearance. Returns K.

    code_class: scratch, (n_codes,); class_of: out, (P,); left: out, the code of each class.
    """
    code_class[:] = -1
    size = 0
    for pattern in range(len(codes)):
        code = codes[pattern]
        if code_class[code] < 0:
            code_class[code] = size
            left[size] = code
            size += 1
        class_of[pattern] = code_class[code]
    return size


@uncounted
def number_pairs(first, second, counts, repeats, table, base, class_of, left, right):
    """Classes of an internal node are the distinct pairs of its children's classes. Returns K.

    first, second: (P,) children's classes of every pattern; counts: how many classes each child has. table:
    (power of two > P,) int64 whose entries below base count as empty, so that it need not be cleared: pass
    base + K next time. class_of (P,), left, right (K, and one more if K < P): out.
    """
    n_patterns = len(first)
    if not repeats:
        for pattern in range(n_patterns):
            class_of[pattern], left[pattern], right[pattern] = pattern, first[pattern], second[pattern]
        return n_patterns
    if counts[0] * counts[1] <= len(table):  # a place a pair
        size = 0
        for pattern in range(n_patterns):
            a, b = first[pattern], second[pattern]
            slot = np.int64(a) * counts[1] + b
            found = table[slot] - base
            new = found < 0  # no branch: nobody could foresee it
            k = size if new else found
            table[slot], class_of[pattern] = base + k, k
            left[size], right[size] = a, b
            size += new
        return size
    bits = 0
    while (1 << bits) < len(table):
        bits += 1
    shift, mask = np.uint64(64 - bits), len(table) - 1
    size = 0
    for pattern in range(n_patterns):
        a, b = first[pattern], second[pattern]
        key = np.uint64((np.int64(a) << 32) | np.int64(b))
        slot = np.int64((key * _GOLDEN) >> shift)
        while True:
            found = table[slot] - base
            if found < 0:
                table[slot] = base + size
                left[size], right[size] = a, b
                class_of[pattern] = size
                size += 1
                break
            if left[found] == a and right[found] == b:
                class_of[pattern] = found
                break
            slot = (slot + 1) & mask
    return size


def table_entries(n_patterns: int) -> int:
    """Of number_pairs' table: enough for all pairs of classes near the tips, and for few to meet above."""
    return max(1 << 14, 1 << (4 * n_patterns).bit_length())


@uncounted
def sort_by_class(child_class, sibling_class, size, first, order, sibling):
    """Sort a node's rows by one child's class, for the way down.

    child_class, sibling_class: (K,) classes of the node's rows at the child and at its sibling; size:
    classes of the child. first: out, (size + 1,), where each class begins; order, sibling: out, (K,), rows
    in that order and their sibling's class.
    """
    first[: size + 1] = 0
    for row in range(len(child_class)):
        first[child_class[row] + 1] += 1
    for k in range(size):
        first[k + 1] += first[k]
    for row in range(len(child_class)):
        k = child_class[row]
        order[first[k]] = row
        sibling[first[k]] = sibling_class[row]
        first[k] += 1
    for k in range(size, 0, -1):
        first[k] = first[k - 1]
    first[0] = 0


@compiled
def sort_all(left, right, region, size, columns):
    """sort_by_class for both children of every internal node. region: (N,) in use; size: (2N,) of regions;
    columns: records.Columns."""
    start, left_class, right_class, first, left_order, left_sibling, right_order, right_sibling = columns
    for x in range(len(left)):
        if left[x] < 0:
            continue
        a, b, rows = region[left[x]], region[right[x]], start[region[x]]
        end = rows + size[region[x]]
        one, two = left_class[rows:end], right_class[rows:end]
        sort_by_class(one, two, size[a], first[start[a] :], left_order[rows:end], left_sibling[rows:end])
        sort_by_class(two, one, size[b], first[start[b] :], right_order[rows:end], right_sibling[rows:end])


@compiled
def number_all(left, right, tip_codes, n_codes, repeats, spacing, out):
    """Classes of every node, rows of one node after those of the node before.

    left, right: (T-1,); tip_codes: (T, P); out: class_of (2T-1, P); left_class, right_class, long enough for
    all rows; start, size (2T-1,). spacing: 1, or start every node at a multiple of it and leave at least one
    row free. Returns the rows used.
    """
    class_of, left_class, right_class, start, size = out
    n_tips, n_patterns = tip_codes.shape
    bits = 14  # table_entries
    while (1 << bits) <= 4 * n_patterns:
        bits += 1
    table, base = np.full(1 << bits, np.int64(-1)), 0
    code_class = np.empty(n_codes, np.int32)
    row = 0
    for x in range(2 * n_tips - 1):
        start[x] = row
        if x < n_tips:
            size[x] = number_tip(tip_codes[x], code_class, class_of[x], left_class[row:])
            right_class[row : row + size[x]] = -1
        else:
            a, b = class_of[left[x - n_tips]], class_of[right[x - n_tips]]
            counts = size[left[x - n_tips]], size[right[x - n_tips]]
            size[x] = number_pairs(
                a, b, counts, repeats, table, base, class_of[x], left_class[row:], right_class[row:]
            )
            base += size[x]
        row += size[x] if spacing == 1 else (size[x] // spacing + 1) * spacing
    return row


def column_classes(left: np.ndarray, right: np.ndarray, tip_codes: np.ndarray, repeats: bool = True):
    """As reference/recursion.py; only, a tip's classes are its distinct codes even without repeats."""
    n_tips, n_patterns = tip_codes.shape
    n_nodes = 2 * n_tips - 1
    n_codes = int(tip_codes.max(initial=0)) + 1
    class_of = np.empty((n_nodes, n_patterns), np.int32)
    rows = n_tips * min(n_codes, n_patterns) + (n_tips - 1) * n_patterns
    left_class, right_class = np.empty(rows, np.int32), np.empty(rows, np.int32)
    start, size = np.empty(n_nodes, np.int64), np.empty(n_nodes, np.int64)
    children = np.asarray(left, np.int64), np.asarray(right, np.int64)
    out = (class_of, left_class, right_class, start, size)
    used = number_all(*children, tip_codes, n_codes, repeats, 1, out)
    return ColumnClasses(
        n_tips=n_tips,
        left=np.asarray(left, np.int32),
        right=np.asarray(right, np.int32),
        offset=np.append(start, used),
        left_class=left_class[:used].copy(),
        right_class=right_class[:used].copy(),
        pattern_column=class_of[-1].copy(),
    )
