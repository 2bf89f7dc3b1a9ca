"""What the compiled lists must say, column by column: a cell is None (no data), (state, distance), a vector.

De Maio et al. 2023. The first-order forms: P(t) = I + Q t, log P_ss(t) = Q_ss t. Slow; for tests.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Cell = tuple[int, float] | np.ndarray | None
Genome = list[Cell]


def joined(q: np.ndarray, a: Cell, b: Cell, ta: float, tb: float) -> tuple[Cell, float]:
    """The cell of a node from those at the far ends of two branches, and the log of what was taken out."""
    if a is None or b is None:
        known, t = (b, tb) if a is None else (a, ta)
        if known is None:
            return None, 0.0
        if isinstance(known, tuple):
            return (known[0], known[1] + t), 0.0
        return _scaled(known + t * q @ known)
    if isinstance(a, tuple) and isinstance(b, tuple) and a[0] == b[0]:
        return (a[0], 0.0), q[a[0], a[0]] * (a[1] + ta + b[1] + tb)
    return _scaled(_spread(q, a, ta) * _spread(q, b, tb))


def compared(q: np.ndarray, prior: np.ndarray, a: Cell, b: Cell, t: float) -> float:
    """log L of one column from what is known at both ends of a branch."""
    if a is None and b is None:
        return 0.0
    if a is None or b is None:
        known = b if a is None else a
        return float(np.log(prior[known[0]] if isinstance(known, tuple) else prior @ known))
    if isinstance(a, tuple) and isinstance(b, tuple) and a[0] == b[0]:
        return float(np.log(prior[a[0]]) + q[a[0], a[0]] * (a[1] + b[1] + t))
    right = _spread(q, b, 0.0)
    return float(np.log(prior * _spread(q, a, 0.0) @ (right + t * q @ right)))


def log_likelihood(
    q: np.ndarray, prior: np.ndarray, children: np.ndarray, lengths: Sequence[float], tips: list[Genome]
) -> float:
    """Of a tree whose root is tip 0. children: (N, 2), -1 of none; lengths: (N,) of the branches above."""

    def below(x: int) -> tuple[Genome, float]:
        if x < len(tips):
            return tips[x], 0.0
        (left, own), (right, other) = (below(int(c)) for c in children[x])
        cells = [joined(q, a, b, *(lengths[int(c)] for c in children[x])) for a, b in zip(left, right)]
        return [cell for cell, _ in cells], own + other + sum(log for _, log in cells)

    child = int(children[0, 0])
    genome, total = below(child)
    return total + sum(compared(q, prior, a, b, lengths[child]) for a, b in zip(genome, tips[0]))


def _spread(q: np.ndarray, cell: Cell, t: float) -> np.ndarray:
    if isinstance(cell, tuple):
        return np.eye(4)[cell[0]] + (cell[1] + t) * q[:, cell[0]]
    assert cell is not None
    return cell + t * q @ cell


def _scaled(vector: np.ndarray) -> tuple[Cell, float]:
    top = vector.max()
    if (vector > 0).sum() == 1:
        return (int(vector.argmax()), 0.0), float(np.log(top))
    return np.maximum(vector, 0) / top, float(np.log(top))
