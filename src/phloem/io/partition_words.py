"""Words in the place of a subset's model: data types, and RAxML-NG's models of so many states."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from phloem.data.alphabet import STANDARD_SYMBOLS, TRANSLATED
from phloem.errors import InputError, count_of

# First words that say what the data are and nothing about the model.
_DATATYPES = {
    "DNA": "dna", "NT": "dna", "NUCLEOTIDE": "dna", "RNA": "rna", "PROT": "protein", "AA": "protein",
    "PROTEIN": "protein", "BIN": "binary", "BINARY": "binary", "MULTI": "standard", "MORPH": "standard",
    "STANDARD": "standard", "DOUBLET": "doublet",
}  # fmt: skip
_CODON = re.compile(r"(CODON|NT2AA|TRANSLATED)(\d{1,2})?")
_STATES = re.compile(r"MULTI(\d{1,3})", re.IGNORECASE)
_MULTI = re.compile(r"(MULTI\d{1,3})_(MK|GTR)(?![A-Za-z])(.*)", re.IGNORECASE)  # of RAxML-NG
_LISTED = re.compile(r"\s*[^\s#>(,=][^=]*,\s*([^\s=,]+)\s*=[^=]*\d[^=]*")  # MODEL, name = columns
_MULTI_MODELS = {"MK": "MK", "GTR": "GTRK"}


class DataKind(NamedTuple):
    """What a word says the data are; genetic_code, n_states: None where it says none."""

    datatype: str
    genetic_code: int | None = None
    n_states: int | None = None


class TypedColumns(NamedTuple):
    """Columns as text for `parse_sites`, and what the word before them says they are, if there is one."""

    columns: str
    kind: DataKind | None


def names_of_list(text: str) -> tuple[str, ...]:
    """Of the subsets in a list of RAxML-NG or IQ-TREE, whether or not they fit an alignment; none where the
    first line is no subset."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if not lines or _LISTED.fullmatch(lines[0]) is None:
        return ()
    return tuple(found[1] for line in lines if (found := _LISTED.fullmatch(line)))


def datatype_of(word: str) -> DataKind | None:
    """What a word says the data are; None where it names no data type."""
    codon = _CODON.fullmatch(word.upper())
    if codon is not None:
        kind = "codon" if codon[1] == "CODON" else TRANSLATED
        return DataKind(kind, None if codon[2] is None else count_of(codon[2]))
    states = _STATES.fullmatch(word)
    if states is not None:
        return DataKind("standard", n_states=_readable(int(states[1])))
    return DataKind(_DATATYPES[word.upper()]) if word.upper() in _DATATYPES else None


def model_of_states(model: str) -> tuple[str, str] | None:
    """Data type and model of "MULTI5_MK+G", as ("MULTI5", "MK+G"); None for what is no such model."""
    found = _MULTI.fullmatch(model)
    return None if found is None else (found[1], _MULTI_MODELS[found[2].upper()] + found[3])


def word_of_states(symbols: str) -> str | None:
    """The data type of characters with these states, seen or not; None where they are not 0, 1, 2 and on."""
    n_states = len(set(symbols))
    plain = n_states >= 2 and set(symbols) == set(STANDARD_SYMBOLS[:n_states])
    return f"MULTI{n_states}" if plain else None


def typed_columns(text: str) -> TypedColumns:
    """ "[TYPE,] columns", where `*` is all of them."""
    word, comma, rest = text.partition(",")
    kind = datatype_of(word.strip()) if comma else None
    columns = (text if kind is None else rest).strip()
    return TypedColumns("all" if columns == "*" else columns, kind)


def plain_sets(charsets: Mapping[str, str]) -> dict[str, str]:
    """Sets of columns without their data types."""
    return {name: typed_columns(text).columns for name, text in charsets.items()}


def _readable(n_states: int) -> int:
    if not 2 <= n_states <= len(STANDARD_SYMBOLS):
        raise InputError(
            f"characters of {n_states} states cannot be read",
            hint=f"2 to {len(STANDARD_SYMBOLS)} states have symbols.",
        )
    return n_states
