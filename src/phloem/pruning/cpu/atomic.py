"""Counters that threads share."""

from __future__ import annotations

import sys

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from phloem.pruning.cpu.lanes import element_pointer


@intrinsic
def fetch_add(typing_context, array, index, amount):
    """Add amount to the int64 array[index] and return what it held before, as one indivisible step."""

    def generate(context, builder, signature, arguments):
        pointer = element_pointer(context, builder, array, arguments[0], arguments[1])
        return builder.atomic_rmw("add", pointer, arguments[2], "acq_rel")

    return types.int64(array, types.int64, types.int64), generate


@intrinsic
def exchange(typing_context, array, index, value):
    """Store value in the int64 array[index] and return what it held before, as one indivisible step: a lock
    is taken where that was 0 and 1 is stored, and given back by storing 0."""

    def generate(context, builder, signature, arguments):
        pointer = element_pointer(context, builder, array, arguments[0], arguments[1])
        return builder.atomic_rmw("xchg", pointer, arguments[2], "acq_rel")

    return types.int64(array, types.int64, types.int64), generate


@intrinsic
def read_shared(typing_context, array, index):
    """The int64 array[index]; what its writer stored before is visible afterwards."""

    def generate(context, builder, signature, arguments):
        pointer = element_pointer(context, builder, array, arguments[0], arguments[1])
        return builder.load_atomic(pointer, "acquire", 8)

    return types.int64(array, types.int64), generate


_YIELD = "SwitchToThread" if sys.platform == "win32" else "sched_yield"


@intrinsic
def give_way(typing_context):
    """Let the operating system run another thread on this core, if one waits for it."""

    def generate(context, builder, signature, arguments):
        kind = ir.FunctionType(ir.IntType(32), [])
        builder.call(cgutils.get_or_insert_function(builder.module, kind, _YIELD), [])
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def call_with_two(typing_context, function, first, second):
    """Call a C function of two pointers that returns an int, all given as int64."""

    def generate(context, builder, signature, arguments):
        word = ir.IntType(64)
        kind = ir.FunctionType(ir.IntType(32), [word, word])
        return builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), arguments[1:])

    return types.int32(types.int64, types.int64, types.int64), generate
