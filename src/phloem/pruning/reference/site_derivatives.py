"""Derivatives of every site pattern's log-likelihood in every branch length: pre-order, not summed."""

from __future__ import annotations

import numpy as np

from phloem.model.record import SiteModel
from phloem.pruning.column_classes import ColumnClasses
from phloem.pruning.reference.postorder import node_partials
from phloem.pruning.reference.preorder import by_length_class, generators


def site_branch_derivatives(
    classes: ColumnClasses, transition, messages, exponents, site_q, model: SiteModel
):
    """First and second derivative of each root column's likelihood in each branch length, over itself.

    As in reference/preorder.py, but every root column k keeps its own pre-order vector u_x (Gangavarapu et
    al. 2024, Systematic Biology): with dP/db = r Q P and d²P/db² = r² Q² P,
        first[x, k] = Σ_c r_c ⟨u_x, Q m_x⟩ = L'_k / L_k,
        second[x, k] = Σ_c r_c² ⟨u_x, Q² m_x⟩ = L''_k / L_k,
    sums over the categories that use the branch length. site_q: (C, S, K_root) from root_adjoint with weights
    of one. Returns two float64 (N, K_root), or (K, N, K_root) with K length classes; the root's row is 0.
    """
    n_nodes, n_root = classes.n_nodes, classes.size(classes.n_nodes - 1)
    classes_of_lengths = () if model.n_length_classes == 1 else (model.n_length_classes,)
    first, second = (np.zeros((*classes_of_lengths, n_nodes, n_root)) for _ in range(2))
    q_of = generators(model)
    above: list = [None] * n_nodes  # (u_x, class at x of every root column), freed on the way down
    above[n_nodes - 1] = site_q, np.arange(n_root)
    for x in range(n_nodes - 1, -1, -1):
        u, column = above[x]
        above[x] = None
        q = u
        if x < n_nodes - 1:
            slopes, curves = _branch_ratios(u, messages[x][:, :, column], q_of)
            first[..., x, :] = by_length_class(model.rates[:, None] * slopes, model)
            second[..., x, :] = by_length_class(model.rates[:, None] ** 2 * curves, model)
            q = np.swapaxes(transition[x], 1, 2) @ u
        if x >= classes.n_tips:
            _, _, shift = node_partials(classes, messages, exponents, x)
            _pass_to_children(classes, messages, above, x, np.ldexp(q, -shift[:, None, column]), column)
    return first, second


def _branch_ratios(u, message, q_of) -> tuple[np.ndarray, np.ndarray]:
    """⟨u, Q m⟩ and ⟨u, Q² m⟩ of every category and column, (C, K)."""
    u, slope = u.astype(np.float64), q_of @ message.astype(np.float64)
    return np.einsum("csk,csk->ck", u, slope), np.einsum("csk,csk->ck", u, q_of @ slope)


def _pass_to_children(classes: ColumnClasses, messages, above, x: int, q, column) -> None:
    k = x - classes.n_tips
    left, right = classes.left[k], classes.right[k]
    left_class = classes.left_class[classes.columns(x)][column]
    right_class = classes.right_class[classes.columns(x)][column]
    above[left] = q * messages[right][:, :, right_class], left_class
    above[right] = q * messages[left][:, :, left_class], right_class


def branch_second_derivatives(first, second, column_weights, ascertained, site_log) -> np.ndarray:
    """d² log L / d b_x² = Σ_k w_k [L''_k / L_k - (L'_k / L_k)²], (N,) or (K, N).

    With ascertained columns (hidden probability H = Σ_ascertained L_k, W = Σ w_k) the term
    - W log(1 - H) adds W [H'' / (1 - H) + (H' / (1 - H))²].
    """
    total = (second - first**2) @ column_weights
    if ascertained.any():
        likelihood = np.exp(site_log[ascertained])
        seen = 1.0 - likelihood.sum()
        slope, curve = (d[..., ascertained] @ likelihood / seen for d in (first, second))
        total = total + column_weights.sum() * (curve + slope**2)
    return total
