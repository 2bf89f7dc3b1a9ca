"""Arrays known by their addresses, so that one compiled loop works on any number of them, each with a size of
its own. Whoever keeps the table keeps the arrays alive."""

from __future__ import annotations

import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array


def _array_of(element):
    """An intrinsic from an address and a shape (a tuple of integers) to such an array, rows contiguous."""

    @intrinsic
    def array_at(typing_context, address, shape):
        result = types.Array(element, len(shape), "C")

        def generate(context, builder, signature, arguments):
            array = make_array(result)(context, builder)
            kind = context.get_data_type(element)
            itemsize = context.get_abi_sizeof(kind)
            intp = context.get_value_type(types.intp)
            sizes = [
                context.cast(builder, size, given, types.intp)
                for size, given in zip(cgutils.unpack_tuple(builder, arguments[1]), signature.args[1])
            ]
            strides, step = [], intp(itemsize)
            for size in reversed(sizes):
                strides.insert(0, step)
                step = builder.mul(step, size)
            data = builder.inttoptr(arguments[0], kind.as_pointer())
            populate_array(
                array, data=data, shape=sizes, strides=strides, itemsize=intp(itemsize), meminfo=None
            )
            return array._getvalue()

        return result(types.int64, shape), generate

    return array_at


float64_at, int64_at = _array_of(types.float64), _array_of(types.int64)
int32_at, uint8_at = _array_of(types.int32), _array_of(types.uint8)


def address_of(array: np.ndarray) -> int:
    """Where a contiguous array begins."""
    assert array.flags.c_contiguous
    return array.ctypes.data
