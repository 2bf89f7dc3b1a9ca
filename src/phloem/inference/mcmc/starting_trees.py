"""Trees that chains start from, as the sampler keeps them: hanging from tip 0."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from phloem.tree.layout import resolve
from phloem.tree.tree import Tree

START_LENGTH = 0.1  # of random trees, and of branches without a length in a tree given
TIPS_AN_INTERCHANGE = 5  # a tree given is perturbed by one interchange for so many tips


class HangingTree(NamedTuple):
    """parent, left, right (N,) int32 and length (N,) of N = 2T - 2 nodes; postorder (N - 1,) int32.

    Tip 0 is the root: its only child is left[0], its parent -1 and its length 0.
    """

    parent: np.ndarray
    left: np.ndarray
    right: np.ndarray
    length: np.ndarray
    postorder: np.ndarray


def hanging_from_tip(tree: Tree, bounds: tuple[float, float]) -> HangingTree:
    """A tree of T >= 3 tips hung from its tip 0; a root on a branch goes, multifurcations are resolved.

    Lengths outside bounds, negative ones among them, become the bound; missing ones START_LENGTH.
    """
    binary, _ = resolve(tree, multifurcations=True)
    n_tips, n = binary.n_tips, binary.n_nodes - 1
    lengths = np.where(np.isfinite(binary.lengths), binary.lengths, START_LENGTH)
    first, second = binary.children(n).tolist()
    edges = [(x, int(binary.parent[x]), lengths[x]) for x in range(n) if x not in (first, second)]
    neighbours: list[list[tuple[int, float]]] = [[] for _ in range(n)]
    for a, b, length in [*edges, (first, second, lengths[first] + lengths[second])]:
        neighbours[a].append((b, length))
        neighbours[b].append((a, length))
    parent, left, right = (np.full(n, -1, np.int32) for _ in range(3))
    above, stack = np.zeros(n), [0]
    while stack:
        x = stack.pop()
        below = [(y, length) for y, length in neighbours[x] if y != parent[x]]
        for side, (y, length) in zip((left, right), below):
            side[x], parent[y], above[y] = y, x, length
            stack.append(y)
    above[1:] = np.clip(above[1:], *bounds)
    return HangingTree(parent, left, right, above, _postorder(left, right, n_tips))


def n_interchanges(n_tips: int) -> int:
    """How many random nearest-neighbour interchanges perturb a tree that chains start from."""
    return -(-n_tips // TIPS_AN_INTERCHANGE) if n_tips > 3 else 0


def perturbed(tree: HangingTree, rng: np.random.Generator) -> HangingTree:
    """The tree after n_interchanges random interchanges, so that chains do not start at one point.

    At a uniformly drawn internal branch a child of its lower end changes places with the sibling; both keep
    the lengths of their branches.
    """
    parent, left, right = tree.parent.copy(), tree.left.copy(), tree.right.copy()
    n_tips = (len(parent) + 2) // 2
    for _ in range(n_interchanges(n_tips)):
        lower = rng.choice(np.flatnonzero(parent[n_tips:] >= n_tips)) + n_tips
        upper = parent[lower]
        sides = (left, right) if rng.random() < 0.5 else (right, left)
        aside = right if left[upper] == lower else left
        child, sibling = sides[0][lower], aside[upper]
        sides[0][lower], aside[upper] = sibling, child
        parent[child], parent[sibling] = upper, lower
    return HangingTree(parent, left, right, tree.length, _postorder(left, right, n_tips))


def random_tree(n_tips: int, rng: np.random.Generator) -> HangingTree:
    """A tree grown by attaching tips to branches chosen uniformly."""
    n = 2 * n_tips - 2
    parent, left, right = (np.full(n, -1, np.int32) for _ in range(3))
    first = n_tips
    parent[1] = parent[2] = first
    left[first], right[first] = 1, 2
    parent[first], left[0] = 0, first
    for tip in range(3, n_tips):
        node = n_tips + tip - 2
        below = rng.choice(np.concatenate([np.arange(1, tip), np.arange(n_tips, node)]))
        above = parent[below]
        if left[above] == below:
            left[above] = node
        else:
            right[above] = node
        parent[node], parent[below], parent[tip] = above, node, node
        left[node], right[node] = below, tip
    length = np.full(n, START_LENGTH)
    length[0] = 0.0
    return HangingTree(parent, left, right, length, _postorder(left, right, n_tips))


def _postorder(left, right, n_tips: int) -> np.ndarray:
    order, stack = [], [left[0]]
    while stack:
        x = stack.pop()
        order.append(x)
        if x >= n_tips:
            stack += [left[x], right[x]]
    return np.array(order[::-1], np.int32)
