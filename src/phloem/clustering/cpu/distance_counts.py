"""Counts of site pairs from bit planes: one sequence against a block of them, one a lane, 64 sites a word.

planes: (n, K, W) uint64. Nucleotides: plane 0 pyrimidine (C, T), 1 keto (G, T), 2 observed. One-hot planes:
plane s marks the sites in state s. Other states: the bits of the state's number, then observed. Unobserved
sites are 0 in every plane.
"""

from __future__ import annotations

import numpy as np

from phloem.clustering.cpu.popcount import popcount
from phloem.hardware.numba_compile import compiled


@compiled
def block_of(planes, first, last):
    """(W, K, last - first): the planes of some sequences, sequences last, for a core's cache to keep."""
    n, (_, k, words) = last - first, planes.shape
    block = np.empty((words, k, n), np.uint64)
    for j in range(n):
        for plane in range(k):
            for w in range(words):
                block[w, plane, j] = planes[first + j, plane, w]
    return block


@compiled
def nucleotide_counts(mine, block, width, sites, ag, ct, tv):
    """Compared sites, A↔G, C↔T and transversion differences of a sequence (K, W) with those of a block."""
    sites[:width], ag[:width], ct[:width], tv[:width] = 0, 0, 0, 0
    for w in range(len(block)):
        y_i, k_i, v_i = mine[0, w], mine[1, w], mine[2, w]
        y, k, v = block[w, 0], block[w, 1], block[w, 2]
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
def nucleotide_differences(mine, block, width, sites, differences):
    """Compared and differing sites of a sequence (K, W) with those of a block: half the work of all four."""
    sites[:width], differences[:width] = 0, 0
    for w in range(len(block)):
        y_i, k_i, v_i = mine[0, w], mine[1, w], mine[2, w]
        y, k, v = block[w, 0], block[w, 1], block[w, 2]
        for j in range(width):
            both = v[j] & v_i
            sites[j] += popcount(both)
            differences[j] += popcount(((y[j] ^ y_i) | (k[j] ^ k_i)) & both)


@compiled
def add_observed(mine, block, width, complete, sites):
    """sites[:width] += complete + sites seen in a sequence and in each of a block (plane 0)."""
    for w in range(len(block)):
        own, theirs = mine[0, w], block[w, 0]
        for j in range(width):
            sites[j] += popcount(theirs[j] & own)
    for j in range(width):
        sites[j] += complete


@compiled
def difference_counts(mine, block, width, sites, differences):
    """Compared and differing sites of a sequence with those of a block; the last plane is 'observed'."""
    top = len(mine) - 1
    sites[:width], differences[:width] = 0, 0
    different = np.empty(width, np.uint64)
    for w in range(len(block)):
        different[:] = 0
        for s in range(top):
            own, theirs = mine[s, w], block[w, s]
            for j in range(width):
                different[j] |= theirs[j] ^ own
        own, theirs = mine[top, w], block[w, top]
        for j in range(width):
            both = theirs[j] & own
            sites[j] += popcount(both)
            differences[j] += popcount(different[j] & both)


@compiled
def joint_counts(mine, block, width, counts):
    """counts[4a + b, j]: sites with state a in a sequence and b in the j-th of a block; one-hot, four states.

    Sums gather in arrays of their own: rows of one array could overlap for all the compiler knows.
    """
    n0, n1 = np.empty(width, np.int64), np.empty(width, np.int64)
    n2, n3 = np.empty(width, np.int64), np.empty(width, np.int64)
    for a in range(4):
        n0[:], n1[:], n2[:], n3[:] = 0, 0, 0, 0
        for w in range(len(block)):
            own = mine[a, w]
            if own == 0:
                continue
            b0, b1, b2, b3 = block[w, 0], block[w, 1], block[w, 2], block[w, 3]
            for j in range(width):
                n0[j] += popcount(b0[j] & own)
                n1[j] += popcount(b1[j] & own)
                n2[j] += popcount(b2[j] & own)
                n3[j] += popcount(b3[j] & own)
        counts[4 * a, :width], counts[4 * a + 1, :width] = n0, n1
        counts[4 * a + 2, :width], counts[4 * a + 3, :width] = n2, n3
