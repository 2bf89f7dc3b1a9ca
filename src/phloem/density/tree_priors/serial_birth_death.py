"""Births, deaths and samples through time: an epidemic whose sampled infect no more, or some of them."""

from __future__ import annotations

import math

import numpy as np

from phloem.density.space import Block
from phloem.density.terms.exponential import Exponential
from phloem.density.terms.term import Family
from phloem.density.terms.uniform import Uniform
from phloem.density.tree_priors import epochs
from phloem.density.tree_priors.epochs import BY_RATES, FREE, add_epochs, laid_out
from phloem.density.tree_priors.fossils import kind_of
from phloem.density.tree_priors.tree_prior import (
    ORIGIN_GAP,
    REMOVAL,
    Genealogy,
    Parameters,
    TreePrior,
    positive,
)
from phloem.errors import InputError


def of_rates(scale) -> tuple[tuple[Block, ...], dict[str, Family]]:
    """Blocks of the three rates and the origin's gap, and their priors."""
    rate = max(math.log(scale.n_tips), 0.5) / scale.time
    names = ("birth_rate", "death_rate", "sampling_rate", ORIGIN_GAP)
    starts = (2.0 * rate, 0.5 * rate, 0.5 * rate, 0.1 * scale.time)
    blocks = tuple(positive(name, start) for name, start in zip(names, starts))
    return blocks, {name: Exponential(0.5 / start) for name, start in zip(names, starts)}


REMOVAL_PRIOR: dict[str, Family] = {REMOVAL: Uniform(0.0, 1.0)}
"""Of a number that is there only where another is given, so that errors name it among those that may be."""


def removal(options) -> tuple[tuple[Block, ...], float]:
    """The block of the probability that a sample ends its lineage, where that has a prior, and ENDS."""
    if not options.get(REMOVAL):
        return (), 1.0
    return (Block(REMOVAL, "unit", np.array([0.5]), 0.0, 1.0),), FREE


def samples(options) -> str:
    """What a sample may be, see TreePrior: where the sampled infect on, as fossils.py has it. InputError
    where they do not and more is asked."""
    kind = kind_of(options)
    if options.get(REMOVAL):
        if kind == "ends":
            raise InputError(f"--fossils ends: leave out the prior of {REMOVAL}, which is 1 then")
        return kind
    if options.get("fossils") not in (None, "ends"):
        raise InputError(
            "samples that end their lineages are no ancestors",
            hint=f"Leave --fossils out, or let them live on: --prior '{REMOVAL}=uniform(0,1)'.",
        )
    return ""


def _parameters(scale, options) -> Parameters:
    samples(options)
    (*rates, gap), priors = of_rates(scale)
    own, ends = removal(options)
    header = (float(options.get("sampled") or 0.0), ends, BY_RATES, 0.0, 0.0)
    return laid_out(header, (*rates, *own, gap), priors | REMOVAL_PRIOR, options)


def log_density(g: Genealogy, x: np.ndarray, settings: np.ndarray) -> float:
    """Birth λ, death μ, sampling ψ, each the youngest first, maybe the probability r that a sample ends its
    lineage, else 1, a share ρ of those alive at height 0; the process began origin_gap above the root:
    epochs.plain_density (Stadler 2010, J. Theor. Biol. 267:396; r = 1 in Stadler et al. 2012, Mol. Biol.
    Evol. 29:347, others in Gavryushkina et al. 2014, PLoS Comput. Biol. 10:e1003919)."""
    return epochs.plain_density(g, x, settings)


def density(g, x, settings, by_height, by_number):
    """The compiled form."""
    return add_epochs(g, x, settings, by_height, by_number)


PRIOR = TreePrior(
    "bdss", _parameters, log_density, density, joining=epochs.joining, samples=samples,
    options=("sampled", "shift", "condition", "fossils", REMOVAL),
)  # fmt: skip
