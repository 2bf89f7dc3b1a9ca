"""Which splits (clades, if rooted) a sample of trees contains, and how often."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from phloem.errors import InputError
from phloem.tree.sample import TreeSample, concatenate
from phloem.tree.splits import is_trivial, sample_splits, split_sizes, unique_splits


@dataclass(frozen=True)
class SplitTable:
    """Distinct splits of the trees of one or more runs.

    sample: all trees, run after run. run: (n,) the run of each tree. splits: (m, W) uint64, ascending.
    which: (n, N) int64, the split above each node, -1 at roots and absent nodes.
    frequency: (n_runs, m) share of each run's trees with the split. trivial: (m,) bool, in every tree.
    """

    sample: TreeSample
    run: np.ndarray
    splits: np.ndarray
    which: np.ndarray
    frequency: np.ndarray
    trivial: np.ndarray

    @property
    def n_splits(self) -> int:
        return len(self.splits)

    @property
    def n_runs(self) -> int:
        return len(self.frequency)

    @property
    def probability(self) -> np.ndarray:
        """(m,) share of all trees, the runs pooled."""
        return np.bincount(self.which[self.which >= 0], minlength=self.n_splits) / self.sample.n_trees

    @property
    def sizes(self) -> np.ndarray:
        """(m,) number of tips of each split."""
        return split_sizes(self.splits)


def split_table(samples: TreeSample | Sequence[TreeSample]) -> SplitTable:
    """Count the splits of a sample, or of several runs over the same taxa in the same order."""
    runs = [samples] if isinstance(samples, TreeSample) else list(samples)
    sample = runs[0] if len(runs) == 1 else concatenate(runs)
    least = 2 if sample.rooted else 3
    if sample.n_tips < least:
        raise InputError(f"trees of fewer than {least} taxa have no splits", hint="Give larger trees.")
    bits = sample_splits(sample)
    n, n_nodes, n_words = bits.shape
    present = sample.parent >= 0
    which = np.full((n, n_nodes), -1, np.int64)
    splits, inverse = unique_splits(bits[present].reshape(-1, n_words))
    which[present] = inverse
    run = np.repeat(np.arange(len(runs)), [each.n_trees for each in runs])
    pair = np.broadcast_to(run[:, None], which.shape)[present] * len(splits) + inverse
    counts = np.bincount(pair, minlength=len(runs) * len(splits)).reshape(len(runs), -1)
    frequency = counts / np.array([each.n_trees for each in runs])[:, None]
    return SplitTable(sample, run, splits, which, frequency, is_trivial(splits, sample.n_tips, sample.rooted))
