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
    """A vector of `count` floats, or of 32-bit integers."""

    def __init__(self, dtype: types.Type, count: int) -> None:
        self.dtype, self.count = dtype, count
        super().__init__(name=f"Lanes({dtype}, {count})")


@register_model(Lanes)
class LanesModel(models.PrimitiveModel):
    """An LLVM vector."""

    def __init__(self, manager, lanes) -> None:
        scalar = {types.float64: ir.DoubleType(), types.float32: ir.FloatType()}.get(
            lanes.dtype, ir.IntType(32)
        )
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
    return 8 if isinstance(vector_type.element, ir.DoubleType) else 4  # float or int32


@intrinsic
def load(typing_context, array, index, lanes):
    """array[index : index + len(lanes)]"""
    result = Lanes(array.dtype, len(lanes))

    def generate(context, builder, signature, arguments):
        pointer = element_pointer(context, builder, array, arguments[0], arguments[1])
        return load_vector(builder, pointer, context.get_value_type(result))

    return result(array, types.int64, lanes), generate


@intrinsic
def entry(typing_context, array, index):
    """array[index] of an integer array, as int64; the index is not negative, and nobody tests that it is."""

    def generate(context, builder, signature, arguments):
        pointer = element_pointer(context, builder, array, arguments[0], arguments[1])
        return context.cast(builder, builder.load(pointer), array.dtype, types.int64)

    return types.int64(array, types.int64), generate


@intrinsic
def to_double(typing_context, array, index, lanes):
    """load, converted to float64"""
    result = Lanes(types.float64, len(lanes))

    def generate(context, builder, signature, arguments):
        pointer = element_pointer(context, builder, array, arguments[0], arguments[1])
        value = load_vector(builder, pointer, context.get_value_type(Lanes(array.dtype, len(lanes))))
        wide = context.get_value_type(result)
        return value if array.dtype == types.float64 else builder.fpext(value, wide)

    return result(array, types.int64, lanes), generate


@intrinsic
def as_double(typing_context, bits):
    """The float64 of these 64 bits"""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


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
def subtract(typing_context, a, b):
    """a - b, lane by lane"""

    def generate(context, builder, signature, arguments):
        return builder.fsub(*arguments)

    return a(a, b), generate


@intrinsic
def product_or_zero(typing_context, a, b):
    """a · b, and 0 where a is 0, whatever b is"""

    def generate(context, builder, signature, arguments):
        zero = ir.Constant(arguments[0].type, None)
        nothing = builder.fcmp_ordered("==", arguments[0], zero)
        return builder.select(nothing, zero, builder.fmul(*arguments))

    return a(a, b), generate


@intrinsic
def lane_of(typing_context, value, lane):
    """One lane"""

    def generate(context, builder, signature, arguments):
        return builder.extract_element(arguments[0], arguments[1])

    return value.dtype(value, types.int64), generate


@intrinsic
def multiply_add(typing_context, a, b, c):
    """a · b + c, rounded once"""

    def generate(context, builder, signature, arguments):
        vector = arguments[0].type
        return builder.call(vector_function(builder, "llvm.fma", vector, [vector] * 3), arguments)

    return a(a, b, c), generate


@intrinsic
def add_integers(typing_context, a, b):
    """a + b of integer lanes"""

    def generate(context, builder, signature, arguments):
        return builder.add(*arguments)

    return a(a, b), generate


@intrinsic
def any_nonzero(typing_context, value):
    """Is any integer lane not 0?"""

    def generate(context, builder, signature, arguments):
        (vector,) = arguments
        count = vector.type.count
        hit = builder.icmp_signed("!=", vector, ir.Constant(vector.type, None))
        return builder.icmp_unsigned("!=", builder.bitcast(hit, ir.IntType(count)), ir.IntType(count)(0))

    return types.boolean(value), generate


def _half(first: bool):
    """An intrinsic that repeats one half of a vector."""

    @intrinsic
    def half(typing_context, value):
        def generate(context, builder, signature, arguments):
            n = value.count // 2
            order = [lane % n + (0 if first else n) for lane in range(2 * n)]
            mask = ir.Constant(ir.VectorType(ir.IntType(32), 2 * n), order)
            return builder.shuffle_vector(arguments[0], arguments[0], mask)

        return value(value), generate

    return half


low_twice, high_twice = _half(True), _half(False)


@intrinsic
def joined(typing_context, a, b):
    """A vector of the lanes of a, then those of b"""
    result = Lanes(a.dtype, 2 * a.count)

    def generate(context, builder, signature, arguments):
        n = a.count
        mask = ir.Constant(ir.VectorType(ir.IntType(32), 2 * n), list(range(2 * n)))
        return builder.shuffle_vector(*arguments, mask)

    return result(a, b), generate


@intrinsic
def larger_of_halves(typing_context, value):
    """The larger of lane i and lane i + half, in both halves (no NaN expected)"""

    def generate(context, builder, signature, arguments):
        (vector,) = arguments
        n = value.count // 2
        order = [(lane + n) % (2 * n) for lane in range(2 * n)]
        mask = ir.Constant(ir.VectorType(ir.IntType(32), 2 * n), order)
        other = builder.shuffle_vector(vector, vector, mask)
        return builder.select(builder.fcmp_ordered(">", vector, other), vector, other)

    return value(value), generate


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
