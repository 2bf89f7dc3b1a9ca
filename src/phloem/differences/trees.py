"""Trees for the engine, and its tree for others.

It takes a tree of some of the genomes, roots it at a tip and makes it binary, of distinct genomes only. What
it gives is a tree of all taxa: branches without a change left out, equal genomes put back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from phloem.tree.build import tree_from_parents
from phloem.tree.tree import Tree

if TYPE_CHECKING:
    from phloem.data.genomes import Genomes
    from phloem.differences.cpu.records import Tree as Branches


def take(tree: Tree, tip_of: Mapping[str, int], tips: int, unknown: float, branches: Branches) -> int:
    """Writes branches; returns how many tips there are. tip_of: taxon → tip of the engine, 0 to 0 … n - 1, of
    which every one is there; taxa with the same tip are equal. tips: the engine's. unknown: the length of
    branches without one."""
    lengths = np.where(np.isfinite(tree.lengths), np.maximum(tree.lengths, 0.0), unknown)
    number = [tip_of[name] for name in tree.taxa]
    start = number.index(0)
    hung: list[list[tuple[int, float]]] = [[] for _ in range(tree.n_nodes)]
    seen, free = {0}, tips
    for x, above, length in _outwards(tree, lengths, start):
        if x < tree.n_tips:
            below = [(number[x], 0.0)] if number[x] not in seen else []
            seen.add(number[x])
        else:
            below = hung[x]
        while len(below) > 1:
            pair, below = below[:2], below[2:]
            for side, (child, own) in enumerate(pair):
                branches.parent[child], branches.children[free, side] = free, child
                branches.length[child] = own
            below = [(free, 0.0), *below]
            free += 1
        hung[above] += [(child, own + length) for child, own in below]
    ((child, length),) = hung[start]
    branches.parent[child], branches.children[0, 0], branches.length[child] = 0, child, length
    return len(seen)


def _outwards(tree: Tree, lengths: np.ndarray, start: int) -> list[tuple[int, int, float]]:
    """Every node but tip `start`, its neighbour on the way there, and the length of the branch between; nodes
    come after all that are beyond them."""
    found: list[tuple[int, int, float]] = []
    waiting = [(start, -1)]
    while waiting:
        x, before = waiting.pop()
        near = [(int(c), float(lengths[c])) for c in tree.children(x)]
        if tree.parent[x] >= 0:
            near.append((int(tree.parent[x]), float(lengths[x])))
        for other, length in near:
            if other != before:
                found.append((other, x, length))
                waiting.append((other, x))
    return found[::-1]


def tree_of(
    genomes: Genomes,
    order: np.ndarray,
    branches: Branches,
    steps: np.ndarray,
    labels: Mapping[int, str] | None = None,
) -> Tree:
    """Unrooted, with polytomies. order: the distinct genome of every tip. steps: nodes from the root down.
    labels: of inner nodes, for the branch above. Equal genomes hang on one node, with length 0."""
    tips, child = len(order), int(branches.children[0, 0])
    parent: list[int] = [-1]
    names: list[str | None] = [None]
    lengths = [0.0]
    number = {child: 0}
    members: list[list[int]] = [[] for _ in range(genomes.n_distinct)]
    for taxon, genome in enumerate(genomes.group.tolist()):
        members[genome].append(taxon)

    def add(above: int, length: float, name: str | None) -> int:
        parent.append(above)
        lengths.append(length)
        names.append(name)
        return len(parent) - 1

    def add_tip(tip: int, above: int, length: float) -> None:
        same = members[int(order[tip])]
        if len(same) > 1 and length > 0:
            above, length = add(above, length, None), 0.0
        for taxon in same:
            add(above, length, genomes.taxa[taxon])

    add_tip(0, 0, float(branches.length[child]) if child >= tips else 0.0)
    for x in steps.tolist():
        length = float(branches.length[x])
        if x == child and x >= tips:
            continue
        above = number[int(branches.parent[x])] if x != child else 0
        if x < tips:
            add_tip(x, above, length)
        elif length <= 0.0:
            number[x] = above
        else:
            number[x] = add(above, length, (labels or {}).get(x))
    return tree_from_parents(names, parent, lengths, taxa=genomes.taxa, rooted=False)


def with_supports(tree: Tree, shares: np.ndarray) -> tuple[Tree, np.ndarray]:
    """The tree with shares in percent as its labels, and the shares in the order of these labels. The tree's
    labels: which of the shares each is."""
    labels = tree.labels or (None,) * tree.n_nodes
    order = [int(label) for label in labels if label is not None]
    shown = tuple(None if label is None else f"{100 * shares[int(label)]:.3g}" for label in labels)
    return replace(tree, labels=shown if order else None), shares[order]
