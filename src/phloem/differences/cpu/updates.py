"""Lists that follow when a length or a branch has changed, as far as the change goes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from phloem.differences.cpu.joining import IMPOSSIBLE, best_length, compare, join, value_at
from phloem.differences.cpu.records import LEFT, LOW, MIDDLE, RIGHT, UP, same, store
from phloem.hardware.numba_compile import uncounted

ENDED, BEGIN, PENDING = 0, 1, 2  # of Queue.ends
TOLERANCE = 1e-3  # share by which distances and vectors may differ from what they were, and go no further


class Queue(NamedTuple):
    """waiting (4 N,): direction · N + node, a ring. queued (2 N,) int8. ends (3,): -, first, number of them.
    stale (N,) int8: whether the list half way is to be made anew."""

    waiting: np.ndarray
    queued: np.ndarray
    ends: np.ndarray
    stale: np.ndarray


@uncounted
def ask(queue, direction, node):
    """The list of a node is to be made again."""
    n = len(queue.stale)
    item = direction * n + node
    if queue.queued[item]:
        return
    queue.queued[item] = 1
    queue.waiting[(queue.ends[BEGIN] + queue.ends[PENDING]) % len(queue.waiting)] = item
    queue.ends[PENDING] += 1


@uncounted
def sibling(tree, x):
    p = tree.parent[x]
    return tree.children[p, RIGHT] if tree.children[p, LEFT] == x else tree.children[p, LEFT]


@uncounted
def low_into(lists, rates, columns, tree, x, out):
    """The list of inner node x from below."""
    a, b = tree.children[x, LEFT], tree.children[x, RIGHT]
    return join(lists, rates, columns, (a, b), (tree.length[a], tree.length[b]), out)


@uncounted
def up_into(lists, rates, columns, tree, x, out):
    """The list at x's parent of all that is not below x; the parent is no tip."""
    n, p, y = len(tree.parent), tree.parent[x], sibling(tree, x)
    return join(lists, rates, columns, (n * UP + p, n * LOW + y), (tree.length[p], tree.length[y]), out)


@uncounted
def after_low(tree, queue, x):
    """What follows from another list from below, or another length, of x."""
    queue.stale[x] = 1
    p = tree.parent[x]
    if p > 0:
        ask(queue, LOW, p)
        ask(queue, UP, sibling(tree, x))


@uncounted
def after_up(tree, queue, x):
    """What follows from another list from above, or another length, of x."""
    queue.stale[x] = 1
    if tree.children[x, LEFT] >= 0:
        ask(queue, UP, tree.children[x, LEFT])
        ask(queue, UP, tree.children[x, RIGHT])


@uncounted
def settle(lists, rates, columns, tree, queue, scratch):
    """Makes all lists that are asked for, and those that follow; False where memory ran out on the way.
    scratch: number of a list with room for any."""
    n = len(tree.parent)
    while queue.ends[PENDING]:
        item = queue.waiting[queue.ends[BEGIN]]
        direction, x = item // n, item % n
        if direction == LOW:
            factor = low_into(lists, rates, columns, tree, x, scratch)
        elif tree.parent[x] == 0:
            direction, factor = -1, 0.0
        else:
            factor = up_into(lists, rates, columns, tree, x, scratch)
        changed = direction >= 0 and not same(lists, scratch, item, TOLERANCE)
        if changed and not store(lists, scratch, item):
            return False
        queue.ends[BEGIN] = (queue.ends[BEGIN] + 1) % len(queue.waiting)
        queue.ends[PENDING] -= 1
        queue.queued[item] = 0
        if direction == LOW:
            tree.factor[x] = factor
        if changed and direction == LOW:
            after_low(tree, queue, x)
        elif changed:
            after_up(tree, queue, x)
    return True


@uncounted
def refresh_middle(lists, rates, columns, tree, queue, x, scratch):
    """The list half way up x's branch, if it is stale; False where memory ran out."""
    if not queue.stale[x]:
        return True
    n, half = len(tree.parent), 0.5 * tree.length[x]
    join(lists, rates, columns, (n * LOW + x, n * UP + x), (half, half), scratch)
    if not store(lists, scratch, n * MIDDLE + x):
        return False
    queue.stale[x] = 0
    return True


@uncounted
def refresh_middles(lists, rates, columns, tree, queue, begin, scratch):
    """All that searches read, from node `begin` on; returns the node where memory ran out, or N."""
    for x in range(begin, len(tree.parent)):
        used = tree.parent[x] >= 0 and (tree.length[x] > 0.0 or tree.parent[x] == 0)
        if used and not refresh_middle(lists, rates, columns, tree, queue, x, scratch):
            return x
    return len(tree.parent)


@uncounted
def make_all(lists, rates, columns, tree, queue, steps, begin, fit, scratch):
    """All lists anew, in the order of steps (x on the way down, ~x on the way up), from step `begin` on, and
    with fit every length at its best, one after the other. Returns where memory ran out, or the number of
    steps; lists from above are right after it where nothing was fitted and lists from below were.
    """
    n = len(tree.parent)
    for k in range(begin, len(steps)):
        x = steps[k]
        if x < 0:
            x = ~x
            tree.factor[x] = low_into(lists, rates, columns, tree, x, scratch)
            if not store(lists, scratch, x):
                return k
        else:
            if tree.parent[x] != 0:
                up_into(lists, rates, columns, tree, x, scratch)
                if not store(lists, scratch, n * UP + x):
                    return k
            if fit:
                different, slope, _ = compare(lists, rates, columns, n * UP + x, n * LOW + x)
                tree.length[x] = best_length(columns, different, slope)
        queue.stale[x] = 1
    return len(steps)


@uncounted
def log_likelihood(lists, rates, columns, tree):
    """Of the tree, from lists that are right. The root is tip 0."""
    x = tree.children[0, LEFT]
    different, slope, constant = compare(lists, rates, columns, x, 0)
    total = value_at(columns, different, slope, constant, tree.length[x])
    for node in range(1, len(tree.parent)):
        if tree.children[node, LEFT] >= 0 and tree.parent[node] >= 0:
            if tree.factor[node] == IMPOSSIBLE:
                return IMPOSSIBLE
            total += tree.factor[node]
    return total
