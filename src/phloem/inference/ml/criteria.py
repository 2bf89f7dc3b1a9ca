"""Information criteria, and the free numbers that they count."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from phloem.density.parameterisation import Parameterisation
from phloem.likelihood.term import BlockLikelihood


class Criteria(NamedTuple):
    """Of k free numbers and n sites: 2k - 2 log L (Akaike 1974), the same + 2k(k + 1) / (n - k - 1) (Hurvich
    and Tsai 1989; infinite where n ≤ k + 1), k log n - 2 log L (Schwarz 1978)."""

    aic: float
    aicc: float
    bic: float


def criteria(log_likelihood: float, n_free: int, n_sites: int) -> Criteria:
    """Less is better."""
    room = n_sites - n_free - 1
    aic = 2.0 * n_free - 2.0 * log_likelihood
    correction = 2.0 * n_free * (n_free + 1) / room if room > 0 else np.inf
    return Criteria(aic, aic + correction, n_free * float(np.log(n_sites)) - 2.0 * log_likelihood)


def free_numbers(likelihood: BlockLikelihood, parameterisation: Parameterisation) -> int:
    """The dimension of a fit, as IQ-TREE counts it: each shared block once, frequencies counted in the data
    like fitted ones, one of two basal branches of every set of lengths where the root is free, no branches
    that a set has for taxa without data (idle_lengths)."""
    read = {r.block for readings in parameterisation.readings for r in readings if r.parameter.counted}
    counted = sum(parameterisation.space.block(name).n_coordinates for name in read)
    tree = likelihood.tree
    one_basal_branch = likelihood.root_is_free and len(tree.children(tree.n_nodes - 1)) == 2
    blocks = (parameterisation.space.block(name) for name in set(parameterisation.lengths))
    sets = sum(block.n_coordinates for block in blocks) // (tree.n_nodes - 1)
    idle = idle_lengths(likelihood, parameterisation)
    return parameterisation.free_space.n_coordinates + counted - sets * one_basal_branch - idle


def idle_lengths(likelihood: BlockLikelihood, parameterisation: Parameterisation) -> int:
    """Branch lengths that no part says anything of: of every set of lengths two for each taxon without data
    in all parts that have the set, as its branch is not there and two others are one."""
    n_branches, idle = likelihood.tree.n_nodes - 1, 0
    known = likelihood.taxa_with_data
    for name in set(parameterisation.lengths):
        readers = [k for k, lengths in enumerate(parameterisation.lengths) if lengths == name]
        some = int(np.count_nonzero(known[readers].any(axis=0)))
        sets = parameterisation.space.block(name).n_coordinates // n_branches
        idle += sets * (2 * (known.shape[1] - max(some, 2)) + (some < 2))
    return idle
