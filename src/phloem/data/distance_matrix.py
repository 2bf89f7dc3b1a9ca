"""Distances of all pairs: a square matrix, or the triangle below its diagonal in half the memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from phloem.errors import first_names


@dataclass(frozen=True, eq=False)
class DistanceMatrix:
    """Pairwise distances between taxa.

    taxa: n distinct names. values: (n, n) float32 or float64, C-contiguous, symmetric to the bit, finite,
    non-negative, zero diagonal. source: the file it came from. settings: choices that shaped it.
    """

    taxa: tuple[str, ...]
    values: np.ndarray
    source: str | None = None
    settings: Mapping[str, object] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"DistanceMatrix({self.n_taxa:,} taxa: {first_names(self.taxa)})"

    @property
    def n_taxa(self) -> int:
        return len(self.taxa)


TILE = 512


@dataclass(frozen=True, eq=False)
class DistanceTriangle:
    """Pairwise distances between taxa in half the memory of a square.

    taxa: n distinct names. entries: (n (n-1) / 2,) float32 or float64, finite, non-negative; the distance of
    taxa i and j < i is entry i (i-1) / 2 + j. source: the file it came from. settings: what shaped it.
    """

    taxa: tuple[str, ...]
    entries: np.ndarray
    source: str | None = None
    settings: Mapping[str, object] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"DistanceTriangle({self.n_taxa:,} taxa: {first_names(self.taxa)})"

    @property
    def n_taxa(self) -> int:
        return len(self.taxa)

    def between(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """(len(rows), len(columns)) distances of two disjoint sets of taxa."""
        high, low = np.maximum(rows[:, None], columns), np.minimum(rows[:, None], columns)
        return self.entries[high * (high - 1) // 2 + low]

    def matrix(self) -> DistanceMatrix:
        """The square; in place if the entries end its memory (entries_in_square), else a copy."""
        n, memory = self.n_taxa, self.entries.base
        if not (isinstance(memory, np.ndarray) and memory.ndim == 1 and len(memory) == n * n):
            tail = entries_in_square(n, self.entries.dtype)
            tail[:] = self.entries
            return DistanceTriangle(self.taxa, tail, self.source, self.settings).matrix()
        square = memory.reshape(n, n)
        for i in range(n):  # every row moves up or stays, so going down loses nothing
            square[i, :i] = self.entries[i * (i - 1) // 2 : i * (i + 1) // 2]
        for i in range(0, n, TILE):
            for j in range(0, i, TILE):
                square[j : j + TILE, i : i + TILE] = square[i : i + TILE, j : j + TILE].T
            block = square[i : i + TILE, i : i + TILE]
            block[:] = np.tril(block, -1) + np.tril(block, -1).T
        return DistanceMatrix(self.taxa, square, self.source, self.settings)


def new_entries(n: int, dtype: np.dtype | str) -> np.ndarray:
    """Memory for the entries of n taxa."""
    return np.empty(n * (n - 1) // 2, dtype)


def entries_in_square(n: int, dtype: np.dtype | str) -> np.ndarray:
    """Entries for n taxa at the end of memory for a square, so that `matrix` needs no more."""
    return np.empty(n * n, dtype)[n * n - n * (n - 1) // 2 :]
