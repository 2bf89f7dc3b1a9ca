"""A tree as the kernels see it: multifurcations and the basal trifurcation made binary, lengths of 0 between.

The kernels take two children a node. The branches that make a tree binary are virtual: they have no length,
the user's tree does not know them, and nothing about them may be reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from phloem.errors import InputError, require_type
from phloem.tree.match import branch_names, likely_name, match_taxa
from phloem.tree.tree import Tree, require_lengths


@dataclass(frozen=True, eq=False)
class TreeLayout:
    """A tree as the kernels see it: binary, with the user's branches told from virtual ones.

    tree: the user's, B = N-1 branches. binary: T tips, 2T-1 nodes. origin: (2T-1,) int32, the node of the
    user's tree, -1 at virtual nodes, whose branches were added with length zero.
    """

    tree: Tree
    binary: Tree
    origin: np.ndarray

    @cached_property
    def names(self) -> tuple[str, ...]:
        return branch_names(self.tree)

    @cached_property
    def _number(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def children(self) -> tuple[np.ndarray, np.ndarray]:
        """left, right (T-1,) of the binary tree."""
        return binary_children(self.binary)

    def to_nodes(self, branches: np.ndarray) -> np.ndarray:
        """(…, B) by branch → (…, 2T-1) by node of the binary tree, 0 at virtual branches and the root."""
        at_root = np.zeros((*branches.shape[:-1], 1))
        values = np.concatenate([branches, at_root], axis=-1)
        return np.where(self.origin < 0, 0.0, values[..., np.maximum(self.origin, 0)])

    def to_branches(self, nodes: np.ndarray) -> np.ndarray:
        """(…, 2T-1) by node of the binary tree → (…, B) by branch; virtual branches and the root drop out."""
        real = self.origin >= 0
        values = np.empty((*nodes.shape[:-1], int(real.sum())), nodes.dtype)
        values[..., self.origin[real]] = nodes[..., real]
        return values[..., :-1]

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
            return self.binary.n_nodes - 1
        node = self.branch(name)
        if node < self.tree.n_tips:
            raise InputError(f"'{name}' is a tip: its states were observed", hint="Name an internal node.")
        return int(np.flatnonzero(self.origin == node)[0])

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
    require_type("the tree", tree, Tree, "Take read_tree(file), or starting_tree(alignment).tree.")
    matched = match_taxa(tree, taxa)
    require_lengths(matched)
    return TreeLayout(matched, *resolve(matched, multifurcations))


def resolve(tree: Tree, multifurcations: bool = False) -> tuple[Tree, np.ndarray]:
    """The binary tree, and (2T-1,) the node of the original one that each of its nodes is (-1: virtual).

    The basal trifurcation of an unrooted tree is always resolved (its root is arbitrary). Any other node with
    more than two children only if multifurcations is True, by a chain of zero-length branches; otherwise such
    a node is an InputError.
    """
    if tree.n_tips < 2:
        raise InputError("a tree of one tip has no branch", hint="Give at least two taxa.")
    degree = np.diff(tree.child_offsets)
    allowed = np.full(tree.n_nodes, 2)
    if not tree.rooted:
        allowed[-1] = 3
    too_many = np.flatnonzero(degree > allowed)
    if len(too_many) and not multifurcations:
        raise _multifurcation_error(tree, int(too_many[0]), int(degree[too_many[0]]))
    if np.any(degree == 1):
        raise InputError("a node has one child", hint="Remove it first (tree.build.suppress_unary).")
    return _chain(tree, degree)


def _multifurcation_error(tree: Tree, node: int, degree: int) -> InputError:
    below = node
    while below >= tree.n_tips:
        below = int(tree.children(below)[0])
    return InputError(
        f"the tree has a multifurcation: a node above '{tree.taxa[below]}' has {degree} children",
        taxon=tree.taxa[below],
        hint="Resolve it, or ask for zero-length branches that do: --multifurcations "
        "(multifurcations=True in Python).",
    )


def _chain(tree: Tree, degree: np.ndarray) -> tuple[Tree, np.ndarray]:
    """Each node of d children gets d - 2 virtual nodes just below it in number, joining its last children."""
    extra = np.maximum(degree - 2, 0)
    number = np.arange(tree.n_nodes) + np.cumsum(extra)
    n = int(number[-1]) + 1
    origin = np.full(n, -1, np.int32)
    origin[number] = np.arange(tree.n_nodes)
    parent = np.full(n, -1, np.int32)
    parent[number[:-1]] = number[tree.parent[:-1]]
    for x in np.flatnonzero(extra).tolist():
        first = int(number[x] - extra[x])
        children = number[tree.children(x)]
        chain = np.append(np.arange(first, number[x]), number[x])
        parent[children[0]], parent[children[1]] = chain[0], chain[0]
        parent[children[2:]] = chain[1:]
        parent[chain[:-1]] = chain[1:]
    virtual = origin < 0
    lengths = np.where(virtual, 0.0, tree.lengths[np.maximum(origin, 0)])
    labels = (
        None if tree.labels is None else tuple(None if x < 0 else tree.labels[x] for x in origin.tolist())
    )
    annotations = {int(number[x]): values for x, values in tree.annotations.items()}
    binary = Tree(tree.taxa, parent, lengths, labels, annotations, tree.rooted, tree.name)
    return binary, origin


def binary_children(tree: Tree) -> tuple[np.ndarray, np.ndarray]:
    """Left and right child of each internal node T+k, (T-1,) int32 each; InputError unless binary."""
    if not tree.is_binary:
        raise InputError("the tree is not binary", hint="Resolve it first (tree.layout.resolve).")
    pairs = tree.child_index.reshape(-1, 2)
    return np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])
