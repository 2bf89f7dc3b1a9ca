"""Births, deaths and fossils since an origin: lineages live on where one was found, so that a sample may be
an ancestor of others."""

from __future__ import annotations

import numpy as np

from phloem.density.tree_priors import epochs
from phloem.density.tree_priors.epochs import add_epochs
from phloem.density.tree_priors.fossils import kind_of
from phloem.density.tree_priors.serial_birth_death import of_samples
from phloem.density.tree_priors.tree_prior import Genealogy, Parameters, TreePrior
from phloem.errors import InputError


def _parameters(scale, options) -> Parameters:
    """Those of bdss, which may shift. InputError where samples are said to end their lineages."""
    if kind_of(options) == "ends":
        raise InputError("samples that end their lineages are of the tree prior 'bdss'")
    return of_samples(scale, options, True)


def log_density(g: Genealogy, x: np.ndarray, settings: np.ndarray) -> float:
    """Birth λ, death μ, fossils ψ, each the youngest first, a share ρ of those alive at height 0; the process
    began origin_gap above the root: epochs.plain_density (Heath, Huelsenbeck and Stadler 2014, Proc. Natl.
    Acad. Sci. 111:E2957; Gavryushkina et al. 2014, PLoS Comput. Biol. 10:e1003919).

    A fossil is an ancestor where its parent is as old as it."""
    return epochs.plain_density(g, x, settings)


def density(g, x, settings, by_height, by_number):
    """The compiled form."""
    return add_epochs(g, x, settings, by_height, by_number)


PRIOR = TreePrior(
    "fbd", _parameters, log_density, density, options=("sampled", "fossils", "shift"),
    joining=epochs.joining, samples_ancestors=True,
)  # fmt: skip
