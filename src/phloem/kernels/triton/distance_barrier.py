"""All programs of a launch wait for each other, so that a loop over the whole matrix stays on the device."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _arrived(counter, NATIVE: tl.constexpr):
    """The counter, and whatever was stored before it was raised; NVIDIA's acquiring load locks no line."""
    if NATIVE:
        return tl.inline_asm_elementwise(
            "ld.acquire.gpu.global.b32 $0, [$1];", "=r,l", [counter], dtype=tl.int32, is_pure=False, pack=1
        )
    else:
        return tl.atomic_add(counter, 0, sem="acquire")


@triton.jit
def grid_barrier(counter, arrivals, NATIVE: tl.constexpr):
    """Wait until the counter, which every program raises by one, reaches `arrivals` (it never falls).

    All programs of the launch must be resident at once (a cooperative launch). What any program stored before
    it arrived is visible to all afterwards.
    """
    tl.debug_barrier()
    tl.atomic_add(counter, 1, sem="acq_rel")
    reached = _arrived(counter, NATIVE)
    while reached < arrivals:
        reached = _arrived(counter, NATIVE)
    tl.debug_barrier()
