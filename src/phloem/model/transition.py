"""Transition matrices and their adjoints."""

from __future__ import annotations

import numpy as np
from scipy.linalg import expm

from phloem.model.record import ProcessNumbers, SiteModel

_ENTRIES_AT_ONCE = 1 << 20  # numbers in one block of adjoints, to bound memory


def transition_matrices(lengths: np.ndarray, model: SiteModel) -> np.ndarray:
    """P[x, c] = exp(Q_c · rates[c] · lengths_c[x]) for every branch x, Q_c and lengths_c those of category c.

    lengths: (B,) effective branch lengths (length × branch rate), or (K, B) where the model has K length
    classes. Returns (B, C, S, S) float64; P[x, c, i, j] is the probability of state j at the child given
    state i at the parent.
    """
    t, n_states = _times(lengths, model), len(model.invariant_frequencies)
    p = np.empty((*t.shape, n_states, n_states))
    for k, process in enumerate(model.processes):
        own = model.process == k
        p[:, own] = _exponential(t[:, own], process)
    return p


def _times(lengths: np.ndarray, model: SiteModel) -> np.ndarray:
    """(B, C) rate × length."""
    return (model.by_category(lengths) * model.rates[:, None]).T


def _exponential(t: np.ndarray, process: ProcessNumbers) -> np.ndarray:
    """exp(Q t), (…, S, S) for t (…).

    P is formed as I + R (exp(Λt) - 1) L: what is subtracted is then of the size of t and not of 1, so that
    the rare changes of short branches keep their digits (West Nile codons: 7e-4 log units otherwise), and
    P(0) is I exactly, so that an impossible site has likelihood 0 and not noise.
    """
    if process.eigen is None:
        return expm(process.rate_matrix * t[..., None, None])
    e = process.eigen
    p = np.einsum("ik,xck,kj->xcij", e.right, np.expm1(t[..., None] * e.values), e.left, optimize=True)
    return np.maximum(p.real + np.eye(len(e.values)), 0.0)


def rate_matrix_adjoints(adjoint: np.ndarray, lengths: np.ndarray, model: SiteModel) -> list[np.ndarray]:
    """d log L / d Q (S, S) of every process from d log L / d P (B, C, S, S); lengths as above."""
    t, result = _times(lengths, model), []
    for k, process in enumerate(model.processes):
        own = model.process == k
        result.append(_process_adjoint(adjoint[:, own], t[:, own], process))
    return result


def _process_adjoint(adjoint: np.ndarray, t: np.ndarray, process: ProcessNumbers) -> np.ndarray:
    """Through the eigensystem (Najfeld and Havel 1995; Kenney and Gu 2012).

    adjoint: (B, C, S, S), t: (B, C). With P = R exp(Λt) L, G = Rᵀ A Lᵀ and
    X_kl = (exp(λ_k t) - exp(λ_l t)) / (λ_k - λ_l), or t exp(λ_k t) on ties, dQ = Lᵀ (Σ G∘X) Rᵀ.
    Returns (S, S).
    """
    t = t[..., None, None]
    if process.eigen is None:
        return _adjoint_by_blocks(adjoint, t, process.rate_matrix)
    e = process.eigen
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
