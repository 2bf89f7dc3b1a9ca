"""Steps of one join of exact neighbour joining; every program does its share of each.

state: (FIELDS, N) int32 and reals: (REALS, N) float64, one row a field. A cluster's place is its column;
places are in order of names (smallest leaves). Row i answers for the pairs (i, j) in which j is one of the
N/2 names before i's, going round: rows are about equally long, and a name keeps its side for good. Within a
launch what is known of a row stays with the program that owns it, one row a lane:
  bound: not above the smallest d_ij - u_j of the row
  near, at: partner of the smallest q known and the distance to it; near = -1 without one
  total: Σ_k d_ik, -inf once dead; second: another sum (nj_rules); slot: row of the matrix
  begin: the row answers for places begin … i-1, or, where begin > i, for 0 … i-1 and begin … n-1.
"""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.clustering.gpu.kernels.nj_records import NO_PAIR, PLACES
from phloem.clustering.gpu.kernels.nj_rules import wide

SLOT = tl.constexpr(0)
NAME = tl.constexpr(1)
NEAR = tl.constexpr(2)
BEGIN = tl.constexpr(3)
FIELDS = 4

SUMS = tl.constexpr(0)  # 2 rows, by turn: others still read the old ones
SECOND = tl.constexpr(2)  # 2 rows, by turn
SIZE = tl.constexpr(4)  # leaves
BOUND = tl.constexpr(5)
AT = tl.constexpr(6)
REALS = 7

LOWER = tl.constexpr(0)  # of the names joined and their branch lengths, one column a join
UPPER = tl.constexpr(1)

RUN = tl.constexpr(8)  # neighbouring rows of one owner: a sector of 32 bytes


@triton.jit
def own_places(programs, WIDTH: tl.constexpr):
    """Rows of this program, one a lane, from all over the matrix."""
    lane = tl.arange(0, WIDTH)
    return (lane // RUN) * (programs * RUN) + tl.program_id(0) * RUN + lane % RUN


@triton.jit
def row_of(slot, ld):
    """Where a row of the matrix begins."""
    return slot * tl.full((), 1, tl.int64) * ld


@triton.jit
def answers(i, begin, j):
    """Whether row i answers for the pair (i, j)."""
    return tl.where(begin > i, (j < i) | (j >= begin), (j < i) & (j >= begin))


@triton.jit
def u_after(distances, sums, place, mask, row_a, row_b, share, constant, inverse):
    """u of some clusters after the join."""
    x = wide(tl.load(distances + row_a + place, mask=mask, other=0.0))
    y = wide(tl.load(distances + row_b + place, mask=mask, other=0.0))
    total = tl.load(sums + place, mask=mask, other=0.0)
    return (total - (1 - share) * x - share * y - constant) * inverse


@triton.jit
def best_told(distances, sums, pair, at, a, b, row_a, row_b, share, constant, inverse):
    """q after the join of the pairs that all programs told before it."""
    upper, lower = (pair % PLACES).to(tl.int32), (pair // PLACES).to(tl.int32)
    valid = (pair != NO_PAIR) & (lower != a) & (lower != b) & (upper != a) & (upper != b)
    u_upper = u_after(distances, sums, upper, valid, row_a, row_b, share, constant, inverse)
    u_lower = u_after(distances, sums, lower, valid, row_a, row_b, share, constant, inverse)
    return tl.where(valid, at - u_upper - u_lower, float("inf"))
