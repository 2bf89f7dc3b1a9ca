"""Scanning a row for its smallest d_ij - u_j, and the choice of rows to scan."""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.clustering.gpu.kernels.nj_records import PLACES
from phloem.clustering.gpu.kernels.nj_rules import wide
from phloem.clustering.gpu.kernels.nj_steps import row_of


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
