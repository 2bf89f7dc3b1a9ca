"""What the linkage kernels keep of every cluster, beside the matrix.

state: (FIELDS, N) int32, one row a field. reals: (REALS, N) in the matrix's precision. sizes: (2, N) float64,
leaves of a cluster. alive: (2, N) uint8. "2 rows" (+ side): old and new, where the matrix is rewritten.
A cluster's place is its column. Places are in no order; names (smallest leaves) decide between equals.
N ≥ columns of the matrix + 16.
"""

from __future__ import annotations

import triton
import triton.language as tl

NEAREST = tl.constexpr(0)  # place of the nearest neighbour (2 rows)
SLOT = tl.constexpr(2)  # row of the matrix (2 rows)
NAME = tl.constexpr(4)  # smallest leaf (2 rows)
MATE = tl.constexpr(6)  # place of the cluster it merges with in this round, or -1
KEEP = tl.constexpr(7)  # places that stay when the matrix is rewritten
KEEP_MATE = tl.constexpr(8)  # their mates, or -1
STALE = tl.constexpr(9)  # places to scan again
PAIR = tl.constexpr(10)  # this round's pairs: lower places
OTHER = tl.constexpr(11)  # and upper places
LOWER = tl.constexpr(12)  # lower names of all merges so far
INTO = tl.constexpr(13)  # by name: the smaller name that it merged with
ZEROS = tl.constexpr(14)  # zeros in a row
TWINS = tl.constexpr(15)  # identical rows that come later
QUEUE = tl.constexpr(16)  # number of the pair whose lower member a cluster is
FIELDS = 17

DISTANCE = tl.constexpr(0)  # to the nearest neighbour (2 rows)
MERGED = tl.constexpr(2)  # distances of all merges so far
WEIGHT_LOWER = tl.constexpr(3)  # weights of the members, by pair, or by kept place in a rewriting round
WEIGHT_UPPER = tl.constexpr(4)
HEIGHT = tl.constexpr(5)  # distance between the members, by kept place
SECOND = tl.constexpr(6)  # no cluster but the nearest neighbour is nearer than this (2 rows)
HEIGHT_INTO = tl.constexpr(8)  # by name: how far the one that it merged with was
REALS = 9


@triton.jit
def append(counter, chosen):
    """Places for the chosen lanes in a list shared by all programs."""
    mine = chosen.to(tl.int32)
    count = tl.sum(mine, axis=0)
    start = count - count
    if count > 0:  # they queue for the counter
        start = tl.atomic_add(counter, count)
    return start + tl.cumsum(mine, axis=0) - 1


@triton.jit
def own_share(n, programs, LANES: tl.constexpr):
    """(first, one past the last) of this program's places: whole steps, if few programs do them all."""
    per = tl.maximum(tl.cdiv(n, programs), LANES)
    return tl.program_id(0) * per, tl.minimum((tl.program_id(0) + 1) * per, n)


@triton.jit
def merge_weights(size, other, DTYPE: tl.constexpr, WEIGHTING: tl.constexpr):
    """WEIGHTING: 0 by size (UPGMA), 1 halves (WPGMA), 2 ones (complete linkage, sums over leaf pairs)."""
    if WEIGHTING == 0:
        weight, other_weight = size / (size + other), other / (size + other)
    else:
        weight = tl.full(size.shape, 0.5 if WEIGHTING == 1 else 1.0, tl.float64)
        other_weight = weight
    return weight.to(DTYPE), other_weight.to(DTYPE)
