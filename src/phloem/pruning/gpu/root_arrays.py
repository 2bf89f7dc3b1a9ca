"""What the root's distinct columns carry."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phloem.pruning.interface import Problem


@dataclass(frozen=True)
class RootColumns:
    """column_weights: (K,) float64; ascertained: (K,) uint8; invariant_states: (K, width) uint8, the states
    that every tip allows."""

    column_weights: np.ndarray
    ascertained: np.ndarray
    invariant_states: np.ndarray


def root_columns(problem: Problem, column: np.ndarray, n: int, width: int) -> RootColumns:
    """Weights, ascertainment and invariant states by distinct column.

    column: (P,) the root column of every pattern, of n; width: states with padding.
    """
    representative = np.empty(n, np.int64)
    representative[column[::-1]] = np.arange(len(column))[::-1]
    allowed = np.ones((n, problem.state_sets.shape[1]), bool)
    for codes in problem.tip_codes:
        allowed &= problem.state_sets[codes[representative]]
    states = np.zeros((n, width), np.uint8)
    states[:, : allowed.shape[1]] = allowed
    ascertained = np.zeros(n, np.uint8)
    ascertained[column] = problem.ascertained
    return RootColumns(np.bincount(column, problem.pattern_weights, n), ascertained, states)
