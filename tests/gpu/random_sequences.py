"""Random sequences, and their distances on the device in small tiles."""

from __future__ import annotations

import numpy as np
import torch

from phloem.clustering.formula import Formula
from phloem.clustering.gpu.alignment import DistanceTiling, SequenceCodes, distance_matrix
from phloem.clustering.reference.distances import nucleotide_terms

FREQUENCIES = np.array([0.3, 0.2, 0.27, 0.23])
SMALL = {4: DistanceTiling(rows=64, columns=32, block=64), 20: DistanceTiling(rows=64, columns=64, block=64)}


def sequences(n: int, sites: int, states: int, seed: int) -> np.ndarray:
    """Related sequences with a tenth of the characters unobserved and two of them identical."""
    rng = np.random.default_rng(seed)
    codes = np.where(
        rng.random((n, sites)) < 0.3, rng.integers(0, states, (n, sites)), rng.integers(0, states, sites)
    )
    codes[rng.random((n, sites)) < 0.1] = states + 1
    codes[-1] = codes[0]
    return codes.astype(np.uint8)


def formula(method: str, shape: float | None = None) -> Formula:
    terms = None if method in ("p", "logdet") else nucleotide_terms(method, FREQUENCIES)
    return Formula(terms=terms, logdet=method == "logdet", shape=shape or 0.0)


def measured(
    codes: np.ndarray,
    states: int,
    how: Formula,
    columns: np.ndarray | None = None,
    dtype=None,
    tiling: DistanceTiling | None = None,
):
    source = SequenceCodes(codes, np.eye(states, dtype=int), states == 4)
    values, status = distance_matrix(
        source.encoded(how, columns, tiling or SMALL[states]), how, dtype or torch.float64
    )
    return values.cpu().numpy(), status.cpu().numpy()
