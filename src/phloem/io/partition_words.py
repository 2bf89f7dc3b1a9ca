"""Words in the place of a subset's model: data types, and RAxML-NG's models of so many states."""

from __future__ import annotations

import re

from phloem.data.alphabet import STANDARD_SYMBOLS, TRANSLATED
from phloem.errors import InputError, count_of

# First words that say what the data are and nothing about the model.
_DATATYPES = {
    "DNA": "dna", "NT": "dna", "NUCLEOTIDE": "dna", "RNA": "rna", "PROT": "protein", "AA": "protein",
    "PROTEIN": "protein", "BIN": "binary", "BINARY": "binary", "MULTI": "standard", "MORPH": "standard",
    "STANDARD": "standard", "DOUBLET": "doublet",
}  # fmt: skip
_CODON = re.compile(r"(CODON|NT2AA|TRANSLATED)(\d{1,2})?")
_MULTI = re.compile(r"MULTI(\d{1,3})_(MK|GTR)(?![A-Za-z])(.*)", re.IGNORECASE)  # of RAxML-NG
_MULTI_MODELS = {"MK": "MK", "GTR": "GTRK"}


def datatype_of(word: str) -> tuple[str, int | None] | None:
    """Data type and genetic code that a word names; None where it names none."""
    codon = _CODON.fullmatch(word.upper())
    if codon is not None:
        kind = "codon" if codon[1] == "CODON" else TRANSLATED
        return kind, None if codon[2] is None else count_of(codon[2])
    return (_DATATYPES[word.upper()], None) if word.upper() in _DATATYPES else None


def model_of_states(model: str) -> tuple[int, str] | None:
    """Number of states and model of "MULTI5_MK+G", as (5, "MK+G"); None for what is no such model."""
    found = _MULTI.fullmatch(model)
    if found is None:
        return None
    n_states, name, rest = int(found[1]), found[2].upper(), found[3]
    if not 2 <= n_states <= len(STANDARD_SYMBOLS):
        raise InputError(
            f"characters of {n_states} states cannot be read",
            hint=f"2 to {len(STANDARD_SYMBOLS)} states have symbols.",
        )
    return n_states, _MULTI_MODELS[name] + rest
