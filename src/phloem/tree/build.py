"""Trees from parent or child lists in any numbering, brought to the record's order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from phloem.errors import InputError
from phloem.tree.tree import Tree


def node_levels(parent: np.ndarray) -> np.ndarray:
    """(N,) number of branches between each node and its root, by pointer doubling. parent: -1 at roots.

    Raises InputError if the parents run in a circle.
    """
    jump = np.where(parent < 0, np.arange(len(parent)), parent).astype(np.int64)
    level = (parent >= 0).astype(np.int64)
    for _ in range(len(parent).bit_length() + 1):
        further = level[jump]
        if not further.any():
            return level
        level = level + further
        jump = jump[jump]
    raise InputError("the parent list runs in a circle", hint="Give every node a path to one root.")


def tree_from_parents(
    names: Sequence[str | None],
    parent: Sequence[int] | np.ndarray,
    lengths: Sequence[float] | np.ndarray | None = None,
    *,
    taxa: Sequence[str] | None = None,
    annotations: Mapping[int, Mapping[str, object]] | None = None,
    rooted: bool = True,
    name: str | None = None,
) -> Tree:
    """A tree from any numbering of its nodes.

    names: N, a tip's taxon or an internal node's label (None for none). parent: (N,), -1 at the root.
    lengths: (N,) of the branch above each node. taxa: the wanted order of tips, else order of appearance.
    Among internal nodes the order given is kept wherever parents already come after their children.
    """
    old = _canonical_order(np.asarray(parent, np.int64), names, taxa)
    parent = np.asarray(parent, np.int64)
    number = np.empty(len(old), np.int64)
    number[old] = np.arange(len(old))
    is_tip = np.bincount(parent[parent >= 0], minlength=len(old)) == 0
    n_tips = int(is_tip.sum())
    labels = tuple(None if is_tip[x] else names[x] for x in old.tolist())
    ordered = parent[old]
    given = np.full(len(old), np.nan) if lengths is None else np.asarray(lengths, np.float64)[old]
    given[-1] = 0.0 if np.isnan(given[-1]) else given[-1]
    return Tree(
        taxa=tuple(str(names[x]) for x in old[:n_tips].tolist()),
        parent=np.where(ordered < 0, -1, number[ordered]).astype(np.int32),
        lengths=given,
        labels=labels if any(label is not None for label in labels) else None,
        annotations={int(number[x]): values for x, values in (annotations or {}).items() if values},
        rooted=rooted,
        name=name,
    )


def _canonical_order(parent: np.ndarray, names, taxa: Sequence[str] | None) -> np.ndarray:
    """(N,) old number of each new node: tips first, children before parents, root last."""
    if int((parent < 0).sum()) != 1 or len(parent) == 0 or parent.max() >= len(parent):
        raise InputError("a tree needs exactly one root", hint="Mark one node with parent -1.")
    is_tip = np.bincount(parent[parent >= 0], minlength=len(parent)) == 0
    tips, internal = np.flatnonzero(is_tip), np.flatnonzero(~is_tip)
    tip_names = [names[x] for x in tips.tolist()]
    if None in tip_names or len(set(tip_names)) < len(tip_names):
        twice = next((name for name in tip_names if name is None or tip_names.count(name) > 1), None)
        raise InputError(f"tip name {twice!r} is missing or stands twice", hint="Name each tip once.")
    if taxa is not None:
        place = {name: i for i, name in enumerate(taxa)}
        if set(place) != set(tip_names):
            raise InputError(
                "taxa and the tree's tips differ", hint="Match them first (tree.match.match_taxa)."
            )
        tips = tips[np.argsort([place[name] for name in tip_names])]
    if (
        not np.all(parent[internal] > np.where(parent[internal] < 0, -2, internal))
        or parent[internal[-1:]].max(initial=-1) >= 0
    ):
        internal = internal[np.argsort(-node_levels(parent)[internal], kind="stable")]
    return np.concatenate([tips, internal])


def tree_from_children(
    children: Mapping[int, Sequence[int]],
    names: Mapping[int, str],
    lengths: Mapping[int, float] | None = None,
    *,
    taxa: Sequence[str] | None = None,
    rooted: bool = True,
) -> Tree:
    """A tree from {node: its children}, {node: name} and {node: length above it}, any node numbers."""
    nodes = sorted(set(children) | {c for below in children.values() for c in below} | set(names))
    place = {node: i for i, node in enumerate(nodes)}
    parent = np.full(len(nodes), -1, np.int64)
    for node, below in children.items():
        for child in below:
            if parent[place[child]] >= 0:
                raise InputError(f"node {child} has two parents", hint="List every child once.")
            parent[place[child]] = place[node]
    given = None if lengths is None else [lengths.get(node, np.nan) for node in nodes]
    return tree_from_parents([names.get(node) for node in nodes], parent, given, taxa=taxa, rooted=rooted)


def tree_from_edges(
    taxa: Sequence[str], edges: Sequence[tuple[int, int]], lengths: Sequence[float] | None = None
) -> Tree:
    """An unrooted tree from undirected edges; tips are 0…T-1, the basal node is the neighbour of tip 0."""
    n = max((max(edge) for edge in edges), default=0) + 1
    neighbours: list[list[tuple[int, float]]] = [[] for _ in range(n)]
    for (a, b), length in zip(edges, np.full(len(edges), np.nan) if lengths is None else lengths):
        neighbours[a].append((b, length))
        neighbours[b].append((a, length))
    root = neighbours[0][0][0]
    parent, above = np.full(n, -2, np.int64), np.full(n, np.nan)
    parent[root] = -1
    stack = [root]
    while stack:
        node = stack.pop()
        for other, length in neighbours[node]:
            if parent[other] == -2:
                parent[other], above[other] = node, length
                stack.append(other)
    if (parent == -2).any():
        raise InputError("the edges do not connect every node", hint="Give N - 1 edges of one tree.")
    names = [taxa[x] if x < len(taxa) else None for x in range(n)]
    return tree_from_parents(names, parent, above, taxa=taxa, rooted=False)


def suppress_unary(tree: Tree, rootedness: Literal["by degree"] | None = None) -> Tree:
    """The tree without nodes of one child: such a node goes and its length is added to its child's.

    A root of one child goes too, the child's length becoming part of the root edge.
    rootedness 'by degree' calls the result rooted if its root has at most two children.
    """
    degree = np.diff(tree.child_offsets)
    unary = degree == 1
    parent, lengths = tree.parent.astype(np.int64), tree.lengths.copy()
    root = tree.n_nodes - 1
    for x in range(root - 1, -1, -1):
        above = parent[x]
        if above >= 0 and unary[above]:
            parent[x] = parent[above]
            lengths[x] += lengths[above]
    kept = only_nodes(replace(tree, parent=parent, lengths=lengths), ~unary)
    own = kept.lengths
    own[-1] = 0.0 if np.isnan(own[-1]) else own[-1]
    rooted = tree.rooted if rootedness is None else int((kept.parent == kept.n_nodes - 1).sum()) <= 2
    return replace(kept, rooted=rooted)


def only_nodes(tree: Tree, keep: np.ndarray) -> Tree:
    """Some nodes of a tree, with what belongs to them. keep: (N,) bool; parents of those that are kept are
    kept, too, in tree.parent, which may name them in another order than a Tree's."""
    number = np.cumsum(keep) - 1
    kept = np.flatnonzero(keep).tolist()
    parent = tree.parent[keep]
    return replace(
        tree,
        taxa=tuple(tree.taxa[x] for x in kept if x < tree.n_tips),
        parent=np.where(parent < 0, -1, number[parent]).astype(np.int32),
        lengths=tree.lengths[keep],
        labels=None if tree.labels is None else tuple(tree.labels[x] for x in kept),
        annotations={int(number[x]): values for x, values in tree.annotations.items() if keep[x]},
    )
