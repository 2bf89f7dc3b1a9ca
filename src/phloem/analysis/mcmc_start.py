"""What the chains of an analysis start from: random trees, a distance tree, or a tree file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from phloem.analysis.provenance import sha256
from phloem.clustering.starting_tree import starting_tree
from phloem.data.alignment import Alignment
from phloem.errors import InputError
from phloem.inference.mcmc.starting_trees import START_LENGTH, n_interchanges
from phloem.io.trees import read_tree
from phloem.tree.match import match_taxa
from phloem.tree.tree import Tree

RANDOM = "random"
METHODS = ("nj", "bionj", "upgma")


@dataclass(frozen=True)
class ChainStart:
    """tree: None for random trees. origin: how the starts come about. files: read for it."""

    tree: Tree | None
    origin: str
    files: tuple[str, ...] = ()


def chain_start(start: str, alignment: Alignment, bounds: tuple[float, float]) -> ChainStart:
    """The start that `random`, `nj`, `bionj`, `upgma` or a file name stands for.

    bounds: of the branch lengths; what lies outside becomes the bound. Every chain of every run perturbs the
    tree by random interchanges of its own (inference.mcmc.starting_trees.perturbed). Errors: InputError for a
    file that is not there or whose taxa are not the alignment's.
    """
    if start == RANDOM:
        return ChainStart(None, "a random tree for each chain")
    how = f"{n_interchanges(alignment.n_taxa)} random interchanges for each chain"
    if start in METHODS:
        found = starting_tree(alignment, start, bounds[0])  # type: ignore[arg-type]
        return ChainStart(found.tree, f"{found.origin}; {how}")
    if not Path(start).exists():
        raise InputError(
            "--start names neither a kind of start nor a file that exists",
            file=start,
            hint=f"Use {RANDOM}, {', '.join(METHODS)}, or a Newick or NEXUS file.",
        )
    tree = match_taxa(read_tree(start, allow_negative=True), alignment.taxa, file=start)
    return ChainStart(tree, f"{start}{_repaired(tree, bounds)}; {how}", (start,))


def _repaired(tree: Tree, bounds: tuple[float, float]) -> str:
    lengths = tree.lengths[:-1]
    missing = int(np.isnan(lengths).sum())
    outside = int(((lengths < bounds[0]) | (lengths > bounds[1])).sum())
    text = f", {missing:,} missing lengths set to {START_LENGTH:g}" if missing else ""
    return text + (f", {outside:,} lengths moved into {bounds[0]:g} … {bounds[1]:g}" if outside else "")


def start_identity(start: str) -> dict[str, str]:
    """What a checkpoint records of the start: nothing of random ones, which older checkpoints do not name."""
    if start == RANDOM:
        return {}
    return {"start": start if start in METHODS else sha256(start)}
