"""Branch lengths below zero, which neighbour joining leaves, in trees whose lengths are only a beginning, or
matter only where they are next to none."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from phloem.errors import InputWarning, shown_file
from phloem.io.trees import read_trees
from phloem.tree.tree import Tree


def without_negative(trees: Sequence[Tree], file: str) -> list[Tree]:
    """Negative lengths as zero, which fits take for the shortest that they allow, with a warning."""
    negative = sum(int((tree.lengths < 0).sum()) for tree in trees)
    if negative == 0:
        return list(trees)
    one = negative == 1
    told = "1 branch has a negative length" if one else f"{negative:,} branches have negative lengths"
    counted = "which counts as zero" if one else "which count as zero"
    warnings.warn(f"{shown_file(file)}: {told}, {counted}", InputWarning, stacklevel=3)
    return [replace(tree, lengths=np.where(tree.lengths < 0, 0.0, tree.lengths)) for tree in trees]


def trees_to_fit(file: str) -> list[Tree]:
    """Trees of a file whose lengths will be fitted. Errors as of `read_trees`."""
    return without_negative(read_trees(file, allow_negative=True), file)
