"""Orders in which lists are made, and lists moved to larger memory."""

from __future__ import annotations

import numpy as np

from phloem.differences.cpu.records import (
    COUNT,
    FIRST,
    FIRST_VECTOR,
    LEFT,
    RIGHT,
    ROOM,
    VECTOR_ROOM,
    VECTORS,
    Tree,
)
from phloem.hardware.numba_compile import uncounted


@uncounted
def pack(old, new, live):
    """Copies the first `live` lists; place is common to both."""
    for k in range(live):
        p = old.place[k]
        n, vectors = p[COUNT], p[VECTORS]
        at, vector = new.used[0], new.used[1]
        for i in range(n):
            new.span[at + i, 0], new.span[at + i, 1] = old.span[p[FIRST] + i, 0], old.span[p[FIRST] + i, 1]
            new.kind[at + i], new.distance[at + i] = old.kind[p[FIRST] + i], old.distance[p[FIRST] + i]
        for i in range(vectors):
            for s in range(4):
                new.vector[vector + i, s] = old.vector[p[FIRST_VECTOR] + i, s]
        room, vector_room = min(p[ROOM], n + (n >> 2) + 2), min(p[VECTOR_ROOM], vectors + (vectors >> 1) + 1)
        p[FIRST], p[ROOM], p[FIRST_VECTOR], p[VECTOR_ROOM] = at, room, vector, vector_room
        new.used[0] += max(room, n)
        new.used[1] += max(vector_room, vectors)


@uncounted
def write_round_trip(parent, children, first, steps):
    """steps: x where a walk comes to a node, ~x where it leaves an inner one. Returns their number."""
    n, x, came_up = 0, first, False
    while x > 0:
        inner = children[x, LEFT] >= 0
        if not came_up:
            steps[n] = x
            n += 1
            if inner:
                x = children[x, LEFT]
                continue
        elif inner:
            steps[n] = ~x
            n += 1
        above = parent[x]
        came_up = not (above > 0 and children[above, LEFT] == x)
        x = above if came_up else children[above, RIGHT]
    return n


def round_trip(tree: Tree) -> np.ndarray:
    """Down to every node but the root, x, and back up from inner ones, ~x, in the order of a walk."""
    steps = np.empty(2 * len(tree.parent), np.int64)
    return steps[: write_round_trip(tree.parent, tree.children, tree.children[0, 0], steps)]


def way_up(tree: Tree) -> np.ndarray:
    """Of round_trip the steps up."""
    steps = round_trip(tree)
    return steps[steps < 0]


def way_down(tree: Tree) -> np.ndarray:
    """Of round_trip the steps down."""
    steps = round_trip(tree)
    return steps[steps >= 0]
