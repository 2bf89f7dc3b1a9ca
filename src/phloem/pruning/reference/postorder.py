"""The post-order pass: branch messages from the tips to the root."""

from __future__ import annotations

import numpy as np

from phloem.pruning.column_classes import ColumnClasses


def postorder(classes: ColumnClasses, transition: np.ndarray, state_sets: np.ndarray):
    """Branch messages on distinct columns (Felsenstein 1981; Suchard and Rambaut 2009, eq. 1).

    m_x = P_x p_x with p_x = m_left[:, left_class] ∘ m_right[:, right_class]; at a tip p_x is the indicator of
    the allowed states, so m_x is a sum of columns of P_x. True value = stored × 2**exponent: a column of one
    category is rescaled by an exact power of two when its largest entry falls below 2**-limit.

    transition: (N-1, C, S, S); its dtype is the precision. Returns two lists over nodes: messages
    (C, S, K_x) and exponents (C, K_x) int32. For the root they hold p_root itself (no branch above it).
    """
    messages: list[np.ndarray] = []
    exponents: list[np.ndarray] = []
    n_nodes, n_categories = classes.n_nodes, transition.shape[1]
    for x in range(n_nodes):
        if x < classes.n_tips:
            codes = classes.left_class[classes.columns(x)]
            messages.append(transition[x] @ state_sets[codes].T.astype(transition.dtype))
            exponents.append(np.zeros((n_categories, len(codes)), np.int32))
            continue
        p, exponent, _ = node_partials(classes, messages, exponents, x)
        messages.append(transition[x] @ p if x < n_nodes - 1 else p)
        exponents.append(exponent)
    return messages, exponents


def node_partials(classes: ColumnClasses, messages, exponents, x: int):
    """p_x (C, S, K_x), its exponents, and this node's own rescaling: stored = product · 2**-shift."""
    k = x - classes.n_tips
    left, right = classes.left[k], classes.right[k]
    left_class = classes.left_class[classes.columns(x)]
    right_class = classes.right_class[classes.columns(x)]
    p = messages[left][:, :, left_class] * messages[right][:, :, right_class]
    exponent = exponents[left][:, left_class] + exponents[right][:, right_class]
    shift = rescale_shift(p)
    return np.ldexp(p, -shift[:, None, :]), exponent + shift, shift


def rescale_shift(p: np.ndarray) -> np.ndarray:
    """Power of two of each column's largest entry where that is below the limit, else 0. p: (C, S, K)."""
    limit = -30 if p.dtype == np.float32 else -256
    largest = p.max(axis=1)
    _, power = np.frexp(largest)
    return np.where((largest > 0) & (power < limit), power, 0).astype(np.int32)
