"""How far apart sequences are on average: what a tree's age is in substitutions, roughly."""

from __future__ import annotations

import math

import numpy as np

from phloem.data.alignment import Alignment

_MOST_SITES = 10_000  # columns that are looked at, evenly spread
_FARTHEST = 2.0  # substitutions per site, near saturation


def mean_distance(alignment: Alignment) -> float:
    """Expected substitutions per character between two of the sequences, 0 to 2, nan where no two have a
    character in common.

    The share of pairs that differ, over all columns, corrected as if all S states were alike (S = 4: Jukes
    and Cantor 1969): -(S-1)/S ln(1 - S/(S-1) p). Of long alignments every so many columns.
    """
    n_states = alignment.alphabet.n_states
    codes = alignment.codes[:, :: max(1, -(-alignment.n_sites // _MOST_SITES))]
    there, alike = np.zeros(codes.shape[1]), np.zeros(codes.shape[1])
    for state in range(n_states):
        n = (codes == state).sum(axis=0, dtype=np.float64)
        there += n
        alike += n * (n - 1.0)
    pairs = float((there * (there - 1.0)).sum())
    if pairs == 0.0:
        return math.nan
    left = 1.0 - (1.0 - float(alike.sum()) / pairs) * n_states / (n_states - 1.0)
    farthest = math.exp(-_FARTHEST * n_states / (n_states - 1.0))
    return -(n_states - 1.0) / n_states * math.log(max(left, farthest))
