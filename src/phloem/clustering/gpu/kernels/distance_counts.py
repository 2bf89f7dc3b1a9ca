"""Counts of site pairs as integer matrix products of one-hot sequences, turned into distances in registers.

one_hot: (n', S, L') int8, 1 where sequence i shows state s at site l; n' and L' are padded with zeros to
whole tiles. A missing character is zero in every state, and so counts for no pair. Where ambiguous characters
count in shares, all entries are multiplied by a number that makes the shares whole: distances depend on
ratios of counts only.
"""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.clustering.gpu.kernels.distance_formulas import logdet_distance, phi, store_pairs, term_distance


@triton.jit
def of_state(counts, states, s: tl.constexpr, PAIRS: tl.constexpr, COLUMNS: tl.constexpr):
    """Counts with state s in the second sequence: (rows, 4 columns) → (rows, columns)."""
    kept = tl.where(states == s, counts, 0)
    return tl.sum(tl.reshape(kept, (PAIRS, COLUMNS, 4)), axis=2)


@triton.jit
def by_state(counts, PAIRS: tl.constexpr, COLUMNS: tl.constexpr):
    """Counts (rows, 4 columns) of joint_sums apart: with A, C, G and T in the second sequence."""
    states = (tl.arange(0, 4 * COLUMNS) % 4)[None, :]
    return (
        of_state(counts, states, 0, PAIRS, COLUMNS), of_state(counts, states, 1, PAIRS, COLUMNS),
        of_state(counts, states, 2, PAIRS, COLUMNS), of_state(counts, states, 3, PAIRS, COLUMNS),
    )  # fmt: skip


@triton.jit
def row_products(matrix, stride, i, j, ROWS: tl.constexpr, COLUMNS: tl.constexpr, BLOCK: tl.constexpr):
    """Products of rows i with rows j of an int8 matrix: (ROWS, COLUMNS) int32; stride a multiple of BLOCK."""
    entry = tl.arange(0, BLOCK)
    left = matrix + (i.to(tl.int64) * stride)[:, None] + entry[None, :]
    right = matrix + (j.to(tl.int64) * stride)[None, :] + entry[:, None]
    total = tl.zeros((ROWS, COLUMNS), tl.int32)
    for _ in range(0, stride, BLOCK):
        total = tl.dot(tl.load(left), tl.load(right), acc=total, out_dtype=tl.int32)
        left += BLOCK
        right += BLOCK
    return total


@triton.jit
def joint_sums(
    one_hot, sites_stride, i, first_column, ROWS: tl.constexpr, COLUMNS: tl.constexpr, BLOCK: tl.constexpr
):
    """Counts (ROWS, 4 COLUMNS) with state A, C, G, T in sequences i and each state in each of the columns."""
    wide = first_column * 4 + tl.arange(0, 4 * COLUMNS)
    site = tl.arange(0, BLOCK)
    left = one_hot + (i.to(tl.int64) * 4 * sites_stride)[:, None] + site[None, :]
    right = one_hot + (wide.to(tl.int64) * sites_stride)[None, :] + site[:, None]
    a = tl.zeros((ROWS, 4 * COLUMNS), tl.int32)
    c = tl.zeros((ROWS, 4 * COLUMNS), tl.int32)
    g = tl.zeros((ROWS, 4 * COLUMNS), tl.int32)
    t = tl.zeros((ROWS, 4 * COLUMNS), tl.int32)
    for _ in range(0, sites_stride, BLOCK):
        theirs = tl.load(right)
        a = tl.dot(tl.load(left), theirs, acc=a, out_dtype=tl.int32)
        c = tl.dot(tl.load(left + sites_stride), theirs, acc=c, out_dtype=tl.int32)
        g = tl.dot(tl.load(left + 2 * sites_stride), theirs, acc=g, out_dtype=tl.int32)
        t = tl.dot(tl.load(left + 3 * sites_stride), theirs, acc=t, out_dtype=tl.int32)
        left += BLOCK
        right += BLOCK
    return a, c, g, t


