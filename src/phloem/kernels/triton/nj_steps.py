"""Steps of one join of exact neighbour joining; every program of the grid does its share of each.

state: (FIELDS, N) int32 and reals: (REALS, N) float64, one row a field; two rows (+ side, or + turn for U)
where old and new values are needed at once. A cluster's place is its column; places are in order of names.
Row i answers for the pairs (i, j) with j < i. BOUND - fallen never exceeds the smallest d_ij - u_j of the
row: a join lowers no such number by more than the largest rise of any u (kernels/numba/nj_exact.py).
"""

from __future__ import annotations

import triton
import triton.language as tl

SLOT = tl.constexpr(0)  # row of the matrix (2 rows)
NAME = tl.constexpr(2)  # smallest leaf (2 rows)
NEAR = tl.constexpr(4)  # partner of the smallest q known of a row, or -1 (2 rows)
KEEP = tl.constexpr(6)  # places that stay when dead columns are dropped
PLACE = tl.constexpr(7)  # new places of old ones
LOWER = tl.constexpr(8)  # names joined
UPPER = tl.constexpr(9)
FIELDS = 10

SUMS = tl.constexpr(0)  # Σ_k d_ik (2 rows)
BOUND = tl.constexpr(2)  # (2 rows)
NEAR_DISTANCE = tl.constexpr(4)  # (2 rows)
U = tl.constexpr(6)  # Σ_k d_ik / (r - 2), -inf once dead (2 rows, by turn)
ABOVE_LOWER = tl.constexpr(8)  # branch lengths of each join
ABOVE_UPPER = tl.constexpr(9)
REALS = 10

BEST_Q = tl.constexpr(0)  # what each program tells the others: its smallest q and the distance there
BEST_DISTANCE = tl.constexpr(1)
TOTAL = tl.constexpr(2)  # its part of the new row's sum
RISE = tl.constexpr(3)  # its largest rise of u
MESSAGES = tl.constexpr(4)
BEST_UPPER = tl.constexpr(0)
BEST_LOWER = tl.constexpr(1)
SURVIVORS = tl.constexpr(2)
NOTES = tl.constexpr(3)


@triton.jit
def row_sum(distances, row, n, BLOCK: tl.constexpr):
    """Σ_j d_ij over the first n columns."""
    total = tl.zeros((BLOCK,), tl.float64)
    stop = (n + 15) // 16 * 16  # a multiple of 16 keeps the loads wide
    for start in range(0, stop, BLOCK):
        j = start + tl.arange(0, BLOCK)
        value = tl.load(distances + row + j, mask=j < stop, other=0.0).to(tl.float64)
        total += tl.where(j < n, value, 0.0)
    return tl.sum(total, axis=0)


@triton.jit
def lowest_in_row(distances, row, i, u, a, u_a, BLOCK: tl.constexpr):
    """(smallest d_ij - u_j over j < i, its first j, d_ij); u[a] counts as u_a. Without any: (inf, -1, 0)."""
    best = tl.full((BLOCK,), float("inf"), tl.float64)
    place = tl.full((BLOCK,), -1, tl.int32)
    distance = tl.zeros((BLOCK,), tl.float64)
    stop = (i + 15) // 16 * 16
    for start in range(0, stop, BLOCK):
        j = start + tl.arange(0, BLOCK)
        d = tl.load(distances + row + j, mask=j < stop, other=0.0).to(tl.float64)
        u_j = tl.load(u + j, mask=j < stop, other=0.0)
        shifted = d - tl.where(j == a, u_a, u_j)
        closer = (j < i) & (shifted < best)
        best = tl.where(closer, shifted, best)
        place = tl.where(closer, j, place)
        distance = tl.where(closer, d, distance)
    lowest = tl.min(best, axis=0)
    found = (best == lowest) & (place >= 0)
    first = tl.min(tl.where(found, place, 0x7FFFFFFF), axis=0)
    at = tl.sum(tl.where(found & (place == first), distance, 0.0), axis=0)
    return lowest, tl.where(first == 0x7FFFFFFF, -1, first), at


