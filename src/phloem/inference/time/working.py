"""A working distribution of dated trees: where generalised stepping stones of `phloem time` begin.

As inference/mcmc/working.py, but of trees with a root: the height of the root above the oldest tip is
log-normal, that of every other inner node, as a share of the way from the oldest tip below it to its parent,
beta by its clade, and the deviation of a branch's rate normal by the clade below, of white noise log-gamma.
Where an age has a least or a greatest value, that stands for the tip or for the parent (density/heights.py),
so that the density is 0 where the prior is, and adds up to 1; a fixed age has none. A clade is the set of
tips below a node, as a whole number with a bit a tip. Plain NumPy, with which chains are compared;
compiled/working.py evaluates it in them.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from phloem.density.heights import set_limits
from phloem.density.terms.beta import Beta
from phloem.density.terms.log_normal import LogNormal
from phloem.density.terms.normal import Normal
from phloem.density.terms.term import Family


@dataclass(frozen=True)
class LogGamma:
    """Of a number whose exponential is gamma: white noise, whose deviations fall far where branches are
    short."""

    shape: float
    rate: float

    def log_density(self, x: np.ndarray) -> np.ndarray:
        a, b, constant = self.numbers()
        return (constant + a * x - b * np.exp(x)).sum(-1)

    def numbers(self) -> tuple[float, float, float]:
        """As compiled code has it: shape, rate, constant."""
        return self.shape, self.rate, self.shape * math.log(self.rate) - math.lgamma(self.shape)


@dataclass(frozen=True)
class NodeDensity:
    """share: of the height of an inner node; deviations: of every clock that has them, of the branch
    above."""

    share: Beta
    deviations: tuple[Normal | LogGamma, ...]


class AgeLimit(NamedTuple):
    """The age of the common ancestor of taxa, a bit each, or of the node above it (stem), is between least
    and most."""

    taxa: int
    stem: bool
    least: float
    most: float


class Place(NamedTuple):
    """Of the nodes of a tree (N,): the clade below, the least and the greatest height that each may have,
    the others as they are; infinite of a root without an end."""

    below: list[int]
    least: np.ndarray
    most: np.ndarray


@dataclass(frozen=True, eq=False)
class DatedWorking:
    """numbers, constant, n_draws: as WorkingDistribution's, constant with the logarithm of how many
    topologies there are, since tree priors are densities of each. limits: of ages. root: of its height above
    the least, where it has no end, else as other nodes. nodes: clade → densities, others: of clades that few
    draws had. splits, unseen: as WorkingDistribution's, of rooted trees."""

    numbers: tuple[tuple[int, int, Family], ...]
    constant: float
    limits: tuple[AgeLimit, ...]
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
        told = (
            self.numbers,
            self.constant,
            self.limits,
            self.root,
            sorted(self.nodes.items(), key=lambda one: one[0]),
        )
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
        place, n_tips, root = place_of(parent, heights, self.limits), (len(parent) + 1) // 2, len(parent) - 1
        for x in range(len(parent)):
            own = self.nodes.get(place.below[x], self.others)
            if x >= n_tips and place.least[x] < place.most[x]:
                above = heights[x : x + 1] - place.least[x]
                if place.most[x] == math.inf:
                    terms.append(float(self.root.log_density(above)))
                else:
                    whole = float(place.most[x] - place.least[x])
                    terms.append(float(own.share.log_density(above / whole)) - math.log(whole))
            if x < root:
                terms += [float(d.log_density(e[x : x + 1])) for d, e in zip(own.deviations, deviations)]
        for clade, half in rooted_halves(parent, place.below):
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


def place_of(parent: np.ndarray, heights: np.ndarray, limits: Sequence[AgeLimit] = ()) -> Place:
    """Clades and room of all nodes; those whose age is fixed have none."""
    n_tips, below = (len(parent) + 1) // 2, rooted_clades(parent, heights)
    least = np.where(np.arange(len(parent)) < n_tips, heights, -np.inf)
    nodes, order = list[int](), _children_first(parent, heights)
    for x in order:
        least[parent[x]] = max(least[parent[x]], least[x])
    for limit in limits:
        x = next(x for x in (*order, len(parent) - 1) if below[x] & limit.taxa == limit.taxa)
        nodes.append(int(parent[x]) if limit.stem and parent[x] >= 0 else x)
    most, ends = np.zeros(len(parent)), np.array([(one.least, one.most) for one in limits]).reshape(-1, 2)
    set_limits(parent, np.array(nodes, np.int64), ends[:, 0], ends[:, 1], least, most)
    most[:-1] = np.minimum(most[:-1], heights[parent[:-1]])
    return Place(below, least, most)


def rooted_halves(parent: np.ndarray, below: list[int]) -> list[tuple[int, int]]:
    """Of every inner node its clade and the smaller number of the two into which it falls."""
    half: dict[int, int] = {}
    for x, up in enumerate(parent.tolist()[:-1]):
        half[up] = min(half.get(up, below[x]), below[x])
    return [(below[x], own) for x, own in half.items()]
