"""Counts of site pairs as integer matrix products of one-hot sequences, made distances in registers."""

from __future__ import annotations

import triton
import triton.language as tl

# All programs of a launch wait for each other, so that a loop over the whole matrix stays on the device.


# One thread polls with an acquiring load, which locks no line; the others wait at the block's own barrier.
POLL = tl.constexpr("""{
.reg .pred first, early;
.reg .b32 value;
mov.u32 value, %tid.x;
setp.eq.u32 first, value, 0;
@!first bra ARRIVED;
AGAIN: ld.acquire.gpu.global.b32 value, [$1];
setp.lt.s32 early, value, $2;
@early bra AGAIN;
ARRIVED: mov.b32 $0, 0;
}""")


@triton.jit
def _await(counter, arrivals, NATIVE: tl.constexpr):
    """Return once the counter has reached `arrivals`."""
    if NATIVE:
        tl.inline_asm_elementwise(POLL, "=r,l,r", [counter, arrivals], dtype=tl.int32, is_pure=False, pack=1)
    else:
        while tl.atomic_add(counter, 0, sem="acquire") < arrivals:
            pass


@triton.jit
def grid_barrier(counter, arrivals, NATIVE: tl.constexpr):
    """Wait until the counter, which every program raises by one, reaches `arrivals` (it never falls).

    All programs of the launch must be resident at once (a cooperative launch). What any program stored before
    it arrived is visible to all afterwards.
    """
    tl.debug_barrier()
    tl.atomic_add(counter, 1, sem="acq_rel")
    _await(counter, arrivals, NATIVE)
    tl.debug_barrier()


# Codes of sequences as one-hot vectors, as they are or with their columns drawn anew.


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


# Distances from counts of site pairs (reference/distances.py), in float64; the rule for saturated pairs.


@triton.jit
def phi(w, shape):
    """-ln w, or shape (w^(-1/shape) - 1) for shape > 0; infinite where w ≤ 0."""
    logarithm = tl.log(tl.where(w > 0, w, 1.0))
    value = -logarithm
    if shape > 0:
        value = shape * (tl.exp(-logarithm / shape) - 1.0)
    return tl.where(w > 0, value, float("inf"))


@triton.jit
def term_distance(sites, ag, ct, tv, terms, shape, TERMS: tl.constexpr):
    """reference.distance.nucleotide_distance; terms: (TERMS, 4) float64; none: the differing proportion."""
    n = tl.maximum(sites, 1).to(tl.float64)
    ag, ct, tv = ag.to(tl.float64), ct.to(tl.float64), tv.to(tl.float64)
    if TERMS == 0:
        return (ag + ct + tv) / n
    total = tl.zeros_like(n)
    for k in tl.static_range(TERMS):
        slope_ag, slope_ct = tl.load(terms + 4 * k + 1), tl.load(terms + 4 * k + 2)
        w = 1.0 - (slope_ag * ag + slope_ct * ct + tl.load(terms + 4 * k + 3) * tv) / n
        total += tl.load(terms + 4 * k) * phi(w, shape)
    return total


@triton.jit
def determinant(a, b, c, d, e, f, g, h, i, k, l, m, p, q, r, s):
    """Of the 4 × 4 matrix with these rows, in float64: a product of two counts may not fit an int32."""
    k, l, m = k.to(tl.float64), l.to(tl.float64), m.to(tl.float64)
    ls_mr, ks_mq, kr_lq = l * s - m * r, k * s - m * q, k * r - l * q
    is_mp, ir_lp, iq_kp = i * s - m * p, i * r - l * p, i * q - k * p
    return (
        a * (f * ls_mr - g * ks_mq + h * kr_lq)
        - b * (e * ls_mr - g * is_mp + h * ir_lp)
        + c * (e * ks_mq - f * is_mp + h * iq_kp)
        - d * (e * kr_lq - f * ir_lp + g * iq_kp)
    )


@triton.jit
def logdet_distance(a, b, c, d, e, f, g, h, i, k, l, m, p, q, r, s):
    """reference.distance.logdet from sixteen counts (float64): 0 if identical, infinite if saturated."""
    total = a + b + c + d + e + f + g + h + i + k + l + m + p + q + r + s
    det = determinant(a, b, c, d, e, f, g, h, i, k, l, m, p, q, r, s)
    rows = (a + b + c + d) * (e + f + g + h) * (i + k + l + m) * (p + q + r + s)
    columns = (a + e + i + p) * (b + f + k + q) * (c + g + l + r) * (d + h + m + s)
    fits = (det > 0) & (rows > 0) & (columns > 0)
    ratio = tl.where(
        fits, det / tl.where(rows > 0, rows, 1.0) * det / tl.where(columns > 0, columns, 1.0), 1.0
    )
    value = tl.where(fits & (ratio > 0), -tl.log(tl.where(ratio > 0, ratio, 1.0)) / 8, float("inf"))
    return tl.where(a + f + l + s == total, 0.0, value)


@triton.jit
def store_pairs(value, sites, i, j, n, first_row, longest, status, out, stride, MIRROR: tl.constexpr):
    """Write value[i, j] (j < i < n) to row i - first_row of `out`, and mirrored.

    stride 0: rows of a triangle, one right behind the other, from row first_row on.
    Saturated: no finite value, or one above `longest`, which is what it gets. status: (3,) int64: saturated
    pairs, pairs without a common site, and the last such pair as i × 2³² + j.
    """
    pair = (j[None, :] < i[:, None]) & (i < n)[:, None]
    empty = pair & (sites == 0)
    saturated = pair & ((value <= longest) == 0)
    value = tl.where(saturated, longest, tl.maximum(value, 0.0))
    tl.atomic_add(status, tl.sum(tl.sum(saturated.to(tl.int64), axis=1), axis=0))
    empties = tl.sum(tl.sum(empty.to(tl.int64), axis=1), axis=0)
    if empties > 0:
        tl.atomic_add(status + 1, empties)
        key = i[:, None].to(tl.int64) * 0x100000000 + j[None, :]
        tl.atomic_max(status + 2, tl.max(tl.max(tl.where(empty, key, -1), axis=1), axis=0))
    value = value.to(out.dtype.element_ty)
    rows = (i - first_row).to(tl.int64) * stride
    if stride == 0:
        wide, first = i.to(tl.int64), tl.cast(first_row, tl.int64)
        rows = wide * (wide - 1) // 2 - first * (first - 1) // 2
    tl.store(out + rows[:, None] + j[None, :], value, mask=pair)
    if MIRROR:
        columns = j.to(tl.int64)
        tl.store(out + columns[:, None] * stride + i[None, :], tl.trans(value), mask=tl.trans(pair))


# Counts of site pairs as integer matrix products of one-hot sequences, turned into distances in registers.
#
# one_hot: (n', S, L') int8, 1 where sequence i shows state s at site l; n' and L' are padded with zeros to
# whole tiles. A missing character is zero in every state, and so counts for no pair. Where ambiguous
# characters count in shares, all entries are multiplied by a number that makes the shares whole: distances
# depend on ratios of counts only.


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
