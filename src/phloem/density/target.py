"""The density that a fit climbs and a sampler walks on: a sum of terms over one space."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from phloem.density.space import Space
from phloem.density.terms.term import TOPOLOGY, BlockPrior, Term
from phloem.errors import InputError


@dataclass(frozen=True, eq=False)
class Target:
    """Σ terms over the blocks of a space.

    fixed: values that terms read and that are not in the space: blocks held fixed, and the topology.
    Methods take a vector x (n,) of natural values, or one y (m,) of coordinates. Errors: InputError where a
    term reads what there is not, or is a density on something else than the block is.
    """

    space: Space
    terms: Sequence[Term]
    fixed: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for term in self.terms:
            for name in term.reads:
                if name not in self.space and name not in self.fixed:
                    what = "a topology" if name == TOPOLOGY else f"a block '{name}'"
                    raise InputError(f"a term of the density needs {what}, and there is none")
            if isinstance(term, BlockPrior) and term.block in self.space:
                _check_domain(self.space, term)

    def values(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """Everything that terms may read, by name."""
        return {**self.fixed, **self.space.unpack(x)}

    def log_density(self, x: np.ndarray) -> float:
        """By natural values; the sum stops at a term of -inf: priors that come first spare the rest."""
        values, total = self.values(x), 0.0
        for term in self.terms:
            total += term.log_density(values)
            if total == -np.inf:
                break
        return total

    def gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """log_density and its derivatives (n,) by natural values, entries taken as independent."""
        values, total, slope = self.values(x), 0.0, np.zeros(self.space.size)
        for term in self.terms:
            value, by_block = term.gradient(values)
            total += value
            for name, g in by_block.items():
                if name in self.space:
                    slope[self.space.place(name)] += g
        return total, slope

    def at(self, y: np.ndarray, jacobian: bool) -> tuple[float, np.ndarray]:
        """The log density and its derivatives (m,) by coordinates.

        jacobian: True for sampling: the density of the coordinates, |dx/dy| included. False for fits: the
        density of the natural values, whose maximum does not depend on coordinates.
        """
        x = self.space.from_coordinates(y)
        value, slope = self.gradient(x)
        by_coordinate = self.space.pull_back(x, slope)
        if jacobian:
            value += float(self.space.log_jacobian(x))
            by_coordinate = by_coordinate + self.space.log_jacobian_gradient(x)
        return value, by_coordinate


def _check_domain(space: Space, term: BlockPrior) -> None:
    support, domain = space.block(term.block).support, term.family.domain
    if domain == "lengths" or (support == "simplex") != (domain == "simplex"):
        raise InputError(
            f"block '{term.block}' is {support}, and {type(term.family).__name__} is a density on {domain}",
            hint="Give shares that sum to 1 a Dirichlet, branch lengths a LengthPrior, and other numbers a "
            "density of single numbers.",
        )
