"""Site patterns: equal alignment columns counted once."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from phloem.data.alignment import Alignment
from phloem.data.alphabet import Alphabet


@dataclass(frozen=True, eq=False)
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
    """Compress an alignment's columns to distinct patterns with weights.

    Columns are sorted by a 64-bit hash and then compared exactly, character by character, with the first
    column of their hash; should two different columns share a hash, whole columns are sorted instead.
    """
    codes = alignment.codes
    index, inverse = _first_and_group(_column_hashes(codes))
    if not np.array_equal(codes[:, index][:, inverse], codes):
        index, inverse = _first_and_group(_column_bytes(codes))
    order = np.argsort(index)
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    site_pattern = rank[inverse]
    return SitePatterns(
        taxa=alignment.taxa,
        alphabet=alignment.alphabet,
        codes=np.ascontiguousarray(codes[:, index[order]]),
        state_sets=alignment.state_sets,
        weights=np.bincount(site_pattern, minlength=len(order)).astype(np.float64),
        site_pattern=site_pattern,
    )


def with_unrecorded(patterns: SitePatterns, n: int) -> SitePatterns:
    """The patterns and, with weight n, one in which every taxon is missing. It belongs to no site: it stands
    for characters of which nothing is known here but that they were seen, which counts under +ASC."""
    if n == 0:
        return patterns
    missing = np.full((len(patterns.taxa), 1), patterns.alphabet.n_states, patterns.codes.dtype)
    return replace(
        patterns,
        codes=np.ascontiguousarray(np.hstack([patterns.codes, missing])),
        weights=np.append(patterns.weights, float(n)),
    )


def _first_and_group(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each distinct key occurs first, and the distinct key of every entry."""
    _, index, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return index, inverse.ravel()


def _column_hashes(codes: np.ndarray) -> np.ndarray:
    """(L,) uint64: a random linear combination of every column's codes, modulo 2**64."""
    factors = np.random.default_rng(0).integers(1, 2**63, len(codes), dtype=np.uint64) * 2 + 1
    hashes = np.zeros(codes.shape[1], np.uint64)
    for row, factor in zip(codes, factors):
        hashes += row * factor
    return hashes


def _column_bytes(codes: np.ndarray) -> np.ndarray:
    """(L,) raw bytes of every column, which sort without any loss."""
    columns = np.ascontiguousarray(codes.T)
    return columns.view(np.dtype((np.void, columns.dtype.itemsize * columns.shape[1]))).ravel()
