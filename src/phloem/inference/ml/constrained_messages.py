"""Messages whose regrafts and interchanges are those that a constraint allows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from phloem.pruning.cpu.directed_insertions import Looks
from phloem.pruning.cpu.directed_messages import Regrafts
from phloem.pruning.cpu.directed_quartets import Resolutions
from phloem.pruning.tree_messages import TreeMessages
from phloem.tree.constraint import Constraint


class ConstrainedMessages:
    """What TreeMessages offer. A regraft or a resolution that breaks the constraint scores -inf."""

    def __init__(self, free: TreeMessages, constraint: Constraint) -> None:
        self.free, self.constraint = free, constraint

    def fill(self, back: np.ndarray, lengths: np.ndarray, order: np.ndarray) -> float:
        return self.free.fill(back, lengths, order)

    def fill_half(self, back: np.ndarray, lengths: np.ndarray, order: np.ndarray) -> float:
        return self.free.fill_half(back, lengths, order)

    def sweep(
        self, back: np.ndarray, lengths: np.ndarray, order: np.ndarray, todo: np.ndarray | None = None
    ) -> float:
        return self.free.sweep(back, lengths, order, todo)

    def sites(self) -> np.ndarray:
        return self.free.sites()

    def set_weights(self, weights: np.ndarray) -> None:
        self.free.set_weights(weights)

    def regrafts(
        self,
        back: np.ndarray,
        lengths: np.ndarray,
        order: np.ndarray,
        pruned: np.ndarray,
        radius: int,
        slack: float = np.inf,
    ) -> Regrafts:
        found = self.free.regrafts(back, lengths, order, pruned, radius, slack)
        allowed = self.constraint.regrafts(back, found.pruned, found.out, radius)
        return found._replace(scores=np.where(allowed, found.scores, -np.inf))

    def resolutions(self, back: np.ndarray, lengths: np.ndarray, branches: np.ndarray) -> Resolutions:
        found = self.free.resolutions(back, lengths, branches)
        values = found.values.copy()
        values[:, 1:][~self.constraint.interchanges(back, branches)] = -np.inf
        return found._replace(values=values)

    def fitted(
        self, rows: np.ndarray, found: Regrafts, back: np.ndarray, lengths: np.ndarray, sites: bool = False
    ) -> Looks:
        return self.free.fitted(rows, found, back, lengths, sites)


Messages = TreeMessages | ConstrainedMessages


def unconstrained(messages: Messages) -> TreeMessages:
    return messages.free if isinstance(messages, ConstrainedMessages) else messages


def allowed_by(messages: Messages) -> Callable[[np.ndarray], bool]:
    """Whether a tree (half_edges.HalfEdges.back) may be gone to."""
    if isinstance(messages, ConstrainedMessages):
        return messages.constraint.obeyed
    return lambda _: True
