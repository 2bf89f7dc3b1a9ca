"""Which splits (clades, if rooted) and topologies a sample of trees contains, and how far runs agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

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
    counted: (n_runs,) how many trees frequencies are of: those of the sample, or more (counted_table).
    """

    sample: TreeSample
    run: np.ndarray
    splits: np.ndarray
    which: np.ndarray
    frequency: np.ndarray
    trivial: np.ndarray
    counted: np.ndarray

    @property
    def n_splits(self) -> int:
        return len(self.splits)

    @property
    def n_runs(self) -> int:
        return len(self.frequency)

    @property
    def probability(self) -> np.ndarray:
        """(m,) share of all trees counted, the runs pooled."""
        return np.rint(self.frequency * self.counted[:, None]).sum(axis=0) / self.counted.sum()

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
    counted = np.array([each.n_trees for each in runs])
    trivial = is_trivial(splits, sample.n_tips, sample.rooted)
    return SplitTable(sample, run, splits, which, counts / counted[:, None], trivial, counted)


class SplitCounts:
    """Splits of trees that come in batches, counted by run. Memory grows with the distinct ones only."""

    def __init__(self, n_runs: int) -> None:
        self.splits = np.zeros((0, 0), np.uint64)
        self.counts = np.zeros((n_runs, 0), np.int64)
        self.n_trees = np.zeros(n_runs, np.int64)

    def add(self, run: int, sample: TreeSample) -> None:
        """Count a batch of a run's trees."""
        bits = sample_splits(sample)
        found, inverse = unique_splits(bits[sample.parent >= 0].reshape(-1, bits.shape[2]))
        before = self.splits.reshape(-1, bits.shape[2])
        self.splits, place = unique_splits(np.concatenate([before, found]))
        counts = np.zeros((len(self.counts), len(self.splits)), np.int64)
        counts[:, place[: len(before)]] = self.counts
        counts[run, place[len(before) :]] += np.bincount(inverse)
        self.counts = counts
        self.n_trees[run] += sample.n_trees

    def of(self, splits: np.ndarray) -> np.ndarray:
        """(n_runs, m) counts of splits (m, W), all of which were counted."""
        _, place = unique_splits(np.concatenate([self.splits, splits]))
        return self.counts[:, place[len(self.splits) :]]


def counted_table(samples: Sequence[TreeSample], counts: SplitCounts) -> SplitTable:
    """The splits of some trees of every run, with their frequencies in all trees that were counted."""
    table = split_table(samples)
    return replace(table, frequency=counts.of(table.splits) / counts.n_trees[:, None], counted=counts.n_trees)


@dataclass(frozen=True)
class SplitFrequencyDeviation:
    """average (the ASDSF) and largest standard deviation of n_splits split frequencies across n_runs runs."""

    average: float
    largest: float
    n_splits: int
    n_runs: int


def split_frequency_deviation(
    runs: SplitTable | Sequence[TreeSample], minimum: float = 0.1
) -> SplitFrequencyDeviation:
    """Standard deviations of split frequencies between runs, as MrBayes reports them.

    Counts informative splits whose frequency is at least minimum in at least one run; the deviation has the
    denominator n_runs - 1. No such split: the runs agree and both numbers are 0.
    Source: Lakner et al. 2008, Syst. Biol. 57:86; MrBayes 3.2 (diagnfreq, minpartfreq).
    """
    table = runs if isinstance(runs, SplitTable) else split_table(runs)
    if table.n_runs < 2:
        raise InputError("split frequencies need two runs to compare", hint="Run the analysis with --runs 2.")
    counted = table.frequency[:, ~table.trivial & (table.frequency.max(axis=0) >= minimum - 1e-12)]
    deviation = counted.std(axis=0, ddof=1) if counted.shape[1] else np.zeros(1)
    return SplitFrequencyDeviation(
        float(deviation.mean()), float(deviation.max()), counted.shape[1], table.n_runs
    )


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
