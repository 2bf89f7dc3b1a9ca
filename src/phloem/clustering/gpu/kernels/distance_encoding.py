"""Codes of sequences as one-hot vectors, as they are or with their columns drawn anew."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def encode_rows(
    codes, codes_stride, columns, sites, weights, n_codes, one_hot, observed, width,
    STATES: tl.constexpr, BLOCK: tl.constexpr, DRAWN: tl.constexpr, OBSERVED: tl.constexpr,
):  # fmt: skip
    """one_hot (n', STATES, width) and observed (n', width) int8 of row program 0, BLOCK sites of program 1.

    codes: (n, …); a code of n_codes or more counts as unobserved. columns: (sites,) int32, the column of each
    site, if DRAWN. weights: (n_codes, STATES + 1) int8, what a code puts in each state, and in observed.
    Sites beyond `sites` become zero.
    """
    row = tl.program_id(0).to(tl.int64)
    site = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = site < sites
    column = site
    if DRAWN:
        column = tl.load(columns + site, mask=inside, other=0)
    code = tl.load(codes + row * codes_stride + column, mask=inside, other=0).to(tl.int32)
    known = inside & (code < n_codes)
    entry = weights + code * (STATES + 1)
    out = one_hot + row * STATES * width + site
    for s in range(STATES):
        tl.store(out + s * width, tl.load(entry + s, mask=known, other=0), mask=site < width)
    if OBSERVED:
        seen = tl.load(entry + STATES, mask=known, other=0)
        tl.store(observed + row * width + site, seen, mask=site < width)
