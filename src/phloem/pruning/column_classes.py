"""Records that every column of kernels shares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class ColumnClasses:
    """Distinct columns below every node (site repeats: Kobert, Flouri, Stamatakis 2017).

    Node x owns columns offset[x]:offset[x+1] of one long column axis; K_x is their number.
    n_tips: T. Nodes 0..T-1 are tips, T..N-1 internal with N = 2T-1, root N-1, children below parents.
    left, right: (T-1,) int32, the children of internal node T+k.
    offset: (N+1,) int64.
    left_class, right_class: (offset[N],) int32. At a column of an internal node: the column, counted from
        the child's first, of its left and right child. At a column of a tip: left_class is the character
        code (a row of state_sets), right_class is -1.
    pattern_column: (P,) int32, the root column of each site pattern.
    """

    n_tips: int
    left: np.ndarray
    right: np.ndarray
    offset: np.ndarray
    left_class: np.ndarray
    right_class: np.ndarray
    pattern_column: np.ndarray

    @property
    def n_nodes(self) -> int:
        return len(self.offset) - 1

    def columns(self, node: int) -> slice:
        return slice(int(self.offset[node]), int(self.offset[node + 1]))

    def size(self, node: int) -> int:
        return int(self.offset[node + 1] - self.offset[node])
