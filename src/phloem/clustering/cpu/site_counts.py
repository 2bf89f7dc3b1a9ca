"""Counts of site pairs: sequences as bit planes, popcounts of a block of them, partly ambiguous characters.

planes: (n, K, W) uint64, 64 sites a word. Nucleotides: plane 0 pyrimidine (C, T), 1 keto (G, T), 2 observed.
One-hot planes: plane s marks the sites in state s. Other states: the bits of the state's number, then
observed. Unobserved sites are 0 in every plane. One sequence is counted against a block of them, one a lane.
"""

from __future__ import annotations

import numpy as np
from numba.core import types
from numba.extending import intrinsic

from phloem.hardware.numba_compile import compiled


@intrinsic
def popcount(typing_context, word):
    """Set bits of a 64-bit word, as int64."""
    if word not in (types.uint64, types.int64):
        return None

    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.int64(word), generate


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


@compiled
def add_partial(partial, i, first, n, counts):
    """counts[:, :n] += the sites at which sequence i or first + j, j < n, is partly ambiguous.

    partial: (rows, columns, starts, places, shares, states). rows: (sequences, M) codes of the sites with a
    partly ambiguous character; columns: (M, sequences) the same; places[starts[i]:starts[i + 1]]: at which
    of them sequence i has one; shares: (K, codes, codes) what a site with these two codes adds to counts
    (K, width).
    """
    rows, columns, starts, places, shares, states = partial
    if len(places) == 0:
        return
    mine = rows[i]
    for k in range(len(counts)):
        added, share = np.zeros(n), shares[k]
        for place in places[starts[i] : starts[i + 1]]:
            own, theirs = share[mine[place]], columns[place, first : first + n]
            for j in range(n):
                added[j] += own[theirs[j]]
        for j in range(n):
            theirs, total = rows[first + j], 0.0
            for place in places[starts[first + j] : starts[first + j + 1]]:
                if mine[place] < states:
                    total += share[mine[place], theirs[place]]
            counts[k, j] += added[j] + total
