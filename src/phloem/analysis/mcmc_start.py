"""What the chains of `phloem mcmc` start from: random trees, a distance tree, or a tree of a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from phloem.clustering.parsimony import Parsimony
from phloem.clustering.starting_tree import starting_tree
from phloem.data.alignment import Alignment
from phloem.errors import STANDARD_INPUT, InputError, count_of, shown_file
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.start import START_LENGTH, n_interchanges
from phloem.io.input_file import input_digest
from phloem.io.trees import read_trees
from phloem.tree.match import folded, match_taxa
from phloem.tree.tree import Tree

RANDOM, PARSIMONY = "random", "parsimony"
METHODS = ("nj", "bionj", "upgma", PARSIMONY)
_STREAM = 7  # of random numbers


@dataclass(frozen=True)
class ChainStart:
    """tree: None for random trees. origin: how the starts come about."""

    tree: Tree | None
    origin: str


def chain_start(
    start: str,
    alignment: Alignment,
    chains: ChainSettings,
    tree_name: str | None = None,
    others: Sequence[Alignment] = (),
) -> ChainStart:
    """The start that `random`, `nj`, `bionj`, `upgma`, `parsimony` or a file name stands for; tree_name: of
    which of the file's trees, or its number from 1, the first by default. others: further parts of the data,
    of which changes count, too.

    Branch lengths outside their bounds become the bound. Every chain of every run perturbs the
    tree by random interchanges of its own (inference.mcmc.start.perturbed), or only its lengths, where the
    topology is fixed. Errors: InputError for a file that is not there or whose taxa are not the alignment's,
    and for a fixed topology that is none.
    """
    bounds = chains.branch_length_bounds
    if tree_name is not None and (start == RANDOM or start in METHODS):
        raise InputError(
            f"--start-tree {tree_name}, and --start {start} is no file", hint="Add --start FILE, a tree file."
        )
    if start == RANDOM and chains.fixed_topology:
        raise InputError(
            "a fixed topology is that of --start, and --start is random",
            hint="Add --start FILE, a tree file, or --start bionj.",
        )
    if start == RANDOM:
        return ChainStart(None, "a random tree for each chain")
    how = f"{n_interchanges(alignment.n_taxa)} random interchanges for each chain"
    if chains.fixed_topology:
        how = "its topology is fixed, lengths are perturbed for each chain"
    if start == PARSIMONY:
        rng = np.random.default_rng([chains.seed, _STREAM])
        least = Parsimony(alignment, *others).tree(rng)
        origin = f"a tree of {least.score:,} changes, taxa added in random order"
        return ChainStart(least.tree, f"{origin}; {how}")
    if start in METHODS:
        found = starting_tree(alignment, start, bounds[0])  # type: ignore[arg-type]
        return ChainStart(found.tree, f"{found.origin}; {how}")
    if start != STANDARD_INPUT and not Path(start).exists():
        raise InputError(
            "--start names neither a kind of start nor a file that exists",
            file=start,
            hint=f"Use {RANDOM}, {', '.join(METHODS)}, or a Newick or NEXUS file.",
        )
    tree = match_taxa(_tree_of(start, tree_name), alignment.taxa, file=start)
    if chains.fixed_topology and not _binary(tree):
        raise InputError(
            "the tree has nodes with more than two branches below, and so says no topology to be fixed",
            file=start,
            hint="Resolve them, or sample topologies with --constraint for its splits.",
        )
    which = "" if tree_name is None else f", tree {tree_name}"
    return ChainStart(tree, f"{shown_file(start)}{which}{_repaired(tree, bounds)}; {how}")


def _tree_of(file: str, tree_name: str | None) -> Tree:
    """The tree of a name, else of a number from 1; the first if None."""
    trees = read_trees(file, allow_negative=True)
    if tree_name is None:
        return trees[0]
    names = [tree.name or "" for tree in trees]
    if len(at := named_trees(tree_name, names)) > 1:
        numbers = f"Give the number of one: {', '.join(str(k + 1) for k in at[:9])}."
        raise InputError(f"{len(at)} trees are called '{tree_name}'", file=file, hint=numbers)
    if at:
        return trees[at[0]]
    if not 1 <= count_of(tree_name) <= len(trees):
        named = f"There are {len(trees):,}{': ' + ', '.join(names[:9]) if any(names) else ''}."
        raise InputError(f"there is no tree '{tree_name}'", file=file, hint=named)
    return trees[count_of(tree_name) - 1]


def named_trees(wanted: str, names: Sequence[str]) -> list[int]:
    """Which of the names it is, as it is written, or where none is so, whatever the case."""
    same = [i for i, name in enumerate(names) if name == wanted]
    return same or [i for i, name in enumerate(names) if folded(name) == folded(wanted)]


def _binary(tree: Tree) -> bool:
    """Whether an unrooted tree, however it is written, has no multifurcation."""
    below = np.bincount(tree.parent[:-1], minlength=tree.n_nodes)
    return bool((below[:-1] <= 2).all() and below[-1] <= 3)


def _repaired(tree: Tree, bounds: tuple[float, float]) -> str:
    lengths = tree.lengths[:-1]
    missing = int(np.isnan(lengths).sum())
    outside = int(((lengths < bounds[0]) | (lengths > bounds[1])).sum())
    text = f", {missing:,} missing lengths set to {START_LENGTH:g}" if missing else ""
    return text + (f", {outside:,} lengths moved into {bounds[0]:g} … {bounds[1]:g}" if outside else "")


def start_identity(start: str, tree_name: str | None) -> dict[str, str]:
    """What a checkpoint records of the start: nothing of random ones, nor of first trees, which older
    checkpoints do not name."""
    if start == RANDOM:
        return {}
    which = {} if tree_name is None else {"start_tree": tree_name}
    return {"start": start if start in METHODS else input_digest(start)} | which
