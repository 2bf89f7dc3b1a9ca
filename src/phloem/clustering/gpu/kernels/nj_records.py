"""One join of exact NJ: how clusters are averaged, what programs tell each other, every program's share."""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.clustering.gpu.kernels.distance_counts import grid_barrier

# How neighbour joining, BIONJ and UNJ average two clusters (reference/joining.py), from sums over rows alone.
#
# Sums of a new row follow from those of the two rows: Σ_k [λ d_ak + (1-λ) d_bk - c] needs no pass over k.
# What rounding of the entries adds halves with every generation of averages, so that nothing builds up.


NJ = tl.constexpr(0)
BIONJ = tl.constexpr(1)
UNJ = tl.constexpr(2)


@triton.jit
def weigh(
    ab, left, inverse, sum_a, sum_b, second_a, second_b, size_a, size_b, v_ab, leaves, METHOD: tl.constexpr
):
    """(share of a, constant c, branch above a, above b, sum of the new row, its second sum).

    left: clusters before the join; inverse: 1/(left - 2). second: Σ_k of variances (BIONJ), or of d_ak × size
    of k (UNJ).
    """
    rest = (left - 2).to(tl.float64)
    half = (sum_a - sum_b) * inverse * 0.5
    share = half * 0.0 + 0.5
    if METHOD == BIONJ:
        positive = v_ab > 0
        excess = (second_b - second_a) / (2 * rest * tl.where(positive, v_ab, 1.0))
        share = tl.where(positive, tl.minimum(tl.maximum(0.5 + excess, 0.0), 1.0), 0.5)
    elif METHOD == UNJ:
        outside = leaves - size_a - size_b
        second_a -= size_b * ab
        second_b -= size_a * ab
        half = (second_a - second_b) / (2 * outside)
        share = size_a / (size_a + size_b)
    above_a, above_b = ab * 0.5 + half, ab * 0.5 - half
    constant = share * above_a + (1 - share) * above_b
    new_sum = share * (sum_a - ab) + (1 - share) * (sum_b - ab) - rest * constant
    second = new_sum
    if METHOD == BIONJ:
        mean = share * (second_a - v_ab) + (1 - share) * (second_b - v_ab)
        second = mean - rest * share * (1 - share) * v_ab
    elif METHOD == UNJ:
        second = share * second_a + (1 - share) * second_b - outside * constant
    return share, constant, above_a, above_b, new_sum, second


@triton.jit
def averaged(x, y, share, constant, DTYPE: tl.constexpr):
    """New distances, rounded as they are stored."""
    return (share * x + (1 - share) * y - constant).to(DTYPE)


@triton.jit
def wide(x):
    """float64 of a float32, by shifting its bits: an instruction that converts takes eight times as long.

    Zero becomes 6e-39, which no sum here notices; neither infinities nor NaN come here. float64 stays.
    """
    if x.dtype == tl.float32:
        bits = x.to(tl.int32, bitcast=True)
        high = (((bits & 0x7FFFFFFF) >> 3) + 0x38000000) | (bits & -0x80000000)
        low = (bits << 29).to(tl.uint32, bitcast=True).to(tl.uint64)
        return ((high.to(tl.uint32, bitcast=True).to(tl.uint64) << 32) | low).to(tl.float64, bitcast=True)
    else:
        return x


# What the programs tell each other between joins: one record each. Hearing all of them is the barrier.
#
# records: (RING, programs, WORDS) int64, UNTOLD at first: bits of float64 numbers, and a pair. A program
# that has heard all records of turn t knows that everybody has read those of turn t - 1, so it may erase
# its own for turn t + 2, which takes their place.


# A record: the smallest q of a program's pairs, the pair (lower << 32 | upper) and its distance, and the
# smallest d - u of its pairs in which the new cluster is the upper one.
WORDS = tl.constexpr(4)
RING = tl.constexpr(3)
UNTOLD = tl.constexpr(-1)  # as float64 a NaN that no arithmetic makes
NO_PAIR = tl.constexpr(0x7FFFFFFFFFFFFFFF)
PLACES = tl.constexpr(0x100000000)

