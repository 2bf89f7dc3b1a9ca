"""Births, deaths and fossils given the age of the root: total-evidence dating."""

from __future__ import annotations

import math

import numpy as np

from phloem.density.space import Block
from phloem.density.terms.uniform import Uniform
from phloem.density.tree_priors.birth_death import birth_death_parameters
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
    reaching,
    unseen,
)
from phloem.density.tree_priors.tree_prior import Genealogy, Parameters, TreePrior
from phloem.errors import InputError, require_choice
from phloem.hardware.numba_compile import uncounted

CUT = 0.95  # the living were chosen by lineages at this share of the age of the youngest joining or fossil
RHO, DIVERSE, LASTS = range(3)  # of settings


def _parameters(scale, options) -> Parameters:
    """settings: ρ; 1 where the living were chosen to be diverse; 1 where lineages live on after a sample.
    InputError for the first where lineages end."""
    found = birth_death_parameters(scale, options)
    share = Block("sampling_proportion", "unit", np.array([0.5]), 0.0, 1.0)
    sampling = str(options.get("sampling") or "random")
    require_choice("--sampling", sampling, ("random", "diversified"))
    lasts = kind_of(options) != "ends"
    if sampling == "diversified" and not lasts:
        raise InputError("where samples end their lineages, those of the living are at random")
    settings = np.array([float(found.settings[0]), float(sampling == "diversified"), float(lasts)])
    return Parameters((*found.blocks, share), {**found.priors, share.name: Uniform(0.0, 1.0)}, settings)


def log_density(g: Genealogy, x: np.ndarray, settings: np.ndarray) -> float:
    """d, a and s: lineages live on after a sample (LASTS), d = λ - μ, a = μ / λ, s = ψ / (μ + ψ); where it
    ends them d = λ - μ - ψ, a = (μ + ψ) / λ. Of a labelled tree given the age t of its root, and that both of
    its branches were sampled (Zhang, Stadler, Klopfstein, Heath and Ronquist 2016, Syst. Biol. 65:228;
    MrBayes' clock:fossilization): with q and p₀ of fossils.py, sums as in fossilised_birth_death.py,

        log p = 2 [log 4 - log q(t) - log(1 - p₀(t))] + log 2 + Σ_joinings below + Σ_fossils + n₀ log ρ.

    Where the living were chosen to be as different as can be, one of each lineage at z = 0.95 times the age
    of the youngest joining or fossil, no fossils are found after z, which has ρ = (λ-μ) / (λ - μE), E =
    exp(-(λ-μ) z) (all of the living would have been seen then); n₀ log ρ becomes n₀ log [(λ-μ)² E / (λ -
    μE)²] + (m-n₀) log [λ (1-E) / (λ - μE)], of m = n₀ over the share sampled living species. The age itself
    has no density here: calibrate the root."""
    lasts, root = bool(settings[LASTS]), g.heights[g.order[-1]]
    rates = numbers_of(float(x[0]), float(x[1]), float(x[2]), lasts)
    z = youngest_event(g)[0] * CUT if settings[DIVERSE] else 0.0
    birth, death = rates[:2]
    end = np.exp(-(birth - death) * z)
    left = birth - death * end
    r = rates_of(*rates, (birth - death) / left if settings[DIVERSE] else float(settings[RHO]), z)
    if begins_with_ancestor(g):
        return -math.inf
    total, last = plain_nodes(g, r, lasts)
    total += LOG_4 - plain_log_q(r, root) - np.log(birth) - 2 * np.log(1 - plain_unseen(r, root))
    if not settings[DIVERSE]:
        return float(total + last * np.log(r.seen))
    hidden = np.floor(last / settings[RHO] + 0.5) - last
    total += last * np.log((birth - death) ** 2 * end / left**2)
    return float(total + hidden * np.log(birth * (1 - end) / left))


@uncounted
def numbers_of(d, a, s, lasts):
    """λ, μ and ψ."""
    birth = d / (1.0 - a)
    if lasts:
        return birth, a * birth, a * birth * s / (1.0 - s)
    return birth, a * birth * (1.0 - s), a * birth * s


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
    if begins_with_ancestor(g):
        return -math.inf
    root, diverse, lasts = g.order[g.order.shape[0] - 1], settings[DIVERSE] == 1.0, settings[LASTS] == 1.0
    birth, death, sampling = numbers_of(x[0], x[1], x[2], lasts)
    seen, since, at = settings[RHO], 0.0, 0
    if diverse:
        lowest, at = youngest_event(g)
        since = CUT * lowest
        seen = (birth - death) / (birth - death * math.exp(-(birth - death) * since))
    r, t = rates_of(birth, death, sampling, seen, since), g.heights[root]
    total, last = add_nodes(g, r, lasts, by_height)
    top = added(reaching(r, t), unseen(r, t, True), -2.0)
    top = added(top, Part(math.log(birth), 0.0, 0.0, 0.0, 1.0 / birth, 0.0, 0.0), -1.0)
    total = added(total, top, 1.0)
    by_height[root] += top.by_time
    value = total.value
    if diverse:
        of_living = chosen(r, last, settings[RHO])
        value += of_living.value
        by_z = of_living.by_time - total.by_time  # all else is of times since z
        total = added(total, of_living, 1.0)
    elif last > 0:
        value += last * math.log(seen)
    by_birth, by_death, by_sampling, by_seen = by_rates(r, total)
    if diverse:
        of_birth, of_death, of_z = seen_slopes(r)
        by_birth += by_seen * of_birth
        by_death += by_seen * of_death
        by_height[at] += CUT * (by_z + by_seen * of_z)
    add_chain(x, lasts, (by_birth, by_death, by_sampling), by_number)
    return value


@uncounted
def add_chain(x, lasts, by, by_number):
    """From slopes by λ, μ and ψ to those by d, a and s."""
    d, a, s = x[0], x[1], x[2]
    birth, by_d, by_a = d / (1.0 - a), 1.0 / (1.0 - a), d / ((1.0 - a) * (1.0 - a))
    ended_d, ended_a = a * by_d, birth + a * by_a  # of aλ
    stays, ratio = (1.0, s / (1.0 - s)) if lasts else (1.0 - s, s)
    by_number[0] += by[0] * by_d + ended_d * (by[1] * stays + by[2] * ratio)
    by_number[1] += by[0] * by_a + ended_a * (by[1] * stays + by[2] * ratio)
    by_number[2] += a * birth * (by[2] / ((1.0 - s) * (1.0 - s)) if lasts else by[2] - by[1])


PRIOR = TreePrior(
    "fbd-root", _parameters, log_density, density, options=("sampled", "fossils", "sampling"),
    needs_root=True, samples_ancestors=True,
)  # fmt: skip
