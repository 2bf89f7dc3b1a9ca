"""How steps of one launch wait for each other.

Steps are taken in the order of a ticket counter, and the list is sorted so that a step only depends on
earlier ones. The lowest unfinished ticket can therefore always proceed, however few programs run at a time.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def await_ready(place, target):
    """Wait until a counter has reached its target; then what its raisers stored is visible.

    One thread polls, by adding 0: an acquiring load in every thread would empty the first-level cache each
    time (measured three times slower on an H100). That cache is empty afterwards, so fetch what you need
    before.
    """
    if target > 0:
        reached = tl.atomic_add(place, 0, sem="acquire")
        while reached < target:
            reached = tl.atomic_add(place, 0, sem="acquire")
    tl.debug_barrier()


@triton.jit
def counters_of(item, counters):
    """Of a step of a pass: the counter to await, its target, and the counter to raise (postorder.py)."""
    return counters + tl.load(item + 7), tl.load(item + 8), counters + tl.load(item + 9)


@triton.jit
def announce(place):
    """Raise a counter once every thread of this program has stored its part."""
    tl.debug_barrier()
    tl.atomic_add(place, 1, sem="release")


@triton.jit
def next_step(ticket):
    """Take the next step of the list. Nothing is read or written under a ticket's protection, so it need not
    wait for the stores of the step before (relaxed)."""
    return tl.atomic_add(ticket, 1, sem="relaxed").to(tl.int64)
