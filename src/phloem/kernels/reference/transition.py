"""Transition matrices and their adjoints."""

from __future__ import annotations

import numpy as np
from scipy.linalg import expm

from phloem.model.record import SiteModel


def transition_matrices(lengths: np.ndarray, model: SiteModel) -> np.ndarray:
    """P[x, c] = exp(Q · rates[c] · lengths[x]) for every branch x.

    lengths: (B,) effective branch lengths (length × branch rate). Returns (B, C, S, S) float64;
    P[x, c, i, j] is the probability of state j at the child given state i at the parent.
    P is formed as I + R (exp(Λt) - 1) L: what is subtracted is then of the size of t and not of 1, so that the
    rare changes of short branches keep their digits (West Nile codons: 7e-4 log units otherwise), and P(0) is I
    exactly, so that an impossible site has likelihood 0 and not noise.
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
    for a, tx in zip(adjoint, t):
        g = np.einsum("ik,cij,lj->ckl", e.right, a, e.left, optimize=True)
        total = total + (g * _divided_difference(e.values, tx)).sum(0)
    return (e.left.T @ total @ e.right.T).real


def _divided_difference(values: np.ndarray, t: np.ndarray) -> np.ndarray:
    """(exp(λ_k t) - exp(λ_l t)) / (λ_k - λ_l); near ties as t exp(mean t) sinh(z)/z, which does not cancel.

    values: (S,), t: (C, 1, 1). Returns (C, S, S).
    """
    mean, half = (values[:, None] + values) / 2, (values[:, None] - values) / 2
    z = half * t
    far = np.abs(z) > 1
    near_z = np.where(far, 0, z)
    sinhc = np.where(np.abs(z) < 1e-4, 1 + near_z**2 / 6, np.sinh(near_z) / np.where(near_z == 0, 1, near_z))
    e = np.exp(values * t)
    difference = (np.swapaxes(e, 1, 2) - e) / np.where(half == 0, 1, 2 * half)
    return np.where(far, difference, t * np.exp(mean * t) * sinhc)


def _adjoint_by_blocks(adjoint: np.ndarray, t: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The same without eigenvectors: exp([[Qᵀt, At], [0, Qᵀt]]) holds the Fréchet adjoint (Van Loan 1978)."""
    s = len(q)
    total = np.zeros_like(q)
    for a, tx in zip(adjoint.reshape(-1, s, s), t.reshape(-1)):
        total += expm(np.block([[q.T * tx, a * tx], [np.zeros_like(q), q.T * tx]]))[:s, s:]
    return total
