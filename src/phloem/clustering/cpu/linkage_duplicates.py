"""Identical rows of a triangle: sequences found more than once."""

from __future__ import annotations

import numpy as np

from phloem.clustering.cpu.forms import row_start, triangle_row
from phloem.hardware.numba_compile import compiled

ROWS = 16  # looked at together: a cache line of a copy's row


@compiled()
def _compare_with(bits, first, last, i, j):
    """(bits that differ, zeros of row j) between rows i > j at the clusters first … last-1, all after j."""
    differ, zeros, ours_at, theirs_at = bits[0] ^ bits[0], 0, row_start(first) + j, row_start(i)
    for k in range(first, last):
        ours = bits[ours_at]
        if i < k:
            differ |= ours ^ bits[ours_at + i - j]
        elif i > k:
            differ |= ours ^ bits[theirs_at + k]
        zeros += ours == 0
        ours_at += k
    return differ, zeros


@compiled()
def compare_rows(bits, start, stop, copies, originals, copies_before, same, zeros):
    """Compare the distances of each copy and its original from the clusters start … stop-1.

    copies, originals: (m,) unsigned positions, originals[c] < copies[c], ordered by original; copies_before:
    (n,) how many originals come before a cluster. same: (m,) 1, becomes 0 where any distance differs; zeros:
    (m,) grows by the original's distances of zero.
    """
    for first in range(start, stop, ROWS):
        last = np.uint64(min(first + ROWS, stop))
        for c in range(copies_before[last - np.uint64(1)]):
            i, j = copies[c], originals[c]
            differ, none = _compare_with(bits, max(np.uint64(first), j + np.uint64(1)), last, i, j)
            same[c] &= differ == 0
            zeros[c] += none
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
