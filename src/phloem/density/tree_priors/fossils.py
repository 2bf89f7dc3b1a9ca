"""Births, deaths and fossils found along lineages that live on: what densities of such trees share.

Birth λ, death μ, fossils found at rate ψ along a lineage, from a time z on back; a lineage alive at z is seen
with probability ρ. With u = t - z (Stadler 2010, J. Theor. Biol. 267:396):

    q(t) = exp(c₁u) D², D = E (1-c₂) + 1 + c₂, E = exp(-c₁u), c₁ = √((λ-μ-ψ)² + 4λψ),
    c₂ = (μ+ψ-λ+2λρ) / c₁;   4/q is the density of a lineage at t that leads to one at z, seen or not,
    p₀(t) = (λ+μ+ψ-c₁F) / 2λ, that nothing of it is seen, F = [1 + c₂ - E (1-c₂)] / D.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from phloem.density.tree_priors.tree_prior import Genealogy
from phloem.errors import require_choice
from phloem.hardware.numba_compile import uncounted

LOG_4 = math.log(4.0)
KINDS = ("ancestors", "tips", "ends")


class Rates(NamedTuple):
    """c1, c2: of the numbers of the others. since: z."""

    birth: float
    death: float
    sampling: float
    seen: float
    since: float
    c1: float
    c2: float


class Part(NamedTuple):
    """Of a log density: its value; its slopes by time, c₁ and c₂, and by λ, μ and ψ where c₁ and c₂ stay."""

    value: float
    by_time: float
    by_c1: float
    by_c2: float
    by_birth: float
    by_death: float
    by_sampling: float


@uncounted
def rates_of(birth, death, sampling, seen, since):
    surplus = birth - death - sampling
    c1 = math.sqrt(surplus * surplus + 4.0 * birth * sampling)
    c2 = (2.0 * birth * seen - surplus) / c1
    return Rates(birth, death, sampling, seen, since, c1, c2)


@uncounted
def added(a, b, factor):
    """a + factor · b."""
    return Part(
        a.value + factor * b.value,
        a.by_time + factor * b.by_time,
        a.by_c1 + factor * b.by_c1,
        a.by_c2 + factor * b.by_c2,
        a.by_birth + factor * b.by_birth,
        a.by_death + factor * b.by_death,
        a.by_sampling + factor * b.by_sampling,
    )


@uncounted
def terms(r, t):
    """u, E, D and F at t."""
    u = t - r.since
    decay = math.exp(-r.c1 * u)
    d = decay * (1.0 - r.c2) + 1.0 + r.c2
    return u, decay, d, (1.0 + r.c2 - decay * (1.0 - r.c2)) / d


@uncounted
def reaching(r, t):
    """log(4/q) at t."""
    u, decay, d, lean = terms(r, t)
    value = LOG_4 - r.c1 * u - 2.0 * math.log(d)
    return Part(value, -r.c1 * lean, -u * lean, -2.0 * (1.0 - decay) / d, 0.0, 0.0, 0.0)


@uncounted
def unseen(r, t, of_rest):
    """log p₀ at t, or of 1 - p₀ (of_rest)."""
    u, decay, d, lean = terms(r, t)
    fall = decay / (d * d)
    steep = 2.0 * fall * (1.0 - r.c2 * r.c2)  # of F by c₁u
    p = (r.birth + r.death + r.sampling - r.c1 * lean) / (2.0 * r.birth)
    value = 1.0 - p if of_rest else p
    outer = (-1.0 if of_rest else 1.0) / (value * 2.0 * r.birth)
    return Part(
        math.log(value),
        -outer * r.c1 * r.c1 * steep,
        -outer * (lean + r.c1 * u * steep),
        -outer * 4.0 * r.c1 * fall,
        outer * (1.0 - 2.0 * p),
        outer,
        outer,
    )


@uncounted
def joined(r, t):
    """log(2λ · 4/q) at t."""
    own = reaching(r, t)
    return added(own, Part(math.log(2.0 * r.birth), 0.0, 0.0, 0.0, 1.0 / r.birth, 0.0, 0.0), 1.0)


@uncounted
def found(r):
    """log ψ."""
    return Part(math.log(r.sampling), 0.0, 0.0, 0.0, 0.0, 0.0, 1.0 / r.sampling)


@uncounted
def by_rates(r, a):
    """A part's slopes by λ, μ, ψ and by ρ."""
    surplus, at_c2 = r.birth - r.death - r.sampling, a.by_c2 / r.c1
    at_c1 = (a.by_c1 - at_c2 * r.c2) / r.c1
    return (
        a.by_birth + at_c1 * (surplus + 2.0 * r.sampling) + at_c2 * (2.0 * r.seen - 1.0),
        a.by_death - at_c1 * surplus + at_c2,
        a.by_sampling + at_c1 * (2.0 * r.birth - surplus) + at_c2,
        at_c2 * 2.0 * r.birth,
    )


