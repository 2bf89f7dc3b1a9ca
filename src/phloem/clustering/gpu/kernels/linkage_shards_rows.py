"""Rows of one band that another one needs: gathered to be sent, and compared for being identical."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["first", "n"])
def gather_rows(distances, ld, slots, first, out, out_ld, n, BLOCK: tl.constexpr):
    """out[p, :n] = row slots[first + p], and what follows up to a multiple of 16."""
    stop = (n + 15) // 16 * 16  # keeps the loads wide
    slot = tl.load(slots + first + tl.program_id(0)).to(tl.int64)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(distances + slot * ld + j, mask=j < stop, other=0.0)
    tl.store(out + tl.program_id(0).to(tl.int64) * out_ld + j, value, mask=j < stop)


@triton.jit(do_not_specialize=["M", "first", "n"])
def compare_rows(distances, ld, others, others_ld, rows, M, first, n, equal, BLOCK: tl.constexpr):
    """equal = 1 where two rows agree in every column but their own two.

    rows: (4, M) int32: row of `distances`, row of `others`, place of each.
    """
    item = first + tl.program_id(0)
    row = distances + tl.load(rows + item).to(tl.int64) * ld
    other = others + tl.load(rows + M + item).to(tl.int64) * others_ld
    me, other_me = tl.load(rows + 2 * M + item), tl.load(rows + 3 * M + item)
    same, start, stop = 1, 0, (n + 15) // 16 * 16
    while (start < n) & (same == 1):
        j = start + tl.arange(0, BLOCK)
        inside = (j < n) & (j != me) & (j != other_me)
        x = tl.load(row + j, mask=j < stop, other=0.0)
        y = tl.load(other + j, mask=j < stop, other=0.0)
        same = 1 - tl.max((inside & (x != y)).to(tl.int32), axis=0)
        start += BLOCK
    tl.store(equal + item, same)
