"""Subtrees moved to where they fit better: a walk outwards from the gap that a subtree leaves.

What arrives from the gap is joined on the way until it says what the tree's own list there says: from then on
lists that are there are read (after De Maio et al. 2023; Stamatakis 2006 calls it lazy SPR).
"""

from __future__ import annotations

import math

from phloem.differences.cpu.joining import IMPOSSIBLE, compare, join, score, value_at
from phloem.differences.cpu.placement import (
    _BENT,
    graft_and_ask,
    look,
    note,
    pop,
    push,
    share_root,
)
from phloem.differences.cpu.records import (
    COUNT,
    FIRST,
    FIRST_VECTOR,
    LEFT,
    LOW,
    MIDDLE,
    RIGHT,
    ROOM,
    UP,
    VECTOR_ROOM,
    VECTORS,
    room_for,
    same,
)
from phloem.differences.cpu.updates import TOLERANCE, after_low, after_up, sibling
from phloem.hardware.numba_compile import uncounted

NODE, UPWARDS, ARRIVAL, DEPTH = range(4)  # columns of placement.Walk.items
_SLACK = 6.0  # log units by which a place may be behind the present one before its lengths are fitted
GAIN = 0.02  # log units for which a subtree is moved
_PERFECT = -1.0  # log units that a subtree costs where it is, from where no other place is looked for


@uncounted
def _arrival(lists, rates, columns, walk, sides, lengths, stored):
    """The list that arrives: its number, or `stored` where that says the same; -1 without memory."""
    out, room = walk.lists[3], room_for(lists, sides[0], sides[1])
    memory = walk.memory
    if out > walk.lists[2] or memory[2] + room > memory[1] or memory[5] + room > memory[4]:
        return -1
    p = lists.place[out]
    p[FIRST], p[ROOM], p[FIRST_VECTOR], p[VECTOR_ROOM] = memory[2], room, memory[5], room
    if join(lists, rates, columns, sides, lengths, out) == IMPOSSIBLE:
        return -1
    if same(lists, out, stored, TOLERANCE):
        return stored
    walk.lists[3] += 1
    memory[2] += p[COUNT]
    memory[5] += p[VECTORS]
    return out


@uncounted
def _add(heap, walk, count, item, key):
    """Notes an item that waits; returns the number of items."""
    if item[ARRIVAL] < 0 or count >= len(walk.items):
        return count
    for k in range(4):
        walk.items[count, k] = item[k]
    push(heap, key, count)
    return count + 1


@uncounted
def _begin(lists, rates, columns, tree, heap, walk, x, key):
    """Items around the gap of x."""
    n, p, y = len(tree.parent), tree.parent[x], sibling(tree, x)
    g, gap, count = tree.parent[p], tree.length[y] + tree.length[p], 0
    down, up = int(tree.length[y] > _BENT), int(tree.length[p] > _BENT)
    if tree.children[y, LEFT] >= 0:
        for side in (LEFT, RIGHT):
            c, other = tree.children[y, side], tree.children[y, 1 - side]
            sides, lengths = (n * UP + p, n * LOW + other), (gap, tree.length[other])
            a = _arrival(lists, rates, columns, walk, sides, lengths, n * UP + c)
            count = _add(heap, walk, count, (c, 0, a, down), key)
    if g > 0:
        z = sibling(tree, p)
        sides, lengths = (n * LOW + y, n * UP + g), (gap, tree.length[g])
        a = _arrival(lists, rates, columns, walk, sides, lengths, n * UP + z)
        count = _add(heap, walk, count, (z, 0, a, up), key)
        sides, lengths = (n * LOW + y, n * LOW + z), (gap, tree.length[z])
        a = _arrival(lists, rates, columns, walk, sides, lengths, n * LOW + g)
        count = _add(heap, walk, count, (g, 1, a, up), key)
    return count


