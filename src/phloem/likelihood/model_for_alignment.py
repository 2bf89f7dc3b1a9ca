"""Model strings read with an alignment (its data type, genetic code, counted frequencies) or an alphabet."""

from __future__ import annotations

from typing import Literal

import numpy as np

from phloem.data.alignment import Alignment
from phloem.data.alphabet import Alphabet
from phloem.data.genetic_code import CODONS, genetic_code
from phloem.model.frequencies import CodonTable, codon_position_counts, empirical_frequencies
from phloem.model.grammar import parse_model
from phloem.model.model import Model


def model_for_alignment(text: str, alignment: Alignment, gamma: Literal["mean", "median"] = "mean") -> Model:
    """Read a model string for the alignment's data type.

    A bare +F, +F1X4 or +F3X4 means what is counted in the alignment (model/frequencies.py). gamma: what +G
    means where the string does not say. Errors: ModelError with the place in the string.
    """
    return ModelReader(alignment, gamma)(text)


class ModelReader:
    """model_for_alignment of many strings: the data are counted once."""

    def __init__(self, alignment: Alignment, gamma: Literal["mean", "median"] = "mean") -> None:
        self._alphabet, self._table, self._gamma = alignment.alphabet, codon_table(alignment.alphabet), gamma
        data = alignment.codes, alignment.state_sets, np.ones(alignment.n_sites)
        observed = not alignment.state_sets[np.unique(alignment.codes)].all()
        self._states = empirical_frequencies(*data) if observed else None
        self._positions = codon_position_counts(*data, self._table) if observed and self._table else None

    def __call__(self, text: str) -> Model:
        """ModelError with the place in the string."""
        return parse_model(
            text,
            datatype=self._alphabet.kind,
            states=self._alphabet.states,
            codon_table=self._table,
            empirical_frequencies=self._states,
            codon_position_counts=self._positions,
            gamma=self._gamma,
        )


def model_for_alphabet(text: str, alphabet: Alphabet, gamma: Literal["mean", "median"] = "mean") -> Model:
    """Read a model string where there are no data: a bare +F, +F1X4 or +F3X4 is then a ModelError."""
    table = codon_table(alphabet)
    return parse_model(text, datatype=alphabet.kind, states=alphabet.states, codon_table=table, gamma=gamma)


def codon_table(alphabet: Alphabet) -> CodonTable | None:
    """The sense codons of a codon alphabet with their amino acids, None for other data."""
    if alphabet.kind != "codon" or alphabet.genetic_code is None:
        return None
    amino_acid = dict(zip(CODONS, genetic_code(alphabet.genetic_code).amino_acids))
    codons = tuple(alphabet.states)
    return CodonTable(codons, "".join(amino_acid[c.replace("U", "T")] for c in codons))
