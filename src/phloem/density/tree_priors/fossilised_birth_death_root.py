"""Births, deaths and fossils given the age of the root: total-evidence dating."""

from __future__ import annotations

import math

import numpy as np

from phloem.density.space import Block
from phloem.density.terms.uniform import Uniform
from phloem.density.tree_priors.birth_death import birth_death_parameters
from phloem.density.tree_priors.epochs import (
    DIVERSE,
    OF_SPECIES,
    RHO,
    add_epochs,
    by_numbers,
    laid_out,
    of_beginning,
    plain_density,
    rates_by,
)
from phloem.density.tree_priors.fossils import (
    LOG_4,
    Part,
    add_nodes,
    added,
    begins_with_ancestor,
    by_rates,
    kind_of,
    plain_log_q,
    plain_nodes,
    plain_unseen,
    rates_of,
)
from phloem.density.tree_priors.tree_prior import Genealogy, Parameters, TreePrior
from phloem.errors import InputError, require_choice
from phloem.hardware.numba_compile import uncounted

CUT = 0.95  # the living were chosen by lineages at this share of the age of the youngest joining or fossil


def of_species(scale, options) -> Parameters:
    """Net diversification, relative death and the proportion of sampling; the one setting is ρ."""
    found = birth_death_parameters(scale, options)
    share = Block("sampling_proportion", "unit", np.array([0.5]), 0.0, 1.0)
    return Parameters(
        (*found.blocks, share), {**found.priors, share.name: Uniform(0.0, 1.0)}, found.settings[:1]
    )


def _parameters(scale, options) -> Parameters:
    """InputError for living that were chosen to be diverse where lineages end at a sample, or rates shift."""
    found = of_species(scale, options)
    sampling = str(options.get("sampling") or "random")
    require_choice("--sampling", sampling, ("random", "diversified"))
    ends = kind_of(options) == "ends"
    if sampling == "diversified" and ends:
        raise InputError("where samples end their lineages, those of the living are at random")
    if sampling == "diversified" and options.get("shift"):
        raise InputError("where the living were chosen to be diverse, rates do not shift")
    header = (float(found.settings[0]), float(ends), OF_SPECIES, 1.0, float(sampling == "diversified"))
    return laid_out(header, found.blocks, found.priors, options)


def log_density(g: Genealogy, x: np.ndarray, settings: np.ndarray) -> float:
    """d, a and s: lineages live on after a sample (ENDS), d = λ - μ, a = μ / λ, s = ψ / (μ + ψ); where it
    ends them d = λ - μ - ψ, a = (μ + ψ) / λ. Of a labelled tree given the age of its root, and that both of
    its branches were sampled: epochs.plain_density (Zhang, Stadler, Klopfstein, Heath and Ronquist 2016,
    Syst. Biol. 65:228; MrBayes' clock:fossilization).

    Where the living were chosen to be as different as can be, one of each lineage at z = 0.95 times the age
    of the youngest joining or fossil, no fossils are found after z, which has ρ = (λ-μ) / (λ - μE), E =
    exp(-(λ-μ) z) (all of the living would have been seen then); n₀ log ρ becomes n₀ log [(λ-μ)² E / (λ -
    μE)²] + (m-n₀) log [λ (1-E) / (λ - μE)], of m = n₀ over the share sampled living species. The age itself
    has no density here: calibrate the root."""
    if not settings[DIVERSE]:
        return plain_density(g, x, settings)
    root = g.heights[g.order[-1]]
    rates = rates_by(OF_SPECIES, 0.0, *(float(value) for value in x))
    z = youngest_event(g)[0] * CUT
    birth, death = rates[:2]
    end = np.exp(-(birth - death) * z)
    left = birth - death * end
    r = rates_of(*rates, (birth - death) / left, z)
    if begins_with_ancestor(g):
        return -math.inf
    total, last = plain_nodes(g, r)
    total += LOG_4 - plain_log_q(r, root) - np.log(birth) - 2 * np.log(1 - plain_unseen(r, root))
    hidden = np.floor(last / settings[RHO] + 0.5) - last
    total += last * np.log((birth - death) ** 2 * end / left**2)
    return float(total + hidden * np.log(birth * (1 - end) / left))


