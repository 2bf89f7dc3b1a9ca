"""How counts of site pairs become distances: the numbers that distance kernels are given."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class ScoreTables:
    """Score of a pair of sequences on a grid of distances (reference.distance_tables.score_tables).

    nodes: (K,) ln t, evenly spaced. tables: (K, cells, 2) float32. guesses: first node to look at, on a
    uniform grid of proportions of differing sites.
    """

    nodes: np.ndarray
    tables: np.ndarray
    guesses: np.ndarray


@dataclass(frozen=True)
class Formula:
    """How counts become a distance.

    scores: maximum likelihood by these tables; else terms: (K, 4) of reference.distance.nucleotide_terms;
    else logdet; else φ(1 - p - quadratic p²) if corrected, else p. shape: gamma shape, 0 for equal rates.
    longest: what saturated pairs get.
    """

    terms: np.ndarray | None = None
    logdet: bool = False
    corrected: bool = False
    quadratic: float = 0.0
    shape: float = 0.0
    longest: float = 5.0
    scores: ScoreTables | None = None
