"""Layouts and rooms of the CPU kernels, and arrays by address."""

from __future__ import annotations

import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

from phloem.pruning.cpu.matrix_product import ROWS, VECTOR_BYTES
from phloem.pruning.cpu.padded import BATCH
from phloem.pruning.cpu.records import ANY, FOUR, EigenScratch, Scratch, Shape, StateSets
from phloem.pruning.interface import Problem

# Arrays known by their addresses, so that one compiled loop works on any number of them, each with a size of
# its own. Whoever keeps the table keeps the arrays alive.


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
uint64_at = _array_of(types.uint64)


def address_of(array: np.ndarray) -> int:
    """Where a contiguous array begins."""
    assert array.flags.c_contiguous
    return array.ctypes.data


# Layouts, and what threads work in.


LANES = 4  # categories that are done together where S = 4


def shape_of(problem: Problem) -> Shape:
    """The layout that suits the number of states and categories."""
    lanes = 1 if problem.n_categories == 1 else LANES
    return shape_of_sizes(problem.state_sets.shape[1], problem.n_categories, problem.precision, lanes)


def shape_of_sizes(states: int, categories: int, precision: str, lanes: int) -> Shape:
    """lanes: categories of a block where S = 4."""
    single = precision == "float32"
    smallest = 2.0**-31 if single else 2.0**-257
    if states == 4:
        blocks = -(-categories // lanes)
        return Shape(4, categories, 4, blocks, 4 * lanes, lanes, 16 * lanes, (0,) * lanes, smallest, FOUR)
    n = VECTOR_BYTES // (4 if single else 8)
    padded = -(-states // n) * n
    matrix = -(-states // ROWS) * ROWS * padded
    return Shape(states, categories, padded, categories, padded, 1, matrix, (0,) * n, smallest, ANY)


def new_scratch(shape: Shape, precision: str) -> Scratch:
    """What one thread works in."""
    batch = max(BATCH * shape.padded + 64, shape.blocks * shape.width)
    return Scratch(
        np.empty(batch, precision),
        np.empty(batch, precision),
        np.empty(shape.states * (-(-shape.states // ROWS) * ROWS)),
        np.empty(shape.matrix),
        np.empty(shape.categories + 1),
        np.empty(shape.categories + 1, np.int64),
        np.empty(shape.blocks * shape.width),
        np.empty(max(shape.states, 16)),
    )


def eigen_scratch(shape: Shape) -> EigenScratch:
    """Room for sums in the eigenbasis."""
    adjoint, right, left, half, basis = (np.empty(shape.matrix) for _ in range(5))
    share, growth, pairs = (np.empty(n) for n in (shape.exponents, shape.states, max(40, shape.states)))
    return EigenScratch(adjoint, share, right, left, half, basis, growth, pairs)


def state_sets(allowed: np.ndarray) -> StateSets:
    """The allowed states of every code, one code after the other. allowed: (n_codes, S) bool."""
    code, state = np.nonzero(allowed)
    first = np.searchsorted(code, np.arange(len(allowed) + 1))
    return StateSets(first.astype(np.int64), state.astype(np.int64))


def rows_for(size: int) -> int:
    """Rows of a region that holds `size` columns: one to spare, and whole sixes for the matrix products."""
    return (size // ROWS + 1) * ROWS
