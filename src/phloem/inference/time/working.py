"""A working distribution of dated trees: where generalised stepping stones of `phloem time` begin.

As inference/mcmc/working.py, but of trees with a root: the height of the root above the oldest tip is
log-normal, that of every other inner node, as a share of the way from the oldest tip below it to its parent,
beta by its clade, and the deviation of a branch's rate normal by the clade below. A clade is the set of tips
below a node, as a whole number with a bit a tip. Plain NumPy, with which chains are compared;
compiled/working.py evaluates it in them.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from phloem.density.terms.beta import Beta
from phloem.density.terms.log_normal import LogNormal
from phloem.density.terms.normal import Normal
from phloem.density.terms.term import Family


@dataclass(frozen=True)
class NodeDensity:
    """share: of the height of an inner node; deviations: of every clock that has them, of the branch
    above."""

    share: Beta
    deviations: tuple[Normal, ...]


@dataclass(frozen=True, eq=False)
class DatedWorking:
    """numbers, constant, n_draws: as WorkingDistribution's, constant with the logarithm of how many
    topologies there are, since tree priors are densities of each. root: of its height above the oldest tip.
    nodes: clade → densities, others: of clades that few draws had. splits, unseen: as WorkingDistribution's,
    of rooted trees."""

    numbers: tuple[tuple[int, int, Family], ...]
    constant: float
    root: LogNormal
    nodes: Mapping[int, NodeDensity]
    others: NodeDensity
    splits: Mapping[int, Mapping[int, float]]
    unseen: Mapping[int, float]
    n_draws: int

    def __repr__(self) -> str:
        return f"DatedWorking({self.n_draws:,} draws, {self.digest[:8]})"

    @cached_property
    def digest(self) -> str:
        """Checksum of all its numbers."""
        splits = sorted((clade, sorted(own.items())) for clade, own in self.splits.items())
        told = self.numbers, self.constant, self.root, sorted(self.nodes.items(), key=lambda one: one[0])
        return hashlib.sha256(
            repr((told, self.others, splits, sorted(self.unseen.items()))).encode()
        ).hexdigest()

    def log_density(
        self, parent: np.ndarray, heights: np.ndarray, deviations: np.ndarray, values: np.ndarray
    ) -> float:
        """Of a tree with its root last, parent and heights (N,), deviations (K, N) and a chain's numbers
        (n,), in natural logarithms."""
        terms = [self.constant]
        terms += [float(family.log_density(values[at : at + size])) for at, size, family in self.numbers]
        below, n_tips = rooted_clades(parent, heights), (len(parent) + 1) // 2
        lows, root = oldest_below(parent, heights), len(parent) - 1
        terms.append(float(self.root.log_density(heights[root:] - heights[:n_tips].max())))
        for x in range(root):
            own = self.nodes.get(below[x], self.others)
            if x >= n_tips:
                whole = float(heights[parent[x]] - lows[x])
                share = np.array([(heights[x] - lows[x]) / whole])
                terms.append(float(own.share.log_density(share)) - math.log(whole))
            terms += [float(d.log_density(e[x : x + 1])) for d, e in zip(own.deviations, deviations)]
        for clade, half in rooted_halves(parent, below):
            terms.append(self.splits.get(clade, {}).get(half, self.unseen.get(clade, 0.0)))
        return math.fsum(terms)


def _children_first(parent: np.ndarray, heights: np.ndarray) -> list[int]:
    """All nodes but the root, children before parents: tips first, then by height."""
    n_tips = (len(parent) + 1) // 2
    inner = n_tips + np.argsort(heights[n_tips:-1], kind="stable")
    return [*range(n_tips), *inner.tolist()]


def rooted_clades(parent: np.ndarray, heights: np.ndarray) -> list[int]:
    """Of every node of a rooted tree, the root last, the tips below."""
    n_tips = (len(parent) + 1) // 2
    below = [1 << x if x < n_tips else 0 for x in range(len(parent))]
    for x in _children_first(parent, heights):
        below[parent[x]] |= below[x]
    return below


def oldest_below(parent: np.ndarray, heights: np.ndarray) -> np.ndarray:
    """(N,) of every node the greatest height of the tips below."""
    n_tips = (len(parent) + 1) // 2
    lows = np.where(np.arange(len(parent)) < n_tips, heights, -np.inf)
    for x in _children_first(parent, heights):
        lows[parent[x]] = max(lows[parent[x]], lows[x])
    return lows


def rooted_halves(parent: np.ndarray, below: list[int]) -> list[tuple[int, int]]:
    """Of every inner node its clade and the smaller number of the two into which it falls."""
    half: dict[int, int] = {}
    for x, up in enumerate(parent.tolist()[:-1]):
        half[up] = min(half.get(up, below[x]), below[x])
    return [(below[x], own) for x, own in half.items()]
