"""Maximum-likelihood distances of a block of columns; status and saturation as in distance_blocks."""

from __future__ import annotations

import numpy as np

from phloem.clustering.cpu.distance_counts import block_of, joint_counts
from phloem.clustering.cpu.distance_likelihood import most_likely
from phloem.clustering.cpu.forms import triangle_row
from phloem.hardware.numba_compile import compiled


@compiled
def site_block(codes, n_states, tables, nodes, guesses, first, last, longest, status, triangle):
    """Distances from the sites themselves, for any number of states.

    codes: (n, L) uint8, n_states where unobserved. tables: (nodes, (S+1)², 2) float32, zero for unobserved;
    guesses: node for a proportion of differing sites, on a uniform grid of [0, 1].
    """
    n_sites, width = codes.shape[1], n_states + 1
    cells, base = np.empty(n_sites, np.int32), np.empty(n_sites, np.int32)
    none = np.empty(0)
    for i in range(first + 1, len(codes)):
        for k in range(n_sites):
            base[k] = np.int32(codes[i, k]) * width
        for j in range(first, min(last, i)):
            compared, different = 0, 0
            for k in range(n_sites):
                a, b = codes[i, k], codes[j, k]
                both = (a < n_states) & (b < n_states)
                compared += both
                different += both & (a != b)
                cells[k] = base[k] + b
            if compared == 0:
                status[1] += 1
                status[2], status[3] = i, j
            value = 0.0
            if different > 0:
                guess = guesses[different * (len(guesses) - 1) // compared]
                value = np.exp(most_likely(tables, nodes, cells, none, n_sites, guess))
            if not value <= longest:
                status[0] += 1
                value = longest
            triangle_row(triangle, i)[j] = value


@compiled
def _from_counts(counts, n, tables, nodes, guesses, i, first, longest, status, row):
    """Distances of n pairs of four-state sequences from (16, n) counts of site pairs."""
    cells, none = np.empty(16), np.empty(0, np.int32)
    for j in range(n):
        compared, same = 0.0, 0.0
        for k in range(16):
            cells[k] = counts[k, j]
            compared += cells[k]
            same += cells[k] if k % 5 == 0 else 0.0
        value = 0.0
        if compared == 0:
            status[1] += 1
            status[2], status[3] = i, first + j
        elif same < compared:
            guess = guesses[int((compared - same) / compared * (len(guesses) - 1))]
            value = np.exp(most_likely(tables, nodes, none, cells, 16, guess))
        if not value <= longest:
            status[0] += 1
            value = longest
        row[first + j] = value


@compiled
def counted_block(planes, first, last, tables, nodes, guesses, longest, status, triangle):
    """Distances of four-state sequences; planes one-hot, tables (nodes, 16, 2)."""
    counts, block = np.empty((16, last - first)), block_of(planes, first, last)
    for i in range(first + 1, len(planes)):
        stop = min(last, i)
        joint_counts(planes[i], block, stop - first, counts)
        _from_counts(
            counts, stop - first, tables, nodes, guesses, i, first, longest, status, triangle_row(triangle, i)
        )
