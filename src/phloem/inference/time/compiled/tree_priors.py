"""Tree priors by number, compiled: one chain of tests made from the files there are."""

from __future__ import annotations

import math
from typing import Any

from phloem.density import tree_priors  # noqa: F401 (its files are in the stamp of compiled code)
from phloem.density.tree_priors.tree_prior import registered
from phloem.hardware import numba_compile


def _compiled(function) -> Any:
    """Part of its callers, which are what is cached; allocates nothing, so counts no references."""
    return numba_compile.compiled(function, cache=False, _nrt=False)


@_compiled
def _unknown(kind, g, x, settings, by_height, by_number):
    return math.nan


def _link(number: int, density, rest):
    @_compiled
    def of_kind(kind, g, x, settings, by_height, by_number):
        if kind == number:
            return density(g, x, settings, by_height, by_number)
        return rest(kind, g, x, settings, by_height, by_number)

    return of_kind


def _chain(densities):
    rest = _unknown
    for number in reversed(range(len(densities))):
        rest = _link(number, _compiled(densities[number]), rest)
    return rest


KIND = {name: number for number, name in enumerate(registered())}

log_tree_prior = _chain([prior.density for prior in registered().values()])
"""(kind, genealogy, x, settings, by_height, by_number) → log density, with derivatives added."""
