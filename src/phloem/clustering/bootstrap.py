"""Support of a tree's clades by resampling the alignment's columns (Felsenstein 1985)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from phloem.errors import InputError
from phloem.tree.sample import sample_of_trees
from phloem.tree.splits import sample_splits, tree_splits
from phloem.tree.tree import Tree


def bootstrap_support(
    tree: Tree,
    n_sites: int,
    build: Callable[[np.ndarray], Tree],
    replicates: int,
    seed: int,
    progress: Callable[[int, int], None] | None = None,
) -> Tree:
    """The tree labelled with the percentage of replicate trees that have each split (clade, if rooted).

    build: (n_sites,) columns of the alignment → tree of the same taxa. Replicate k draws its columns from the
    stream (seed, k), so any one can be repeated alone; an InputError of its own says which one it was.
    """
    splits = sample_splits(sample_of_trees([tree]))[0]
    keys = [split.tobytes() for split in splits]
    counts = dict.fromkeys(keys, 0)
    for k in range(replicates):
        columns = np.random.default_rng([seed, k]).integers(0, n_sites, n_sites)
        try:
            replicate = build(columns)
        except InputError as error:
            raise InputError(
                f"in bootstrap replicate {k + 1}: {error.message}", file=error.file, hint=error.hint
            ) from None
        for split in tree_splits(replicate):
            if (key := split.tobytes()) in counts:
                counts[key] += 1
        if progress is not None:
            progress(k + 1, replicates)
    inner = range(tree.n_tips, tree.n_nodes - 1)
    labels: list[str | None] = [None] * tree.n_nodes
    for x in inner:
        labels[x] = f"{100 * counts[keys[x]] / replicates:.0f}"
    return dataclasses.replace(tree, labels=tuple(labels))
