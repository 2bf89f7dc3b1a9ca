"""Numbers of a model in the layouts of the CPU kernels."""

from __future__ import annotations

import numpy as np

from phloem.model.record import SiteModel
from phloem.model.transition import transition_matrices
from phloem.pruning.cpu.matrix_product import ROWS
from phloem.pruning.cpu.records import ModelNumbers, RateColumns, Shape
from phloem.pruning.interface import Problem
from phloem.pruning.site_order import refuse_neighbours


def model_numbers(model: SiteModel, shape: Shape) -> ModelNumbers:
    """The model's arrays, padded as transition_padded wants them."""
    refuse_neighbours(model, "the CPU engine")
    states = shape.states
    values, right, left = [], [], []
    for process in model.processes:
        eigen = process.real_eigen
        empty = np.zeros((states, states))
        values.append(np.zeros(states) if eigen is None else eigen.values)
        right.append(empty if eigen is None else eigen.right)
        left.append(empty if eigen is None else eigen.left)
    all_right, all_left = np.stack(right), np.stack(left)
    if shape.states != 4:
        all_right = np.pad(all_right.swapaxes(1, 2), ((0, 0), (0, 0), (0, shape.padded - states)))
        all_left = np.pad(all_left, ((0, 0), (0, 0), (0, -states % ROWS)))
    return ModelNumbers(
        _own(np.stack(values)),
        _own(all_right),
        _own(all_left),
        _own(np.stack([process.root_frequencies for process in model.processes])),
        np.array(model.process, np.int64),
        np.array(model.length_class, np.int64),
        _own(model.rates),
        _own(model.weights),
        float(model.invariant),
        _own(model.invariant_frequencies),
    )


def has_real_eigen(model: SiteModel) -> bool:
    """Whether every process has a real eigensystem, which the compiled transition matrices want."""
    return all(process.real_eigen is not None for process in model.processes)


def _own(array: np.ndarray) -> np.ndarray:
    """A writable contiguous copy: Numba compiles once more for a read-only array."""
    return np.array(array, np.float64, order="C")


def rate_columns(model: SiteModel) -> RateColumns:
    """Every process' Q by columns, without zeros."""
    first, states, values, used = [], [], [], 0
    for process in model.processes:
        q = process.rate_matrix
        column, row = np.nonzero(q.T)
        first.append(used + np.searchsorted(column, np.arange(len(q) + 1)))
        states.append(row)
        values.append(q[row, column])
        used += len(row)
    return RateColumns(
        np.array(model.process, np.int64),
        np.stack(first).astype(np.int64),
        np.concatenate(states).astype(np.int64),
        _own(np.concatenate(values)),
    )


def fill_matrices(nodes, matrix_at, lengths, model: SiteModel, shape: Shape, down, up) -> None:
    """Transition matrices of nodes by the NumPy reference (complex or missing eigensystem).

    down, up: (blocks, 2N · matrix); up may be empty.
    """
    p = transition_matrices(lengths[:, nodes], model)
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
