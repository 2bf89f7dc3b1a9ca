"""The trees of bootstrap replicates together: how often each split is among them, and their consensus."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from phloem.inference.ml.searched import Fit, Searched
from phloem.summary.trees import all_compatible, parents_of_splits
from phloem.tree.build import tree_from_parents
from phloem.tree.sample import sample_of_trees
from phloem.tree.splits import is_trivial, sample_splits, split_sizes
from phloem.tree.tree import Tree

_NEW = 0.01  # a length to begin from


@dataclass(frozen=True, eq=False)
class Replicates:
    """shares: of the trees that have an inner split, by its bytes (tree/splits.py), of the distinct
    sequences. consensus: of all sequences, with percentages as labels and fitted lengths."""

    shares: Mapping[bytes, float]
    consensus: Tree


def extended_consensus(shares: Mapping[bytes, float], taxa: Sequence[str]) -> Tree:
    """Splits from the most frequent down, as long as they contradict none before, of equal ones the larger
    first; labels are percentages. shares: above 0, of inner splits by their bytes."""
    words = words_of(shares, len(taxa))
    own, sizes = np.array(list(shares.values())), split_sizes(words)
    order = np.lexsort([-sizes, -own])
    chosen = order[all_compatible(words[order], len(taxa) - 3)]
    chosen = chosen[np.argsort(sizes[chosen], kind="stable")]
    names = [*taxa, *(f"{100 * own[k]:.0f}" for k in chosen.tolist()), None]
    parent = parents_of_splits(words[chosen], len(taxa))
    return tree_from_parents(names, parent, np.full(len(names), _NEW), taxa=taxa, rooted=False)


def words_of(keys: Iterable[bytes], n_taxa: int) -> np.ndarray:
    """(n, W) splits from their bytes."""
    return np.frombuffer(b"".join(keys), np.uint64).reshape(-1, (n_taxa + 63) // 64)


def inner_shares(shares: Mapping[bytes, float], n_taxa: int) -> dict[bytes, float]:
    """Those of splits that a tree may lack, and some tree has."""
    keys = [key for key, share in shares.items() if share > 0]
    words = words_of(keys, n_taxa)
    trivial = is_trivial(words, n_taxa, False).tolist()
    return {key: shares[key] for key, own in zip(keys, trivial) if not own}


def with_fitted_lengths(consensus: Tree, data: Searched, fit: Fit, threads: int | None) -> Tree:
    """The same tree with its likeliest lengths; it begins from those of the fit, whose branches it mostly
    has. What resolves a multifurcation for the engine is not in it."""
    known = dict(zip(_keys(fit.tree), fit.tree.lengths.tolist()))
    keys = _keys(consensus)
    begun = replace(consensus, lengths=np.array([known.get(key, _NEW) for key in keys]), labels=None)
    if not set(keys) <= known.keys():
        likelihood = data.likelihood(data.edges(begun), data.values_of(fit), threads)
        refined = data.refined(likelihood).tree
        known = dict(zip(_keys(refined), refined.lengths.tolist()))
    return replace(consensus, lengths=np.array([known[key] for key in keys]))


def _keys(tree: Tree) -> list[bytes]:
    """Of every node the split of the branch above it."""
    return [split.tobytes() for split in sample_splits(sample_of_trees([tree]))[0]]
