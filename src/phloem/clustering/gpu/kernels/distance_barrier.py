"""All programs of a launch wait for each other, so that a loop over the whole matrix stays on the device."""

from __future__ import annotations

import triton
import triton.language as tl

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
