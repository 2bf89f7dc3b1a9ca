"""Multifurcations and the basal trifurcation as binary trees with branches of length zero.

The kernels take two children a node. The branches that make a tree binary are virtual: they have no length,
the user's tree does not know them, and nothing about them may be reported.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phloem.errors import InputError
from phloem.tree.tree import Tree


@dataclass(frozen=True)
class ResolvedTree:
    """A binary tree and what it was made from.

    tree: T tips, 2T-1 nodes. origin: (2T-1,) int32, the node of the original tree, -1 at virtual nodes.
    virtual: (2T-1,) bool, branches (by the node below) that were added with length zero.
    """

    tree: Tree
    origin: np.ndarray
    virtual: np.ndarray

    def to_original(self, values: np.ndarray) -> np.ndarray:
        """Values of the binary tree's nodes, (…, 2T-1), as values of the original tree's, (…, N)."""
        real = self.origin >= 0
        original = np.empty((*values.shape[:-1], int(real.sum())), values.dtype)
        original[..., self.origin[real]] = values[..., real]
        return original

    def from_original(self, values: np.ndarray, virtual: float = 0.0) -> np.ndarray:
        """Values of the original tree's nodes, (…, N), as values of the binary tree's, (…, 2T-1)."""
        return np.where(self.virtual, virtual, values[..., np.maximum(self.origin, 0)])


def resolve(tree: Tree, multifurcations: bool = False) -> ResolvedTree:
    """Make a tree binary.

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


def _chain(tree: Tree, degree: np.ndarray) -> ResolvedTree:
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
    return ResolvedTree(binary, origin, virtual)


def binary_children(tree: Tree) -> tuple[np.ndarray, np.ndarray]:
    """Left and right child of each internal node T+k, (T-1,) int32 each; InputError unless binary."""
    if not tree.is_binary:
        raise InputError("the tree is not binary", hint="Resolve it first (tree.resolve.resolve).")
    pairs = tree.child_index.reshape(-1, 2)
    return np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])
