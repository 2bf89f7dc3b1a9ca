"""Births, deaths and samples through time: an epidemic whose sampled infect no more."""

from __future__ import annotations

import math

import numpy as np

from phloem.density.terms.exponential import Exponential
from phloem.density.tree_priors.tree_prior import Genealogy, Parameters, TreePrior, positive


def parameters(scale, options) -> Parameters:
    """settings: ρ."""
    rate = max(math.log(scale.n_tips), 0.5) / scale.time
    names = ("birth_rate", "death_rate", "sampling_rate", "origin_gap")
    starts = (2.0 * rate, 0.5 * rate, 0.5 * rate, 0.1 * scale.time)
    blocks = tuple(positive(name, start) for name, start in zip(names, starts))
    priors = {name: Exponential(0.5 / start) for name, start in zip(names, starts)}
    return Parameters(blocks, priors, np.array([float(options.get("sampled") or 0.0)]))


def log_density(g: Genealogy, x: np.ndarray, settings: np.ndarray) -> float:
    """Birth λ, death μ, sampling ψ (which removes), a share ρ of those alive at height 0; the process began
    origin_gap above the root (Stadler 2010, J. Theor. Biol. 267:396, for removal as in Stadler et al. 2012,
    Mol. Biol. Evol. 29:347), of labelled trees:

    log p = -log q(origin) + Σ_joinings [log 2λ - log q(t)] + Σ_dated tips [log ψ + log q(t)] + n₀ log 4ρ,
    q(t) = exp(c₁t) [exp(-c₁t) (1-c₂) + 1 + c₂]², c₁ = √((λ-μ-ψ)² + 4λψ), c₂ = -(λ-μ-2λρ-ψ) / c₁.

    Tips at height 0 are the n₀ where ρ > 0, else dated as the others."""
    (birth, death, sampling, gap), rho = x, settings[0]
    c1 = np.sqrt((birth - death - sampling) ** 2 + 4 * birth * sampling)
    c2 = -(birth - death - 2 * birth * rho - sampling) / c1

    def log_q(t):
        return c1 * t + 2 * np.log(np.exp(-c1 * t) * (1 - c2) + 1 + c2)

    tips, joinings = g.heights[: g.n_tips], g.heights[g.n_tips :]
    present = (tips == 0.0) & (rho > 0)
    total = -log_q(g.heights[g.order[-1]] + gap) + (np.log(2 * birth) - log_q(joinings)).sum()
    dated = tips[~present]
    total += (np.log(sampling) + log_q(dated)).sum()
    return float(total + (present.sum() * np.log(4 * rho) if rho > 0 else 0.0))


def density(g, x, settings, by_height, by_number):
    """The compiled form. With E = exp(-c₁t), D = E (1-c₂) + 1 + c₂ and F = [1 + c₂ - E (1-c₂)] / D:
    d log q / dt = c₁ F, by c₁ t F, by c₂ 2 (1 - E) / D."""
    birth, death, sampling, gap, rho, n = x[0], x[1], x[2], x[3], settings[0], g.order.shape[0]
    surplus = birth - death - sampling
    c1 = math.sqrt(surplus * surplus + 4.0 * birth * sampling)
    c2 = -(surplus - 2.0 * birth * rho) / c1
    total, by_c1, by_c2 = 0.0, 0.0, 0.0
    for i in range(n + 1):
        node = i if i < n else g.order[n - 1]
        t = g.heights[node] + (gap if i == n else 0.0)
        if i < g.n_tips and rho > 0.0 and t == 0.0:
            total += math.log(4.0 * rho)
            continue
        decay = math.exp(-c1 * t)
        d = decay * (1.0 - c2) + 1.0 + c2
        lean = (1.0 + c2 - decay * (1.0 - c2)) / d
        sign = 1.0 if i < g.n_tips else -1.0
        total += sign * (c1 * t + 2.0 * math.log(d))
        by_c1 += sign * t * lean
        by_c2 += sign * 2.0 * (1.0 - decay) / d
        if i < g.n_tips:
            total += math.log(sampling)
            by_number[2] += 1.0 / sampling
        elif i < n:
            total += math.log(2.0 * birth)
            by_number[0] += 1.0 / birth
        else:
            by_number[3] -= c1 * lean
        if i >= g.n_tips:
            by_height[node] -= c1 * lean
    # c1 and c2 by the rates
    by_c1 -= by_c2 * c2 / c1
    by_number[0] += by_c1 * (surplus + 2.0 * sampling) / c1 - by_c2 * (1.0 - 2.0 * rho) / c1
    by_number[1] += (by_c2 - by_c1 * surplus) / c1
    by_number[2] += by_c1 * (2.0 * birth - surplus) / c1 + by_c2 / c1
    return total


def joining(t, x, settings, out):
    """At t, see TreePrior."""
    birth, surplus = x[0], x[0] - x[1] - x[2]
    c1 = math.sqrt(surplus * surplus + 4.0 * birth * x[2])
    c2 = -(surplus - 2.0 * birth * settings[0]) / c1
    out[0] = math.log(2.0 * birth) - c1 * t - 2.0 * math.log(math.exp(-c1 * t) * (1.0 - c2) + 1.0 + c2)
    out[1] = 0.0
    return 0.0


PRIOR = TreePrior("bdss", parameters, log_density, density, options=("sampled",), joining=joining)
