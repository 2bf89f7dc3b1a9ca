"""From parameters to the numbers the likelihood needs: eigensystem, category rates and weights."""

from __future__ import annotations

import math

from phloem.inference.mcmc.compiled.compile import compiled, merged
from phloem.inference.mcmc.compiled.eigen import jacobi, symmetric_rates
from phloem.inference.mcmc.compiled.gamma_rates import discrete_gamma
from phloem.inference.mcmc.records import ALPHA, EXCHANGEABILITY, FREQUENCY, OMEGA, P_INVARIABLE


@merged
def set_model(data, parameters, work, h, m):
    """Fill buffer m of chain h's eigensystem, category rates and weights from its parameters."""
    start, s = data.block_start, data.code_sets.shape[1]
    exchangeability, omega = parameters[start[EXCHANGEABILITY] :], parameters[start[OMEGA] :]
    pi = parameters[start[FREQUENCY] : start[FREQUENCY] + s]
    symmetric_rates(data.base, data.class_a, data.class_b, exchangeability, omega, pi, work.scratch)
    eigensystem(work.scratch, pi, work.eigenvalues[h, m], work.right[h, m], work.left[h, m])
    rates, weights = work.rates[h, m], work.category_weights[h, m]
    alpha, p_invariable = parameters[start[ALPHA]], parameters[start[P_INVARIABLE]]
    if data.gamma:
        discrete_gamma(alpha, data.gamma_median, data.n_categories, rates)
    for c in range(data.n_categories):
        rate = rates[c] if data.gamma else data.fixed_rates[c]
        rates[c] = data.sites_per_character * rate / (1.0 - p_invariable)
        weights[c] = data.fixed_weights[c] * (1.0 - p_invariable)


@compiled
def eigensystem(symmetric, pi, eigenvalues, right, left):
    """Q = right · diag(eigenvalues) · left from D^½ Q D^-½ = V Λ Vᵀ (destroyed): right_ik = V_ik / √π_i,
    left_kj = V_jk √π_j.

    A state of frequency 0 is never entered and never at the root: nothing at it reaches the likelihood. In
    the symmetric matrix it stands alone, and its row of right keeps what it has there, a 1: how it is left
    for other states is not in these numbers, and not asked.
    """
    jacobi(symmetric, right)
    for k in range(pi.shape[0]):
        eigenvalues[k] = symmetric[k, k]
        for i in range(pi.shape[0]):
            root = math.sqrt(pi[i])
            if pi[i] > 0.0:
                left[k, i] = right[i, k] * root
                right[i, k] /= root
            else:
                left[k, i] = right[i, k]
