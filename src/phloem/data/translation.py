"""Nucleotides that are read as the amino acids for which their codons stand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from phloem.data.alignment import Alignment
from phloem.data.alphabet import alphabet, columns_of
from phloem.data.coding import code_type, number_sets
from phloem.data.genetic_code import genetic_code
from phloem.errors import InputError

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


def distances(alignment: Alignment) -> np.ndarray:
    """(L,) int64: how many sites on each is from the one before it: 1, or more where columns of the file that
    are not here lie between the two. The first has 1. Pairs of columns (doublets) are one after the other.

    Errors: InputError for sites that are not in the order of the file.
    """
    found = np.ones(alignment.n_sites, np.int64)
    if alignment.places is None or alignment.alphabet.kind == "doublet":
        return found
    apart = np.diff(alignment.places)
    if (apart < 1).any():
        site = int(np.argmax(apart < 1)) + 2
        raise InputError("sites are not in the order of the file", file=alignment.source, site=site)
    found[1:] = -(-apart // columns_of_site(alignment))
    return found
