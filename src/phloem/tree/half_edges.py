"""An unrooted binary tree as half-edges: the form in which branches are taken apart and joined again.

Tip i has half-edge i. Inner node j of T - 2 has three, T + 3j … T + 3j + 2. back (4T-6,): the half-edge at
the other end of the same branch; a length stands at both. Regrafting a subtree changes six entries.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple, TypeVar

import numpy as np

from phloem.errors import InputError
from phloem.tree.build import tree_from_edges
from phloem.tree.layout import tree_layout
from phloem.tree.splits import tip_bits
from phloem.tree.tree import Tree

_PRIME = (1 << 61) - 1
NO_LENGTH = 1e-6  # substitutions a site: branches that are shorter are points


class HalfEdges(NamedTuple):
    """back (4T-6,) int64; lengths (4T-6,) float64, equal at both ends of a branch; of K sets of branch
    lengths on one topology (4T-6, K)."""

    back: np.ndarray
    lengths: np.ndarray

    @property
    def n_tips(self) -> int:
        return (len(self.back) + 6) // 4

    def copy(self) -> HalfEdges:
        return HalfEdges(self.back.copy(), self.lengths.copy())


def half_edges(tree: Tree, taxa: tuple[str, ...]) -> HalfEdges:
    """Tip i is taxa[i]. A root of degree two goes; multifurcations get branches of length 0.

    Raises InputError for fewer than three taxa, and as tree_layout does.
    """
    n = len(taxa)
    if n < 3:
        raise InputError(f"an unrooted tree has at least three taxa, not {n}", hint="Add taxa.")
    binary = tree_layout(tree, taxa, multifurcations=True).binary
    own = np.concatenate([np.arange(n), n + 3 * np.arange(n - 1)])  # the half-edge that leads up from a node
    back, lengths = np.full(4 * n - 6, -1, np.int64), np.zeros(4 * n - 6)
    taken = np.zeros(n - 1, np.int64)
    root = 2 * n - 2
    for x in range(root):
        above = int(binary.parent[x])
        if above < root:
            slot = int(own[above] + 1 + taken[above - n])
            taken[above - n] += 1
            join(back, lengths, int(own[x]), slot, float(binary.lengths[x]))
    a, b = np.flatnonzero(binary.parent[:root] == root)
    join(back, lengths, int(own[a]), int(own[b]), float(binary.lengths[a] + binary.lengths[b]))
    return HalfEdges(back, lengths)


Half = TypeVar("Half", int, np.ndarray)  # half-edges, by their numbers
Length = float | np.ndarray  # of a branch: one number, or (K,)


def join(back: np.ndarray, lengths: np.ndarray, h: int, g: int, length: Length) -> None:
    """Make two half-edges one branch."""
    back[h], back[g] = g, h
    lengths[h] = lengths[g] = length


def nexts(h: Half, n_tips: int) -> tuple[Half, Half]:
    """The other two half-edges at the inner node of h, one or many."""
    first = n_tips + 3 * ((h - n_tips) // 3)
    k = h - first
    return first + (k + 1) % 3, first + (k + 2) % 3


def node_of(h: np.ndarray, n_tips: int) -> np.ndarray:
    """Tips 0 … T-1, inner nodes T … 2T-3."""
    return np.where(h < n_tips, h, n_tips + (h - n_tips) // 3)


def preorder(back: np.ndarray) -> np.ndarray:
    """(2T-3,) int64: of every branch the half-edge that looks towards tip 0, parents before children.

    A node's half-edges beside it lead to its children, whose subtrees follow one after the other.
    """
    n = (len(back) + 6) // 4
    order, waiting, other = [], [int(back[0])], back.tolist()
    first, second = _nexts_of_all(n)
    while waiting:
        h = waiting.pop()
        order.append(h)
        if h >= n:
            waiting.append(other[second[h]])
            waiting.append(other[first[h]])
    return np.array(order, np.int64)


@cache
def _nexts_of_all(n_tips: int) -> tuple[list[int], list[int]]:
    """nexts of every half-edge; of tips they mean nothing."""
    first, second = nexts(np.arange(4 * n_tips - 6), n_tips)
    return first.tolist(), second.tolist()


def topology_key(back: np.ndarray) -> int:
    """A number that trees of one topology share, and others hardly ever do: a sum over branches of the random
    numbers of the tips beyond, seen from tip 0."""
    n, (order, beyond) = (len(back) + 6) // 4, tips_beyond(back)
    return sum(beyond[h] ** 3 for h in order.tolist() if h >= n) % _PRIME


def tree_key(edges: HalfEdges) -> int:
    """As topology_key, of the tree without its inner branches that have no length: their ends are one node,
    whichever way it is resolved."""
    n, (order, beyond) = edges.n_tips, tips_beyond(edges.back)
    lengths = edges.lengths if edges.lengths.ndim == 1 else edges.lengths.max(1)
    inner = order[(order >= n) & (lengths[order] >= NO_LENGTH)]
    return sum(beyond[h] ** 3 for h in inner.tolist()) % _PRIME


def tips_beyond(back: np.ndarray) -> tuple[np.ndarray, list[int]]:
    """preorder, and (4T-6,) of its half-edges the sum of the random numbers of the tips away from tip 0, less
    than 2⁶²."""
    n, order, other = (len(back) + 6) // 4, preorder(back), back.tolist()
    beyond, (first, second) = _of_tips(n) + [0] * (3 * n - 6), _nexts_of_all(n)
    for h in order[::-1].tolist():
        if h >= n:
            beyond[h] = (beyond[other[first[h]]] + beyond[other[second[h]]]) % _PRIME
    return order, beyond


@cache
def _of_tips(n: int) -> list[int]:
    return np.random.default_rng(n).integers(0, 1 << 62, n).tolist()


def branch_splits(back: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """preorder, and (2T-3, W) uint64: of each of its half-edges the tips away from tip 0, as tree/splits.py
    writes the split of an unrooted tree's branch."""
    n, order = (len(back) + 6) // 4, preorder(back)
    tips = tip_bits(n)
    beyond = np.zeros((len(back), tips.shape[1]), np.uint64)
    beyond[:n] = tips
    for h in order[::-1].tolist():
        if h >= n:
            a, b = nexts(h, n)
            beyond[h] = beyond[back[a]] | beyond[back[b]]
    return order, beyond[order]


def tree_of(edges: HalfEdges, taxa: tuple[str, ...]) -> Tree:
    """The same as an unrooted tree; one set of lengths. Nodes and branches follow from back alone."""
    ends = np.flatnonzero(edges.back > np.arange(len(edges.back)))
    nodes = node_of(np.stack([ends, edges.back[ends]]), edges.n_tips)
    pairs = [(int(a), int(b)) for a, b in nodes.T]
    return tree_from_edges(taxa, pairs, edges.lengths[ends].tolist())
