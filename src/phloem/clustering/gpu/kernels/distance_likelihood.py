"""Maximum-likelihood distances of tiles of pairs from tables of the score.

As clustering/cpu/distance_likelihood: with x = ln t, the score S(x) and its slope H are sums of table entries
over the sites, or over the sixteen counts, of a pair; Newton steps bracket the root between neighbouring
nodes; a cubic places it. Every pair of a tile is a lane; the tile goes on until its last pair is done. An
entry is (S, H) as two float32 in one int64.
"""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.clustering.gpu.kernels.distance_counts import by_state, joint_sums, store_pairs


@triton.jit
def _entry(tables, at, active):
    """(S, H) of a table entry as float64; 0 where not active."""
    packed = tl.load(tables + at, mask=active, other=0)
    score = packed.to(tl.int32).to(tl.float32, bitcast=True)
    slope = (packed >> 32).to(tl.int32).to(tl.float32, bitcast=True)
    return score.to(tl.float64), slope.to(tl.float64)


@triton.jit
def _start(different, compared, guesses, guess_top, top, i, j, n):
    """First node of each pair, from its proportion of differing sites; whether its distance is wanted and not
    zero; and a bracket that nothing is known of, beyond the first and the last node."""
    share = different.to(tl.int64) * guess_top // tl.maximum(compared, 1)
    k = tl.load(guesses + share)
    wanted = (different > 0) & (j[None, :] < i[:, None]) & (i < n)[:, None]
    unknown = tl.zeros_like(k).to(tl.float64)
    return k, wanted, tl.zeros_like(k) - 1, tl.zeros_like(k) + top + 1, unknown, unknown, unknown, unknown


@triton.jit
def _narrowed(k, low, high, s_low, h_low, s_high, h_high, s, h, active, step):
    """The bracket with node k and its score taken in, and the next node by Newton's rule."""
    up = active & (s > 0)
    down = active & (s <= 0)
    low, s_low, h_low = tl.where(up, k, low), tl.where(up, s, s_low), tl.where(up, h, h_low)
    high, s_high, h_high = tl.where(down, k, high), tl.where(down, s, s_high), tl.where(down, h, h_high)
    jump = tl.where(h < 0, s / (tl.where(h < 0, -h, 1.0) * step), tl.where(s > 0, 4.0, -4.0))
    moved = k + tl.floor(tl.minimum(tl.maximum(jump, -60.0), 60.0)).to(tl.int32)
    k = tl.where(active, tl.minimum(tl.maximum(moved, low + 1), high - 1), k)
    return k, low, high, s_low, h_low, s_high, h_high


@triton.jit
def _placed(low, high, s0, h0, s1, h1, start, step, top):
    """t of a finished bracket by the root of its Hermite cubic; infinite beyond the last node."""
    inside = (low >= 0) & (high <= top)
    s0, s1 = tl.where(inside, s0, 1.0), tl.where(inside, s1, -1.0)
    m0, m1 = tl.where(inside, h0, -1.0) * step, tl.where(inside, h1, -1.0) * step
    c2, c3 = 3 * (s1 - s0) - 2 * m0 - m1, 2 * (s0 - s1) + m0 + m1
    left, right = tl.zeros_like(s0), tl.zeros_like(s0) + 1.0
    z = s0 / (s0 - s1)
    for _ in range(30):
        value = s0 + z * (m0 + z * (c2 + z * c3))
        left, right = tl.where(value > 0, z, left), tl.where(value > 0, right, z)
        slope = m0 + z * (2 * c2 + 3 * z * c3)
        new = tl.where(slope < 0, z - value / tl.where(slope < 0, slope, -1.0), 0.5 * (left + right))
        z = tl.where((new >= left) & (new <= right), new, 0.5 * (left + right))
    x = start + step * (tl.maximum(low, 0).to(tl.float64) + tl.where(inside, z, 0.0))
    return tl.where(high > top, float("inf"), tl.exp(x))