@triton.jit
def nucleotide_tiles(
    one_hot, sites_stride, n, tiles, terms, shape, longest, first_row, status, out, out_stride,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, BLOCK: tl.constexpr, TERMS: tl.constexpr,
    LOGDET: tl.constexpr, MIRROR: tl.constexpr,
):  # fmt: skip
    """All sixteen counts of ROWS × COLUMNS pairs of sequences, then their distances.

    tiles: (n tiles, 2) int32, row and column of each tile. sites_stride: L', a multiple of BLOCK.
    """
    tile = tl.program_id(0)
    i = tl.load(tiles + 2 * tile) * ROWS + tl.arange(0, ROWS)
    first_column = tl.load(tiles + 2 * tile + 1) * COLUMNS
    a, c, g, t = joint_sums(one_hot, sites_stride, i, first_column, ROWS, COLUMNS, BLOCK)
    sites = tl.sum(tl.reshape(a + c + g + t, (ROWS, COLUMNS, 4)), axis=2)
    if LOGDET:
        a0, a1, a2, a3 = by_state(a, ROWS, COLUMNS)
        c0, c1, c2, c3 = by_state(c, ROWS, COLUMNS)
        g0, g1, g2, g3 = by_state(g, ROWS, COLUMNS)
        t0, t1, t2, t3 = by_state(t, ROWS, COLUMNS)
        value = logdet_distance(
            a0.to(tl.float64), a1, a2, a3, c0.to(tl.float64), c1, c2, c3,
            g0.to(tl.float64), g1, g2, g3, t0.to(tl.float64), t1, t2, t3,
        )  # fmt: skip
    else:
        state = (tl.arange(0, 4 * COLUMNS) % 4)[None, :]
        purines = tl.where(state == 2, a, 0) + tl.where(state == 0, g, 0)
        pyrimidines = tl.where(state == 3, c, 0) + tl.where(state == 1, t, 0)
        crossed = tl.where((state == 1) | (state == 3), a + g, c + t)
        ag = tl.sum(tl.reshape(purines, (ROWS, COLUMNS, 4)), axis=2)
        ct = tl.sum(tl.reshape(pyrimidines, (ROWS, COLUMNS, 4)), axis=2)
        tv = tl.sum(tl.reshape(crossed, (ROWS, COLUMNS, 4)), axis=2)
        value = term_distance(sites, ag, ct, tv, terms, tl.load(shape), TERMS)
    j = first_column + tl.arange(0, COLUMNS)
    store_pairs(value, sites, i, j, n, first_row, tl.load(longest), status, out, out_stride, MIRROR)


@triton.jit
def difference_tiles(
    one_hot, observed, matches_stride, sites_stride, n, tiles, quadratic, shape, longest, first_row, status,
    out, out_stride, ROWS: tl.constexpr, COLUMNS: tl.constexpr, BLOCK: tl.constexpr, CORRECTED: tl.constexpr,
    MIRROR: tl.constexpr,
):  # fmt: skip
    """Proportion p of differing sites, or φ(1 - p - quadratic p²); any number of states.

    matches_stride: S L'. observed: (n', L') int8, 1 where a sequence shows one plain state.
    """
    tile = tl.program_id(0)
    i = tl.load(tiles + 2 * tile) * ROWS + tl.arange(0, ROWS)
    j = tl.load(tiles + 2 * tile + 1) * COLUMNS + tl.arange(0, COLUMNS)
    same = row_products(one_hot, matches_stride, i, j, ROWS, COLUMNS, BLOCK)
    sites = row_products(observed, sites_stride, i, j, ROWS, COLUMNS, BLOCK)
    p = (sites - same).to(tl.float64) / tl.maximum(sites, 1).to(tl.float64)
    value = p
    if CORRECTED:
        value = phi(1.0 - p - tl.load(quadratic) * p * p, tl.load(shape))
    store_pairs(value, sites, i, j, n, first_row, tl.load(longest), status, out, out_stride, MIRROR)
