"""Births, deaths and fossils: lineages live on where one was found, and no fossil is an ancestor of
another."""

from __future__ import annotations

from functools import partial

from phloem.density.tree_priors.serial_birth_death import density, joining, log_density, parameters
from phloem.density.tree_priors.tree_prior import TreePrior

# Heath, Huelsenbeck and Stadler 2014, Proc. Natl. Acad. Sci. 111:E2957, of trees without sampled ancestors:
# the posterior is that given that there are none. A fossil that is an ancestor takes a move between
# dimensions.
PRIOR = TreePrior(
    "fbd", partial(parameters, stays=1.0), log_density, density, options=("sampled",), joining=joining
)
