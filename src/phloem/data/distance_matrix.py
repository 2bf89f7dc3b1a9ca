"""The distance matrix record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class DistanceMatrix:
    """Pairwise distances between taxa.

    taxa: n distinct names. values: (n, n) float32 or float64, C-contiguous, symmetric to the bit, finite,
    non-negative, zero diagonal. source: the file it came from. settings: choices that shaped it.
    """

    taxa: tuple[str, ...]
    values: np.ndarray
    source: str | None = None
    settings: Mapping[str, object] = field(default_factory=dict)

    @property
    def n_taxa(self) -> int:
        return len(self.taxa)
