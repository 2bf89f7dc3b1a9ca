"""Log prior density of a chain's proposal. Constants of the parameter priors are kept, so that the value
can be compared."""

from __future__ import annotations

import math

from phloem.inference.mcmc.compiled.compile import compiled, merged
from phloem.inference.mcmc.records import ALPHA, EXPONENTIAL


@merged
def log_prior(data, state, h):
    """Branch lengths, three simplexes, gamma shape; uniform topologies and a uniform proportion of
    invariable sites add a constant, which is left out."""
    s = 1 - state.slot[h]
    total = log_length_prior(data.length_prior_kind, data.length_prior, state.left[h, s], state.length[h, s])
    parameters = state.parameters[h, s]
    for block in range(3):
        first, k = data.block_start[block], data.block_size[block]
        a = data.concentration[block]
        if k > 1 and a > 0.0:
            total += math.lgamma(k * a) - k * math.lgamma(a)
            if a != 1.0:
                for i in range(first, first + k):
                    total += (a - 1.0) * math.log(parameters[i])
    if data.alpha_prior_rate > 0.0:
        total += math.log(data.alpha_prior_rate) - data.alpha_prior_rate * parameters[data.block_start[ALPHA]]
    return total


@compiled
def log_length_prior(kind, prior, left, length):
    """EXPONENTIAL: independent with rate prior[0]. GAMMA_DIRICHLET(α, β, a, c): tree length Gamma(α, rate
    β), its shares Dirichlet with a for tips' branches and a c for internal ones; B lengths, T their sum, A
    = Σ a_x: p(b) = β^α / Γ(α) T^(α - A) exp(-β T) · Γ(A) / Π Γ(a_x) · Π b_x^(a_x - 1) (Rannala, Zhu and
    Yang 2012, Mol. Biol. Evol. 29:325; Zhang, Rannala and Yang 2012, Syst. Biol. 61:779)."""
    n = length.shape[0]
    total = 0.0
    for x in range(1, n):
        total += length[x]
    first = prior[0]
    if kind == EXPONENTIAL:
        return (n - 1) * math.log(first) - first * total
    rate, a, c = prior[1], prior[2], prior[3]
    n_tips = (n + 2) // 2
    n_internal = n - 1 - n_tips
    weight = n_tips * a + n_internal * a * c
    value = first * math.log(rate) - math.lgamma(first) + (first - weight) * math.log(total) - rate * total
    value += math.lgamma(weight) - n_tips * math.lgamma(a) - n_internal * math.lgamma(a * c)
    if a == 1.0 and c == 1.0:
        return value
    for x in range(1, n):
        external = x < n_tips or x == left[0]
        value += ((a if external else a * c) - 1.0) * math.log(length[x])
    return value
