"""Guessing from the characters what kind of data they are."""

from __future__ import annotations

import numpy as np

from phloem.data.alphabet import STANDARD_SYMBOLS, nucleotide_characters
from phloem.data.coding import FIRST_SET


def guess_datatype(matrix: np.ndarray) -> str:
    """dna, rna, binary, standard or protein, from a (T, L) matrix of character values.

    Digits only: binary if 0 and 1 only, else standard. Letters of the nucleotide code only, half or
    more of them A, C, G, T, U, N or X: dna, or rna if there is U and no T. Anything else: protein.
    Signs such as - ? . * do not count.
    """
    counts = np.zeros(max(256, int(matrix.max(initial=0)) + 1), np.int64)
    for row in matrix:
        counts += np.bincount(row, minlength=len(counts))
    letters: dict[str, int] = {}
    for value in np.flatnonzero(counts[:FIRST_SET]):
        letter = chr(value).upper()
        if letter.isalnum():
            letters[letter] = letters.get(letter, 0) + int(counts[value])
    if letters and all(letter.isdigit() for letter in letters):
        return "binary" if set(letters) <= {"0", "1"} else "standard"
    plain = sum(letters.get(letter, 0) for letter in "ACGTUNX")
    if set(letters) <= set(nucleotide_characters()) and plain >= 0.5 * sum(letters.values()):
        return "rna" if "U" in letters and "T" not in letters else "dna"
    return "protein"


def highest_symbol(matrix: np.ndarray, sets: dict[int, str] | None = None) -> str:
    """The symbols 0-9A-Z up to the highest one that occurs, at least 01: the states of undeclared data."""
    values = np.unique(matrix)
    seen = {chr(value).upper() for value in values if value < FIRST_SET}
    seen |= {character.upper() for value in values for character in (sets or {}).get(int(value), "")}
    highest = max(
        (STANDARD_SYMBOLS.index(symbol) for symbol in seen if symbol in STANDARD_SYMBOLS), default=1
    )
    return STANDARD_SYMBOLS[: max(highest, 1) + 1]
