"""Where on a tree a genome, or a subtree, fits best: a walk that goes on where it fits best so far, then a
closer look at the best branches, with the three lengths there fitted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from phloem.differences.cpu.joining import (
    IMPOSSIBLE,
    Columns,
    best_length,
    compare,
    join,
    score,
    value_at,
)
from phloem.differences.cpu.records import LEFT, LOW, MIDDLE, RIGHT, ROOM, UP, VECTOR_ROOM, store
from phloem.differences.cpu.updates import (
    after_low,
    after_up,
    low_into,
    refresh_middle,
    up_into,
)
from phloem.hardware.numba_compile import uncounted

NO_MEMORY = -2
_CLOSE = 8.0  # log units: branches that are looked at closely are that near the best one
_ROUNDS, _ENOUGH = 4, 1e-3  # of fitting three lengths; log units
_BENT = 1e-12  # a branch shorter than this is no branch


class Heap(NamedTuple):
    """key (·,) and item (·,) of what is waiting, the largest key first; best (K,) and best_item (K,): the
    best seen, in order; size (2,): how many are in each."""

    key: np.ndarray
    item: np.ndarray
    best: np.ndarray
    best_item: np.ndarray
    size: np.ndarray


class Walk(NamedTuple):
    """Room of one thread. items (·, 4) int64: a branch by its lower node, whether the walk goes up it, the
    list that arrives from the gap, branches passed. lists (4,): number of the scratch list, of the first and
    last list for arrivals, of the next. memory (6,): entries of arrivals: first, behind the last, next; the
    same of vectors. lengths (2, 3)."""

    items: np.ndarray
    lists: np.ndarray
    memory: np.ndarray
    lengths: np.ndarray


class Room(NamedTuple):
    """What a thread works in."""

    columns: Columns
    heap: Heap
    walk: Walk


class Reach(NamedTuple):
    """How far walks go. drop: log units below the best, where they end. length: of the branch to what is
    placed, while walking. most: branches that are looked at. radius: branches with a length on the way."""

    drop: float
    length: float
    most: int
    radius: int


@uncounted
def push(heap, key, item):
    """Puts one in; if there is no room it is left out."""
    k = heap.size[0]
    if k >= len(heap.key):
        return
    heap.size[0] += 1
    while k > 0:
        up = (k - 1) >> 1
        if heap.key[up] >= key:
            break
        heap.key[k], heap.item[k] = heap.key[up], heap.item[up]
        k = up
    heap.key[k], heap.item[k] = key, item


@uncounted
def pop(heap):
    """Takes out the one with the largest key: key and item."""
    top_key, top_item = heap.key[0], heap.item[0]
    n = heap.size[0] - 1
    heap.size[0] = n
    key, item, k = heap.key[n], heap.item[n], 0
    while True:
        child = 2 * k + 1
        if child >= n:
            break
        if child + 1 < n and heap.key[child + 1] > heap.key[child]:
            child += 1
        if heap.key[child] <= key:
            break
        heap.key[k], heap.item[k] = heap.key[child], heap.item[child]
        k = child
    heap.key[k], heap.item[k] = key, item
    return top_key, top_item


@uncounted
def note(heap, key, item):
    """Keeps it if it is among the best, the earlier of equal ones first."""
    n = heap.size[1]
    if n == len(heap.best):
        if key <= heap.best[n - 1]:
            return
        n -= 1
    k = n
    while k > 0 and heap.best[k - 1] < key:
        heap.best[k], heap.best_item[k] = heap.best[k - 1], heap.best_item[k - 1]
        k -= 1
    heap.best[k], heap.best_item[k] = key, item
    heap.size[1] = n + 1


@uncounted
def fit_three(lists, rates, columns, ends, lengths, scratch):
    """Three lists that meet at a new node. ends: lists below, above, and of what is placed; lengths (3,) of
    their branches are fitted, one after the other. Returns log L there, or IMPOSSIBLE."""
    below, above, placed = ends
    value = IMPOSSIBLE
    for _ in range(_ROUNDS):
        before = value
        join(lists, rates, columns, (below, placed), (lengths[0], lengths[2]), scratch)
        n, slope, _ = compare(lists, rates, columns, scratch, above)
        lengths[1] = best_length(columns, n, slope)
        join(lists, rates, columns, (above, placed), (lengths[1], lengths[2]), scratch)
        n, slope, _ = compare(lists, rates, columns, scratch, below)
        lengths[0] = best_length(columns, n, slope)
        factor = join(lists, rates, columns, (below, above), (lengths[0], lengths[1]), scratch)
        n, slope, constant = compare(lists, rates, columns, scratch, placed)
        lengths[2] = best_length(columns, n, slope)
        if factor == IMPOSSIBLE:
            return IMPOSSIBLE
        value = factor + value_at(columns, n, slope, constant, lengths[2])
        if value - before < _ENOUGH:
            break
    return value


@uncounted
def look(lists, rates, columns, ends, length, lengths, scratch):
    """fit_three beside log L of the branch without what is placed. ends: as there; length: of the branch,
    the new lengths come into lengths (3,). What is placed begins half a change away from the middle."""
    below, above, placed = ends
    n, slope, constant = compare(lists, rates, columns, below, above)
    without = value_at(columns, n, slope, constant, length)
    lengths[0] = lengths[1] = 0.5 * length
    factor = join(lists, rates, columns, (below, above), (lengths[0], lengths[1]), scratch)
    n, slope, _ = compare(lists, rates, columns, scratch, placed)
    lengths[2] = best_length(columns, n, slope)
    if factor == IMPOSSIBLE or without == IMPOSSIBLE:
        return IMPOSSIBLE
    return fit_three(lists, rates, columns, ends, lengths, scratch) - without


@uncounted
def find(lists, rates, room, tree, queue, reach, tip):
    """The branch on which a genome fits best, its lengths in room.walk.lengths[0]: from below, from above, to
    the genome. Returns the branch, or NO_MEMORY."""
    columns, heap, walk = room
    scratch = walk.lists[0]
    heap.size[0] = heap.size[1] = 0
    top, looked = IMPOSSIBLE, 0
    push(heap, 0.0, tree.children[0, LEFT])
    n = len(tree.parent)
    while heap.size[0]:
        key, x = pop(heap)
        if key < top - reach.drop or looked >= reach.most:
            break
        if tree.length[x] > _BENT or tree.parent[x] == 0:
            if not refresh_middle(lists, rates, columns, tree, queue, x, scratch):
                return NO_MEMORY
            key = score(lists, rates, columns, n * MIDDLE + x, tip, reach.length, top - reach.drop)
            looked += 1
            top = max(top, key)
            note(heap, key, x)
        if key >= top - reach.drop and tree.children[x, LEFT] >= 0:
            push(heap, key, tree.children[x, LEFT])
            push(heap, key, tree.children[x, RIGHT])
    return closest(lists, rates, columns, tree, heap, tip, walk.lengths, scratch)


@uncounted
def closest(lists, rates, columns, tree, heap, tip, chosen, scratch):
    """Of the best branches of a walk the one that is best with lengths fitted; those into chosen's row 0."""
    n, branch, highest = len(tree.parent), heap.best_item[0], -np.inf
    for k in range(heap.size[1]):
        if heap.best[k] < heap.best[0] - _CLOSE:
            break
        x = heap.best_item[k]
        ends = (n * LOW + x, n * UP + x, tip)
        value = look(lists, rates, columns, ends, tree.length[x], chosen[1], scratch)
        if value > highest:
            branch, highest = x, value
            for s in range(3):
                chosen[0, s] = chosen[1, s]
    return branch