@uncounted
def youngest_event(g):
    """The height of the youngest joining or sample before the end, and which node it is."""
    root = g.order[g.order.shape[0] - 1]
    lowest, at = g.heights[root], root
    for x in range(g.order.shape[0]):
        if 0.0 < g.heights[x] < lowest:
            lowest, at = g.heights[x], x
    return lowest, at


@uncounted
def left_of(r):
    """E, λ - μE, and the slopes of that by λ, μ and z."""
    grown = r.birth - r.death
    end = math.exp(-grown * r.since)
    left = r.birth - r.death * end
    by_birth, by_death = 1.0 + r.death * r.since * end, -end * (1.0 + r.death * r.since)
    return end, left, by_birth, by_death, r.death * grown * end


@uncounted
def chosen(r, last, share):
    """What the living that were chosen to be diverse add, n₀ of them: but for what ρ does."""
    grown = r.birth - r.death
    end, left, by_birth, by_death, by_z = left_of(r)
    hidden = math.floor(last / share + 0.5) - last
    own = Part(
        last * (2.0 * math.log(grown) - grown * r.since - 2.0 * math.log(left)),
        last * (-grown - 2.0 * by_z / left),
        0.0,
        0.0,
        last * (2.0 / grown - r.since - 2.0 * by_birth / left),
        last * (-2.0 / grown + r.since - 2.0 * by_death / left),
        0.0,
    )
    if hidden == 0.0:
        return own
    late = r.since * end / (1.0 - end)
    others = Part(
        math.log(r.birth) + math.log(1.0 - end) - math.log(left),
        grown * end / (1.0 - end) - by_z / left,
        0.0,
        0.0,
        1.0 / r.birth + late - by_birth / left,
        -late - by_death / left,
        0.0,
    )
    return added(own, others, hidden)


@uncounted
def seen_slopes(r):
    """Of ρ where the living were chosen, by λ, μ and z."""
    _, left, by_birth, by_death, by_z = left_of(r)
    return (1.0 - r.seen * by_birth) / left, (-1.0 - r.seen * by_death) / left, -r.seen * by_z / left


def density(g, x, settings, by_height, by_number):
    """The compiled form."""
    if settings[DIVERSE] == 1.0:
        return _of_diverse(g, x, settings, by_height, by_number)
    return add_epochs(g, x, settings, by_height, by_number)


@uncounted
def _of_diverse(g, x, settings, by_height, by_number):
    if begins_with_ancestor(g):
        return -math.inf
    root, (lowest, at) = g.order[g.order.shape[0] - 1], youngest_event(g)
    birth, death, sampling = rates_by(OF_SPECIES, 0.0, x[0], x[1], x[2])
    since = CUT * lowest
    seen = (birth - death) / (birth - death * math.exp(-(birth - death) * since))
    r = rates_of(birth, death, sampling, seen, since)
    total, last = add_nodes(g, r, by_height)
    top = of_beginning(r, g.heights[root], True)
    total = added(total, top, 1.0)
    by_height[root] += top.by_time
    of_living = chosen(r, last, settings[RHO])
    value = total.value + of_living.value
    by_z = of_living.by_time - total.by_time  # all else is of times since z
    total = added(total, of_living, 1.0)
    by_birth, by_death, by_sampling, by_seen = by_rates(r, total)
    of_birth, of_death, of_z = seen_slopes(r)
    by_height[at] += CUT * (by_z + by_seen * of_z)
    by = (by_birth + by_seen * of_birth, by_death + by_seen * of_death, by_sampling)
    by_d, by_a, by_s, _ = by_numbers(OF_SPECIES, 0.0, x[0], x[1], x[2], by)
    by_number[0] += by_d
    by_number[1] += by_a
    by_number[2] += by_s
    return value


PRIOR = TreePrior(
    "fbd-root", _parameters, log_density, density, options=("sampled", "fossils", "sampling", "shift"),
    needs_root=True, samples=kind_of,
)  # fmt: skip
