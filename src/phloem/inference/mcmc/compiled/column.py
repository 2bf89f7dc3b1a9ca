"""One column of the four-state kernel, as vector instructions.

A column of messages is 16 doubles, state-major with four categories inside: x[4 s + c]. Two AVX-512
registers, or four of AVX2, hold it, so that fetching a column by its class is a plain load and not a gather:
that is why this kernel's column axis comes first (docs/mcmc.md). A matrix is 64 doubles: P[c, i, j] at 8 (4
(i // 2) + j) + 4 (i % 2) + c. LLVM does not find this by itself (it would gather across columns), so the few
instructions are written out.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_DOUBLES = ir.VectorType(ir.DoubleType(), 8)
_INT32 = ir.IntType(32)


def _load(context, builder, array_type, array, index):
    """Eight doubles of a 1-D array, from element index on."""
    pointer = _pointer(context, builder, array_type, array, index)
    return builder.load(pointer, align=8)


def _pointer(context, builder, array_type, array, index):
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), _DOUBLES.as_pointer())


def _fused(builder, a, b, c):
    kind = ir.FunctionType(_DOUBLES, [_DOUBLES] * 3)
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.fmuladd.v8f64")
    return builder.call(function, [a, b, c])


def _shuffled(builder, x, lanes):
    mask = ir.Constant(ir.VectorType(_INT32, len(lanes)), list(lanes))
    return builder.shuffle_vector(x, x, mask)


def _offset(builder, index, distance):
    return builder.add(index, ir.Constant(index.type, distance))


@intrinsic
def product_times_matrix(typing, out, out_at, left, left_at, right, right_at, matrix, matrix_at):
    """out[i, c] = Σ_j P[c, i, j] left[j, c] right[j, c] for 16 doubles from each index on."""
    signature = types.void(out, types.intp, left, types.intp, right, types.intp, matrix, types.intp)

    def generate(context, builder, sig, args):
        out_, out_i, left_, left_i, right_, right_i, matrix_, matrix_i = args
        halves = []
        for half in (0, 8):
            x = _load(context, builder, sig.args[2], left_, _offset(builder, left_i, half))
            y = _load(context, builder, sig.args[4], right_, _offset(builder, right_i, half))
            halves.append(builder.fmul(x, y))
        states = [
            _shuffled(builder, halves[j // 2], [4 * (j % 2) + c for c in (0, 1, 2, 3)] * 2) for j in range(4)
        ]
        for half in range(2):
            total = None
            for j in range(4):
                p = _load(
                    context, builder, sig.args[6], matrix_, _offset(builder, matrix_i, 32 * half + 8 * j)
                )
                total = builder.fmul(p, states[j]) if total is None else _fused(builder, p, states[j], total)
            pointer = _pointer(context, builder, sig.args[0], out_, _offset(builder, out_i, 8 * half))
            builder.store(total, pointer, align=8)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def triple_product(typing, left, left_at, right, right_at, third, third_at):
    """Σ over 16 doubles of left · right · third, in a fixed order."""
    signature = types.float64(left, types.intp, right, types.intp, third, types.intp)

    def generate(context, builder, sig, args):
        left_, left_i, right_, right_i, third_, third_i = args
        total = None
        for half in (0, 8):
            x = _load(context, builder, sig.args[0], left_, _offset(builder, left_i, half))
            y = _load(context, builder, sig.args[2], right_, _offset(builder, right_i, half))
            z = _load(context, builder, sig.args[4], third_, _offset(builder, third_i, half))
            xy = builder.fmul(x, y)
            total = builder.fmul(xy, z) if total is None else _fused(builder, xy, z, total)
        return _folded(builder, total)

    return signature, generate


def _folded(builder, x):
    """Sum of the eight lanes as ((0+4) + (2+6)) + ((1+5) + (3+7))."""
    for lanes in (4, 2, 1):
        mask_low = ir.Constant(ir.VectorType(_INT32, lanes), list(range(lanes)))
        mask_high = ir.Constant(ir.VectorType(_INT32, lanes), list(range(lanes, 2 * lanes)))
        low, high = builder.shuffle_vector(x, x, mask_low), builder.shuffle_vector(x, x, mask_high)
        x = builder.fadd(low, high)
    return builder.extract_element(x, ir.Constant(_INT32, 0))
