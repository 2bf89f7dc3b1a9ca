"""Counts of site pairs from bit planes: 64 sites a word, words first, sequences last (one a lane).

planes: (W, K, n) uint64. Nucleotides: plane 0 pyrimidine (C, T), 1 keto (G, T), 2 observed. One-hot planes:
plane s marks the sites in state s. Other states: the bits of the state's number, then observed. Unobserved
sites are 0 in every plane.
"""

from __future__ import annotations

import numpy as np

from phloem.kernels.numba.compile import compiled
from phloem.kernels.numba.popcount import popcount


@compiled
def nucleotide_counts(planes, i, first, last, sites, ag, ct, tv):
    """Compared sites, A↔G, C↔T and transversion differences of sequence i with each of first … last-1."""
    width = last - first
    sites[:width], ag[:width], ct[:width], tv[:width] = 0, 0, 0, 0
    for w in range(planes.shape[0]):
        y_i, k_i, v_i = planes[w, 0, i], planes[w, 1, i], planes[w, 2, i]
        y, k, v = planes[w, 0, first:last], planes[w, 1, first:last], planes[w, 2, first:last]
        for j in range(width):
            both = v[j] & v_i
            crossed = (y[j] ^ y_i) & both
            within = (k[j] ^ k_i) & ~crossed & both
            sites[j] += popcount(both)
            tv[j] += popcount(crossed)
            ct[j] += popcount(within & y_i)
            ag[j] += popcount(within)
    for j in range(width):
        ag[j] -= ct[j]


@compiled
def difference_counts(planes, i, first, last, sites, differences):
    """Compared and differing sites of sequence i with first … last-1; the last plane is 'observed'."""
    width, top = last - first, planes.shape[1] - 1
    sites[:width], differences[:width] = 0, 0
    different = np.empty(width, np.uint64)
    for w in range(planes.shape[0]):
        different[:] = 0
        for s in range(top):
            mine, theirs = planes[w, s, i], planes[w, s, first:last]
            for j in range(width):
                different[j] |= theirs[j] ^ mine
        mine, theirs = planes[w, top, i], planes[w, top, first:last]
        for j in range(width):
            both = theirs[j] & mine
            sites[j] += popcount(both)
            differences[j] += popcount(different[j] & both)


@compiled
def joint_counts(planes, i, first, last, counts):
    """counts[4a + b, j]: sites with state a in sequence i and b in first + j; planes one-hot, four states."""
    width = last - first
    counts[:, :width] = 0
    for w in range(planes.shape[0]):
        b0, b1 = planes[w, 0, first:last], planes[w, 1, first:last]
        b2, b3 = planes[w, 2, first:last], planes[w, 3, first:last]
        for a in range(4):
            mine = planes[w, a, i]
            if mine == 0:
                continue
            c0, c1, c2, c3 = counts[4 * a], counts[4 * a + 1], counts[4 * a + 2], counts[4 * a + 3]
            for j in range(width):
                c0[j] += popcount(b0[j] & mine)
                c1[j] += popcount(b1[j] & mine)
                c2[j] += popcount(b2[j] & mine)
                c3[j] += popcount(b3[j] & mine)
