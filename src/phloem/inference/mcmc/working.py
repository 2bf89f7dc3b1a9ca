"""A working distribution: the normalised density, near a posterior, at which generalised stones begin.

A product of independent densities (Fan, Wu, Chen, Kuo and Lewis 2011, Mol. Biol. Evol. 28:523): of the
numbers, each in its own coordinates, of branch lengths, gamma densities by split, and, where topologies are
sampled, of the splits that clades fall into, given the clade, with a share for those that no draw had
(Holder, Lewis, Swofford and Bryant 2014, in Chen, Kuo and Lewis, Bayesian Phylogenetics, chapter 5). A clade
is the set of tips of a branch on the side without tip 0, as a whole number with a bit a tip. working_fit.py
makes one, compiled/working.py evaluates it in chains; here it is plain NumPy, with which the guard
compares.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass
from functools import cached_property

import numpy as np

from phloem.density.terms.gamma import Gamma
from phloem.density.terms.term import Family
from phloem.inference.mcmc.structure import ChainModel

LN_WORKING = "LnWork"  # its column in a trace, the last


@dataclass(frozen=True)
class Truncated:
    """A gamma density of a branch length, divided by its mass within the sampler's bounds (log_mass)."""

    gamma: Gamma
    log_mass: float


@dataclass(frozen=True, eq=False)
class WorkingDistribution:
    """numbers: densities of a chain's numbers, as (first, size, family): all n of them, each once. constant:
    added to their logarithms: what their masses within the bounds of sampling make of it, and those of the
    priors, which count as they are sampled. lengths: clade → of every set of branch lengths the density of
    its branch; others: of branches of splits that no draw had, or few. splits: clade → half of it → log
    probability of the split over that under uniform topologies, as log priors leave that out too; unseen:
    clade → the same of every other split; of clades in neither it is 0. Both None: the topology is fixed.
    n_draws: to which it was fitted."""

    numbers: tuple[tuple[int, int, Family], ...]
    constant: float
    lengths: Mapping[int, tuple[Truncated, ...]]
    others: tuple[Truncated, ...]
    splits: Mapping[int, Mapping[int, float]] | None
    unseen: Mapping[int, float] | None
    n_draws: int

    def __repr__(self) -> str:
        return f"WorkingDistribution({self.n_draws:,} draws, {self.digest[:8]})"

    @cached_property
    def digest(self) -> str:
        """Checksum of all its numbers."""
        splits = (
            [] if self.splits is None else sorted((c, sorted(own.items())) for c, own in self.splits.items())
        )
        told = (
            [(first, size, type(family).__name__, astuple(family)) for first, size, family in self.numbers],  # type: ignore[call-overload]
            [self.constant, [astuple(one) for one in self.others]],
            sorted((clade, [astuple(one) for one in own]) for clade, own in self.lengths.items()),
            [splits, sorted((self.unseen or {}).items())],
        )
        return hashlib.sha256(json.dumps(told, default=float).encode()).hexdigest()

    def log_density(self, parent: np.ndarray, lengths: np.ndarray, values: np.ndarray) -> float:
        """Of an unrooted tree in the order of phloem.tree, parent (2T-2,), lengths (2T-2,) or (G, 2T-2), and
        a chain's numbers (n,), in natural logarithms."""
        terms = [self.constant]
        terms += [float(family.log_density(values[at : at + size])) for at, size, family in self.numbers]
        below, sets = clades(parent), np.atleast_2d(lengths)
        for x, clade in enumerate(below[:-1]):
            for own, b in zip(self.lengths.get(clade, self.others), sets[:, x]):
                terms.append(float(own.gamma.log_density(np.array([b]))) - own.log_mass)
        if self.splits is not None and self.unseen is not None:
            for clade, half in halves(parent, below):
                known = self.splits.get(clade, {})
                terms.append(known.get(half, self.unseen.get(clade, 0.0)))
        return math.fsum(terms)


def clades(parent: np.ndarray) -> list[int]:
    """Of every node of an unrooted tree in the order of phloem.tree, whose last one has tip 0 among its
    children, the clade below; of the last that of all tips but 0."""
    n_tips = (len(parent) + 2) // 2
    below = [1 << x if x < n_tips else 0 for x in range(len(parent))]
    for x, up in enumerate(parent.tolist()[:-1]):
        if x > 0:
            below[up] |= below[x]
    return below


def halves(parent: np.ndarray, below: list[int]) -> list[tuple[int, int]]:
    """Of every inner node its clade and the smaller number of the two into which it falls."""
    half: dict[int, int] = {}
    for x, up in enumerate(parent.tolist()[:-1]):
        if x > 0:
            half[up] = min(half.get(up, below[x]), below[x])
    return [(below[x], own) for x, own in half.items()]


def plain_working(
    structure: ChainModel, working: WorkingDistribution
) -> Callable[[np.ndarray, np.ndarray, Mapping[str, float]], float]:
    """A function (parent, lengths, numbers), as guard.plain_likelihood's → log working density."""

    def log_working(parent: np.ndarray, lengths: np.ndarray, numbers: Mapping[str, float]) -> float:
        return working.log_density(parent, lengths, structure.values_of(numbers))

    return log_working
