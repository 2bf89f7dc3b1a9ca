"""A tree as the kernels see it: binary, with the user's branches told from virtual ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from phloem.errors import InputError
from phloem.likelihood.branch_names import branch_names
from phloem.tree.match import likely_name, match_taxa
from phloem.tree.resolve import ResolvedTree, binary_children, resolve
from phloem.tree.tree import Tree, require_lengths


@dataclass(frozen=True, eq=False)
class TreeLayout:
    """tree: the user's, tips in alignment order, B = N-1 branches; resolved: its binary form, 2T-1 nodes."""

    tree: Tree
    resolved: ResolvedTree

    @cached_property
    def names(self) -> tuple[str, ...]:
        return branch_names(self.tree)

    @cached_property
    def _number(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def children(self) -> tuple[np.ndarray, np.ndarray]:
        """left, right (T-1,) of the binary tree."""
        return binary_children(self.resolved.tree)

    def to_nodes(self, branches: np.ndarray) -> np.ndarray:
        """(…, B) by branch → (…, 2T-1) by node of the binary tree, 0 at virtual branches and the root."""
        at_root = np.zeros((*branches.shape[:-1], 1))
        return self.resolved.from_original(np.concatenate([branches, at_root], axis=-1))

    def to_branches(self, nodes: np.ndarray) -> np.ndarray:
        """(…, 2T-1) by node of the binary tree → (…, B) by branch; virtual branches and the root drop out."""
        return self.resolved.to_original(nodes)[..., :-1]

    def branch(self, name: str) -> int:
        """The number of a named branch; InputError with a likely spelling where there is none."""
        if name not in self._number:
            near = likely_name(name, self.names)
            hint = f"Did you mean '{near}'?" if near else "branch_names lists the branches of this tree."
            raise InputError(f"the tree has no branch '{name}'", hint=hint)
        return self._number[name]

    def subtree(self, name: str) -> tuple[str, ...]:
        """Names of a branch and of every branch below it, as the tree is drawn."""
        inside = np.zeros(self.tree.n_nodes, bool)
        inside[self.branch(name)] = True
        for x in range(self.tree.n_nodes - 2, -1, -1):
            inside[x] |= inside[self.tree.parent[x]]
        return tuple(self.names[x] for x in np.flatnonzero(inside[:-1]))

    def internal_node(self, name: str) -> int:
        """The binary tree's node below the internal branch of that name; "root" is the base of the tree."""
        if name == "root":
            return self.resolved.tree.n_nodes - 1
        node = self.branch(name)
        if node < self.tree.n_tips:
            raise InputError(f"'{name}' is a tip: its states were observed", hint="Name an internal node.")
        return int(np.flatnonzero(self.resolved.origin == node)[0])

    def updated(
        self, current: np.ndarray, change: Mapping[str, float] | Sequence[float] | np.ndarray, what: str
    ):
        """A copy of the branch values current, (B,) or (K, B), with some changed by name or all by an array.

        With K sets of branch lengths a name takes one value or K, and an array (B,) holds for all of them.
        """
        try:
            if isinstance(change, Mapping):
                new = current.copy()
                for name, value in change.items():
                    new[..., self.branch(name)] = value
            else:
                new = np.array(change, np.float64)
                if new.shape == current.shape[-1:]:
                    new = np.broadcast_to(new, current.shape).copy()
        except (TypeError, ValueError):
            raise InputError(f"a {what} is no number", hint="Give numbers.") from None
        return checked_branch_values(new, self.names, what, current.shape)


def checked_branch_values(values: np.ndarray, names: tuple[str, ...], what: str, shape) -> np.ndarray:
    """The values if they have the shape, (B,) or (K, B), and are finite and not negative."""
    if values.shape != shape:
        sets = f", in {shape[0]} sets" if len(shape) == 2 else ""
        raise InputError(
            f"{len(names)} {what}s are needed, one a branch{sets}; got an array of shape {values.shape}"
        )
    wrong = np.argwhere(~(np.isfinite(values) & (values >= 0)))
    if len(wrong):
        branch = names[wrong[0][-1]]
        raise InputError(
            f"the {what} of branch '{branch}' is {values[tuple(wrong[0])]}",
            hint="Give a finite number of 0 or more.",
        )
    return values


def tree_layout(tree: Tree, taxa: Sequence[str], multifurcations: bool = False) -> TreeLayout:
    """Match the tips to the alignment's taxa and make the tree binary.

    Errors: InputError for taxa that only one of the two has, for missing or negative branch lengths, and for
    multifurcations other than the base of an unrooted tree unless multifurcations is True.
    """
    matched = match_taxa(tree, taxa)
    require_lengths(matched)
    return TreeLayout(matched, resolve(matched, multifurcations))