@uncounted
def share_root(lists, tree):
    """What comes from above to the root's only child is the root's genome."""
    x = len(tree.parent) * UP + tree.children[0, LEFT]
    for k in range(6):
        lists.place[x, k] = lists.place[0, k]
    lists.place[x, ROOM] = lists.place[x, VECTOR_ROOM] = 0


@uncounted
def graft(lists, tree, where, lengths):
    """Puts node x with its parent p into branch y. where: (x, p, y); lengths (3,): of y, of p, of x."""
    x, p, y = where
    above = tree.parent[y]
    if tree.children[above, LEFT] == y:
        tree.children[above, LEFT] = p
    else:
        tree.children[above, RIGHT] = p
    tree.parent[p], tree.parent[y], tree.parent[x] = above, p, p
    tree.children[p, LEFT], tree.children[p, RIGHT] = y, x
    tree.length[y], tree.length[p], tree.length[x] = lengths[0], lengths[1], lengths[2]
    if above == 0:
        share_root(lists, tree)


@uncounted
def graft_and_ask(lists, rates, columns, tree, queue, where, lengths, scratch):
    """graft, with the lists at the new node; others are asked for. False where memory ran out: again then,
    without grafting."""
    x, p, y = where
    n = len(tree.parent)
    if tree.parent[y] != p:
        if tree.parent[y] > 0:  # what came to y now comes to p; another list may then take its place
            for k in range(6):
                kept = lists.place[n * UP + p, k]
                lists.place[n * UP + p, k] = lists.place[n * UP + y, k]
                lists.place[n * UP + y, k] = kept
        graft(lists, tree, where, lengths)
    tree.factor[p] = low_into(lists, rates, columns, tree, p, scratch)
    if not store(lists, scratch, n * LOW + p):
        return False
    for one in (x, y):
        up_into(lists, rates, columns, tree, one, scratch)
        if not store(lists, scratch, n * UP + one):
            return False
        after_up(tree, queue, one)
    after_low(tree, queue, p)
    queue.stale[x] = 1
    return True


@uncounted
def add_tip(lists, rates, room, tree, queue, reach, where):
    """Places tip x with a new node p. where: (x, p). False where memory ran out: again then, from the start.
    Callers see to room for what grafting stores."""
    x, p = where
    y = find(lists, rates, room, tree, queue, reach, x)
    if y == NO_MEMORY:
        return False
    walk = room.walk
    graft_and_ask(lists, rates, room.columns, tree, queue, (x, p, y), walk.lengths[0], walk.lists[0])
    return True
