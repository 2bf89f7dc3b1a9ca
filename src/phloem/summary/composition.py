"""Whether sequences have the composition, and pairs of them the symmetry, that stationary reversible models
say: the two tests that need no tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc

from phloem.data.alignment import Alignment

_CELLS = 1 << 21  # of pairs × columns at a time


@dataclass(frozen=True, eq=False)
class Composition:
    """Of every sequence, its states against those of all sequences together.

    counts: (T, S) characters by state; gaps and ambiguous characters are in none. expected: (S,) shares of
    the states in all sequences. chi_square, p: (T,), NaN of a sequence without a character, and of all where
    no two states were seen. degrees_of_freedom: states that were seen, less one.
    """

    counts: np.ndarray
    expected: np.ndarray
    chi_square: np.ndarray
    p: np.ndarray
    degrees_of_freedom: int


@dataclass(frozen=True, eq=False)
class Symmetry:
    """Bowker's test of K = T (T − 1) / 2 pairs of sequences.

    pairs: (K, 2) rows of the alignment, the first below the second. chi_square, p: (K,).
    degrees_of_freedom: (K,) pairs of states in which two sequences differ. Where that is none there is
    nothing to test, and p is NaN.
    """

    pairs: np.ndarray
    chi_square: np.ndarray
    p: np.ndarray
    degrees_of_freedom: np.ndarray


def composition_test(alignment: Alignment) -> Composition:
    """χ² of every sequence: Σ_s (n_s − n f_s)² / (n f_s), f the shares of all sequences' characters.

    As IQ-TREE prints it. Characters are taken as independent and f as known, which they are not: sites that
    do not change, and sequences that share a history, make it lenient.
    """
    n_states = alignment.alphabet.n_states
    counts = np.array([np.bincount(row, minlength=n_states)[:n_states] for row in alignment.codes])
    total = counts.sum(0)
    seen = total > 0
    freedom = max(int(seen.sum()) - 1, 0)
    expected = total / max(int(total.sum()), 1)
    own = counts[:, seen]
    due = own.sum(1, keepdims=True) * expected[seen]
    square = np.full(len(counts), np.nan)
    tested = counts.any(1) & (freedom > 0)
    square[tested] = ((own[tested] - due[tested]) ** 2 / due[tested]).sum(1)
    return Composition(counts, expected, square, _tail(square, freedom), freedom)


def symmetry_test(alignment: Alignment) -> Symmetry:
    """χ² of every pair of sequences: Σ_{s<t} (n_st − n_ts)² / (n_st + n_ts) over the pairs of states with a
    sum, n_st the sites where one sequence has s and the other t, neither missing nor ambiguous.

    Bowker 1948 (J. Am. Stat. Assoc. 43:572), of aligned sequences: Ababneh et al. 2006 (Bioinformatics
    22:1225). It takes sites as independent, and holds where reversible models do, on any tree. Time ∝ T² L.
    """
    n_taxa, n_states = alignment.n_taxa, alignment.alphabet.n_states
    above, below = np.triu_indices(n_states, 1)
    squares, freedoms = [np.zeros(0)], [np.zeros(0, int)]
    for table in _tables(_varying(alignment.codes, n_states), n_states):
        there, back = table[:, above, below], table[:, below, above]
        both = there + back
        squares.append(((there - back) ** 2 / np.maximum(both, 1)).sum(1))
        freedoms.append((both > 0).sum(1))
    freedom = np.concatenate(freedoms)
    square = np.where(freedom > 0, np.concatenate(squares), np.nan)
    pairs = np.stack(np.triu_indices(n_taxa, 1), axis=1)
    return Symmetry(pairs, square, _tail(square, freedom), freedom)


def _tail(square: np.ndarray, freedom: int | np.ndarray) -> np.ndarray:
    """P(χ² ≥ square), NaN where there is no test."""
    p = np.full(square.shape, np.nan)
    tested = np.isfinite(square)
    p[tested] = chdtrc(np.broadcast_to(freedom, square.shape)[tested], square[tested])
    return p


def _varying(codes: np.ndarray, n_states: int) -> np.ndarray:
    """(T, M) of the columns with two states or more; others differ in no pair. Codes ≥ S are made S."""
    known = codes < n_states
    least = np.where(known, codes, n_states).min(0)
    most = np.where(known, codes, 0).max(0)
    return np.minimum(codes[:, most > least], n_states)


def _tables(codes: np.ndarray, n_states: int) -> Iterator[np.ndarray]:
    """(k, S, S) counts of pairs of states, of the first sequence with those behind it, of the second …"""
    n_taxa, n_columns = codes.shape
    wide = n_states + 1
    codes = codes.astype(np.int64)
    for first in range(n_taxa - 1):
        step = max(1, _CELLS // max(n_columns, wide * wide))
        for begin in range(first + 1, n_taxa, step):
            others = codes[begin : begin + step]
            cell = codes[first] * wide + others
            cell += np.arange(len(others))[:, None] * wide * wide
            table = np.bincount(cell.ravel(), minlength=len(others) * wide * wide)
            yield table.reshape(-1, wide, wide)[:, :n_states, :n_states]
