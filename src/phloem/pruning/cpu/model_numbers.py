"""Numbers of a model in the layouts of the CPU kernels."""

from __future__ import annotations

import numpy as np

from phloem.model.record import SiteModel
from phloem.model.transition import transition_matrices
from phloem.pruning.cpu.matrix_product import ROWS
from phloem.pruning.cpu.records import ModelNumbers, RateColumns, Shape
from phloem.pruning.interface import Problem


def model_numbers(model: SiteModel, shape: Shape) -> ModelNumbers:
    """The model's arrays, padded as transition_padded wants them."""
    states, eigen = shape.states, model.single.real_eigen
    values, right, left = np.zeros(states), np.zeros((states, states)), np.zeros((states, states))
    if eigen is not None:
        values, right, left = eigen.values, eigen.right, eigen.left
    if shape.padded != 4:
        right = np.pad(right.T, ((0, 0), (0, shape.padded - states)))
        left = np.pad(left, ((0, 0), (0, -states % ROWS)))
    return ModelNumbers(
        _own(values),
        _own(right),
        _own(left),
        _own(model.rates),
        _own(model.weights),
        _own(model.single.root_frequencies),
        float(model.invariant),
    )


def _own(array: np.ndarray) -> np.ndarray:
    """A writable contiguous copy: Numba compiles once more for a read-only array."""
    return np.array(array, np.float64, order="C")


def rate_columns(rate_matrix: np.ndarray) -> RateColumns:
    """Q by columns, without zeros."""
    column, row = np.nonzero(rate_matrix.T)
    first = np.searchsorted(column, np.arange(len(rate_matrix) + 1)).astype(np.int64)
    return RateColumns(
        first, row.astype(np.int64), np.ascontiguousarray(rate_matrix[row, column], np.float64)
    )


def fill_matrices(nodes, matrix_at, lengths, model: SiteModel, shape: Shape, down, up) -> None:
    """Transition matrices of nodes by the NumPy reference (complex or missing eigensystem).

    down, up: (blocks, 2N · matrix); up may be empty.
    """
    p = transition_matrices(lengths[nodes], model)
    places = down.reshape(shape.blocks, -1, shape.matrix), up.reshape(shape.blocks, -1, shape.matrix)
    for x, matrix in zip(nodes, p):
        places[0][:, matrix_at[x]] = _packed(np.swapaxes(matrix, 1, 2), shape)
        if up.size:
            places[1][:, matrix_at[x]] = _packed(matrix, shape)


def _packed(matrix: np.ndarray, shape: Shape) -> np.ndarray:
    """(C, S, S) to (blocks, matrix), with zeros for padding."""
    n = shape.exponents
    packed = np.zeros((shape.blocks * n, shape.matrix // (n * shape.padded), shape.padded))
    packed[: shape.categories, : shape.states, : shape.states] = matrix
    return packed.reshape(shape.blocks, n, -1).swapaxes(1, 2).reshape(shape.blocks, -1)


def unpack_adjoint(adjoint: np.ndarray, shape: Shape) -> np.ndarray:
    """(n, blocks, matrix), child's state first, to (n, C, parent, child)."""
    lanes, padded = shape.exponents, shape.padded
    whole = adjoint.reshape(len(adjoint), shape.blocks, -1, padded, lanes).transpose(0, 1, 4, 3, 2)
    whole = whole.reshape(len(adjoint), shape.blocks * lanes, padded, -1)
    return whole[:, : shape.categories, : shape.states, : shape.states]


def invariant_states(problem: Problem, root_column: np.ndarray, n_root: int) -> np.ndarray:
    """(K · S,) uint8: the states that all tips allow at every root column."""
    allowed = np.ones((len(root_column), problem.state_sets.shape[1]), bool)
    for codes in problem.tip_codes:
        allowed &= problem.state_sets[codes]
    result = np.empty((n_root, allowed.shape[1]), np.uint8)
    result[root_column] = allowed
    return result.reshape(-1)
