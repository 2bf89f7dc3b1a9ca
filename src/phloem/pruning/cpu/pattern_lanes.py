"""Site patterns in the lanes of vectors: logarithms, powers of two, and products of matrices with columns.

A column of a block of patterns is (category, state, lane): one vector for every category and state. True
value = entry · 2**power, a power a pattern, kept as a float.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from phloem.hardware.numba_compile import uncounted
from phloem.pruning.cpu.lanes import (
    Lanes,
    element_pointer,
    load,
    multiply_add,
    splat,
    store,
    zeros,
)

LOG_2 = 0.6931471805599453
_SERIES = tuple(1.0 / k for k in range(21, 2, -2))  # atanh z / z - 1 = z²/3 + z⁴/5 + …, |z| < 0.172


@intrinsic
def spread(typing_context, array, index, lanes):
    """array[index] in every lane; the index is not negative, and nobody tests that it is."""
    result = Lanes(array.dtype, len(lanes))

    def generate(context, builder, signature, arguments):
        pointer = element_pointer(context, builder, array, arguments[0], arguments[1])
        return splat(builder, builder.load(pointer), result.count)

    return result(array, types.int64, lanes), generate


@intrinsic
def divide(typing_context, a, b):
    """a / b, lane by lane"""

    def generate(context, builder, signature, arguments):
        return builder.fdiv(*arguments)

    return a(a, b), generate


@intrinsic
def where_below(typing_context, value, limit, inside, outside):
    """inside in the lanes where value < limit, else outside; all three are numbers"""

    def generate(context, builder, signature, arguments):
        vector, scalars = arguments[0], arguments[1:]
        element = vector.type.element
        kinds = signature.args[1:]
        cast = [context.cast(builder, s, k, value.dtype) for s, k in zip(scalars, kinds)]
        assert all(c.type == element for c in cast)
        bound, low, high = (splat(builder, c, vector.type.count) for c in cast)
        return builder.select(builder.fcmp_ordered("<", vector, bound), low, high)

    return value(value, limit, inside, outside), generate


def _bits(vector_type):
    """(integer vector type, fraction bits, exponent bias) of a vector of floats."""
    wide = isinstance(vector_type.element, ir.DoubleType)
    size, fraction, bias = (64, 52, 1023) if wide else (32, 23, 127)
    return ir.VectorType(ir.IntType(size), vector_type.count), fraction, bias


@intrinsic
def power_of_two(typing_context, exponent):
    """2**exponent of whole numbers within the range of the type"""

    def generate(context, builder, signature, arguments):
        (vector,) = arguments
        kind, fraction, bias = _bits(vector.type)
        whole = builder.add(builder.fptosi(vector, kind), ir.Constant(kind, [bias] * kind.count))
        shifted = builder.shl(whole, ir.Constant(kind, [fraction] * kind.count))
        return builder.bitcast(shifted, vector.type)

    return exponent(exponent), generate


@intrinsic
def logarithm(typing_context, value):
    """log of positive numbers, to some units in the last place: x = m 2**e with m near 1, and
    log m = 2 atanh((m - 1) / (m + 1)) as a series"""

    def generate(context, builder, signature, arguments):
        (x,) = arguments
        count = x.type.count
        kind, fraction, bias = _bits(x.type)

        def number(v):
            return ir.Constant(x.type, [float(v)] * count)

        def whole(v):
            return ir.Constant(kind, [v] * count)

        bits = builder.bitcast(x, kind)
        exponent = builder.sub(builder.lshr(bits, whole(fraction)), whole(bias))
        kept = builder.and_(bits, whole((1 << fraction) - 1))
        m = builder.bitcast(builder.or_(kept, whole(bias << fraction)), x.type)
        large = builder.fcmp_ordered(">", m, number(2.0**0.5))
        m = builder.select(large, builder.fmul(m, number(0.5)), m)
        exponent = builder.add(exponent, builder.zext(large, kind))
        z = builder.fdiv(builder.fsub(m, number(1)), builder.fadd(m, number(1)))
        square = builder.fmul(z, z)
        total = number(_SERIES[0])
        for term in (*_SERIES[1:], 1.0):
            total = builder.fadd(builder.fmul(total, square), number(term))
        log = builder.fmul(builder.fmul(z, number(2)), total)
        return builder.fadd(log, builder.fmul(builder.sitofp(exponent, x.type), number(LOG_2)))

    return value(value), generate


@uncounted(forceinline=True)
def column_product(matrix, at, x, x_at, y, y_at, shape):
    """y = P x in every category; matrix: (category, state, state) from entry `at` on. shape: Shape."""
    lanes, n, states = shape.lanes, len(shape.lanes), shape.states
    for c in range(shape.categories):
        here, row = x_at + c * states * n, at + c * states * states
        for i in range(0, states, 4):
            a0 = a1 = a2 = a3 = zeros(y, lanes)
            first = row + i * states
            for j in range(states):
                v = load(x, here + j * n, lanes)
                a0 = multiply_add(spread(matrix, first + j, lanes), v, a0)
                a1 = multiply_add(spread(matrix, first + states + j, lanes), v, a1)
                a2 = multiply_add(spread(matrix, first + 2 * states + j, lanes), v, a2)
                a3 = multiply_add(spread(matrix, first + 3 * states + j, lanes), v, a3)
            out = y_at + (c * states + i) * n
            store(y, out, a0)
            store(y, out + n, a1)
            store(y, out + 2 * n, a2)
            store(y, out + 3 * n, a3)
