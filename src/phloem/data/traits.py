"""A discrete trait of taxa, such as where they were sampled."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True, eq=False)
class TipTraits:
    """name: of the trait. taxa: T names. states: K names, sorted. possible: (T, K) bool, the states that a
    taxon may have: one, several where it is not known which, all where nothing is known."""

    name: str
    taxa: tuple[str, ...]
    states: tuple[str, ...]
    possible: np.ndarray

    @property
    def n_states(self) -> int:
        """K."""
        return len(self.states)

    @property
    def n_missing(self) -> int:
        """Taxa of which nothing is known."""
        return int(self.possible.all(axis=1).sum())

    def ignored(self) -> TipTraits:
        """The same states, and nothing known of any taxon: what a sampled prior has."""
        return replace(self, possible=np.ones_like(self.possible))
