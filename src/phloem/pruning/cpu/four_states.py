"""Four states at once: a column block (x0, x1, x2, x3) of vectors, one vector a state, categories in the
lanes."""

from __future__ import annotations

from phloem.hardware.numba_compile import uncounted
from phloem.pruning.cpu.lanes import add, load, multiply, multiply_add, store


@uncounted(forceinline=True)
def load_four(array, at, lanes):
    """The four vectors that start at `at`."""
    n = len(lanes)
    return (
        load(array, at, lanes),
        load(array, at + n, lanes),
        load(array, at + 2 * n, lanes),
        load(array, at + 3 * n, lanes),
    )


@uncounted(forceinline=True)
def store_four(array, at, x, lanes):
    """The reverse of load_four."""
    n = len(lanes)
    store(array, at, x[0])
    store(array, at + n, x[1])
    store(array, at + 2 * n, x[2])
    store(array, at + 3 * n, x[3])


@uncounted(forceinline=True)
def multiply_four(x, y):
    """x ∘ y"""
    return multiply(x[0], y[0]), multiply(x[1], y[1]), multiply(x[2], y[2]), multiply(x[3], y[3])


@uncounted(forceinline=True)
def add_scaled_four(total, x, factor):
    """total + x · factor, factor one vector"""
    return (
        multiply_add(x[0], factor, total[0]),
        multiply_add(x[1], factor, total[1]),
        multiply_add(x[2], factor, total[2]),
        multiply_add(x[3], factor, total[3]),
    )


@uncounted(forceinline=True)
def add_product_four(total, x, y):
    """total + x ∘ y"""
    return (
        multiply_add(x[0], y[0], total[0]),
        multiply_add(x[1], y[1], total[1]),
        multiply_add(x[2], y[2], total[2]),
        multiply_add(x[3], y[3], total[3]),
    )


@uncounted(forceinline=True)
def scale_four(x, factor):
    """x · factor, factor one vector"""
    return multiply(x[0], factor), multiply(x[1], factor), multiply(x[2], factor), multiply(x[3], factor)


@uncounted(forceinline=True)
def add_four(x, y):
    """x + y"""
    return add(x[0], y[0]), add(x[1], y[1]), add(x[2], y[2]), add(x[3], y[3])


@uncounted(forceinline=True)
def dot_four(x, y):
    """Σ_i x_i ∘ y_i"""
    total = multiply(x[0], y[0])
    total = multiply_add(x[1], y[1], total)
    total = multiply_add(x[2], y[2], total)
    return multiply_add(x[3], y[3], total)


@uncounted(forceinline=True)
def transposed_product_four(matrix, at, x, lanes):
    """Σ_i matrix[j, i] · x_i for the four rows j of the matrix that starts at `at`."""
    n = len(lanes)
    return (
        dot_four(load_four(matrix, at, lanes), x),
        dot_four(load_four(matrix, at + 4 * n, lanes), x),
        dot_four(load_four(matrix, at + 8 * n, lanes), x),
        dot_four(load_four(matrix, at + 12 * n, lanes), x),
    )
