"""Readable names for branches that do not depend on how the tree is drawn."""

from __future__ import annotations

from collections import Counter

from phloem.tree.tree import Tree


def branch_names(tree: Tree) -> tuple[str, ...]:
    """A unique name for the branch above each node but the root, in node order, (N-1,).

    A tip's branch has the tip's name. An internal one has its node's label where that is a name (unique and
    no number), else mrca(A,B): the branch above the most recent common ancestor of tips A and B, the
    alphabetically first tips of two of its subtrees. In an unrooted tree the descendants are the smaller side
    of the branch (of two equal sides the one without the alphabetically first taxon), so that re-rooting or
    turning children around changes no name. Two branches at the base always mean a rooted drawing.
    """
    own = _usable_labels(tree)
    below, above = _first_taxa(tree)
    tips = _tips_below(tree)
    drawn = tree.rooted or len(tree.children(tree.n_nodes - 1)) == 2
    names = list(tree.taxa)
    for x in range(tree.n_tips, tree.n_nodes - 1):
        surplus = 2 * tips[x] - tree.n_tips
        downwards = drawn or surplus < 0 or (surplus == 0 and below[x] > above[x])
        sides = _subtrees_below(tree, x, below) if downwards else _subtrees_above(tree, x, below, above)
        names.append(own[x] or "mrca({},{})".format(*sorted(sides)[:2]))
    return tuple(names)


def _usable_labels(tree: Tree) -> list[str | None]:
    labels: list[str | None] = list(tree.labels or [None] * tree.n_nodes)
    taken = Counter([*tree.taxa, *(label for label in labels if label)])
    return [label if label and taken[label] == 1 and not _is_number(label) else None for label in labels]


def _is_number(label: str) -> bool:
    try:
        float(label.split("/")[0])
    except ValueError:
        return False
    return True


def _first_taxa(tree: Tree) -> tuple[list[str], list[str]]:
    """The alphabetically first taxon below each node, and outside of it ("" at the root)."""
    below = list(tree.taxa) + [""] * (tree.n_nodes - tree.n_tips)
    for x in range(tree.n_tips, tree.n_nodes):
        below[x] = min(below[c] for c in tree.children(x))
    above = [""] * tree.n_nodes
    for x in range(tree.n_nodes - 1, tree.n_tips - 1, -1):
        children = tree.children(x)
        ranked = sorted(children, key=lambda c: below[c])
        for c in children:
            sibling = ranked[1 if c == ranked[0] and len(ranked) > 1 else 0]
            candidates = [below[sibling]] if sibling != c else []
            candidates += [above[x]] if above[x] else []
            above[c] = min(candidates, default="")
    return below, above


def _tips_below(tree: Tree) -> list[int]:
    count = [1] * tree.n_tips + [0] * (tree.n_nodes - tree.n_tips)
    for x in range(tree.n_nodes - 1):
        count[tree.parent[x]] += count[x]
    return count


def _subtrees_below(tree: Tree, x: int, below: list[str]) -> list[str]:
    return [below[c] for c in tree.children(x)]


def _subtrees_above(tree: Tree, x: int, below: list[str], above: list[str]) -> list[str]:
    parent = int(tree.parent[x])
    siblings = [below[c] for c in tree.children(parent) if c != x]
    return siblings + ([above[parent]] if above[parent] else [])
