"""Steps of one join of exact neighbour joining; every program does its share of each.

state: (FIELDS, N) int32 and reals: (REALS, N) float64, one row a field. A cluster's place is its column;
places are in order of names (smallest leaves). Row i answers for the pairs (i, j) with j < i. What is known
of a row stays with the program that owns it, one row a lane:
  bound: not above the smallest d_ij - u_j of the row
  near, at: partner of the smallest q known and the distance to it; near = -1 without one
  total: Σ_k d_ik, -inf once dead; second: another sum (nj_rules); slot: row of the matrix.
"""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.kernels.triton.nj_records import NO_PAIR, PLACES
from phloem.kernels.triton.nj_rules import wide

SLOT = tl.constexpr(0)
NAME = tl.constexpr(1)
NEAR = tl.constexpr(2)
KEEP = tl.constexpr(3)  # places that stay when dead columns are dropped
PLACE = tl.constexpr(4)  # new places of old ones
LOWER = tl.constexpr(5)  # names joined
UPPER = tl.constexpr(6)
FIELDS = 7

SUMS = tl.constexpr(0)  # 2 rows, by turn: others still read the old ones
SECOND = tl.constexpr(2)  # 2 rows, by turn
SIZE = tl.constexpr(4)  # leaves
BOUND = tl.constexpr(5)
AT = tl.constexpr(6)
ABOVE_LOWER = tl.constexpr(7)  # branch lengths of each join
ABOVE_UPPER = tl.constexpr(8)
REALS = 9

RUN = tl.constexpr(8)  # neighbouring rows of one owner: a sector of 32 bytes


@triton.jit
def own_places(programs, WIDTH: tl.constexpr):
    """Rows of this program, one a lane, from all over the matrix, since long rows take longer."""
    lane = tl.arange(0, WIDTH)
    return (lane // RUN) * (programs * RUN) + tl.program_id(0) * RUN + lane % RUN


@triton.jit
def row_of(slot, ld):
    """Where a row of the matrix begins."""
    return slot * tl.full((), 1, tl.int64) * ld


@triton.jit
def _nearer(value, place, distance, value2, place2, distance2):
    first = (value < value2) | ((value == value2) & (place < place2))
    return (
        tl.where(first, value, value2), tl.where(first, place, place2), tl.where(first, distance, distance2)
    )  # fmt: skip


@triton.jit
def _stretch(distances, row, sums, row_a, row_b, start, stop, JOINED: tl.constexpr, BLOCK: tl.constexpr):
    """A stretch of a row, of the sums and of the rows that are joined."""
    j = start + tl.arange(0, BLOCK)
    mask = j < stop
    d = tl.load(distances + row + j, mask=mask, other=0.0)
    total = tl.load(sums + j, mask=mask, other=0.0)
    x, y = d, d
    if JOINED:
        x = tl.load(distances + row_a + j, mask=mask, other=0.0)
        y = tl.load(distances + row_b + j, mask=mask, other=0.0)
    return d, total, x, y


@triton.jit
def lowest_in_row(
    distances, row, i, sums, inverse, a, b, row_a, row_b, share, constant,
    JOINED: tl.constexpr, DTYPE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """(smallest d_ij - u_j over j < i, its first j, d_ij) with u after a and b are joined, without these two.

    sums: before the join; inverse: 1/(r - 2) after it. Without any j: (inf, a large number, …). A stretch is
    loaded while the one before is compared.
    """
    best = tl.full((BLOCK,), float("inf"), tl.float64)
    place = tl.full((BLOCK,), 0x7FFFFFFF, tl.int32)
    distance = tl.zeros((BLOCK,), DTYPE)
    stop = (i + 15) // 16 * 16  # a multiple of 16 keeps the loads wide
    part_a, part_b = (1 - share).to(DTYPE), share.to(DTYPE)
    d, total, x, y = _stretch(distances, row, sums, row_a, row_b, 0, stop, JOINED, BLOCK)
    for start in range(0, stop, BLOCK):
        next_d, next_total, next_x, next_y = _stretch(
            distances, row, sums, row_a, row_b, start + BLOCK, stop, JOINED, BLOCK
        )
        j = start + tl.arange(0, BLOCK)
        closer = j < i
        if JOINED:
            total -= wide(part_a * x + part_b * y)
            closer = closer & (j != a) & (j != b)
        shifted = wide(d) - total * inverse
        closer = closer & (shifted < best)
        best = tl.where(closer, shifted, best)
        place = tl.where(closer, j, place)
        distance = tl.where(closer, d, distance)
        d, total, x, y = next_d, next_total, next_x, next_y
    lowest, first, at = tl.reduce((best, place, distance), 0, _nearer)
    if JOINED:
        lowest += constant * inverse
    return lowest, first, wide(at)


@triton.jit
def _next_row(best, bound, place, slot, best2, bound2, place2, slot2):
    first = (bound < bound2) | ((bound == bound2) & (place < place2))
    return (
        tl.minimum(best, best2), tl.where(first, bound, bound2), tl.where(first, place, place2),
        tl.where(first, slot, slot2),
    )  # fmt: skip


@triton.jit
def search(
    distances, ld, i, u, best, bound, near, at, known, slot, alive, ahead, sums, inverse, a, b, row_a, row_b,
    share, constant, DTYPE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Scan the rows of this program whose bound lies below the best q known.

    best: (WIDTH,) numbers whose smallest is the best q known to anybody. ahead: without such a row, the
    lowest is scanned if that little above, since others scan now and it would be due soon. Returns (bound,
    near, at, known, rows scanned).
    """
    infinity = float("inf")
    lowest_q = tl.where(alive, bound - u, infinity)
    best_q, next_q, k, next_slot = tl.reduce((best, lowest_q, i, slot), 0, _next_row)
    read = k - k
    while next_q < best_q + ahead:
        lowest, j, distance = lowest_in_row(
            distances, row_of(next_slot, ld), k, sums, inverse, a, b, row_a, row_b, share, constant, True,
            DTYPE, BLOCK,
        )  # fmt: skip
        here = i == k
        nearer = here & (lowest < known)
        near, at = tl.where(nearer, j, near), tl.where(nearer, distance, at)
        known = tl.where(nearer, lowest, known)
        bound, lowest_q = tl.where(here, tl.minimum(lowest, known), bound), tl.where(here, infinity, lowest_q)
        best = tl.where(nearer, tl.minimum(best, known - u), best)
        best_q, next_q, k, next_slot = tl.reduce((best, lowest_q, i, slot), 0, _next_row)
        read, ahead = read + 1, ahead * 0.0
    return bound, near, at, known, read


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
