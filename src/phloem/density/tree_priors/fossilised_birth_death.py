"""Births, deaths and fossils since an origin: lineages live on where one was found, so that a sample may be
an ancestor of others."""

from __future__ import annotations

import numpy as np

from phloem.density.tree_priors import epochs
from phloem.density.tree_priors.epochs import BY_RATES, OF_SPECIES, add_epochs, laid_out
from phloem.density.tree_priors.fossilised_birth_death_root import of_species
from phloem.density.tree_priors.fossils import kind_of
from phloem.density.tree_priors.serial_birth_death import of_rates
from phloem.density.tree_priors.tree_prior import Genealogy, Parameters, TreePrior
from phloem.errors import InputError, require_choice


def _parameters(scale, options) -> Parameters:
    """Those of bdss, or of fbd-root and the origin's gap (the option "numbers"); they may shift. InputError
    where samples are said to end their lineages."""
    if kind_of(options) == "ends":
        raise InputError("samples that end their lineages are of the tree prior 'bdss'")
    numbers = str(options.get("numbers") or "rates")
    require_choice("--numbers", numbers, ("rates", "diversification"))
    (blocks, priors), form = of_rates(scale), BY_RATES
    if numbers == "diversification":
        species, form = of_species(scale, {}), OF_SPECIES
        blocks, priors = (*species.blocks, blocks[-1]), priors | dict(species.priors)
        priors = {block.name: priors[block.name] for block in blocks}
    header = (float(options.get("sampled") or 0.0), 0.0, form, 0.0, 0.0)
    return laid_out(header, blocks, priors, options)


def log_density(g: Genealogy, x: np.ndarray, settings: np.ndarray) -> float:
    """Birth λ, death μ, fossils ψ, each the youngest first, or λ - μ, μ / λ and ψ / (μ + ψ), a share ρ of
    those alive at height 0; the process began origin_gap above the root: epochs.plain_density (Heath,
    Huelsenbeck and Stadler 2014, Proc. Natl. Acad. Sci. 111:E2957; Gavryushkina et al. 2014, PLoS Comput.
    Biol. 10:e1003919).

    A fossil is an ancestor where its parent is as old as it."""
    return epochs.plain_density(g, x, settings)


def density(g, x, settings, by_height, by_number):
    """The compiled form."""
    return add_epochs(g, x, settings, by_height, by_number)


PRIOR = TreePrior(
    "fbd", _parameters, log_density, density, joining=epochs.joining, samples=kind_of,
    options=("sampled", "fossils", "shift", "condition", "numbers"),
)  # fmt: skip
