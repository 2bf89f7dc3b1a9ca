"""What differs from analysis to analysis, called by its address: the tree prior, the density of branch
deviations, clocks whose rates know of each other, a trait, likelihoods on a device, or with ancestors. A run
compiles those that it has."""

from __future__ import annotations

import numpy as np

from phloem.density.local_clocks import Branches
from phloem.density.traits import Lineage, Trait, trait_memory
from phloem.density.tree_priors.tree_prior import Genealogy
from phloem.hardware.numba_compile import ByAddress
from phloem.inference.time.ancestors.sequences import Lineages, Walk

_X, _I = np.zeros(1), np.zeros(1, np.int64)
_II, _XX, _XXX = np.zeros((1, 1), np.int64), np.zeros((1, 1)), np.zeros((1, 1, 1))
_BRANCHES = Branches(0, 1, _I, _I, _I, _I, _X, _X, _X, np.zeros((1, 1), np.uint8), _I, _I, _X)
_LINEAGE = Lineage(_I, _I, _I, _I, _X)
_LINEAGES, _WORDS = Lineages(_I, _I, _I, _I, _X, _X), np.zeros(1, np.uint64)
_TRAIT = Trait(np.zeros((1, 1)), _I, _I, 0, 0, 0, 0, 0, 0, 0, 0.0, 0.0)

_WALK = Walk(
    1, _WORDS, 0.0, _I, _I, _I, _I, _X, _X, _X, _LINEAGES, _X, _I, _I, _X, _I, _I, _X, 0, _X, _X, 0.0, 0.0,
    0.0, 0, _I, _I, _X, _X, _I, _I,
)  # fmt: skip

TREE_PRIOR = ByAddress(Genealogy(_X, _I, 1, _I, _I, _I, _I), _X, _X, _X, _X)
"""density of density/tree_priors: (genealogy, x, settings, by_height, by_number)."""
DEVIATIONS = ByAddress(_I, _X, _X, _X, _X, _X, _X)
"""Of density/deviations.py: (parent, heights, deviations, numbers, by_deviation, by_height, by_number)."""
LENGTHS_ALONG = ByAddress(_BRANCHES, _X)
"""set_lengths_along of density/local_clocks.py, or autocorrelated_clock's: (branches, lengths)."""
PULL_BACK_ALONG = ByAddress(_BRANCHES, _X, _X, _X, _X, _X)
"""pull_back_along: (branches, lengths, by_length, by_height, by_deviation, by_number)."""
TRAIT = ByAddress(_TRAIT, _LINEAGE, _LINEAGE, _X, _X, trait_memory(1, 1), 0, 0)
"""trait_density of density/traits.py: (trait, before, now, x_before, x, memory, slot, asked)."""
ANSWER = ByAddress(_II, _I, _XX, (_II, _II), _XXX, _I, (_II, _II, _II, _I))
"""compiled/device.py: answer_there."""
ANCESTORS = ByAddress(_I, _LINEAGES, _LINEAGES, (_I, _I, _I), _WORDS, _I, _X)
"""ancestors/chain.py: answer."""
JOINING = ByAddress(0.0, _X, _X, _X)
"""joining of density/tree_priors: (t, numbers, settings, out)."""
WALK = ByAddress(_I, _I, _I, _WALK, 1)
"""ancestors/walk.py: (table, numbers, addresses, the walk, steps)."""
