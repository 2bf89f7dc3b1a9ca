"""Checks of branch lengths before a computation that needs them."""

from __future__ import annotations

import numpy as np

from phloem.errors import InputError
from phloem.tree.tree import Tree


def require_lengths(tree: Tree, *, file: str | None = None) -> np.ndarray:
    """The branch lengths (N,), or an InputError that names the first missing or negative one."""
    above = tree.lengths[:-1]
    for wrong, what, hint in (
        (
            ~np.isfinite(above),
            "has no length",
            "Give every branch a length (':0.1' after the name), or fit them (--optimize).",
        ),
        (above < 0, "has a negative length", "Branch lengths are expected substitutions: zero or more."),
    ):
        found = np.flatnonzero(wrong)
        if len(found):
            node = int(found[0])
            message = f"the branch above {branch_name(tree, node)} {what} ({len(found)} such)"
            raise InputError(message, file=file, taxon=_first_tip(tree, node), hint=hint)
    return tree.lengths


def _first_tip(tree: Tree, node: int) -> str:
    while node >= tree.n_tips:
        node = int(tree.children(node)[0])
    return tree.taxa[node]


def branch_name(tree: Tree, node: int) -> str:
    """A tip's name, or "the ancestor of 'first' and 'last'" for an internal node."""
    if node < tree.n_tips:
        return f"'{tree.taxa[node]}'"
    last = node
    while last >= tree.n_tips:
        last = int(tree.children(last)[-1])
    return f"the ancestor of '{_first_tip(tree, node)}' and '{tree.taxa[last]}'"
