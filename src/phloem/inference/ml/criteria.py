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
    like fitted ones, one of two basal branches of every set of lengths where the root is free."""
    read = {r.block for readings in parameterisation.readings for r in readings if r.parameter.counted}
    counted = sum(parameterisation.space.block(name).n_coordinates for name in read)
    tree = likelihood.tree
    one_basal_branch = likelihood.root_is_free and len(tree.children(tree.n_nodes - 1)) == 2
    blocks = (parameterisation.space.block(name) for name in set(parameterisation.lengths))
    sets = sum(block.n_coordinates for block in blocks) // (tree.n_nodes - 1)
    return parameterisation.free_space.n_coordinates + counted - sets * one_basal_branch
