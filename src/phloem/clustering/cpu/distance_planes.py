"""Sequences packed into bit planes, and which sites need packing."""

from __future__ import annotations

import numpy as np

from phloem.hardware.numba_compile import compiled


@compiled
def states_seen(codes, start, stop, states, seen):
    """seen[l] |= 1 << code for every code at site l of rows start … stop-1; bit `states` for all above."""
    top = np.int32(states)
    one = np.int32(1)
    for i in range(start, stop):
        row = codes[i]
        for l in range(len(row)):
            seen[l] |= one << min(np.int32(row[l]), top)


@compiled
def pack_rows(codes, sites, plane_bits, start, stop, planes):
    """planes[i, k, w] bit b = bit k of plane_bits[codes[i, sites[64 w + b]]]; all planes are written."""
    n_planes, words = planes.shape[1], planes.shape[2]
    for i in range(start, stop):
        row = codes[i]
        for w in range(words):
            first = 64 * w
            for k in range(n_planes):
                planes[i, k, w] = 0
            for b in range(min(64, len(sites) - first)):
                bits = plane_bits[row[sites[first + b]]]
                for k in range(n_planes):
                    planes[i, k, w] |= ((bits >> np.uint64(k)) & np.uint64(1)) << np.uint64(b)
