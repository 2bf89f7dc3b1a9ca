"""Counters that threads share."""

from __future__ import annotations

from numba.core import types
from numba.extending import intrinsic

from phloem.kernels.numba.lanes import element_pointer


@intrinsic
def fetch_add(typing_context, array, index, amount):
    """Add amount to the int64 array[index] and return what it held before, as one indivisible step."""

    def generate(context, builder, signature, arguments):
        pointer = element_pointer(context, builder, array, arguments[0], arguments[1])
        return builder.atomic_rmw("add", pointer, arguments[2], "acq_rel")

    return types.int64(array, types.int64, types.int64), generate


@intrinsic
def read_shared(typing_context, array, index):
    """The int64 array[index]; what its writer stored before is visible afterwards."""

    def generate(context, builder, signature, arguments):
        pointer = element_pointer(context, builder, array, arguments[0], arguments[1])
        return builder.load_atomic(pointer, "acquire", 8)

    return types.int64(array, types.int64), generate
