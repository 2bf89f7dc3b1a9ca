"""In which order a machine of many programs should start steps that wait for each other."""

from __future__ import annotations

import heapq

import numpy as np

from phloem.hardware.numba_compile import compiled


@compiled
def list_schedule(first, n_tiles, parent, depth, n_programs):
    """Order in which to start the tiles of a forest walked from its tips: deepest ready node first, a round
    of n_programs tiles at a time (list scheduling by the longest way to go; Hu 1961, Operations Research 9).

    first, n_tiles, parent, depth: (N,) int64: place of each node's first tile, number of tiles (0: nothing to
    do), parent (-1: none), edges to the root. Returns the places in order.
    """
    waits = np.zeros(len(parent), np.int64)
    for x in range(len(parent)):
        if n_tiles[x] > 0 and parent[x] >= 0:
            waits[parent[x]] += 1
    ready = [(-depth[x], x) for x in range(len(parent)) if n_tiles[x] > 0 and waits[x] == 0]
    heapq.heapify(ready)
    order, n_ordered = np.empty(n_tiles.sum(), np.int64), 0
    begun, finished = np.zeros(len(parent), np.int64), np.empty(len(parent), np.int64)
    while len(ready) > 0:
        room, n_finished = n_programs, 0
        while len(ready) > 0 and room > 0:
            x = ready[0][1]
            taken = min(n_tiles[x] - begun[x], room)
            for place in range(first[x] + begun[x], first[x] + begun[x] + taken):
                order[n_ordered] = place
                n_ordered += 1
            begun[x] += taken
            room -= taken
            if begun[x] == n_tiles[x]:
                heapq.heappop(ready)
                finished[n_finished] = x
                n_finished += 1
        for x in finished[:n_finished]:
            above = parent[x]
            if above >= 0:
                waits[above] -= 1
                if waits[above] == 0 and n_tiles[above] > 0:
                    heapq.heappush(ready, (-depth[above], above))
    return order
