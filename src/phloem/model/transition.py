"""Transition matrices and their adjoints."""

from __future__ import annotations

import numpy as np
from scipy.linalg import expm

from phloem.model.record import SiteModel

_ENTRIES_AT_ONCE = 1 << 20  # numbers in one block of adjoints, to bound memory


def transition_matrices(lengths: np.ndarray, model: SiteModel) -> np.ndarray:
    """P[x, c] = exp(Q · rates[c] · lengths[x]) for every branch x.

    lengths: (B,) effective branch lengths (length × branch rate). Returns (B, C, S, S) float64;
    P[x, c, i, j] is the probability of state j at the child given state i at the parent.
    P is formed as I + R (exp(Λt) - 1) L: what is subtracted is then of the size of t and not of 1, so that
    the rare changes of short branches keep their digits (West Nile codons: 7e-4 log units otherwise), and
    P(0) is I exactly, so that an impossible site has likelihood 0 and not noise.
    """
    t = lengths[:, None] * model.rates[None, :]
    if model.eigen is None:
        return expm(model.rate_matrix * t[..., None, None])
    e = model.eigen
    p = np.einsum("ik,xck,kj->xcij", e.right, np.expm1(t[..., None] * e.values), e.left, optimize=True)
    return np.maximum(p.real + np.eye(len(e.values)), 0.0)


def rate_matrix_adjoint(adjoint: np.ndarray, lengths: np.ndarray, model: SiteModel) -> np.ndarray:
    """d log L / d Q from d log L / d P, through the eigensystem (Najfeld and Havel 1995; Kenney and Gu 2012).

    adjoint: (B, C, S, S). With P = R exp(Λt) L, G = Rᵀ A Lᵀ and
    X_kl = (exp(λ_k t) - exp(λ_l t)) / (λ_k - λ_l), or t exp(λ_k t) on ties, dQ = Lᵀ (Σ G∘X) Rᵀ.
    Returns (S, S).
    """
    t = (lengths[:, None] * model.rates[None, :])[..., None, None]
    if model.eigen is None:
        return _adjoint_by_blocks(adjoint, t, model.rate_matrix)
    e = model.eigen
    total = np.zeros_like(e.right)
    step = max(1, _ENTRIES_AT_ONCE // adjoint[0].size)
    for k in range(0, len(adjoint), step):
        g = e.right.T @ adjoint[k : k + step] @ e.left.T
        total = total + (g * _divided_difference(e.values, t[k : k + step])).sum((0, 1))
    return (e.left.T @ total @ e.right.T).real


def _divided_difference(values: np.ndarray, t: np.ndarray) -> np.ndarray:
    """(exp(λ_k t) - exp(λ_l t)) / (λ_k - λ_l); near ties t exp(mean t) (1 + z²/6), which does not cancel.

    z = (λ_k - λ_l) t / 2. values: (S,), t: (…, 1, 1). Returns (…, S, S).
    """
    gap = values[:, None] - values
    z = gap * t / 2
    e, root = np.exp(values * t), np.exp(values * t / 2)
    far = (np.swapaxes(e, -1, -2) - e) / np.where(gap == 0, 1, gap)
    return np.where(np.abs(z) > 1e-3, far, t * (np.swapaxes(root, -1, -2) * root) * (1 + z * z / 6))


def _adjoint_by_blocks(adjoint: np.ndarray, t: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The same without eigenvectors: exp([[Qᵀt, At], [0, Qᵀt]]) holds the Fréchet adjoint (Van Loan 1978)."""
    s = len(q)
    total = np.zeros_like(q)
    for a, tx in zip(adjoint.reshape(-1, s, s), t.reshape(-1)):
        total += expm(np.block([[q.T * tx, a * tx], [np.zeros_like(q), q.T * tx]]))[:s, s:]
    return total
