"""Identical rows of a triangle: sequences found more than once."""

from __future__ import annotations

import numpy as np

from phloem.kernels.numba.compile import compiled
from phloem.kernels.numba.triangle import row_start, triangle_row


@compiled()
def compare_rows(bits, start, stop, copies, copy_starts, originals, copies_before, same, zeros):
    """Compare the distances of each copy and its original from the clusters start … stop-1.

    copies, originals: (m,) unsigned positions, originals[c] < copies[c], ordered by original; copy_starts:
    where the copies' rows begin; copies_before: (n,) how many originals come before a cluster. same: (m,) 1,
    becomes 0 where any distance differs; zeros: (m,) grows by the original's distances of zero.
    """
    theirs = np.empty(len(copies), bits.dtype)
    for i in range(start, stop):
        k, count = np.uint64(i), copies_before[i]
        at = row_start(k)
        row = bits[at : at + k]
        for c in range(count):
            d = copies[c]
            theirs[c] = bits[at + d if d < k else copy_starts[c] + min(k, d - np.uint64(1))]
        for c in range(count):
            ours = row[originals[c]]
            same[c] &= (ours == theirs[c]) | (copies[c] == k)
            zeros[c] += ours == 0
    for c in range(len(copies)):
        if same[c] and start <= copies[c] < stop:
            j = np.int64(originals[c])
            ours, theirs = triangle_row(bits, j), triangle_row(bits, np.int64(copies[c]))[:j]
            alike, none = 0, 0
            for k in range(j):
                alike += ours[k] == theirs[k]
                none += ours[k] == 0
            same[c] &= alike == j
            zeros[c] += none
