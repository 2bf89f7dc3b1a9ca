"""The likelihood as a term of a density."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from phloem.density.parameterisation import BlockValues, Parameterisation, PartGradient
from phloem.density.parts import Linkage, PartModel
from phloem.density.terms.term import Values
from phloem.tree.tree import Tree


class BlockLikelihood(Protocol):
    """What TreeLikelihood (one part) and PartitionedLikelihood offer to a fit or a sampler.

    part_models, linkage: what the blocks follow from. place: take the values of free blocks over.
    part_gradients: log-likelihoods (L,), and derivatives of every part by its effective branch lengths and,
    if parameters, by its model's parameters. taxa_with_data: (L, T) bool.
    """

    @property
    def part_models(self) -> tuple[PartModel, ...]: ...

    @property
    def linkage(self) -> Linkage: ...

    @property
    def tree(self) -> Tree: ...

    @property
    def branch_lengths(self) -> np.ndarray: ...

    @property
    def root_is_free(self) -> bool: ...

    @property
    def taxa_with_data(self) -> np.ndarray: ...

    def log_likelihood(self) -> float: ...

    def place(self, parameterisation: Parameterisation, values: BlockValues) -> None: ...

    def part_gradients(self, parameters: bool = True) -> tuple[np.ndarray, list[PartGradient]]: ...


@dataclass(frozen=True, eq=False)
class LikelihoodTerm:
    """A likelihood at the free blocks of a parameterisation of its parts, moved to every point asked for."""

    likelihood: BlockLikelihood
    parameterisation: Parameterisation

    @cached_property
    def reads(self) -> tuple[str, ...]:
        return tuple(b.name for b in self.parameterisation.free_space.blocks)

    @cached_property
    def _has_parameters(self) -> bool:
        return any(
            r.block in self.parameterisation.free for own in self.parameterisation.readings for r in own
        )

    def log_density(self, values: Values) -> float:
        self.likelihood.place(self.parameterisation, self._free(values))
        return self.likelihood.log_likelihood()

    def gradient(self, values: Values) -> tuple[float, dict[str, np.ndarray]]:
        free = self._free(values)
        self.likelihood.place(self.parameterisation, free)
        by_part, gradients = self.likelihood.part_gradients(self._has_parameters)
        return float(by_part.sum()), self.parameterisation.pull_back(free, gradients)

    def _free(self, values: Values) -> Mapping[str, np.ndarray]:
        return {name: values[name] for name in self.reads}