# Every thread waits for one record, word by word, since they are stored one by one.
HEAR = tl.constexpr("""{
.reg .pred untold;
.reg .b64 a, b, c, d;
AGAIN: ld.relaxed.gpu.global.v2.b64 {a, b}, [$4];
ld.relaxed.gpu.global.b64 c, [$4+16];
ld.acquire.gpu.global.b64 d, [$4+24];
setp.eq.s64 untold, a, -1;
@untold bra AGAIN;
setp.eq.s64 untold, b, -1;
@untold bra AGAIN;
setp.eq.s64 untold, c, -1;
@untold bra AGAIN;
setp.eq.s64 untold, d, -1;
@untold bra AGAIN;
mov.b64 $0, a;
mov.b64 $1, b;
mov.b64 $2, c;
mov.b64 $3, d;
}""")


@triton.jit
def _first_of(q, pair, distance, bound, q2, pair2, distance2, bound2):
    """Two records in one: the smaller q, of equal ones the first (lower, upper)."""
    first = (q < q2) | ((q == q2) & (pair < pair2))
    return (
        tl.where(first, q, q2), tl.where(first, pair, pair2), tl.where(first, distance, distance2),
        tl.minimum(bound, bound2),
    )  # fmt: skip


@triton.jit
def condense(q, pair, distance, bound):
    """One record of many."""
    return tl.reduce((q, pair, distance, bound), 0, _first_of)


@triton.jit
def meet(counter, programs, NATIVE: tl.constexpr):
    """A barrier of all programs. One that has not arrived sees fewer arrivals than complete this round."""
    tl.debug_barrier()
    grid_barrier(counter, (tl.load(counter, volatile=True) // programs + 1) * programs, NATIVE)


@triton.jit
def tell(records, counter, turn, programs, q, pair, distance, bound, NATIVE: tl.constexpr):
    """Publish this program's record of a turn, and all that the program stored before."""
    word = tl.arange(0, WORDS)
    me = tl.program_id(0)
    tl.store(
        records + (((turn + 1) % RING) * programs + me) * WORDS + word, tl.full((WORDS,), UNTOLD, tl.int64)
    )
    value = tl.where(word == 0, q, tl.where(word == 2, distance, bound)).to(tl.int64, bitcast=True)
    value = tl.where(word == 1, pair, value)
    mine = records + ((turn % RING) * programs + me) * WORDS + word
    tl.debug_barrier()
    if NATIVE:
        tl.atomic_xchg(mine, value, sem="release")
    else:
        tl.store(mine, value)
        meet(counter, programs, NATIVE)


@triton.jit
def hear(records, turn, programs, WIDTH: tl.constexpr, NATIVE: tl.constexpr):
    """The records of all programs, in (WIDTH,) lanes (some more than once), when all have told them."""
    theirs = records + ((turn % RING) * programs + tl.arange(0, WIDTH) % programs) * WORDS
    if NATIVE:
        q, pair, distance, bound = tl.inline_asm_elementwise(
            HEAR, "=l,=l,=l,=l,l", [theirs], dtype=(tl.int64, tl.int64, tl.int64, tl.int64),
            is_pure=False, pack=1,
        )  # fmt: skip
        tl.debug_barrier()
    else:
        q, pair, distance, bound = (
            tl.load(theirs),
            tl.load(theirs + 1),
            tl.load(theirs + 2),
            tl.load(theirs + 3),
        )
    return (
        q.to(tl.float64, bitcast=True), pair, distance.to(tl.float64, bitcast=True),
        bound.to(tl.float64, bitcast=True),
    )  # fmt: skip


# Steps of one join of exact neighbour joining; every program does its share of each.
#
# state: (FIELDS, N) int32 and reals: (REALS, N) float64, one row a field. A cluster's place is its column;
# places are in order of names (smallest leaves). Row i answers for the pairs (i, j) in which j is one of the
# N/2 names before i's, going round: rows are about equally long, and a name keeps its side for good. Within a
# launch what is known of a row stays with the program that owns it, one row a lane:
#   bound: not above the smallest d_ij - u_j of the row
#   near, at: partner of the smallest q known and the distance to it; near = -1 without one
#   total: Σ_k d_ik, -inf once dead; second: another sum (nj_rules); slot: row of the matrix
#   begin: the row answers for places begin … i-1, or, where begin > i, for 0 … i-1 and begin … n-1.


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
