"""Parts of the data that have branch lengths of their own: messages of every set of lengths, summed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phloem.pruning.cpu.directed_insertions import Looks
from phloem.pruning.cpu.directed_messages import DirectedMessages, Regrafts, screened
from phloem.pruning.cpu.directed_quartets import Resolutions


class DirectedSets:
    """What DirectedMessages offers, of K sets of branch lengths on one topology: lengths are (4T-6, K).

    On one topology sets do not know of one another: each is fitted alone, and scores are sums. Patterns are
    those of all sets, in order.
    """

    def __init__(self, sets: Sequence[DirectedMessages]) -> None:
        self.sets = tuple(sets)

    @property
    def n_sites(self) -> float:
        return sum(one.n_sites for one in self.sets)

    def fill(self, back: np.ndarray, lengths: np.ndarray, order: np.ndarray) -> float:
        return sum(one.fill(back, own, order) for one, own in self._each(lengths))

    def fill_half(self, back: np.ndarray, lengths: np.ndarray, order: np.ndarray) -> float:
        return sum(one.fill_half(back, own, order) for one, own in self._each(lengths))

    def sweep(
        self, back: np.ndarray, lengths: np.ndarray, order: np.ndarray, todo: np.ndarray | None = None
    ) -> float:
        value = 0.0
        for k, (one, own) in enumerate(self._each(lengths)):
            value += one.sweep(back, own, order, todo)
            lengths[:, k] = own
        return value

    def sites(self) -> np.ndarray:
        return np.concatenate([one.sites() for one in self.sets])

    def set_weights(self, weights: np.ndarray) -> None:
        ends = np.cumsum([one.n_patterns for one in self.sets])[:-1]
        for one, own in zip(self.sets, np.split(weights, ends)):
            one.set_weights(own)

    def regrafts(
        self,
        back: np.ndarray,
        lengths: np.ndarray,
        order: np.ndarray,
        pruned: np.ndarray,
        radius: int,
        slack: float = np.inf,
    ) -> Regrafts:
        each = [own for _, own in self._each(lengths)]
        return screened(self.sets, back, each, order, pruned, radius, slack)

    def resolutions(self, back: np.ndarray, lengths: np.ndarray, branches: np.ndarray) -> Resolutions:
        """lengths (n, 3, 5, K)."""
        found = [one.resolutions(back, own, branches) for one, own in self._each(lengths)]
        return Resolutions(
            np.sum([one.values for one in found], axis=0),
            np.stack([one.lengths for one in found], -1),
            np.concatenate([one.sites for one in found], -1),
        )

    def fitted(
        self, rows: np.ndarray, found: Regrafts, back: np.ndarray, lengths: np.ndarray, sites: bool = False
    ) -> Looks:
        """found (n, 4, K): the log-likelihood of every set, and its three lengths."""
        looks = [one.fitted(rows, found, back, own, sites) for one, own in self._each(lengths)]
        return Looks(
            np.stack([one.found for one in looks], -1), np.concatenate([one.sites for one in looks], -1)
        )

    def _each(self, lengths: np.ndarray) -> list[tuple[DirectedMessages, np.ndarray]]:
        return [(one, np.ascontiguousarray(lengths[:, k])) for k, one in enumerate(self.sets)]
