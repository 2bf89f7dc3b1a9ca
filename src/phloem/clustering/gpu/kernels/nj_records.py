"""What the programs tell each other between joins: one record each. Hearing all of them is the barrier.

records: (RING, programs, WORDS) int64, UNTOLD at first: bits of float64 numbers, and a pair. A program that
has heard all records of turn t knows that everybody has read those of turn t - 1, so it may erase its own for
turn t + 2, which takes their place.
"""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.clustering.gpu.kernels.distance_barrier import grid_barrier

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
