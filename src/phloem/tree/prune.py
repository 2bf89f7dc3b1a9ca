"""Trees with fewer tips, or fewer inner branches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from phloem.errors import InputError
from phloem.tree.build import only_nodes, suppress_unary
from phloem.tree.match import folded, likely_name
from phloem.tree.reroot import unroot
from phloem.tree.tree import Tree


def without_tips(tree: Tree, names: Sequence[str], file: str | None = None) -> Tree:
    """The tree without some tips: nodes that keep one child go, and their two lengths are one.

    names: blanks and case as in NEXUS. A rooted tree stays rooted, at the common ancestor of the tips that
    are left, and an unrooted one unrooted. file: the tree's. Raises InputError for a name that no tip has,
    and where fewer than two tips are left.
    """
    if not names:
        return tree
    gone = np.zeros(tree.n_nodes, bool)
    gone[[_tip(tree, name, file) for name in names]] = True
    if tree.n_tips - int(gone.sum()) < 2:
        hint = "Leave fewer out."
        raise InputError("fewer than two tips are left of the tree", file=file, hint=hint)
    left = np.diff(tree.child_offsets)
    for x in range(tree.n_nodes - 1):
        gone[x] |= x >= tree.n_tips and left[x] == 0
        left[tree.parent[x]] -= gone[x]
    fewer = suppress_unary(only_nodes(tree, ~gone))
    fewer = replace(fewer, lengths=np.append(fewer.lengths[:-1], 0.0))  # above the new root is nothing
    return fewer if tree.rooted else unroot(fewer)


def _tip(tree: Tree, name: str, file: str | None) -> int:
    for tip, taxon in enumerate(tree.taxa):
        if folded(taxon) == folded(name):
            return tip
    near = likely_name(name, tree.taxa)
    hint = f"Did you mean '{near}'?" if near else "Check its spelling."
    raise InputError(f"there is no tip '{name}' to leave out", file=file, hint=hint)


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
