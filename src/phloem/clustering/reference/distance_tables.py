"""Tables of the score of a pair of sequences on a grid of distances, for maximum-likelihood distances."""

from __future__ import annotations

import numpy as np

from phloem.model.record import SiteModel
from phloem.model.transition import transition_matrices

SHORTEST = 1e-5
STEP = 0.05  # of ln t between nodes


def score_tables(
    model: SiteModel, longest: float, missing: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(nodes, tables, guesses) for distances up to `longest` (expected substitutions per site).

    nodes: (K,) x = ln t. tables: (K, cells, 2) float32 of d ln M_ab / dx and d² ln M_ab / dx² with
    M = Σ_c weight_c P(rate_c t) + invariant I; cells = S², or (S+1)² with zeros for unobserved if missing.
    guesses: (4097,) node whose expected proportion of differing sites is nearest to k / 4096.
    """
    nodes = np.log(SHORTEST) + STEP * np.arange(int(np.ceil(np.log(longest / SHORTEST) / STEP)) + 1)
    t = np.exp(nodes)
    p = transition_matrices(t, model)
    q = model.single.rate_matrix
    first = np.einsum("c,ij,xcjk->xik", model.weights * model.rates, q, p, optimize=True)
    second = np.einsum("c,ij,xcjk->xik", model.weights * model.rates**2, q @ q, p, optimize=True)
    mixture = np.einsum("c,xcij->xij", model.weights, p) + model.invariant * np.eye(p.shape[-1])
    mixture = np.maximum(mixture, 1e-14)
    slope, t = first / mixture, t[:, None, None]
    score, bend = t * slope, t * slope + t * t * (second / mixture - slope * slope)
    s = p.shape[-1]
    width = s + 1 if missing else s
    tables = np.zeros((len(nodes), width, width, 2), np.float32)
    tables[:, :s, :s, 0], tables[:, :s, :s, 1] = score, bend
    expected = 1 - np.einsum("i,xii->x", model.single.frequencies, mixture)
    guesses = np.searchsorted(expected, np.arange(4097) / 4096).clip(0, len(nodes) - 1)
    return nodes, tables.reshape(len(nodes), width * width, 2), guesses
