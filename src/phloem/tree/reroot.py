"""Where the root is: at a branch, at an outgroup, in the middle, or nowhere.

Labels and annotations of internal nodes: numbers (support values) and annotations belong to the branch above
their node and travel with it when the root moves; names belong to the node and stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from phloem.errors import InputError
from phloem.tree.build import tree_from_parents
from phloem.tree.match import MISSING, likely_name
from phloem.tree.tree import Tree, node_depths


def unroot(tree: Tree) -> Tree:
    """The tree with a basal node of degree three or more: a root of two children is taken out.

    Its two branches become one. Trees of two tips stay as they are, but count as unrooted.
    """
    parent, lengths = tree.parent.astype(np.int64), tree.lengths.copy()
    names, annotations = _names(tree), {x: tree.annotations[x] for x in tree.annotations}
    children = tree.children(tree.n_nodes - 1)
    if len(children) == 2 and tree.n_tips > 2:
        upper, lower = sorted((int(c) for c in children), reverse=True)
        root = tree.n_nodes - 1
        parent[lower], parent[upper] = upper, -1
        lengths[lower] += lengths[upper]
        lengths[upper] = 0.0
        if lower >= tree.n_tips:
            names[lower] = names[lower] if names[lower] is not None else names[upper]
            annotations.setdefault(lower, annotations.get(upper, {}))
        if is_support(names[upper]):
            names[upper] = None
        annotations.pop(upper, None)
        annotations.pop(root, None)
        return _rebuild(tree, parent[:root], lengths[:root], names[:root], annotations, False)
    return _rebuild(tree, parent, lengths, names, annotations, False)


def root_at_branch(tree: Tree, node: int, fraction: float = 0.5) -> Tree:
    """A rooted tree whose root divides the branch above a node; fraction of it goes to the node's side.

    A former root of two children disappears; one of three or more becomes an ordinary node.
    """
    if not 0 <= node < tree.n_nodes - 1:
        raise InputError(f"node {node} has no branch above it", hint="Name a node below the root.")
    if not 0.0 <= fraction <= 1.0:
        raise InputError(f"fraction {fraction} is not between 0 and 1", hint="Give a share of the branch.")
    old_parent = tree.parent.astype(np.int64)
    root = tree.n_nodes - 1
    names, annotations = _names(tree), {x: tree.annotations[x] for x in tree.annotations}
    parent, lengths = np.append(old_parent, -1), np.append(tree.lengths, 0.0)
    names.append(None)
    path = [node]
    while old_parent[path[-1]] >= 0:
        path.append(int(old_parent[path[-1]]))
    annotations.pop(root, None)
    moved = {x: (tree.lengths[x], names[x], annotations.get(x, {})) for x in path}
    for lower, upper in pairwise(path):
        length, label, values = moved[lower]
        parent[upper], lengths[upper] = lower, length
        if lower >= tree.n_tips and is_support(label):
            names[upper] = label
        elif is_support(names[upper]):
            names[upper] = None
        annotations[upper] = values if lower >= tree.n_tips else {}
    whole = tree.lengths[node]
    parent[[node, path[1]]] = root + 1
    lengths[node], lengths[path[1]] = fraction * whole, (1.0 - fraction) * whole
    return _drop_old_root(tree, parent, lengths, names, annotations)


def _drop_old_root(tree: Tree, parent, lengths, names, annotations) -> Tree:
    """Finish: splice out the former root if it is left with one child."""
    root = tree.n_nodes - 1
    below = np.flatnonzero(parent == root)
    keep = np.ones(len(parent), bool)
    if len(below) == 1:
        child = int(below[0])
        parent[child] = parent[root]
        lengths[child] += lengths[root]
        keep[root] = False
    number = np.cumsum(keep) - 1
    kept = np.flatnonzero(keep)
    new_parent = np.where(parent[kept] < 0, -1, number[parent[kept]])
    kept_annotations = {int(number[x]): values for x, values in annotations.items() if keep[x]}
    return _rebuild(
        tree, new_parent, lengths[kept], [names[x] for x in kept.tolist()], kept_annotations, True
    )


def root_at_outgroup(tree: Tree, outgroup: Sequence[str] | str, fraction: float = 0.5) -> Tree:
    """A tree rooted on the branch that separates the outgroup from all other taxa.

    Raises InputError for unknown names, and if no branch separates the outgroup.
    """
    wanted = [outgroup] if isinstance(outgroup, str) else list(outgroup)
    if not wanted:
        raise InputError("the outgroup is empty", hint="Name one taxon or more.")
    for name in wanted:
        if name not in tree.taxa:
            near = likely_name(name, tree.taxa)
            hint = f"Did you mean '{near}'?" if near else "Use a tip's name as the tree file writes it."
            raise InputError(f"outgroup taxon '{name}' is not in the tree", taxon=name, hint=hint)
    count = np.zeros(tree.n_nodes, np.int64)
    count[[tree.taxa.index(name) for name in set(wanted)]] = 1
    size = np.zeros(tree.n_nodes, np.int64)
    size[: tree.n_tips] = 1
    for x in range(tree.n_nodes - 1):
        count[tree.parent[x]] += count[x]
        size[tree.parent[x]] += size[x]
    inside = (count == len(set(wanted))) & (size == count)
    outside = (count == 0) & (size == tree.n_tips - len(set(wanted)))
    found = np.flatnonzero((inside | outside)[:-1])
    if len(found) == 0:
        hint = "Name a group that a single branch separates from all other taxa."
        raise InputError("the outgroup is not a group in this tree", taxon=wanted[0], hint=hint)
    node = int(found[0])
    return root_at_branch(tree, node, fraction if inside[node] else 1.0 - fraction)


def root_at_midpoint(tree: Tree) -> Tree:
    """A tree rooted in the middle of the longest path between two tips (Farris 1972, Am. Nat. 106:645)."""
    depth = node_depths(tree)
    best, at, ends = -1.0, -1, (0, 0)
    far, tip = np.full(tree.n_nodes, -1.0), np.zeros(tree.n_nodes, np.int64)
    far[: tree.n_tips], tip[: tree.n_tips] = depth[: tree.n_tips], np.arange(tree.n_tips)
    for x in range(tree.n_nodes - 1):
        above = int(tree.parent[x])
        if far[above] >= 0 and far[above] + far[x] - 2 * depth[above] > best:
            best, at, ends = far[above] + far[x] - 2 * depth[above], above, (int(tip[above]), int(tip[x]))
        if far[x] > far[above]:
            far[above], tip[above] = far[x], tip[x]
    if at < 0:
        raise InputError("a tree of one tip has no midpoint", hint="Give at least two taxa.")
    node = max(ends, key=lambda end: depth[end])
    left = best / 2.0
    while tree.parent[node] != at and left > tree.lengths[node]:
        left -= tree.lengths[node]
        node = int(tree.parent[node])
    length = tree.lengths[node]
    return root_at_branch(tree, node, min(left / length, 1.0) if length > 0 else 0.5)


def is_support(label: str | None) -> bool:
    """Whether an internal label is a number and so belongs to a branch; or several, IQ-TREE's 95/100, of
    which some may be missing: its /0.98, and -/33.3 as phloem concordance writes."""
    if not label:
        return False
    try:
        return all(np.isfinite(float(part)) for part in label.split("/") if part not in MISSING)
    except ValueError:
        return False


def _names(tree: Tree) -> list[str | None]:
    labels = tree.labels or (None,) * tree.n_nodes
    return [*tree.taxa, *labels[tree.n_tips :]]


def _rebuild(tree: Tree, parent, lengths, names, annotations, rooted: bool) -> Tree:
    return tree_from_parents(
        names, parent, lengths, taxa=tree.taxa, annotations=annotations, rooted=rooted, name=tree.name
    )
