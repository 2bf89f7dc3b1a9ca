"""State spaces: which states there are, and which characters stand for which of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Alphabet:
    """A state space of S states.

    kind: dna | rna | protein | codon | binary | standard | custom.
    states: S symbols in phloem's order (docs/architecture.md).
    characters: every accepted character (upper case where case does not matter) → indices of the states it allows.
    genetic_code: NCBI number, for codons.
    """

    kind: str
    states: tuple[str, ...]
    characters: Mapping[str, tuple[int, ...]] = field(default_factory=dict, repr=False)
    genetic_code: int | None = None

    @property
    def n_states(self) -> int:
        return len(self.states)
