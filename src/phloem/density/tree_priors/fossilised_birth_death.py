"""Births, deaths and fossils since an origin: lineages live on where one was found, so that a sample may be
an ancestor of others."""

from __future__ import annotations

import math

import numpy as np

from phloem.density.tree_priors import serial_birth_death
from phloem.density.tree_priors.fossils import (
    LOG_4,
    add_nodes,
    added,
    by_rates,
    kind_of,
    plain_log_q,
    plain_nodes,
    rates_of,
    reaching,
)
from phloem.density.tree_priors.tree_prior import Genealogy, Parameters, TreePrior
from phloem.errors import InputError


def _parameters(scale, options) -> Parameters:
    """settings: ρ. InputError where samples are said to end their lineages."""
    if kind_of(options) == "ends":
        raise InputError("samples that end their lineages are of the tree prior 'bdss'")
    return serial_birth_death.parameters(scale, options)


def log_density(g: Genealogy, x: np.ndarray, settings: np.ndarray) -> float:
    """Birth λ, death μ, fossils ψ, a share ρ of those alive at height 0; the process began origin_gap above
    the root (Heath, Huelsenbeck and Stadler 2014, Proc. Natl. Acad. Sci. 111:E2957; Gavryushkina et al. 2014,
    PLoS Comput. Biol. 10:e1003919), of labelled trees: with q and p₀ of fossils.py, z = 0,

    log p = log 4 - log q(origin) + Σ_joinings [log 2λ + log 4 - log q(t)] + Σ_fossils log ψ + Σ_those that
    are no ancestors [log p₀(t) + log q(t) - log 4] + n₀ log ρ.

    A fossil is an ancestor where its parent is as old as it. Tips at height 0 are the n₀ where ρ > 0."""
    birth, death, sampling, gap = (float(value) for value in x)
    r = rates_of(birth, death, sampling, float(settings[0]), 0.0)
    total, last = plain_nodes(g, r, True)
    total += LOG_4 - plain_log_q(r, g.heights[g.order[-1]] + gap)
    return float(total + (last * np.log(r.seen) if last else 0.0))


def density(g, x, settings, by_height, by_number):
    """The compiled form."""
    r, root = rates_of(x[0], x[1], x[2], settings[0], 0.0), g.order[g.order.shape[0] - 1]
    total, last = add_nodes(g, r, True, by_height)
    origin = reaching(r, g.heights[root] + x[3])
    total = added(total, origin, 1.0)
    by_height[root] += origin.by_time
    by_birth, by_death, by_sampling, _ = by_rates(r, total)
    by_number[0] += by_birth
    by_number[1] += by_death
    by_number[2] += by_sampling
    by_number[3] += origin.by_time
    return total.value + (last * math.log(r.seen) if last > 0 else 0.0)


PRIOR = TreePrior(
    "fbd", _parameters, log_density, density, options=("sampled", "fossils"),
    joining=serial_birth_death.joining, samples_ancestors=True,
)  # fmt: skip
