"""The pre-order pass on distinct columns: adjoints from the root to the tips."""

from __future__ import annotations

import numpy as np

from phloem.pruning.column_classes import ColumnClasses
from phloem.pruning.reference.postorder import node_partials


def preorder(classes: ColumnClasses, transition, messages, exponents, state_sets, root_q):
    """Adjoint of every transition matrix, d log L / d P[x, c] = u_x p_xᵀ.

    The gradient is linear in the pre-order vectors, so columns that share a class below a child are *summed*
    on the way down: for child x of k with sibling y,
        u_x[:, i] = Σ over columns j of k with class_x(j) = i of q_k[:, j] ∘ m_y[:, class_y(j)],
        q_x = P_xᵀ u_x.
    Gangavarapu et al. 2024 give the unsummed recursion. Stored u = true u · 2**exponent of m_x, hence the
    shift.
    root_q: (C, S, K_root) from root_adjoint. Returns (N-1, C, S, S) float64 and the list of u_x (C, S, K_x).
    """
    n_nodes = classes.n_nodes
    u = [np.zeros_like(m) for m in messages]
    adjoint = np.empty(transition.shape, np.float64)
    for x in range(n_nodes - 1, -1, -1):
        if x < classes.n_tips:
            p = state_sets[classes.left_class[classes.columns(x)]].T[None].astype(messages[x].dtype)
        else:
            p, _, shift = node_partials(classes, messages, exponents, x)
            q = root_q if x == n_nodes - 1 else np.swapaxes(transition[x], 1, 2) @ u[x]
            _pass_to_children(classes, messages, u, x, np.ldexp(q, -shift[:, None, :]))
        if x < n_nodes - 1:
            adjoint[x] = u[x].astype(np.float64) @ np.swapaxes(np.broadcast_to(p, u[x].shape), 1, 2)
    return adjoint, u


def _pass_to_children(classes: ColumnClasses, messages, u, x: int, q) -> None:
    k = x - classes.n_tips
    left, right = classes.left[k], classes.right[k]
    left_class = classes.left_class[classes.columns(x)]
    right_class = classes.right_class[classes.columns(x)]
    np.add.at(u[left], np.s_[:, :, left_class], q * messages[right][:, :, right_class])  # type: ignore[arg-type]
    np.add.at(u[right], np.s_[:, :, right_class], q * messages[left][:, :, left_class])  # type: ignore[arg-type]
