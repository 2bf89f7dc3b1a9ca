"""From adjoints of transition matrices to derivatives of lengths and category rates."""

from __future__ import annotations

import numpy as np

from phloem.model.record import SiteModel


def branch_derivatives(adjoint: np.ndarray, transition: np.ndarray, model: SiteModel) -> np.ndarray:
    """D[x, c] = ⟨dlogL/dP[x, c], Q P[x, c]⟩, so that d/d length_x = Σ_c rates[c] D[x, c]
    and d/d rates[c] = Σ_x length_x D[x, c]. Returns (N-1, C)."""
    return np.einsum("xcij,xcij->xc", adjoint, model.rate_matrix @ transition)
