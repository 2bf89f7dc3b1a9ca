"""What a target is a sum of, and the two kinds of prior term: on a block of numbers, on branch lengths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

import numpy as np

from phloem.errors import InputError

TOPOLOGY = "topology"  # in values: (N,) parent of every node, -1 at the root, tips first, the root last
Values = Mapping[str, np.ndarray]
Domain = Literal["positive", "unit", "simplex", "real", "lengths", "tied"]


class Term(Protocol):
    """A summand of the log density.

    reads: names of the values it needs: blocks, and TOPOLOGY. log_density: at values. gradient: the same, and
    its derivatives by the natural values of the blocks it reads (k,), entries taken as independent.
    """

    @property
    def reads(self) -> tuple[str, ...]: ...

    def log_density(self, values: Values) -> float: ...

    def gradient(self, values: Values) -> tuple[float, dict[str, np.ndarray]]: ...


class Family(Protocol):
    """A family of densities with its numbers chosen; every number has a default.

    domain: what it is a density on. log_density: (…, k) → (…), normalised, -inf outside; entries independent
    where the family is one of single numbers. gradient: (…, k) → (…, k), entries taken as independent.
    numbers: (p,) what the compiled form wants to know, for k entries. Branch lengths ("lengths") come with
    those of the tips' branches first; n_external says how many, here and in numbers.
    """

    domain: ClassVar[Domain]

    def log_density(self, x: np.ndarray, n_external: int = 0) -> np.ndarray: ...

    def gradient(self, x: np.ndarray, n_external: int = 0) -> np.ndarray: ...

    def numbers(self, size: int, n_external: int = 0) -> np.ndarray: ...


@dataclass(frozen=True)
class BlockPrior:
    """A family as the prior of a block."""

    block: str
    family: Family

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.block,)

    def log_density(self, values: Values) -> float:
        return float(self.family.log_density(values[self.block]))

    def gradient(self, values: Values) -> tuple[float, dict[str, np.ndarray]]:
        return self.log_density(values), {self.block: self.family.gradient(values[self.block])}


@dataclass(frozen=True)
class LengthPrior:
    """A family as the prior of branch lengths (B,), which may tell tips' branches from internal ones.

    A branch of the tree belongs to the node below it, so tips' branches come first.
    """

    block: str
    family: Family

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.block, TOPOLOGY)

    def log_density(self, values: Values) -> float:
        return float(self.family.log_density(values[self.block], _n_tips(values[TOPOLOGY])))

    def gradient(self, values: Values) -> tuple[float, dict[str, np.ndarray]]:
        slope = self.family.gradient(values[self.block], _n_tips(values[TOPOLOGY]))
        return self.log_density(values), {self.block: slope}


def _n_tips(parent: np.ndarray) -> int:
    return len(parent) - len(np.unique(parent[parent >= 0]))


def positive_numbers(what: str, *numbers: float) -> None:
    """InputError unless every number is positive and finite."""
    if not all(0 < x < float("inf") for x in numbers):
        raise InputError(f"{what} needs positive numbers, not {', '.join(f'{x:g}' for x in numbers)}")
