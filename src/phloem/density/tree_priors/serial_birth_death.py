"""Births, deaths and samples through time: an epidemic whose sampled infect no more."""

from __future__ import annotations

import math

import numpy as np

from phloem.density.space import Block
from phloem.density.terms.exponential import Exponential
from phloem.density.terms.term import Family
from phloem.density.tree_priors import epochs
from phloem.density.tree_priors.epochs import BY_RATES, add_epochs, laid_out
from phloem.density.tree_priors.tree_prior import ORIGIN_GAP, Genealogy, Parameters, TreePrior, positive


def of_rates(scale) -> tuple[tuple[Block, ...], dict[str, Family]]:
    """Blocks of the three rates and the origin's gap, and their priors."""
    rate = max(math.log(scale.n_tips), 0.5) / scale.time
    names = ("birth_rate", "death_rate", "sampling_rate", ORIGIN_GAP)
    starts = (2.0 * rate, 0.5 * rate, 0.5 * rate, 0.1 * scale.time)
    blocks = tuple(positive(name, start) for name, start in zip(names, starts))
    return blocks, {name: Exponential(0.5 / start) for name, start in zip(names, starts)}


def _parameters(scale, options) -> Parameters:
    header = (float(options.get("sampled") or 0.0), 0.0, BY_RATES, 0.0, 0.0)
    return laid_out(header, *of_rates(scale), options)


def log_density(g: Genealogy, x: np.ndarray, settings: np.ndarray) -> float:
    """Birth λ, death μ, sampling ψ (which removes), each the youngest first, a share ρ of those alive at
    height 0; the process began origin_gap above the root: epochs.plain_density (Stadler 2010, J. Theor.
    Biol. 267:396, for removal as in Stadler et al. 2012, Mol. Biol. Evol. 29:347)."""
    return epochs.plain_density(g, x, settings)


def density(g, x, settings, by_height, by_number):
    """The compiled form."""
    return add_epochs(g, x, settings, by_height, by_number)


PRIOR = TreePrior(
    "bdss", _parameters, log_density, density, options=("sampled", "shift", "condition"),
    joining=epochs.joining,
)  # fmt: skip
