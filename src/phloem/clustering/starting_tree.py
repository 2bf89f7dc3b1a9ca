"""A tree to start a search or a chain from, made from the distances of the same alignment."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from phloem.clustering.distances import NoCommonSite, pairwise_distances
from phloem.clustering.joining import neighbour_joining
from phloem.clustering.linkage import linkage
from phloem.clustering.parsimony import Parsimony
from phloem.clustering.settings import DistanceSettings, usual_method
from phloem.data.alignment import Alignment
from phloem.errors import require_choice
from phloem.hardware.machine import usable_cores
from phloem.tree.tree import Tree

StartingMethod = Literal["nj", "bionj", "upgma"]
SHORTEST = 1e-8  # the smallest branch length that samplers and optimisers allow
_MOST_IN_FLOAT64 = 4096  # taxa; larger matrices are float32


@dataclass(frozen=True)
class StartingTree:
    """tree: binary, tips in the alignment's order, no length below the shortest allowed; unrooted but for
    UPGMA. origin: how it came about, for the record."""

    tree: Tree
    origin: str


def starting_tree(
    alignment: Alignment,
    method: StartingMethod = "bionj",
    shortest: float = SHORTEST,
    *,
    distances: DistanceSettings | None = None,
) -> StartingTree:
    """The tree of an alignment's own distances.

    distances: how they are measured; usual_method, pairwise deletion and saturated pairs at 5 where nobody
    says otherwise.
    Shorter branches, negative ones among them, become `shortest`: at length zero taxa that differ would have
    likelihood zero. Where two sequences have no site in common, and so no distance, the tree is one of few
    changes (parsimony.py); UPGMA raises InputError then.
    """
    require_choice("kind of starting tree", method, get_args(StartingMethod))
    n, cores = alignment.n_taxa, usable_cores()[0]
    precision: Literal["float32", "float64"] = "float64" if n <= _MOST_IN_FLOAT64 else "float32"
    settings = distances or DistanceSettings(
        usual_method(alignment.alphabet.kind), precision=precision, threads=cores
    )
    try:
        matrix = pairwise_distances(alignment, settings)
    except NoCommonSite as error:
        if method == "upgma" or n < 3:
            raise
        return _parsimonious(alignment, error.message)
    if method == "upgma":
        tree = linkage(matrix.values, overwrite=True, threads=cores).tree(matrix.taxa)
    else:
        tree = neighbour_joining(matrix.values, method, overwrite=True).tree(matrix.taxa)
    too_short = int((tree.lengths[:-1] < shortest).sum())
    lengths = np.append(np.maximum(tree.lengths[:-1], shortest), 0.0)
    origin = f"{method.upper()} from {settings.method} distances of the alignment"
    if too_short:
        origin += f", {too_short:,} shorter branches set to {shortest:g}"
    return StartingTree(replace(tree, lengths=lengths), origin)


def _parsimonious(alignment: Alignment, why: str) -> StartingTree:
    found = Parsimony(alignment).tree(np.random.default_rng(0))
    return StartingTree(found.tree, f"parsimony, {found.score:,} changes: {why}")