@triton.jit
def closest_pair(messages, notes, programs, PROGRAMS: tl.constexpr):
    """(lower, upper, distance) of the smallest q of all programs; of equal ones the first (lower, upper)."""
    p = tl.arange(0, PROGRAMS)
    q = tl.load(messages + BEST_Q * PROGRAMS + p, mask=p < programs, other=float("inf"))
    distance = tl.load(messages + BEST_DISTANCE * PROGRAMS + p, mask=p < programs, other=0.0)
    upper = tl.load(notes + BEST_UPPER * PROGRAMS + p, mask=p < programs, other=0).to(tl.int64)
    lower = tl.load(notes + BEST_LOWER * PROGRAMS + p, mask=p < programs, other=0).to(tl.int64)
    best = (q == tl.min(q, axis=0)) & (p < programs)
    pair = tl.min(tl.where(best, lower * 0x100000000 + upper, 0x7FFFFFFFFFFFFFFF), axis=0)
    a, b = (pair // 0x100000000).to(tl.int32), (pair % 0x100000000).to(tl.int32)
    return a, b, tl.max(tl.where(best & (lower == a) & (upper == b), distance, float("-inf")), axis=0)


@triton.jit
def join(
    distances, ld, state, reals, messages, N, side, turn, n, left, a, b, ab, made, programs,
    LANES: tl.constexpr, PROGRAMS: tl.constexpr, DTYPE: tl.constexpr,
):  # fmt: skip
    """This program's share of the new row and column a, of the sums and of u for the `left` clusters then.

    u of the joined cluster follows when all programs have told their part of its sum. Returns where row a is.
    """
    me = tl.program_id(0)
    row = tl.load(state + (SLOT + side) * N + a).to(tl.int64) * ld
    other = tl.load(state + (SLOT + side) * N + b).to(tl.int64) * ld
    per = tl.cdiv(n, programs)
    j = me * per + tl.arange(0, LANES)
    inside = (tl.arange(0, LANES) < per) & (j < n)
    old_u = tl.load(reals + (U + turn) * N + j, mask=inside, other=float("-inf"))
    alive = inside & (old_u > float("-inf")) & (j != a) & (j != b)
    x = tl.load(distances + row + j, mask=alive, other=0.0).to(tl.float64)
    y = tl.load(distances + other + j, mask=alive, other=0.0).to(tl.float64)
    slot = tl.load(state + (SLOT + side) * N + j, mask=alive, other=0).to(tl.int64)
    total = tl.load(reals + (SUMS + side) * N + j, mask=alive, other=0.0)
    new = (0.5 * x + 0.5 * y - 0.5 * ab).to(DTYPE)
    tl.store(distances + row + j, tl.where(j == a, 0.0, new), mask=alive | (inside & (j == a)))
    tl.store(distances + slot * ld + a, new, mask=alive)
    total += new.to(tl.float64) - x - y
    tl.store(reals + (SUMS + side) * N + j, total, mask=alive)
    u = total / (left - 2)
    tl.store(reals + (U + 1 - turn) * N + j, tl.where(alive, u, float("-inf")), mask=inside)
    tl.store(messages + TOTAL * PROGRAMS + me, tl.sum(tl.where(alive, new.to(tl.float64), 0.0), axis=0))
    tl.store(messages + RISE * PROGRAMS + me, tl.max(tl.where(alive, u - old_u, float("-inf")), axis=0))
    if me == 0:
        half = (tl.load(reals + (U + turn) * N + a) - tl.load(reals + (U + turn) * N + b)) / 2
        tl.store(reals + ABOVE_LOWER * N + made, ab / 2 + half)
        tl.store(reals + ABOVE_UPPER * N + made, ab / 2 - half)
        tl.store(state + LOWER * N + made, tl.load(state + (NAME + side) * N + a))
        tl.store(state + UPPER * N + made, tl.load(state + (NAME + side) * N + b))
    return row


@triton.jit
def best_known(messages, notes, u, a, programs, PROGRAMS: tl.constexpr):
    """Smallest q, under the new u, of the pairs that the programs told before the join that made a."""
    p = tl.arange(0, PROGRAMS)
    upper = tl.load(notes + BEST_UPPER * PROGRAMS + p, mask=p < programs, other=-1)
    lower = tl.load(notes + BEST_LOWER * PROGRAMS + p, mask=p < programs, other=-1)
    distance = tl.load(messages + BEST_DISTANCE * PROGRAMS + p, mask=p < programs, other=0.0)
    valid = (lower >= 0) & (lower != a) & (upper != a)
    u_upper = tl.load(u + upper, mask=valid, other=0.0)
    u_lower = tl.load(u + lower, mask=valid, other=0.0)
    return tl.min(tl.where(valid, distance - u_upper - u_lower, float("inf")), axis=0)


@triton.jit
def own_rows(distances, row_a, state, reals, N, side, turn, n, a, programs, LANES: tl.constexpr):
    """What is known of this program's rows i: (u_i, d_ia, slot, partner, distance to it, its u, bound)."""
    infinity = float("inf")
    i = tl.program_id(0) + programs * tl.arange(0, LANES)
    inside = i < n
    near = tl.load(state + (NEAR + side) * N + i, mask=inside, other=-1)
    u_i = tl.load(reals + (U + turn) * N + i, mask=inside, other=-infinity)
    d_a = tl.load(distances + row_a + i, mask=inside, other=0.0).to(tl.float64)
    slot = tl.load(state + (SLOT + side) * N + i, mask=inside, other=0)
    at = tl.load(reals + (NEAR_DISTANCE + side) * N + i, mask=inside, other=0.0)
    bound = tl.load(reals + (BOUND + side) * N + i, mask=inside, other=infinity)
    near = tl.where((near == a) | (i == a), -1, near)
    u_near = tl.load(reals + (U + turn) * N + near, mask=near >= 0, other=-infinity)
    return u_i, d_a, slot, near, at, u_near, bound


@triton.jit
def search(
    distances, ld, state, reals, messages, notes, N, side, turn, n, a, u_a, fallen, best, programs,
    u_i, d_a, slot, near, at, u_near, bound, LANES: tl.constexpr, PROGRAMS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Bring this program's rows (own_rows) up to date after the join that made a, scan those that may beat
    `best`, and tell the program's smallest q. Returns how many rows were scanned."""
    me, infinity = tl.program_id(0), float("inf")
    u = reals + (U + turn) * N
    i = me + programs * tl.arange(0, LANES)
    u_i = tl.where(i == a, u_a, u_i)
    alive = (i < n) & (u_i > -infinity)
    known = tl.where(alive & (near >= 0), at - u_near, infinity)
    bound -= fallen
    with_a = tl.where(alive & (i > a), d_a - u_a, infinity)
    nearer = with_a < known
    known, near, at = tl.where(nearer, with_a, known), tl.where(nearer, a, near), tl.where(nearer, d_a, at)
    bound = tl.where(i == a, -infinity, tl.minimum(bound, with_a))
    lowest_q = tl.where(alive, bound - u_i, infinity)
    best = tl.minimum(best, tl.min(tl.where(alive, known - u_i, infinity), axis=0))
    read, next_q = 0, tl.min(lowest_q, axis=0)
    while next_q < best:
        k = tl.min(tl.where(lowest_q == next_q, i, 0x7FFFFFFF), axis=0)
        here = i == k
        row = tl.sum(tl.where(here, slot, 0), axis=0).to(tl.int64) * ld
        lowest, first, distance = lowest_in_row(distances, row, k, u, a, u_a, BLOCK)
        bound, known = tl.where(here, lowest, bound), tl.where(here, lowest, known)
        near, at = tl.where(here, first, near), tl.where(here, distance, at)
        lowest_q = tl.where(here, infinity, lowest_q)
        best = tl.minimum(best, tl.min(tl.where(here, known - u_i, infinity), axis=0))
        next_q = tl.min(lowest_q, axis=0)
        read += 1
    tl.store(reals + (BOUND + side) * N + i, bound + fallen, mask=alive)
    tl.store(state + (NEAR + side) * N + i, near, mask=alive)
    tl.store(reals + (NEAR_DISTANCE + side) * N + i, at, mask=alive)
    _tell(messages, notes, i, near, at, tl.where(alive & (near >= 0), known - u_i, infinity), PROGRAMS)
    return read


@triton.jit
def _tell(messages, notes, i, near, at, q, PROGRAMS: tl.constexpr):
    """Publish the smallest q of this program's rows: of equal ones the first (lower, upper)."""
    me = tl.program_id(0)
    best = tl.min(q, axis=0)
    pair = near.to(tl.int64) * 0x100000000 + i
    pair = tl.min(tl.where((q == best) & (near >= 0), pair, 0x7FFFFFFFFFFFFFFF), axis=0)
    upper = (pair % 0x100000000).to(tl.int32)
    found = best < float("inf")
    tl.store(messages + BEST_Q * PROGRAMS + me, best)
    tl.store(messages + BEST_DISTANCE * PROGRAMS + me, tl.sum(tl.where(i == upper, at, 0.0), axis=0))
    tl.store(notes + BEST_UPPER * PROGRAMS + me, tl.where(found, upper, -1))
    tl.store(notes + BEST_LOWER * PROGRAMS + me, tl.where(found, (pair // 0x100000000).to(tl.int32), -1))
