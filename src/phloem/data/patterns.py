"""Site patterns: equal alignment columns counted once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phloem.data.alignment import Alignment
from phloem.data.alphabet import Alphabet


@dataclass(frozen=True)
class SitePatterns:
    """Distinct alignment columns, in order of first appearance.

    taxa, alphabet, state_sets: as in Alignment. codes: (T, P). weights: (P,) float64, how often each occurs.
    site_pattern: (L,) int32, the pattern of every site.
    """

    taxa: tuple[str, ...]
    alphabet: Alphabet
    codes: np.ndarray
    state_sets: np.ndarray
    weights: np.ndarray
    site_pattern: np.ndarray


def site_patterns(alignment: Alignment) -> SitePatterns:
    """Compress an alignment's columns to distinct patterns with weights."""
    columns = np.ascontiguousarray(alignment.codes.T)
    rows = columns.view(np.dtype((np.void, columns.dtype.itemsize * columns.shape[1]))).ravel()
    _, index, inverse = np.unique(rows, return_index=True, return_inverse=True)
    order = np.argsort(index)
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    site_pattern = rank[inverse.ravel()]
    return SitePatterns(
        taxa=alignment.taxa,
        alphabet=alignment.alphabet,
        codes=np.ascontiguousarray(alignment.codes[:, index[order]]),
        state_sets=alignment.state_sets,
        weights=np.bincount(site_pattern, minlength=len(order)).astype(np.float64),
        site_pattern=site_pattern,
    )
