"""The alignment record: names × characters as small integer codes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from phloem.data.alphabet import Alphabet


@dataclass(frozen=True)
class Alignment:
    """Aligned characters as codes.

    taxa: T names, in file order.
    alphabet: the S states.
    codes: (T, L) unsigned integers, C-contiguous. Code s < S is state s; code S is
        wholly missing (gap, ?, X/N); codes above S are partly ambiguous characters.
    state_sets: (n_codes, S) bool, row = the states that a code allows.
        Rows 0..S-1 are the identity, row S is all True.
    source: the file it came from, for messages.
    settings: choices that shaped it (ambiguity, stop codons, sites), kept for provenance.
    """

    taxa: tuple[str, ...]
    alphabet: Alphabet
    codes: np.ndarray
    state_sets: np.ndarray
    source: str | None = None
    settings: Mapping[str, object] = field(default_factory=dict)

    @property
    def n_taxa(self) -> int:
        return self.codes.shape[0]

    @property
    def n_sites(self) -> int:
        return self.codes.shape[1]
