"""Prior densities by number, compiled: one chain of tests made from the families there are.

A sampler lays the natural values of all blocks in one vector and its prior terms in a table; log_prior is
then their sum. Branch lengths are a vector of their own, tips' branches first, with a table of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from phloem.density.space import Space
from phloem.density.terms.families import KIND, SCALARS
from phloem.density.terms.term import BlockPrior, Family
from phloem.hardware import numba_compile


class PriorTable(NamedTuple):
    """R prior terms as arrays. kind: (R,) of families.KIND. first, size: (R,) the slice of x that term r is a
    density of. numbers_first: (R + 1,) where the numbers of every family begin in numbers (all,)."""

    kind: np.ndarray
    first: np.ndarray
    size: np.ndarray
    numbers_first: np.ndarray
    numbers: np.ndarray


def block_table(space: Space, priors: Sequence[BlockPrior]) -> PriorTable:
    """The table of the priors of a space's blocks, over its vector of natural values (n,)."""
    places = [space.place(prior.block) for prior in priors]
    rows = [(prior.family, here.start, here.stop - here.start, 0) for prior, here in zip(priors, places)]
    return table_of(rows)


def length_table(family: Family, n_lengths: int, n_external: int) -> PriorTable:
    """The table of a prior of branch lengths (n_lengths,), the first n_external of them those of tips."""
    return table_of([(family, 0, n_lengths, n_external)])


def table_of(rows: list[tuple[Family, int, int, int]]) -> PriorTable:
    """The table of densities, each with where it begins, of how many numbers, and how many lengths of tips'
    branches."""
    numbers = [family.numbers(size, n_external) for family, _, size, n_external in rows]
    return PriorTable(
        kind=np.array([KIND[type(family)] for family, _, _, _ in rows], np.int64),
        first=np.array([first for _, first, _, _ in rows], np.int64),
        size=np.array([size for _, _, size, _ in rows], np.int64),
        numbers_first=np.cumsum([0, *map(len, numbers)], dtype=np.int64),
        numbers=np.concatenate([np.empty(0), *numbers]),
    )


def _compiled(function) -> Any:
    """Part of its callers, which are what is cached; allocates nothing, so counts no references."""
    return numba_compile.compiled(function, cache=False, _nrt=False)


@_compiled
def _unknown(kind, x, numbers):
    raise RuntimeError("no prior has this number")


def _link(number: int, scalar, rest):
    @_compiled
    def density(kind, x, numbers):
        if kind == number:
            return scalar(x, numbers)
        return rest(kind, x, numbers)

    return density


def _chain(scalars):
    rest = _unknown
    for number in reversed(range(len(scalars))):
        rest = _link(number, _compiled(scalars[number]), rest)
    return rest


log_density_of_kind = _chain(SCALARS)
"""(kind, x, numbers) → log density."""


@_compiled
def log_prior(table, x):
    """Σ over the terms of a PriorTable at the values x (n,)."""
    total = 0.0
    for r in range(table.kind.shape[0]):
        here = x[table.first[r] : table.first[r] + table.size[r]]
        numbers = table.numbers[table.numbers_first[r] : table.numbers_first[r + 1]]
        total += log_density_of_kind(table.kind[r], here, numbers)
    return total
