"""The trees of several runs as one table of splits, in bounded memory however many there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from phloem.errors import InputError
from phloem.io.tree_stream import TreeStream, is_large, tree_stream
from phloem.io.trees import read_tree_sample
from phloem.summary.splits import SplitCounts, SplitTable, counted_table, split_table
from phloem.tree.sample import TreeSample, concatenate

KEPT = 20_000  # trees, of all runs, at most, of a file that is too large to be held
KEPT_BYTES = 1 << 30  # that these and their splits take, at most


@dataclass(frozen=True, eq=False)
class TreeRuns:
    """table: the splits of all runs. per_run: trees after the burn-in. held: how many of all are in the
    table's sample, of which lengths, heights and topologies are; frequencies count every tree."""

    table: SplitTable
    per_run: tuple[int, ...]
    held: int


def read_tree_runs(files: Sequence[str], burn_in: float) -> TreeRuns:
    """Files of trees, one a run, each without its first share. Large ones are read in batches: every tree is
    counted, and some evenly spread ones are held."""
    if not any(is_large(file) for file in files):
        samples = [read_tree_sample(file, burn_in) for file in files]
        sizes = tuple(sample.n_trees for sample in samples)
        return TreeRuns(split_table(samples), sizes, sum(sizes))
    if not 0.0 <= burn_in < 1.0:
        raise InputError(f"a burn-in of {burn_in} leaves no tree", hint="Give a share from 0 to below 1.")
    counts = SplitCounts(len(files))
    held = [
        _counted(tree_stream(file), burn_in, counts, run, KEPT // len(files))
        for run, file in enumerate(files)
    ]
    table = counted_table(held, counts)
    return TreeRuns(table, tuple(counts.n_trees.tolist()), table.sample.n_trees)


def _counted(stream: TreeStream, burn_in: float, counts: SplitCounts, run: int, most: int) -> TreeSample:
    """Count a run's trees; those that are held."""
    first = int(burn_in * stream.n_trees)
    held: list[TreeSample] = []
    wanted = np.zeros(0, np.int64)
    for begin, sample in stream.batches(first):
        counts.add(run, sample)
        if not held:
            tree_bytes = sample.n_nodes * (36 + 32 * ((sample.n_tips + 63) // 64))
            n = max(2, min(most, stream.n_trees - first, KEPT_BYTES // tree_bytes))
            wanted = np.unique(np.linspace(first, stream.n_trees - 1, n).round().astype(np.int64))
        inside = wanted[(wanted >= begin) & (wanted < begin + sample.n_trees)] - begin
        held.append(sample.select(inside))
    return concatenate(held)
