"""Branches without a length taken out: what they part is together, and the tree resolves less."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from phloem.tree.build import only_nodes
from phloem.tree.tree import Tree


def contracted(tree: Tree, shortest: float) -> tuple[Tree, int]:
    """The tree without the inner branches whose length is below shortest, in its own unit, and how many these
    were. Their labels and annotations go with them; no other length grows. A branch without a length given
    stays."""
    keep = np.ones(tree.n_nodes, bool)
    keep[tree.n_tips : -1] = ~(tree.lengths[tree.n_tips : -1] < shortest)
    if keep.all():
        return tree, 0
    above = tree.parent.copy()
    for x in range(tree.n_nodes - 2, -1, -1):  # parents come after their children
        if not keep[above[x]]:
            above[x] = above[above[x]]
    return only_nodes(replace(tree, parent=above), keep), int((~keep).sum())
