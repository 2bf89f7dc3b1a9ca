"""Nearly equal genomes as what each differs in from one reference."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

MISSING = 15  # the set of all four nucleotides


@dataclass(frozen=True, eq=False)
class Genomes:
    """T genomes of L nucleotides, U of them distinct.

    taxa: T names. reference: (L,) int8, 0 to 3 for A C G T, at every column the most frequent one.
    group: (T,) number of the distinct genome that a taxon has, in order of first appearance.
    offsets: (U + 1,) int64, where its differences are. span: (D, 2) int32, the first column of a difference
    and the one behind its last, ascending. states: (D,) uint8, which nucleotides are allowed there, a bit
    each (A 1, C 2, G 4, T 8): one, another set for one column, or MISSING for a run. counts: (16,) int64,
    how often each set is
    in all T genomes. source: the file.
    """

    taxa: tuple[str, ...]
    reference: np.ndarray
    group: np.ndarray
    offsets: np.ndarray
    span: np.ndarray
    states: np.ndarray
    counts: np.ndarray
    source: str | None = None

    @property
    def n_taxa(self) -> int:
        return len(self.taxa)

    @property
    def n_sites(self) -> int:
        return len(self.reference)

    @property
    def n_distinct(self) -> int:
        return len(self.offsets) - 1

    @property
    def first(self) -> np.ndarray:
        """(U,) the first taxon that has each distinct genome."""
        return np.unique(self.group, return_index=True)[1]

    @property
    def substitutions(self) -> np.ndarray:
        """(U,) differences of every distinct genome that are no missing data."""
        known = np.concatenate([[0], np.cumsum(self.states != MISSING)])
        return known[self.offsets[1:]] - known[self.offsets[:-1]]

    @property
    def missing(self) -> np.ndarray:
        """(U,) missing columns of every distinct genome."""
        width = np.where(self.states == MISSING, self.span[:, 1] - self.span[:, 0], 0)
        total = np.concatenate([[0], np.cumsum(width)])
        return total[self.offsets[1:]] - total[self.offsets[:-1]]
