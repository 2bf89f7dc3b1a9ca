"""Vectors of a fixed number of lanes inside compiled functions, so that a kernel's SIMD form is what is
written.

The number of lanes is the length of a tuple of integers, known to the compiler; LLVM maps lanes to whatever
registers the machine has. Arrays are one-dimensional and contiguous, indices count elements.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, models, register_model


class Lanes(types.Type):
    """A vector of `count` floats."""

    def __init__(self, dtype: types.Type, count: int) -> None:
        self.dtype, self.count = dtype, count
        super().__init__(name=f"Lanes({dtype}, {count})")


@register_model(Lanes)
class LanesModel(models.PrimitiveModel):
    """An LLVM vector."""

    def __init__(self, manager, lanes) -> None:
        scalar = ir.DoubleType() if lanes.dtype == types.float64 else ir.FloatType()
        super().__init__(manager, lanes, ir.VectorType(scalar, lanes.count))


def element_pointer(context, builder, array_type, array, index):
    """Address of array[index]."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(data, [index])


def load_vector(builder, pointer, vector_type):
    """A vector from an address aligned as its elements are."""
    value = builder.load(builder.bitcast(pointer, vector_type.as_pointer()))
    value.align = _element_bytes(vector_type)
    return value


def store_vector(builder, value, pointer) -> None:
    """The reverse of load_vector."""
    store = builder.store(value, builder.bitcast(pointer, value.type.as_pointer()))
    store.align = _element_bytes(value.type)


def splat(builder, scalar, count: int):
    """A vector whose lanes all hold scalar."""
    vector_type = ir.VectorType(scalar.type, count)
    undefined = ir.Constant(vector_type, ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.IntType(32)(0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(ir.IntType(32), count), None))


def vector_function(builder, name: str, result, arguments):
    """Declare an LLVM intrinsic on vectors, such as llvm.fma, in this module."""
    vector = arguments[0]
    suffix = f"v{vector.count}f{8 * _element_bytes(vector)}"
    return cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(result, arguments), f"{name}.{suffix}"
    )


def _element_bytes(vector_type) -> int:
    return 8 if isinstance(vector_type.element, ir.DoubleType) else 4


@intrinsic
def load(typing_context, array, index, lanes):
    """array[index : index + len(lanes)]"""
    result = Lanes(array.dtype, len(lanes))

    def generate(context, builder, signature, arguments):
        pointer = element_pointer(context, builder, array, arguments[0], arguments[1])
        return load_vector(builder, pointer, context.get_value_type(result))

    return result(array, types.int64, lanes), generate


@intrinsic
def store(typing_context, array, index, value):
    """array[index : index + lanes] = value"""

    def generate(context, builder, signature, arguments):
        store_vector(
            builder, arguments[2], element_pointer(context, builder, array, arguments[0], arguments[1])
        )
        return context.get_dummy_value()

    return types.void(array, types.int64, value), generate


@intrinsic
def fill(typing_context, array, value, lanes):
    """value in every lane, in array's type"""
    result = Lanes(array.dtype, len(lanes))

    def generate(context, builder, signature, arguments):
        scalar = context.cast(builder, arguments[1], value, array.dtype)
        return splat(builder, scalar, result.count)

    return result(array, value, lanes), generate


@intrinsic
def zeros(typing_context, array, lanes):
    """A zero vector of array's type"""
    result = Lanes(array.dtype, len(lanes))

    def generate(context, builder, signature, arguments):
        return ir.Constant(context.get_value_type(result), None)

    return result(array, lanes), generate


@intrinsic
def multiply(typing_context, a, b):
    """a · b, lane by lane"""

    def generate(context, builder, signature, arguments):
        return builder.fmul(*arguments)

    return a(a, b), generate


@intrinsic
def add(typing_context, a, b):
    """a + b, lane by lane"""

    def generate(context, builder, signature, arguments):
        return builder.fadd(*arguments)

    return a(a, b), generate


@intrinsic
def multiply_add(typing_context, a, b, c):
    """a · b + c, rounded once"""

    def generate(context, builder, signature, arguments):
        vector = arguments[0].type
        return builder.call(vector_function(builder, "llvm.fma", vector, [vector] * 3), arguments)

    return a(a, b, c), generate


@intrinsic
def maximum(typing_context, a, b):
    """The larger of a and b, lane by lane (no NaN expected)"""

    def generate(context, builder, signature, arguments):
        return builder.select(builder.fcmp_ordered(">", *arguments), *arguments)

    return a(a, b), generate


@intrinsic
def any_below(typing_context, value, limit):
    """Is any lane positive and less than limit?"""

    def generate(context, builder, signature, arguments):
        vector, bound = arguments
        count = vector.type.count
        zero = ir.Constant(vector.type, None)
        small = builder.fcmp_ordered("<", vector, splat(builder, bound, count))
        hit = builder.and_(small, builder.fcmp_ordered(">", vector, zero))
        bits = builder.bitcast(hit, ir.IntType(count))
        return builder.icmp_unsigned("!=", bits, ir.IntType(count)(0))

    return types.boolean(value, value.dtype), generate


@intrinsic
def any_above(typing_context, value, limit):
    """Is any lane at least limit?"""

    def generate(context, builder, signature, arguments):
        vector, bound = arguments
        count = vector.type.count
        hit = builder.fcmp_ordered(">=", vector, splat(builder, bound, count))
        return builder.icmp_unsigned("!=", builder.bitcast(hit, ir.IntType(count)), ir.IntType(count)(0))

    return types.boolean(value, value.dtype), generate


@intrinsic
def largest(typing_context, value):
    """The largest lane (no NaN expected)"""

    def generate(context, builder, signature, arguments):
        def larger(a, b):
            return builder.select(builder.fcmp_ordered(">", a, b), a, b)

        return _fold(builder, arguments[0], larger)

    return value.dtype(value), generate


@intrinsic
def sum_lanes(typing_context, value):
    """Sum of all lanes, halves first"""

    def generate(context, builder, signature, arguments):
        return _fold(builder, arguments[0], builder.fadd)

    return value.dtype(value), generate


def _fold(builder, vector, combine):
    """Combine the halves of a vector until one lane is left."""
    count, undefined = vector.type.count, ir.Constant(vector.type, ir.Undefined)
    lanes = count
    while count > 1:
        count //= 2
        order = [(lane + count) % lanes for lane in range(lanes)]
        mask = ir.Constant(ir.VectorType(ir.IntType(32), lanes), order)
        vector = combine(vector, builder.shuffle_vector(vector, undefined, mask))
    return builder.extract_element(vector, ir.IntType(32)(0))
