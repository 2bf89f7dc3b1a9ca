"""Eigensystems of rate matrices."""

from __future__ import annotations

import numpy as np

from phloem.model.record import EigenSystem
from phloem.model.substitution import Process

CONDITION_LIMIT = 1e6


def eigensystem(process: Process) -> EigenSystem | None:
    """Q = right · diag(values) · left, or None where Q is (nearly) defective.

    Reversible processes go through the symmetric matrix √π Q 1/√π, always real and well conditioned.
    """
    if not process.reversible:
        return _general(process.rate_matrix)
    if (process.frequencies > 0).all():
        return EigenSystem(*_symmetric(process.rate_matrix, process.frequencies))
    return _with_unreachable_states(process.rate_matrix, process.frequencies)


def _symmetric(q: np.ndarray, pi: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    root = np.sqrt(pi)
    similar = q * (root[:, None] / root)
    values, u = np.linalg.eigh((similar + similar.T) / 2)
    values[-1] = 0.0
    return np.minimum(values, 0.0), u / root[:, None], u.T * root


def _with_unreachable_states(q: np.ndarray, pi: np.ndarray) -> EigenSystem | None:
    """Where states of frequency 0 are left but never entered, Q is block triangular: [[Q_pp, 0], [Q_zp,
    D_z]].

    The eigenvectors of Q_pp are continued into the states z by Q_zp u / (λ - d_z); each z
    adds its unit vector.
    """
    p, z = np.flatnonzero(pi > 0), np.flatnonzero(pi == 0)
    if np.count_nonzero(q[:, z]) > len(z):
        return _general(q)
    values_p, u, u_inverse = _symmetric(q[np.ix_(p, p)], pi[p])
    values_z = q[z, z]
    gap = values_p - values_z[:, None]
    entering = q[np.ix_(z, p)] @ u
    degenerate = np.abs(gap) < 1e-6
    if (degenerate & (np.abs(entering) > 1e-12)).any():
        return None
    w = np.where(degenerate, 0.0, entering / np.where(degenerate, 1.0, gap))
    right, left = np.zeros_like(q), np.zeros_like(q)
    n = len(p)
    right[p, :n], right[z, :n], right[z, np.arange(n, len(q))] = u, w, 1.0
    left[:n, p] = u_inverse
    left[n:, p] = -w @ u_inverse
    left[np.arange(n, len(q)), z] = 1.0
    return EigenSystem(np.concatenate([values_p, values_z]), right, left)


def _general(q: np.ndarray) -> EigenSystem | None:
    values, right = np.linalg.eig(q)
    if not np.linalg.cond(right) < CONDITION_LIMIT:
        return None
    return EigenSystem(values, right, np.linalg.inv(right))