@triton.jit
def site_likelihood_tiles(
    codes, codes_stride, sites, states, n, tiles, tables, cells, nodes, top, guesses, guess_top, longest,
    first_row, status, out, out_stride, ROWS: tl.constexpr, COLUMNS: tl.constexpr, MIRROR: tl.constexpr,
):  # fmt: skip
    """Distances of ROWS × COLUMNS pairs from their sites, for any number of states.

    codes: (L, n') uint8, one column a sequence, `states` where unobserved or padding. tables: (nodes, cells),
    cells = (states + 1)², 0 for unobserved. nodes: (2,) first ln t and the step between nodes; top: the
    last node.
    """
    tile = tl.program_id(0)
    i = tl.load(tiles + 2 * tile) * ROWS + tl.arange(0, ROWS)
    j = tl.load(tiles + 2 * tile + 1) * COLUMNS + tl.arange(0, COLUMNS)
    start, step = tl.load(nodes), tl.load(nodes + 1)
    compared = tl.zeros((ROWS, COLUMNS), tl.int32)
    different = tl.zeros((ROWS, COLUMNS), tl.int32)
    mine, theirs = codes + i, codes + j
    for _ in range(sites):
        a, b = tl.load(mine).to(tl.int32)[:, None], tl.load(theirs).to(tl.int32)[None, :]
        both = (a < states) & (b < states)
        compared += both.to(tl.int32)
        different += (both & (a != b)).to(tl.int32)
        mine += codes_stride
        theirs += codes_stride
    k, wanted, low, high, s_low, h_low, s_high, h_high = _start(
        different, compared, guesses, guess_top, top, i, j, n
    )
    active = wanted
    while tl.max(tl.max(active.to(tl.int32), axis=1), axis=0) > 0:
        s, h = tl.zeros((ROWS, COLUMNS), tl.float64), tl.zeros((ROWS, COLUMNS), tl.float64)
        mine, theirs, table = codes + i, codes + j, k * cells
        for _ in range(sites):
            a, b = tl.load(mine).to(tl.int32)[:, None], tl.load(theirs).to(tl.int32)[None, :]
            score, slope = _entry(tables, table + a * (states + 1) + b, active)
            s += score
            h += slope
            mine += codes_stride
            theirs += codes_stride
        k, low, high, s_low, h_low, s_high, h_high = _narrowed(
            k, low, high, s_low, h_low, s_high, h_high, s, h, active, step
        )
        active = active & (high - low > 1)
    value = _placed(low, high, s_low, h_low, s_high, h_high, start, step, top)
    value = tl.where(wanted, value, 0.0)
    store_pairs(value, compared, i, j, n, first_row, tl.load(longest), status, out, out_stride, MIRROR)


@triton.jit
def _counted(tables, at, active, n0, n1, n2, n3):
    """(S, H) of four counts and the four table entries from `at` on."""
    s0, h0 = _entry(tables, at, active)
    s1, h1 = _entry(tables, at + 1, active)
    s2, h2 = _entry(tables, at + 2, active)
    s3, h3 = _entry(tables, at + 3, active)
    return n0 * s0 + n1 * s1 + n2 * s2 + n3 * s3, n0 * h0 + n1 * h1 + n2 * h2 + n3 * h3


@triton.jit
def count_likelihood_tiles(
    one_hot, sites_stride, n, tiles, tables, nodes, top, guesses, guess_top, longest, first_row, status, out,
    out_stride, ROWS: tl.constexpr, COLUMNS: tl.constexpr, BLOCK: tl.constexpr, MIRROR: tl.constexpr,
):  # fmt: skip
    """Distances of four-state sequences from their sixteen counts; one_hot as in distance_counts.

    tables: (nodes, 16); other arguments as in site_likelihood_tiles.
    """
    tile = tl.program_id(0)
    i = tl.load(tiles + 2 * tile) * ROWS + tl.arange(0, ROWS)
    first_column = tl.load(tiles + 2 * tile + 1) * COLUMNS
    j = first_column + tl.arange(0, COLUMNS)
    start, step = tl.load(nodes), tl.load(nodes + 1)
    a, c, g, t = joint_sums(one_hot, sites_stride, i, first_column, ROWS, COLUMNS, BLOCK)
    a0, a1, a2, a3 = by_state(a, ROWS, COLUMNS)
    c0, c1, c2, c3 = by_state(c, ROWS, COLUMNS)
    g0, g1, g2, g3 = by_state(g, ROWS, COLUMNS)
    t0, t1, t2, t3 = by_state(t, ROWS, COLUMNS)
    compared = tl.sum(tl.reshape(a + c + g + t, (ROWS, COLUMNS, 4)), axis=2)
    different = compared - a0 - c1 - g2 - t3
    k, wanted, low, high, s_low, h_low, s_high, h_high = _start(
        different, compared, guesses, guess_top, top, i, j, n
    )
    active = wanted
    while tl.max(tl.max(active.to(tl.int32), axis=1), axis=0) > 0:
        s, h = _counted(tables, k * 16, active, a0, a1, a2, a3)
        more, bend = _counted(tables, k * 16 + 4, active, c0, c1, c2, c3)
        s, h = s + more, h + bend
        more, bend = _counted(tables, k * 16 + 8, active, g0, g1, g2, g3)
        s, h = s + more, h + bend
        more, bend = _counted(tables, k * 16 + 12, active, t0, t1, t2, t3)
        s, h = s + more, h + bend
        k, low, high, s_low, h_low, s_high, h_high = _narrowed(
            k, low, high, s_low, h_low, s_high, h_high, s, h, active, step
        )
        active = active & (high - low > 1)
    value = _placed(low, high, s_low, h_low, s_high, h_high, start, step, top)
    value = tl.where(wanted, value, 0.0)
    store_pairs(value, compared, i, j, n, first_row, tl.load(longest), status, out, out_stride, MIRROR)
