"""The trees that searches begin from, and how hard the data are, by how much their ends agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from phloem.clustering.parsimony import Parsimony
from phloem.clustering.starting_tree import starting_tree
from phloem.data.alignment import Alignment
from phloem.hardware.ranks import Ranks
from phloem.model.record import ParameterValue
from phloem.tree.half_edges import HalfEdges, branch_splits, topology_key
from phloem.tree.tree import Tree

_STREAM = 5  # of random numbers
MANY = 500  # taxa, of which distances across the tree say little, and what is done to all is long
_RADIUS = 10  # nodes that a subtree is moved there to save changes
LEAST_CLIMBS = 5  # climbs that say how hard the data are
_REJECTED = 1.6449  # standard errors; one-sided 5 % of a normal


@dataclass(frozen=True, eq=False)
class Start:
    """A tree to begin from and how it came about; a file's tree may lack lengths. values: of the model's
    parameters, near their optimum; without them those are sought from all their starts. held: whether its
    topology, multifurcations too, is the one that is asked about; near: whether its lengths are, which are
    not swept over one by one then before all are fitted together."""

    tree: Tree
    origin: str = "the tree given"
    values: Mapping[str, ParameterValue] | None = None
    held: bool = False
    near: bool = False


def bionj_start(alignment: Alignment) -> Start:
    """BIONJ's tree, of many taxa with subtrees moved while that saves changes; or a tree of few changes where
    there are no distances."""
    made = starting_tree(alignment)
    if alignment.n_taxa < MANY:
        return Start(made.tree, made.origin)
    found = Parsimony(alignment).improved(made.tree, np.random.default_rng(0), _RADIUS)
    return Start(found.tree, f"{made.origin}, moved to {found.score:,} changes", near=True)


def parsimony_start(
    parsimony: Parsimony, seed: int, number: int = 1, values: Mapping[str, ParameterValue] | None = None
) -> Start:
    """A tree of few changes, of a random order of taxa."""
    found = parsimony.tree(np.random.default_rng([seed, _STREAM, number]))
    return Start(found.tree, f"parsimony, {found.score:,} changes", values)


def further_start(
    parsimony: Parsimony, number: int, values: Mapping[str, ParameterValue], seed: int
) -> Start:
    """Of search `number`, from 2 on: in turn a parsimonious tree, and a random one."""
    if number % 2 == 0:
        return parsimony_start(parsimony, seed, number, values)
    tree = parsimony.random_tree(np.random.default_rng([seed, _STREAM, number]))
    return Start(tree, "a random tree", values)


def own_starts(starts: int, here: Ranks) -> list[int]:
    """Numbers, from 1, of the starts that a rank has: dealt there and back, since parsimonious and random
    trees, which take longer, alternate."""
    there = [*range(here.size), *reversed(range(here.size))]
    return [k + 1 for k in range(starts) if there[k % len(there)] == here.number]


def with_lengths(tree: Tree) -> Tree:
    """Lengths that a file does not give are plain ones: all are fitted."""
    return replace(tree, lengths=np.where(np.isfinite(tree.lengths), np.maximum(tree.lengths, 0.0), 0.1))


class Difficulty(NamedTuple):
    """How little independent climbs agree: 0, all end on one tree, to 1.

    value: the mean of five shares, as what Pythia predicts is made up (Haag et al. 2022, Mol. Biol. Evol.
    39:msac254): the mean Robinson-Foulds distance of the trees on which climbs ended, the share of them (but
    the first) that is new, the same two of the plausible ones, and how many are not plausible. plausible:
    not worse than the best by a one-sided test at 5 % (Kishino and Hasegawa 1989, normal), topologies of
    them. distance: the first of the five.
    """

    value: float
    climbs: int
    topologies: int
    plausible: int
    distance: float


def difficulty(ends: Sequence[HalfEdges], sites: np.ndarray, weights: np.ndarray) -> Difficulty | None:
    """ends: the trees that climbs reached, one a climb; None of fewer than five climbs, or four taxa.
    sites: (n, P) their log-likelihoods by pattern; weights: (P,)."""
    if len(ends) < LEAST_CLIMBS or ends[0].n_tips < 4:
        return None
    behind = (totals := sites @ weights).max() - totals
    apart = sites[int(np.argmax(totals))] - sites
    n = weights.sum()
    spread = np.sqrt(np.maximum((apart**2) @ weights - behind**2 / n, 0.0) * n / max(n - 1.0, 1.0))
    kept = [i for i in range(len(ends)) if behind[i] <= _REJECTED * spread[i] or behind[i] <= 0.0]
    keys = [topology_key(edges.back) for edges in ends]
    distances = _distances(ends)
    distance, near = (_mean_of_pairs(distances[np.ix_(some, some)]) for some in (range(len(ends)), kept))
    topologies, plausible = len(set(keys)), len({keys[i] for i in kept})
    shares = (
        distance,
        _surplus(topologies, len(ends)),
        near,
        _surplus(plausible, len(kept)),
        1.0 - len(kept) / len(ends),
    )
    return Difficulty(float(np.mean(shares)), len(ends), topologies, plausible, distance)


def _surplus(distinct: int, n: int) -> float:
    """Share of the trees but the first that are new: 0 where all are one tree, however few there are."""
    return (distinct - 1) / (n - 1) if n > 1 else 0.0


def _distances(ends: Sequence[HalfEdges]) -> np.ndarray:
    """(n, n) Robinson-Foulds distances as shares of the largest possible."""
    n_tips = ends[0].n_tips
    own = []
    for edges in ends:
        order, splits = branch_splits(edges.back)
        inner = (order >= n_tips) & (edges.back[order] >= n_tips)
        own.append({split.tobytes() for split in splits[inner]})
    return np.array([[1.0 - len(a & b) / (n_tips - 3) for b in own] for a in own])


def _mean_of_pairs(distances: np.ndarray) -> float:
    n = len(distances)
    return float(distances[np.triu_indices(n, 1)].mean()) if n > 1 else 0.0
