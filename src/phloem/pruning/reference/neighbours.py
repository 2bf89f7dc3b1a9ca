"""Sites whose rate categories are a Markov chain along the sequence: forwards and backwards over them."""

from __future__ import annotations

import numpy as np

from phloem.pruning.site_order import SiteOrder, SitesTogether


def sites_together(
    order: SiteOrder, by_category: np.ndarray, weights: np.ndarray, matrices: np.ndarray
) -> SitesTogether:
    """The sum over all sequences of categories c_1 … c_L of
        weights[c_1] L_1[c_1] Π_i T[c_(i-1), c_i] L_i[c_i],
    T the matrix of the distance between sites i - 1 and i, by the forward and backward recursion (Baum et al.
    1970; along sites Felsenstein and Churchill 1996, Mol. Biol. Evol. 13:93, Yang 1995).

    With the likelihoods of a site over their largest, m_i[c] = L_i[c] / max L_i, forwards
        f_i = (f_(i-1) T) ∘ m_i / s_i,  s_i such that f_i sums to 1,  log L = Σ log s_i + log max L_i,
    and backwards b_(i-1) = T (m_i ∘ b_i) / s_i; the posterior of c at site i is f_i[c] b_i[c], and
        d log L / d T[a, b] = Σ_i f_(i-1)[a] m_i[b] b_i[b] / s_i.
    Where the sites are impossible together, log L is -inf and the others say nothing.
    """
    n_sites, n = len(order.pattern), by_category.shape[1]
    largest = by_category.max(axis=1)
    pairs, shares = np.zeros((len(matrices), n, n)), np.zeros((n_sites, n))
    if not (largest[order.pattern] > -np.inf).all():
        return SitesTogether(-np.inf, shares, pairs)
    relative = np.exp(by_category - largest[:, None])[order.pattern]
    forward, scale = np.empty((n_sites, n)), np.empty(n_sites)
    for i in range(n_sites):
        here = relative[i] * (weights if i == 0 else forward[i - 1] @ matrices[order.step[i]])
        scale[i] = here.sum()
        if not scale[i] > 0:
            return SitesTogether(-np.inf, shares, pairs)
        forward[i] = here / scale[i]
    backward = np.ones(n)
    for i in range(n_sites - 1, -1, -1):
        shares[i] = forward[i] * backward
        ahead = relative[i] * backward / scale[i]
        if i > 0:
            pairs[order.step[i]] += np.outer(forward[i - 1], ahead)
            backward = matrices[order.step[i]] @ ahead
    return SitesTogether(float(np.log(scale).sum() + largest[order.pattern].sum()), shares, pairs)
