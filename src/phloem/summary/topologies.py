"""How often each topology was sampled, and the credible set of topologies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from phloem.errors import InputError
from phloem.summary.split_table import SplitTable, split_table
from phloem.tree.sample import TreeSample


@dataclass(frozen=True)
class TopologyTable:
    """Distinct topologies from the most to the least frequent.

    first: (k,) index of the first tree of each in the pooled sample. frequency: (k,) share of the trees.
    of_tree: (n,) topology of each tree.
    """

    first: np.ndarray
    frequency: np.ndarray
    of_tree: np.ndarray

    def credible_set(self, mass: float = 0.95) -> np.ndarray:
        """The fewest topologies, most frequent first, that hold at least a share mass of the sample."""
        if not 0.0 < mass <= 1.0:
            raise InputError(f"a credible mass of {mass} makes no sense", hint="Choose above 0, at most 1.")
        n = int(np.searchsorted(np.cumsum(self.frequency), mass - 1e-12)) + 1
        return np.arange(min(n, len(self.frequency)))


def topology_table(runs: SplitTable | TreeSample | Sequence[TreeSample]) -> TopologyTable:
    """Group trees by their sets of informative splits (clades, if rooted); exact, no hashing."""
    table = runs if isinstance(runs, SplitTable) else split_table(runs)
    informative = np.append(~table.trivial, False)
    own = np.sort(np.where(informative[table.which], table.which, -1), axis=1)
    used = own[:, (own >= 0).any(axis=0)]
    if used.shape[1] == 0:
        used = np.zeros((len(own), 1), np.int64)
    _, first, inverse, counts = np.unique(
        used, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.lexsort([first, -counts])
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return TopologyTable(first[order], counts[order] / len(used), rank[inverse.ravel()])
