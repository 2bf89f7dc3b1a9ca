"""From adjoints of transition matrices to derivatives of lengths and category rates."""

from __future__ import annotations

import numpy as np

from phloem.model.record import SiteModel


def branch_derivatives(adjoint: np.ndarray, transition: np.ndarray, model: SiteModel) -> np.ndarray:
    """D[x, c] = ⟨dlogL/dP[x, c], Q_c P[x, c]⟩, so that d/d length_x = Σ_c rates[c] D[x, c], over the
    categories that use it, and d/d rates[c] = Σ_x length_x D[x, c]. Returns (N-1, C)."""
    return np.einsum("xcij,xcij->xc", adjoint, generators(model) @ transition)


def generators(model: SiteModel) -> np.ndarray:
    """(C, S, S) rate matrix of every category."""
    return np.stack([p.rate_matrix for p in model.processes])[model.process]


def by_length_class(of_category: np.ndarray, model: SiteModel) -> np.ndarray:
    """(…, C, N) sums over the categories of each set of branch lengths: (N,), or (K, N) where there are K."""
    if model.n_length_classes == 1:
        return of_category.sum(-2)
    classes = range(model.n_length_classes)
    return np.stack([of_category[..., model.length_class == k, :].sum(-2) for k in classes], -2)
