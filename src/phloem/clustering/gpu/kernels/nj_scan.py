"""Rows of exact NJ: their sums and partners at the start, scans between joins, dead columns dropped."""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.clustering.gpu.kernels.nj_records import (
    AT,
    BEGIN,
    BOUND,
    NEAR,
    PLACES,
    SECOND,
    SLOT,
    SUMS,
    row_of,
    wide,
)

# Scanning a row for its smallest d_ij - u_j, and the choice of rows to scan.


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
    distances, row, i, begin, n, sums, inverse, a, b, row_a, row_b, share, constant,
    JOINED: tl.constexpr, DTYPE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """(smallest d_ij - u_j of the j that row i answers for, first j, d_ij), u as after a and b are joined.

    a and b are left out. sums: before the join; inverse: 1/(r - 2) after it. Without any j: (inf, a large
    number, …). A stretch is loaded while the one before is compared.
    """
    best = tl.full((BLOCK,), float("inf"), tl.float64)
    place = tl.full((BLOCK,), 0x7FFFFFFF, tl.int32)
    distance = tl.zeros((BLOCK,), DTYPE)
    part_a, part_b = (1 - share).to(DTYPE), share.to(DTYPE)
    again = (begin > i) & (i > 0)  # a second piece
    low, high = tl.where(again, 0, begin), tl.where(i > 0, i, n)
    start, stop = low // 16 * 16, (high + 15) // 16 * 16  # multiples of 16 keep the loads wide
    behind = begin // 16 * 16
    stretches = tl.cdiv(high - start, BLOCK) + tl.where(again, tl.cdiv(n - behind, BLOCK), 0)
    d, total, x, y = _stretch(distances, row, sums, row_a, row_b, start, stop, JOINED, BLOCK)
    for _ in range(stretches):
        j = start + tl.arange(0, BLOCK)
        closer = (j >= low) & (j < high)
        over = again & (start + BLOCK >= high)
        again, low, high = again & (start + BLOCK < high), tl.where(over, begin, low), tl.where(over, n, high)
        start = tl.multiple_of(tl.where(over, behind, start + BLOCK), 16)
        stop = tl.multiple_of((high + 15) // 16 * 16, 16)
        next_d, next_total, next_x, next_y = _stretch(
            distances, row, sums, row_a, row_b, start, stop, JOINED, BLOCK
        )
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
def _next_row(best, bound, place, where, best2, bound2, place2, where2):
    first = (bound < bound2) | ((bound == bound2) & (place < place2))
    return (
        tl.minimum(best, best2), tl.where(first, bound, bound2), tl.where(first, place, place2),
        tl.where(first, where, where2),
    )  # fmt: skip


FETCH = tl.constexpr("prefetch.global.L2 [$1]; mov.b32 $0, 0;")
LINES = tl.constexpr(256)  # of 128 bytes


@triton.jit
def _fetch(distances, row, low, high):
    """Entries low … high-1 of a row into the second-level cache; nobody waits for them."""
    entries: tl.constexpr = 128 * 8 // distances.dtype.element_ty.primitive_bitwidth
    for start in range(low, high, LINES * entries):
        j = tl.minimum(start + tl.arange(0, LINES) * entries, high - 1)
        tl.inline_asm_elementwise(FETCH, "=r,l", [distances + row + j], dtype=tl.int32, is_pure=False, pack=1)


@triton.jit
def search(
    distances, ld, n, i, begin, u, best, bound, near, at, known, slot, alive, ahead, sums, inverse, a, b,
    row_a, row_b, share, constant, DTYPE: tl.constexpr, BLOCK: tl.constexpr, NATIVE: tl.constexpr,
):  # fmt: skip
    """Scan the rows of this program whose bound lies below the best q known.

    best: (WIDTH,) numbers whose smallest is the best q known to anybody. ahead: without such a row, the
    lowest is scanned if that little above, since others scan now and it would be due soon. The row that is
    lowest then is fetched for the joins to come. Returns (bound, near, at, known, rows scanned).
    """
    infinity = float("inf")
    lowest_q = tl.where(alive, bound - u, infinity)
    where = slot.to(tl.int64) * PLACES + begin
    best_q, next_q, k, there = tl.reduce((best, lowest_q, i, where), 0, _next_row)
    read = k - k
    while next_q < best_q + ahead:
        lowest, j, distance = lowest_in_row(
            distances, row_of(there // PLACES, ld), k, (there % PLACES).to(tl.int32), n, sums, inverse, a, b,
            row_a, row_b, share, constant, True, DTYPE, BLOCK,
        )  # fmt: skip
        here = i == k
        nearer = here & (lowest < known)
        near, at = tl.where(nearer, j, near), tl.where(nearer, distance, at)
        known = tl.where(nearer, lowest, known)
        bound, lowest_q = tl.where(here, tl.minimum(lowest, known), bound), tl.where(here, infinity, lowest_q)
        best = tl.where(nearer, tl.minimum(best, known - u), best)
        best_q, next_q, k, there = tl.reduce((best, lowest_q, i, where), 0, _next_row)
        read, ahead = read + 1, ahead * 0.0
    if NATIVE:
        row, first = row_of(there // PLACES, ld), (there % PLACES).to(tl.int32)
        end = tl.where(next_q < infinity, n, 0)
        _fetch(distances, row, tl.where(first > k, 0, first), tl.minimum(k, end))
        _fetch(distances, row, first, tl.where(first > k, end, 0))
    return bound, near, at, known, read


# Before the first join: sums of rows, and the partner of each; a program a row.


@triton.jit(do_not_specialize=["n"])
def row_sums(distances, ld, reals, N, n, BLOCK: tl.constexpr):
    """Σ_j d_ij, for both sums of turn 0: not finite where an entry is not."""
    k = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float64)
    stop = (n + 15) // 16 * 16  # a multiple of 16 keeps the loads wide
    for start in range(0, stop, BLOCK):
        j = start + tl.arange(0, BLOCK)
        value = tl.load(distances + row_of(k, ld) + j, mask=j < stop, other=0.0).to(tl.float64)
        total += tl.where(j < n, value, 0.0)
    total = tl.sum(total, axis=0)
    tl.store(reals + SUMS * N + k, total)
    tl.store(reals + SECOND * N + k, total)


@triton.jit(do_not_specialize=["n"])
def first_partners(distances, ld, state, reals, N, n, DTYPE: tl.constexpr, BLOCK: tl.constexpr):
    """Smallest d_ij - u_j of the j that row i answers for, its first j, and d_ij."""
    k = tl.program_id(0)
    row, inverse = row_of(k, ld), 1.0 / (n - 2).to(tl.float64)
    lowest, j, distance = lowest_in_row(
        distances, row, k, tl.load(state + BEGIN * N + k), n, reals + SUMS * N, inverse, -1, -1, row, row,
        inverse, inverse, False, DTYPE, BLOCK,
    )  # fmt: skip
    tl.store(reals + BOUND * N + k, lowest)
    tl.store(state + NEAR * N + k, j)
    tl.store(reals + AT * N + k, distance)


# Dead columns go: every row moves its living entries to the left, and places are counted anew.


KEEP = tl.constexpr(0)  # places that stay, in order
PLACE = tl.constexpr(1)  # how many before a place stay: its new one


@triton.jit(do_not_specialize=["n"])
def count_places(order, sums, N, n, BLOCK: tl.constexpr):
    """Both rows of order, (2, N); a program a block of places. sums: -inf of the dead."""
    begin = tl.program_id(0) * BLOCK
    earlier = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, begin, BLOCK):
        earlier += (tl.load(sums + start + tl.arange(0, BLOCK)) > float("-inf")).to(tl.int32)
    k = begin + tl.arange(0, BLOCK)
    alive = (tl.load(sums + k, mask=k < n, other=float("-inf")) > float("-inf")).to(tl.int32)
    place = tl.sum(earlier, axis=0) + tl.cumsum(alive, axis=0) - alive
    tl.store(order + KEEP * N + place, k, mask=alive != 0)
    tl.store(order + PLACE * N + k, place, mask=k <= n)


@triton.jit(do_not_specialize=["left"])
def drop_columns(
    matrix, ld, order, state, reals, new_state, new_reals, N, left,
    MOVES_STATE: tl.constexpr, FIELDS: tl.constexpr, REALS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """A row a program, by new places, from left to right: no column moves to the right.

    MOVES_STATE: what is known of the row goes to its new place too (it is kept once, beside one or two
    matrices). FIELDS, REALS: nj_steps, not above 8.
    """
    k = tl.program_id(0)
    old = tl.load(order + KEEP * N + k)
    row = row_of(tl.load(state + SLOT * N + old), ld)
    for start in range(0, left, BLOCK):
        j = start + tl.arange(0, BLOCK)
        c = tl.load(order + KEEP * N + j, mask=j < left, other=0)
        value = tl.load(matrix + row + c, mask=j < left, other=0.0)
        tl.debug_barrier()
        tl.store(matrix + row + j, value, mask=j < left)
    if MOVES_STATE:
        field = tl.arange(0, 8)
        known = tl.load(state + field * N + old, mask=field < FIELDS, other=0)
        is_place = ((field == NEAR) & (known >= 0)) | (field == BEGIN)
        known = tl.where(is_place, tl.load(order + PLACE * N + known, mask=is_place, other=0), known)
        tl.store(new_state + field * N + k, known, mask=field < FIELDS)
        known = tl.load(reals + field * N + old, mask=field < REALS, other=0.0)
        tl.store(new_reals + field * N + k, known, mask=field < REALS)
