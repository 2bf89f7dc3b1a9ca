"""Distinct columns below every node."""

from __future__ import annotations

import numpy as np

from phloem.pruning.column_classes import ColumnClasses


def column_classes(left: np.ndarray, right: np.ndarray, tip_codes: np.ndarray, repeats: bool = True):
    """Number the distinct columns of every node, in order of first appearance.

    left, right: (T-1,) children of internal node T+k. tip_codes: (T, P). repeats=False keeps P columns
    at every node (the switch that turns the idea off, for comparison).
    A tip's class is its character code; an internal node's is the pair of its children's classes
    (Kobert, Flouri, Stamatakis 2017, Systematic Biology 66:205).
    """
    n_tips, n_patterns = tip_codes.shape
    class_of = np.empty((2 * n_tips - 1, n_patterns), np.int64)
    lefts, rights, sizes = [], [], []
    for node in range(2 * n_tips - 1):
        if node < n_tips:
            first, second = tip_codes[node].astype(np.int64), np.full(n_patterns, -1, np.int64)
        else:
            first, second = class_of[left[node - n_tips]], class_of[right[node - n_tips]]
        representative, class_of[node] = _first_seen(first, second, repeats)
        lefts.append(first[representative])
        rights.append(second[representative])
        sizes.append(len(representative))
    return ColumnClasses(
        n_tips=n_tips,
        left=np.asarray(left, np.int32),
        right=np.asarray(right, np.int32),
        offset=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        left_class=np.concatenate(lefts).astype(np.int32),
        right_class=np.concatenate(rights).astype(np.int32),
        pattern_column=class_of[-1].astype(np.int32),
    )


def _first_seen(first: np.ndarray, second: np.ndarray, repeats: bool):
    """Representative pattern of each distinct pair, and the number of every pattern's pair."""
    n = len(first)
    if not repeats:
        return np.arange(n), np.arange(n)
    key = first * (second.max(initial=0) + 2) + second + 1
    _, index, inverse = np.unique(key, return_index=True, return_inverse=True)
    order = np.argsort(index)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return index[order], rank[inverse]