@uncounted
def constant(value):
    """The part that adds a number which depends on none of these."""
    return Part(value, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@uncounted
def of_node(g, r, ends, x, by_height):
    """Log density of a node that is no sample of the end, with its slope by `ends`, the probability that a
    sample ends its lineage (0 where it is 1, which is held): of a joining 2λ · 4/q, of a sample ψ, without
    descendants also q/4 [ends + (1-ends) p₀], with some 1-ends. A node as old as a tip below it is no
    joining: the tip is an ancestor. Adds slopes to by_height (N,)."""
    t = g.heights[x]
    if x >= g.n_tips:
        own = joined(r, t)
        by_height[x] += own.by_time
        return own, 0.0
    total, above = found(r), g.parent[x]
    if g.heights[above] == t:
        own = joined(r, t)
        by_height[above] -= own.by_time
        if ends == 1.0:
            return added(total, constant(-math.inf), 1.0), 0.0
        return added(added(total, constant(math.log(1.0 - ends)), 1.0), own, -1.0), -1.0 / (1.0 - ends)
    own = reaching(r, t)
    total = added(total, own, -1.0)
    by_height[x] -= own.by_time
    if ends == 1.0:
        return total, 0.0
    own = unseen(r, t, False)
    p = math.exp(own.value)
    stops = ends + (1.0 - ends) * p  # no sample is seen of it any more
    share = (1.0 - ends) * p / stops
    by_height[x] += share * own.by_time
    rest = constant(math.log(stops) - share * own.value)
    return added(added(total, own, share), rest, 1.0), (1.0 - p) / stops


@uncounted
def of_end(g, r, x):
    """Whether a node is a sample of the end, height 0 with ρ > 0."""
    return x < g.n_tips and g.heights[x] == 0.0 and r.seen > 0.0


@uncounted
def add_nodes(g, r, by_height):
    """Of all nodes where lineages live on after a sample, and how many samples are of the end."""
    total, last = constant(0.0), 0
    for x in range(g.order.shape[0]):
        if of_end(g, r, x):
            last += 1
        else:
            total = added(total, of_node(g, r, 0.0, x, by_height)[0], 1.0)
    return total, last


@uncounted
def begins_with_ancestor(g):
    """Whether the root is a tip that is an ancestor of all others."""
    root = g.order[g.order.shape[0] - 1]
    begins = False
    for x in range(g.n_tips):
        begins = begins or (g.parent[x] == root and g.heights[x] == g.heights[root])
    return begins


# The specification, in NumPy.


def plain_nodes(g: Genealogy, r: Rates) -> tuple[float, int]:
    """As add_nodes."""
    joinings, dated, ends = plain_events(g, r.seen)
    total = len(dated) * np.log(r.sampling) if len(dated) else 0.0  # ψ may be 0 without any
    total += (plain_log_q(r, ends) - LOG_4).sum()
    total += np.log(plain_unseen(r, ends)).sum()
    total += (np.log(2 * r.birth) + LOG_4 - plain_log_q(r, joinings)).sum()
    return float(total), g.n_tips - len(dated)


def plain_events(g: Genealogy, seen: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Heights of joinings, of samples before the end, and of those among these that are no ancestors."""
    tips, parents = g.heights[: g.n_tips], g.heights[g.parent[: g.n_tips]]
    ancestral = tips == parents
    joinings = g.heights[np.setdiff1d(g.order[g.order >= g.n_tips], g.parent[: g.n_tips][ancestral])]
    dated = (tips > 0.0) | (seen == 0)
    return joinings, tips[dated], tips[dated & ~ancestral]


def plain_log_q(r: Rates, t):
    u = t - r.since
    return r.c1 * u + 2 * np.log(np.exp(-r.c1 * u) * (1 - r.c2) + 1 + r.c2)


def plain_unseen(r: Rates, t):
    """p₀."""
    decay = np.exp(-r.c1 * (t - r.since)) * (1 - r.c2)
    return (r.birth + r.death + r.sampling - r.c1 * (1 + r.c2 - decay) / (1 + r.c2 + decay)) / (2 * r.birth)


def kind_of(options) -> str:
    """What the option "fossils" says a dated sample may be: an ancestor of others, a tip that no other sample
    came of, or the end of its lineage. InputError for others."""
    kind = str(options.get("fossils") or KINDS[0])
    require_choice("--fossils", kind, KINDS)
    return kind
