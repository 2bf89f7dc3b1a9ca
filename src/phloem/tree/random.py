"""Random and extreme trees for simulations and tests; randomness comes from the Generator passed in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from phloem.errors import InputError, require_count
from phloem.tree.build import tree_from_edges, tree_from_parents
from phloem.tree.tree import Tree, node_depths


def taxon_names(n_tips: int) -> tuple[str, ...]:
    """t1, t2, …"""
    return tuple(f"t{i + 1}" for i in range(n_tips))


def uniform_unrooted(n_tips: int, rng: np.random.Generator, mean_length: float = 0.1) -> Tree:
    """An unrooted binary topology, each of the (2T-5)!! equally likely; exponential branch lengths.

    Tip k is attached to a uniformly drawn branch of the tree of tips 0…k-1.
    """
    _require(n_tips, 3)
    _require_mean(mean_length)
    centre = n_tips
    edges = [(0, centre), (1, centre), (2, centre)]
    for tip in range(3, n_tips):
        chosen = int(rng.integers(len(edges)))
        a, b = edges[chosen]
        new = n_tips + tip - 2
        edges[chosen] = (a, new)
        edges += [(b, new), (tip, new)]
    return tree_from_edges(taxon_names(n_tips), edges, rng.exponential(mean_length, len(edges)).tolist())


def uniform_rooted(n_tips: int, rng: np.random.Generator, mean_length: float = 0.1) -> Tree:
    """A rooted binary topology, each of the (2T-3)!! equally likely; exponential branch lengths."""
    _require(n_tips, 2)
    _require_mean(mean_length)
    n_nodes = 2 * n_tips - 1
    parent = np.full(n_nodes, -1, np.int64)
    parent[0] = parent[1] = n_tips
    for tip in range(2, n_tips):
        present = np.concatenate([np.arange(tip), np.arange(n_tips, n_tips + tip - 1)])
        below = int(rng.choice(present))
        new = n_tips + tip - 1
        parent[new] = parent[below]
        parent[below] = parent[tip] = new
    lengths = rng.exponential(mean_length, n_nodes)
    lengths[parent < 0] = 0.0
    return tree_from_parents(_node_names(n_tips), parent, lengths, taxa=taxon_names(n_tips))


def yule(n_tips: int, rng: np.random.Generator, birth_rate: float = 1.0) -> Tree:
    """A pure-birth tree of T tips, stopped just before the next birth (Yule 1925, Phil. Trans. B 213:21)."""
    _require_positive("the birth rate", birth_rate)
    return _joined(n_tips, rng, lambda k: birth_rate * k)


def coalescent(n_tips: int, rng: np.random.Generator, population_size: float = 1.0) -> Tree:
    """A tree of Kingman's coalescent at constant size (Kingman 1982, Stoch. Proc. Appl. 13:235).

    k lineages coalesce at rate k(k-1) / (2 population_size).
    """
    _require_positive("the population size", population_size)
    return _joined(n_tips, rng, lambda k: k * (k - 1) / 2 / population_size)


def _joined(n_tips: int, rng: np.random.Generator, rate: Callable[[int], float]) -> Tree:
    """Backwards in time: with k lineages wait an exponential time of rate(k), then join a uniform pair."""
    _require(n_tips, 2)
    n_nodes = 2 * n_tips - 1
    parent, height = np.full(n_nodes, -1, np.int64), np.zeros(n_nodes)
    lineages = list(range(n_tips))
    now = 0.0
    for new in range(n_tips, n_nodes):
        now += rng.exponential(1.0 / rate(len(lineages)))
        i, j = rng.choice(len(lineages), 2, replace=False).tolist()
        parent[lineages[i]] = parent[lineages[j]] = new
        height[new] = now
        lineages[i] = new
        lineages[j] = lineages[-1]
        lineages.pop()
    lengths = np.where(parent < 0, 0.0, height[parent] - height)
    return tree_from_parents(_node_names(n_tips), parent, lengths, taxa=taxon_names(n_tips))


def scaled_to_height(tree: Tree, height: float) -> Tree:
    """The tree with every length times one factor, so that its deepest tip is `height` from the root."""
    if not 0 < height < float("inf"):
        raise InputError(f"the height of a tree is a positive number, not {height:g}")
    return replace(tree, lengths=tree.lengths * (height / node_depths(tree).max()))


def caterpillar(n_tips: int, length: float = 0.1) -> Tree:
    """The most unbalanced rooted tree, all branches of one length."""
    _require(n_tips, 2)
    parent = np.empty(2 * n_tips - 1, np.int32)
    parent[:2] = n_tips
    parent[2:n_tips] = np.arange(n_tips + 1, 2 * n_tips - 1)
    parent[n_tips:-1] = np.arange(n_tips + 1, 2 * n_tips - 1)
    parent[-1] = -1
    return Tree(taxon_names(n_tips), parent, _equal_lengths(n_tips, length))


def balanced(n_tips: int, length: float = 0.1) -> Tree:
    """A rooted tree whose subtrees at every node differ in tips as little as pairing neighbours allows."""
    _require(n_tips, 2)
    parent = np.full(2 * n_tips - 1, -1, np.int32)
    level, new = list(range(n_tips)), n_tips
    while len(level) > 1:
        above = []
        for i in range(0, len(level) - 1, 2):
            parent[level[i]] = parent[level[i + 1]] = new
            above.append(new)
            new += 1
        level = above + level[2 * len(above) :]
    return Tree(taxon_names(n_tips), parent, _equal_lengths(n_tips, length))


def _equal_lengths(n_tips: int, length: float) -> np.ndarray:
    lengths = np.full(2 * n_tips - 1, length)
    lengths[-1] = 0.0
    return lengths


def _node_names(n_tips: int) -> list[str | None]:
    return [*taxon_names(n_tips), *(None,) * (n_tips - 1)]


def _require(n_tips: int, least: int) -> None:
    require_count("the number of tips", n_tips)
    if n_tips < least:
        raise InputError(f"this tree needs at least {least} tips", hint=f"Ask for {least} tips or more.")


def _require_mean(length: float) -> None:
    if not 0 <= length < np.inf:
        raise InputError(f"the mean branch length must be a finite number of 0 or more, not {length}")


def _require_positive(what: str, value: float) -> None:
    if not 0 < value < np.inf:
        raise InputError(f"{what} must be a positive number, not {value}", hint="Try 0.1 or 1.")
