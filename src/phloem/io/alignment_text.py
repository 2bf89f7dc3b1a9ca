"""State codes back to characters, for the writers."""

from __future__ import annotations

import numpy as np

from phloem.data.alignment import Alignment
from phloem.data.alphabet import Alphabet
from phloem.data.codons import triplet_states
from phloem.errors import InputError

_MISSING = "-"
_RESERVED = set("()[]{}<>/\\,;:=*'\"`+~&")


def sequence_texts(alignment: Alignment, with_sets: bool = False) -> list[str]:
    """Each taxon's characters as text; missing data become '-'.

    with_sets: write a set that has no character of its own as {AC} (NEXUS); otherwise it is an InputError.
    """
    symbols = _symbols(alignment)
    wide = [code for code, symbol in enumerate(symbols) if len(symbol) != len(symbols[0])]
    if wide and not with_sets:
        _refuse_sets(alignment, symbols, wide)
    if wide:
        return ["".join([symbols[code] for code in row]) for row in alignment.codes.tolist()]
    width = len(symbols[0])
    table = np.array([symbol.encode("latin-1") for symbol in symbols], f"S{width}")
    return [table[row].tobytes().decode("latin-1") for row in alignment.codes]


def _refuse_sets(alignment: Alignment, symbols: list[str], wide: list[int]) -> None:
    """InputError at the first character that only a set can write."""
    written = np.isin(alignment.codes, wide)
    if written.any():
        row, site = divmod(int(written.argmax()), alignment.n_sites)
        raise InputError(
            f"the states {symbols[alignment.codes[row, site]]} have no single character",
            taxon=alignment.taxa[row],
            site=site + 1,
            hint="Write NEXUS, which has sets of states.",
        )


def _symbols(alignment: Alignment) -> list[str]:
    """The text of every code."""
    alphabet = alignment.alphabet
    width = 3 if alphabet.kind == "codon" else 1
    for state in alphabet.states:
        if len(state) != width or not state.isascii() or not state.isprintable() or _RESERVED & set(state):
            raise InputError(
                f"the state '{state}' has no place in a file", hint="Use one letter or digit each."
            )
    symbols = list(alphabet.states) + [_MISSING * width]
    partial = alignment.state_sets[alphabet.n_states + 1 :]
    return symbols + [_set_symbol(alphabet, allowed) for allowed in partial]


def _set_symbol(alphabet: Alphabet, allowed: np.ndarray) -> str:
    if alphabet.kind == "codon":
        return _ambiguous_codon(alphabet, allowed)
    states = tuple(np.flatnonzero(allowed).tolist())
    for character, members in alphabet.characters.items():
        if members == states:
            return character
    return "{" + "".join(alphabet.states[state] for state in states) + "}"


def _ambiguous_codon(alphabet: Alphabet, allowed: np.ndarray) -> str:
    """The triplet of IUPAC letters that allows exactly these sense codons."""
    masks = np.zeros(3, int)
    for state in np.flatnonzero(allowed):
        masks |= [1 << "ACGT".index(letter) for letter in alphabet.states[state]]
    triplet = np.array([masks[0] << 8 | masks[1] << 4 | masks[2]])
    if not np.array_equal(triplet_states(triplet, alphabet)[0], allowed):
        names = ", ".join(alphabet.states[state] for state in np.flatnonzero(allowed))
        raise InputError(f"no ambiguous codon stands for {names}", hint="Use single codons or missing data.")
    letters: dict[tuple[int, ...], str] = {}
    for letter, members in alphabet.characters.items():
        letters.setdefault(members, letter)
    return "".join(letters[tuple(bit for bit in range(4) if mask >> bit & 1)] for mask in masks)