@uncounted
def _go_on(lists, rates, columns, tree, heap, walk, item, count, key):
    """Items beyond a branch."""
    n = len(tree.parent)
    z, upwards, arrival, depth = item
    own = n * LOW + z if upwards else n * UP + z
    first = arrival == own
    if upwards:
        g = tree.parent[z]
        if g <= 0:
            return count
        s = sibling(tree, z)
        a = n * UP + s
        if not first:
            sides, lengths = (arrival, n * UP + g), (tree.length[z], tree.length[g])
            a = _arrival(lists, rates, columns, walk, sides, lengths, a)
        count = _add(heap, walk, count, (s, 0, a, depth), key)
        a = n * LOW + g
        if not first:
            sides, lengths = (arrival, n * LOW + s), (tree.length[z], tree.length[s])
            a = _arrival(lists, rates, columns, walk, sides, lengths, a)
        return _add(heap, walk, count, (g, 1, a, depth), key)
    if tree.children[z, LEFT] < 0:
        return count
    for side in (LEFT, RIGHT):
        c, other = tree.children[z, side], tree.children[z, 1 - side]
        a = n * UP + c
        if not first:
            sides, lengths = (arrival, n * LOW + other), (tree.length[z], tree.length[other])
            a = _arrival(lists, rates, columns, walk, sides, lengths, a)
        count = _add(heap, walk, count, (c, 0, a, depth), key)
    return count


@uncounted
def present(lists, rates, columns, tree, x, scratch):
    """log of how probable what is below x is, given all else, where it is."""
    n, p, y = len(tree.parent), tree.parent[x], sibling(tree, x)
    different, slope, constant = compare(lists, rates, columns, n * LOW + y, n * UP + p)
    without = value_at(columns, different, slope, constant, tree.length[y] + tree.length[p])
    sides, lengths = (n * LOW + y, n * UP + p), (tree.length[y], tree.length[p])
    factor = join(lists, rates, columns, sides, lengths, scratch)
    different, slope, constant = compare(lists, rates, columns, scratch, n * LOW + x)
    return factor + value_at(columns, different, slope, constant, tree.length[x]) - without


@uncounted
def walk_from(lists, rates, columns, tree, heap, walk, reach, x, now):
    """The walk: the best places in heap.best, items of walk. now: what the present place is worth."""
    n, scratch, moved = len(tree.parent), walk.lists[0], len(tree.parent) * LOW + x
    heap.size[0] = heap.size[1] = 0
    walk.lists[3], walk.memory[2], walk.memory[5] = walk.lists[1], walk.memory[0], walk.memory[3]
    count, looked, top = _begin(lists, rates, columns, tree, heap, walk, x, now), 0, now
    while heap.size[0]:
        key, k = pop(heap)
        if key < top - reach.drop or looked >= reach.most:
            break
        z, upwards, arrival = walk.items[k, NODE], walk.items[k, UPWARDS], walk.items[k, ARRIVAL]
        depth, t = walk.items[k, DEPTH], tree.length[z]
        if t > _BENT:
            own, middle = (n * LOW + z if upwards else n * UP + z), n * MIDDLE + z
            if arrival != own:
                sides = (arrival, n * UP + z) if upwards else (n * LOW + z, arrival)
                join(lists, rates, columns, sides, (0.5 * t, 0.5 * t), scratch)
                middle = scratch
            key = score(lists, rates, columns, middle, moved, reach.length, top - reach.drop)
            looked, depth = looked + 1, depth + 1
            top = max(top, key)
            note(heap, key, k)
        if key >= top - reach.drop and depth < reach.radius:
            item = (z, upwards, arrival, depth)
            count = _go_on(lists, rates, columns, tree, heap, walk, item, count, key)
    return looked


