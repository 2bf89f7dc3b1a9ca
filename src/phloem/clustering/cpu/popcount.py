"""The number of set bits of a word, as the machine instruction (vectorised where there is one)."""

from __future__ import annotations

from numba.core import types
from numba.extending import intrinsic


@intrinsic
def popcount(typing_context, word):
    """Set bits of a 64-bit word, as int64."""
    if word not in (types.uint64, types.int64):
        return None

    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.int64(word), generate
