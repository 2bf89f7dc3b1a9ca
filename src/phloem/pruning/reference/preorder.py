"""The pre-order pass on distinct columns, from the root to the tips, and what it meets on the way."""

from __future__ import annotations

import numpy as np

from phloem.model.record import SiteModel
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


def node_posterior(classes: ColumnClasses, transition, messages, exponents, site_q, node: int) -> np.ndarray:
    """P(state s at an internal node, site not invariable | data) of every root column.

    The pre-order vector times the post-order one (Yang, Kumar and Nei 1995, Genetics 141:1641).

    Down the path from the root, q_child = Pᵀ (q ∘ m_sibling); the posterior is Σ_c q[c, s] p[c, s], where
    site_q (C, S, K_root), from root_adjoint with weights of one, carries w_c π_s / L. Returns (K_root, S).
    """
    parent = np.empty(classes.n_nodes, np.int64)
    internal = np.arange(classes.n_tips, classes.n_nodes)
    parent[classes.left], parent[classes.right] = internal, internal
    path = [node]
    while path[-1] != classes.n_nodes - 1:
        path.append(int(parent[path[-1]]))
    q, column = site_q, np.arange(classes.size(classes.n_nodes - 1))
    for x, below in zip(path[::-1], path[-2::-1]):
        _, _, shift = node_partials(classes, messages, exponents, x)
        k = x - classes.n_tips
        at_left = classes.left_class[classes.columns(x)][column]
        at_right = classes.right_class[classes.columns(x)][column]
        q = np.ldexp(q, -shift[:, None, column])
        if below == classes.left[k]:
            u, column = q * messages[classes.right[k]][:, :, at_right], at_left
        else:
            u, column = q * messages[classes.left[k]][:, :, at_left], at_right
        q = np.swapaxes(transition[below], 1, 2) @ u
    p, _, _ = node_partials(classes, messages, exponents, node)
    return (q.astype(np.float64) * p[:, :, column]).sum(0).T
