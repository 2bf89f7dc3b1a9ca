"""Frequencies counted in data: of states (+F) and of nucleotides at codon positions (+F1X4, +F3X4)."""

from __future__ import annotations

import numpy as np

from phloem.errors import ModelError
from phloem.model.codon_frequencies import CodonTable

MAX_STEPS = 2000


def empirical_frequencies(codes: np.ndarray, state_sets: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Frequencies of states in the data, (S,), that sum to 1.

    codes: (T, P); state_sets: (n_codes, S) bool; weights: (P,) how often each pattern occurs.
    Wholly missing characters are left out. A partly ambiguous character is shared among its states in
    proportion to their frequencies, repeated until the frequencies no longer change or 2,000 times: the EM
    algorithm for the maximum-likelihood estimate from independent characters (IQ-TREE takes eight steps).
    Raises ModelError where nothing is observed.
    """
    sets, counts = _counted_sets(codes, state_sets, weights)
    frequencies = np.full(state_sets.shape[1], 1.0 / state_sets.shape[1])
    for _ in range(MAX_STEPS):
        shares = sets * frequencies
        updated = (counts / shares.sum(1)) @ shares / counts.sum()
        settled = np.abs(updated - frequencies).max() < 1e-13
        frequencies = updated
        if settled:
            break
    return frequencies


def codon_position_counts(
    codes: np.ndarray, state_sets: np.ndarray, weights: np.ndarray, table: CodonTable
) -> np.ndarray:
    """Nucleotides A, C, G, T counted at the three codon positions, (3, 4).

    From the sense codons of codon data, arguments as in empirical_frequencies. Partly ambiguous codons
    are shared among the codons they allow in proportion to empirical_frequencies, as they are there.
    """
    sets, counts = _counted_sets(codes, state_sets, weights)
    shares = sets * empirical_frequencies(codes, state_sets, weights)
    by_codon = (counts / shares.sum(1)) @ shares
    result = np.zeros((3, 4))
    for position in range(3):
        np.add.at(result[position], table.nucleotides[:, position], by_codon)
    return result


def _counted_sets(codes, state_sets, weights) -> tuple[np.ndarray, np.ndarray]:
    """Distinct sets of states in the data (K, S), and how often each occurs (K,); missing left out."""
    weight = np.broadcast_to(weights, codes.shape).ravel()
    counts = np.bincount(codes.ravel(), weights=weight, minlength=len(state_sets))
    informative = (counts > 0) & ~state_sets.all(axis=1)
    if not informative.any():
        raise ModelError("every character is missing: there are no frequencies to count")
    return state_sets[informative].astype(np.float64), counts[informative]
