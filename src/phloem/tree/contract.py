"""Branches without a length taken out: what they part is together, and the tree resolves less."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from phloem.tree.tree import Tree


def contracted(tree: Tree, shortest: float) -> tuple[Tree, int]:
    """The tree without the inner branches whose length is below shortest, in its own unit, and how many these
    were. Their labels and annotations go with them; no other length grows. A branch without a length given
    stays."""
    keep = np.ones(tree.n_nodes, bool)
    keep[tree.n_tips : -1] = ~(tree.lengths[tree.n_tips : -1] < shortest)
    if keep.all():
        return tree, 0
    number = np.cumsum(keep) - 1
    above = tree.parent.copy()
    for x in range(tree.n_nodes - 2, -1, -1):  # parents come after their children
        if not keep[above[x]]:
            above[x] = above[above[x]]
    parent = np.where(above < 0, -1, number[above])[keep].astype(np.int32)
    labels = None if tree.labels is None else tuple(np.array(tree.labels, object)[keep].tolist())
    annotations = {int(number[x]): values for x, values in tree.annotations.items() if keep[x]}
    lengths = tree.lengths[keep]
    less = replace(tree, parent=parent, lengths=lengths, labels=labels, annotations=annotations)
    return less, int((~keep).sum())
