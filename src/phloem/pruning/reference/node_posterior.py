"""Marginal posterior probabilities of the states at one node."""

from __future__ import annotations

import numpy as np

from phloem.pruning.column_classes import ColumnClasses
from phloem.pruning.reference.postorder import node_partials


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
