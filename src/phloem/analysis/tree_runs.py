"""The trees of several runs as one table of splits, in bounded memory however many there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from phloem.errors import InputError
from phloem.io.tree_stream import TreeStream, is_large, tree_streams
from phloem.io.trees import read_tree_samples
from phloem.summary.splits import SplitCounts, SplitTable, counted_table, split_table
from phloem.summary.spread import evenly_spread
from phloem.tree.sample import TreeSample, concatenate, difference_of_taxa

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
    """Files of trees, one a run, or with several runs that the file tells apart, each run without its first
    share. Large ones are read in batches: every tree is counted, and some evenly spread ones are held."""
    if not any(is_large(file) for file in files):
        of_files = [read_tree_samples(file, burn_in, noted=True) for file in files]
        _require_alike(files, [samples[0] for samples in of_files])
        samples = [sample for found in of_files for sample in found]
        sizes = tuple(sample.n_trees for sample in samples)
        return TreeRuns(split_table(samples), sizes, sum(sizes))
    if not 0.0 <= burn_in < 1.0:
        raise InputError(f"a burn-in of {burn_in} leaves no tree", hint="Give a share from 0 to below 1.")
    streams = [stream for file in files for stream in tree_streams(file)]
    counts = SplitCounts(len(streams))
    held: list[TreeSample] = []
    for run, stream in enumerate(streams):
        taxa = held[0].taxa if held else None
        held.append(_counted(stream, burn_in, counts, run, KEPT // len(streams), taxa))
        _require_alike([streams[0].path, stream.path], [held[0], held[-1]])
    table = counted_table(held, counts)
    return TreeRuns(table, tuple(counts.n_trees.tolist()), table.sample.n_trees)


def _require_alike(files: Sequence[str], samples: Sequence[TreeSample]) -> None:
    """InputError that names the first file whose trees are of other taxa than the first one's, or rooted
    where those are not."""
    for file, sample in zip(files, samples):
        told = difference_of_taxa(sample.taxa, samples[0].taxa)
        if told:
            told = f"its trees differ in taxa from those of {files[0]}: {told}"
            raise InputError(told, file=file, hint="Summarise runs of one analysis.")
        if sample.rooted != samples[0].rooted:
            kind, other = ("rooted", "not") if sample.rooted else ("unrooted", "rooted")
            told = f"its trees are {kind}, those of {files[0]} are {other}"
            raise InputError(told, file=file, hint="Root or unroot all of them.")


def _counted(
    stream: TreeStream,
    burn_in: float,
    counts: SplitCounts,
    run: int,
    most: int,
    taxa: tuple[str, ...] | None,
) -> TreeSample:
    """Count a run's trees; those that are held, tips in the order of taxa."""
    first = int(burn_in * stream.n_trees)
    one = stream.first_tree(first, taxa)
    tree_bytes = one.n_nodes * (36 + 32 * ((one.n_tips + 63) // 64) + 8 * len(one.along))
    n = max(2, min(most, stream.n_trees - first, KEPT_BYTES // tree_bytes))
    wanted = evenly_spread(first, stream.n_trees, n)
    noted = frozenset(wanted.tolist() if one.along else ())
    held: list[TreeSample] = []
    for begin, sample in stream.batches(first, taxa, noted):
        counts.add(run, sample)
        inside = wanted[(wanted >= begin) & (wanted < begin + sample.n_trees)] - begin
        held.append(sample.select(inside))
    return concatenate(held)
