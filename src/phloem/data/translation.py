"""Nucleotides that are read as the amino acids for which their codons stand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from phloem.data.alignment import Alignment
from phloem.data.alphabet import alphabet, columns_of
from phloem.data.coding import code_type, number_sets
from phloem.data.genetic_code import genetic_code

BY = "translated_by"  # among an alignment's settings: the number of the genetic code


def translated(codons: Alignment) -> Alignment:
    """The amino acids of an alignment of codons; a codon that allows several amino acids is ambiguous."""
    number = codons.alphabet.genetic_code
    assert number is not None
    code, amino = genetic_code(number), alphabet("protein")
    place = {state: i for i, state in enumerate(amino.states)}
    stands_for = np.zeros((codons.alphabet.n_states, amino.n_states), bool)
    for i, codon in enumerate(codons.alphabet.states):
        stands_for[i, place[code.translate(codon)]] = True
    allowed = codons.state_sets @ stands_for
    numbers, table = number_sets(list(allowed), amino.n_states)
    codes = np.asarray(numbers, code_type(len(table)))[codons.codes]
    settings = {**codons.settings, "datatype": amino.kind, BY: number}
    return replace(codons, alphabet=amino, codes=codes, state_sets=table, settings=settings)


def columns_of_site(alignment: Alignment) -> int:
    """Columns of the file that a site takes."""
    return 3 if reads_codons(alignment) else columns_of(alignment.alphabet.kind)


def reads_codons(alignment: Alignment) -> bool:
    """Whether a site is three columns of the file: of codons, and of nucleotides that were translated."""
    return alignment.alphabet.kind == "codon" or BY in alignment.settings