@uncounted
def look_at(lists, rates, columns, tree, walk, k, x):
    """What subtree x is worth on the branch of item k with lengths fitted."""
    n, z, arrival = len(tree.parent), walk.items[k, NODE], walk.items[k, ARRIVAL]
    if walk.items[k, UPWARDS]:
        ends = (arrival, n * UP + z, n * LOW + x)
    else:
        ends = (n * LOW + z, arrival, n * LOW + x)
    return look(lists, rates, columns, ends, tree.length[z], walk.lengths[0], walk.lists[0])


@uncounted
def propose(lists, rates, room, tree, reach, nodes, every, found):
    """For every subtree of nodes a row of found (nodes, 3): the best branch to move it to, -1 where none
    gains; what it gains; and its probability where it is, among the best places of a walk (De Maio et al.
    2025, SPRTA). Places at the end of a branch with nothing between them and the present one are the present
    one. every: also subtrees and places that cannot gain, as probabilities want. Lists, those half way too,
    are right."""
    columns, heap, walk = room
    for i in range(len(nodes)):
        x, total = nodes[i], 1.0
        found[i, 0], found[i, 1], found[i, 2] = -1.0, 0.0, 1.0
        if tree.parent[x] <= 0 or tree.length[x] <= _BENT:
            continue
        now = present(lists, rates, columns, tree, x, walk.lists[0])
        if now > _PERFECT and not every:
            continue
        walk_from(lists, rates, columns, tree, heap, walk, reach, x, now)
        for k in range(heap.size[1]):
            if heap.best[k] < now - _SLACK and not every:
                break
            item = heap.best_item[k]
            gain = look_at(lists, rates, columns, tree, walk, item, x) - now
            if gain > GAIN and gain > found[i, 1]:
                found[i, 0], found[i, 1] = walk.items[item, NODE], gain
            near = walk.lengths[0, 0] if walk.items[item, UPWARDS] else walk.lengths[0, 1]
            if walk.items[item, DEPTH] > 0 or near > rates.least[1]:
                total += math.exp(min(gain, 700.0))
        found[i, 2] = 1.0 / total


@uncounted
def cut(lists, tree, queue, x):
    """Takes the subtree of x out, with its parent; the gap becomes the branch of its sibling, whose lists are
    asked for. Returns the sibling."""
    n, p, y = len(tree.parent), tree.parent[x], sibling(tree, x)
    g = tree.parent[p]
    if tree.children[g, LEFT] == p:
        tree.children[g, LEFT] = y
    else:
        tree.children[g, RIGHT] = y
    tree.parent[y], tree.parent[p] = g, -1
    tree.length[y] += tree.length[p]
    for k in range(6):
        kept = lists.place[n * UP + p, k]
        lists.place[n * UP + p, k] = lists.place[n * UP + y, k]
        lists.place[n * UP + y, k] = kept
    if g == 0:
        lists.place[n * UP + p, ROOM] = lists.place[n * UP + p, VECTOR_ROOM] = 0
        share_root(lists, tree)
    after_low(tree, queue, y)
    after_up(tree, queue, y)
    return y


@uncounted
def put_back(lists, rates, columns, tree, queue, where, lengths, scratch):
    """Joins subtree x with its free parent p to the better of two branches. where: (x, p, y, z); z is left
    out where it is not in the tree, or below x. lengths (2, 3). Returns the branch chosen."""
    x, p, y, z = where
    n = len(tree.parent)
    ends = (n * LOW + y, n * UP + y, n * LOW + x)
    best, branch = look(lists, rates, columns, ends, tree.length[y], lengths[0], scratch), y
    above = z
    while above > 0 and above != x:
        above = tree.parent[above]
    if above == 0 and z != y:
        ends = (n * LOW + z, n * UP + z, n * LOW + x)
        value = look(lists, rates, columns, ends, tree.length[z], lengths[1], scratch)
        if value > best:
            branch = z
            for s in range(3):
                lengths[0, s] = lengths[1, s]
    graft_and_ask(lists, rates, columns, tree, queue, (x, p, branch), lengths[0], scratch)
    return branch
