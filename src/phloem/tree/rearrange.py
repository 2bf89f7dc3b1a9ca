"""Neighbourhoods of unrooted binary trees under NNI, SPR and TBR: slow, plain, complete.

These lists are the oracle that the compiled moves are tested against. Sizes for T tips (Allen and Steel 2001,
Ann. Comb. 5:1): NNI 2(T-3), SPR 2(T-3)(2T-7); TBR depends on the tree.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from phloem.errors import InputError
from phloem.tree.build import tree_from_edges
from phloem.tree.splits import tree_splits
from phloem.tree.tree import Tree

Edges = dict[tuple[int, int], float]


def nni_neighbours(tree: Tree) -> list[Tree]:
    """The 2(T-3) trees one nearest-neighbour interchange away, two for each internal branch.

    The subtrees that trade places keep the lengths of their branches.
    """
    edges = _edges(tree)
    found = []
    for a, b in list(edges):
        if min(a, b) < tree.n_tips:
            continue
        moved = _others(edges, a, b)[0]
        for partner in _others(edges, b, a):
            changed = dict(edges)
            for end, new_end, subtree in ((a, b, moved), (b, a, partner)):
                changed[_key(subtree, new_end)] = changed.pop(_key(subtree, end))
            found.append(_tree(tree, changed))
    return found


def spr_neighbours(tree: Tree) -> list[Tree]:
    """The distinct trees one subtree pruning and regrafting away (identical topologies listed once).

    The pruned subtree keeps its branch, the branch it leaves closes up to the sum of its parts, and the
    branch it joins is divided in half.
    """
    return _distinct(tree, (new for edge in _directed(tree) for new in _regrafts(tree, edge)))


def _regrafts(tree: Tree, pruned: tuple[int, int]) -> Iterator[Edges]:
    """Every tree made by pruning the subtree behind top (seen from joint) and regrafting it elsewhere."""
    top, joint = pruned
    edges = _edges(tree)
    if joint < tree.n_tips:
        return
    left, right = _others(edges, joint, top)
    rest = dict(edges)
    rest[_key(left, right)] = rest.pop(_key(left, joint)) + rest.pop(_key(right, joint))
    carried = rest.pop(_key(top, joint))
    below = _component(rest, top)
    for a, b in rest:
        if a in below or _key(a, b) == _key(left, right):
            continue
        new = dict(rest)
        half = new.pop(_key(a, b)) / 2.0
        new |= {_key(a, joint): half, _key(b, joint): half, _key(top, joint): carried}
        yield new


def tbr_neighbours(tree: Tree) -> list[Tree]:
    """The distinct trees one bisection and reconnection away.

    A branch is taken out, the two nodes at its ends close up, and the branch is put back, with its length,
    between any branch of one half and any of the other; both are divided in half.
    """
    return _distinct(tree, (new for a, b in _edges(tree) for new in _reconnections(tree, a, b)))


def _reconnections(tree: Tree, a: int, b: int) -> Iterator[Edges]:
    edges = _edges(tree)
    halves = dict(edges)
    length = halves.pop(_key(a, b))
    for end, other in ((a, b), (b, a)):
        if end >= tree.n_tips:
            left, right = _others(edges, end, other)
            halves[_key(left, right)] = halves.pop(_key(left, end)) + halves.pop(_key(right, end))
    side = _component(halves, a if a < tree.n_tips else _others(edges, a, b)[0])
    mine = [edge for edge in halves if edge[0] in side] if a >= tree.n_tips else [None]
    yours = [edge for edge in halves if edge[0] not in side] if b >= tree.n_tips else [None]
    for first in mine:
        for second in yours:
            new = dict(halves)
            for chosen, end in ((first, a), (second, b)):
                if chosen is not None:
                    half = new.pop(chosen) / 2.0
                    new |= {_key(chosen[0], end): half, _key(chosen[1], end): half}
            new[_key(a, b)] = length
            yield new


def topology_key(tree: Tree) -> bytes:
    """Equal for two trees of the same tip order exactly if their topologies are equal."""
    return tree_splits(tree).tobytes()


def _distinct(tree: Tree, candidates: Iterator[Edges]) -> list[Tree]:
    seen = {topology_key(tree)}
    found = []
    for edges in candidates:
        new = _tree(tree, edges)
        key = topology_key(new)
        if key not in seen:
            seen.add(key)
            found.append(new)
    return found


def _edges(tree: Tree) -> Edges:
    """{(low node, high node): length} of an unrooted binary tree."""
    degree = np.diff(tree.child_offsets)[tree.n_tips :]
    if tree.rooted or tree.n_nodes != 2 * tree.n_tips - 2 or np.any(degree[:-1] != 2):
        hint = "Unroot it (tree.reroot.unroot) and resolve multifurcations first."
        raise InputError("rearrangements need an unrooted binary tree with a basal trifurcation", hint=hint)
    return {(x, int(tree.parent[x])): float(tree.lengths[x]) for x in range(tree.n_nodes - 1)}


def _tree(tree: Tree, edges: Edges) -> Tree:
    return tree_from_edges(tree.taxa, list(edges), list(edges.values()))


def _key(a: int, b: int) -> tuple[int, int]:
    return (a, b) if a < b else (b, a)


def _others(edges: Edges, node: int, neighbour: int) -> list[int]:
    """The other neighbours of a node, ascending."""
    around = [b if a == node else a for a, b in edges if node in (a, b)]
    return sorted(x for x in around if x != neighbour)


def _component(edges: Edges, start: int) -> set[int]:
    """Nodes that edges connect to start."""
    found, grown = {start}, True
    while grown:
        more = {x for edge in edges if found & set(edge) for x in edge}
        grown = not more <= found
        found |= more
    return found


def _directed(tree: Tree) -> Iterator[tuple[int, int]]:
    for a, b in _edges(tree):
        yield a, b
        yield b, a
