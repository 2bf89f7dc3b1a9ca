"""`phloem summarise`: the trees of one or more runs as one tree, with how often its clades were sampled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from phloem.analysis.outputs import check_outputs
from phloem.errors import InputError, require_choice
from phloem.io.trees import newick_text, read_tree_sample, write_trees
from phloem.summary.clade_trees import tree_of_clades
from phloem.summary.splits import (
    SplitFrequencyDeviation,
    split_frequency_deviation,
    split_table,
    topology_table,
)
from phloem.summary.trees import consensus_tree
from phloem.tree.tree import Tree

SummaryTree = Literal["majority", "allcompat", "mcc", "hipstr", "ccd"]
OF_CLADES = ("mcc", "hipstr", "ccd")
Middle = Literal["mean", "median", "common-ancestor", "keep"]


@dataclass(frozen=True)
class SummariseSettings:
    """files: tree files of the runs, one a run; the first share burn_in of each is left out.

    tree: the majority-rule consensus, the same with further compatible splits, or the sampled tree of maximum
    clade credibility, or one put together of sampled clades (hipstr, ccd: summary/clade_trees.py). middle:
    branch lengths of a consensus (mean, median), or of unrooted mcc trees (keep as well), or node heights of
    the others. mass: of HPD intervals and of the credible set of topologies.
    out: file for the tree, replaced only with redo; NEXUS if its name says so.
    """

    files: tuple[str, ...]
    tree: SummaryTree = "majority"
    burn_in: float = 0.25
    middle: Middle = "mean"
    mass: float = 0.95
    out: str | None = None
    redo: bool = False


@dataclass(frozen=True)
class TreeSampleSummary:
    """tree: annotated with clade probabilities and intervals. per_run: how many trees of each run were used.

    topologies: how many distinct ones; credible: the fewest of them that hold the mass. deviation: of split
    frequencies between runs, None for a single run.
    """

    tree: Tree
    per_run: tuple[int, ...]
    topologies: int
    credible: int
    deviation: SplitFrequencyDeviation | None


def run_summarise(settings: SummariseSettings) -> TreeSampleSummary:
    """Read, summarise and, if a file is named, write. InputError for runs of different taxa or rooting."""
    require_choice("kind of summary tree", settings.tree, ("majority", "allcompat", *OF_CLADES))
    if settings.tree not in OF_CLADES and settings.middle not in ("mean", "median"):
        raise InputError(
            f"a consensus has no '{settings.middle}' branch lengths",
            hint="Choose mean or median, or --tree mcc.",
        )
    if not 0.0 < settings.mass <= 1.0:
        raise InputError(f"a mass of {settings.mass:g} is no share", hint="Choose above 0, at most 1.")
    check_outputs([settings.out], settings.files, settings.redo)
    samples = [read_tree_sample(file, settings.burn_in) for file in settings.files]
    table = split_table(samples)
    if settings.tree == "majority" or settings.tree == "allcompat":
        lengths: Literal["mean", "median"] = "median" if settings.middle == "median" else "mean"
        tree = consensus_tree(table, settings.tree, mass=settings.mass, lengths=lengths)
    else:
        tree = tree_of_clades(table, settings.tree, settings.middle, settings.mass)
    topologies = topology_table(table)
    if settings.out is not None:
        write_trees(settings.out, tree)
    return TreeSampleSummary(
        tree,
        tuple(sample.n_trees for sample in samples),
        len(topologies.frequency),
        len(topologies.credible_set(settings.mass)),
        split_frequency_deviation(table) if len(samples) > 1 else None,
    )


def summary_newick(summary: TreeSampleSummary) -> str:
    """The tree as one line of Newick, annotated."""
    return newick_text([summary.tree]).rstrip("\n")
