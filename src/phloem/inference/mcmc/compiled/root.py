"""Site likelihoods at tip 0, where the unrooted tree hangs, and their logarithm's sum."""

from __future__ import annotations

import math

from phloem.inference.mcmc.compiled.column import triple_product
from phloem.inference.mcmc.compiled.compile import compiled
from phloem.inference.mcmc.compiled.logarithm import weighted_log_sum


@compiled
def set_root_tip(pi, weights, width, n_codes, x, tip_at, root_tip):
    """root_tip (n_codes · width): for every code, weight_c π_s m_tip0[c, s], laid out as message columns.
    weights: (C,)."""
    s = pi.shape[0]
    for code in range(n_codes):
        for at in range(width):
            if s == 4:
                category, state = 4 * (at // 16) + at % 4, (at % 16) // 4
            else:
                category, state = at // s, at % s
            w = weights[category] if category < weights.shape[0] else 0.0
            root_tip[code * width + at] = w * pi[state] * x[tip_at + code * width + at]


@compiled(fastmath={"contract"})
def site_likelihoods(x, n_states, width, codes, left_at, right_at, left_class, right_class, root_tip, site):
    """L_p = Σ_c w_c Σ_s π_s m_left m_right m_tip0, into site (P,). codes: (P,) of tip 0."""
    for p in range(site.shape[0]):
        l, r, t = left_at + left_class[p] * width, right_at + right_class[p] * width, codes[p] * width
        total = 0.0
        if n_states == 4:
            for block in range(width // 16):
                at = 16 * block
                total += triple_product(x, l + at, x, r + at, root_tip, t + at)
        else:
            for at in range(width):
                total += x[l + at] * x[r + at] * root_tip[t + at]
        site[p] = total


@compiled
def add_invariable(p_invariable, pi, constant_sets, site, exponent):
    """Add p_invariable Σ_s π_s [every tip allows s]; exponent: powers of two taken out of site."""
    for p in range(site.shape[0]):
        constant = 0.0
        for i in range(pi.shape[0]):
            constant += pi[i] * constant_sets[p, i]
        if constant > 0.0:
            site[p] = math.ldexp(site[p], exponent[p]) + p_invariable * constant
            exponent[p] = 0


@compiled
def total_log_likelihood(site, exponent, weights, n_hidden):
    """Σ weights log L, less W log(1 - Σ hidden L) where the first n_hidden patterns cannot be observed
    (Lewis 2001). site and exponent are destroyed."""
    correction = 0.0
    if n_hidden > 0:
        hidden, total = 0.0, 0.0
        for p in range(n_hidden):
            hidden += math.ldexp(site[p], exponent[p])
        for p in range(site.shape[0]):
            total += weights[p]
        if hidden >= 1.0:
            return -math.inf
        correction = total * math.log1p(-hidden)
    return weighted_log_sum(site, exponent, weights) - correction
