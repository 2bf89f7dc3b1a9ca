"""Characters to state codes by table look-up, and the guess from them what kind of data they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from phloem.data.alphabet import STANDARD_SYMBOLS, Alphabet, nucleotide_characters
from phloem.errors import InputError

FIRST_SET = 256  # character values from here on are sets such as {AC}, numbered in order of appearance


@dataclass(frozen=True)
class CodedCharacters:
    """codes and state_sets as in Alignment; how many characters were partly ambiguous or masked as stops."""

    codes: np.ndarray
    state_sets: np.ndarray
    n_ambiguous: int
    n_masked: int


def used_characters(matrix: np.ndarray) -> np.ndarray:
    """Which character values occur, ascending."""
    seen = np.zeros(max(256, int(matrix.max(initial=0)) + 1), bool)
    seen[matrix] = True
    return np.flatnonzero(seen)


def allowed_states(alphabet: Alphabet, value: int, sets: Mapping[int, str]) -> tuple[int, ...] | None:
    """The states (nucleotides, for codons) that a character value allows; None when it is unknown."""
    allowed: set[int] = set()
    for character in sets[value] if value in sets else chr(value):
        key = character if alphabet.case_sensitive else character.upper()
        if key not in alphabet.characters:
            return None
        allowed.update(alphabet.characters[key])
    return tuple(sorted(allowed)) or None


def first_position(matrix: np.ndarray, value: int) -> tuple[int, int]:
    """Row and column, 0-based, of the first character of that value."""
    row, column = divmod(int(np.argmax(matrix == value)), matrix.shape[1])
    return row, column


def unknown_character(
    alphabet: Alphabet, value: int, sets: Mapping[int, str], taxon: str, column: int
) -> InputError:
    """The error for a character that the alphabet does not have."""
    shown = "{" + sets[value] + "}" if value in sets else chr(value)
    accepted = "".join(alphabet.characters)
    hint = f"{alphabet.kind} data have the characters {accepted[:60]}; correct it, or set --datatype."
    if shown == ".":
        hint = "If '.' means 'as in the first taxon', use NEXUS with MATCHCHAR=. ; if it is a gap, write '-'."
    return InputError(
        f"unknown character '{shown}' in {alphabet.kind} data", taxon=taxon, site=column, hint=hint
    )


def number_sets(sets: list[np.ndarray], n_states: int) -> tuple[np.ndarray, np.ndarray]:
    """Codes for (S,) bool sets: s for a single state, S for all, then partial sets in a fixed order.

    Returns the codes and the table of state_sets. The order depends on the sets alone, so that writing and
    reading gives the same codes again.
    """
    rows = np.array(sets, bool).reshape(-1, n_states)
    sizes = rows.sum(axis=1)
    codes = np.where(sizes == n_states, n_states, rows.argmax(axis=1))
    partial = (sizes > 1) & (sizes < n_states)
    table = np.vstack([np.eye(n_states, dtype=bool), np.ones((1, n_states), bool)])
    if partial.any():
        distinct, inverse = np.unique(rows[partial], axis=0, return_inverse=True)
        codes[partial] = n_states + 1 + inverse.ravel()
        table = np.vstack([table, distinct])
    return codes.astype(np.int64), table


def code_type(n_codes: int) -> type[np.unsignedinteger]:
    """The smallest unsigned integer that holds every code."""
    return np.uint8 if n_codes <= 256 else np.uint16 if n_codes <= 65536 else np.uint32


def code_characters(
    taxa: tuple[str, ...],
    matrix: np.ndarray,
    columns: np.ndarray,
    alphabet: Alphabet,
    sets: Mapping[int, str],
    ambiguity: str,
    stop_codons: str,
) -> CodedCharacters:
    """Code single characters (anything but codons); matrix: (T, L) values, columns: their 0-based numbers.

    A `*` in proteins is a stop codon: an InputError, or missing under stop_codons="mask".
    """
    n_states = alphabet.n_states
    values, rows, n_masked = used_characters(matrix), [], 0
    for value in values:
        allowed = allowed_states(alphabet, int(value), sets)
        if alphabet.kind == "protein" and value == ord("*"):
            if stop_codons == "error":
                row, column = first_position(matrix, value)
                raise InputError(
                    "stop codon '*' in a protein sequence",
                    taxon=taxa[row],
                    site=int(columns[column]) + 1,
                    hint="Remove the column, or treat stops as missing data (--stop-codons mask).",
                )
            n_masked, allowed = int((matrix == value).sum()), tuple(range(n_states))
        if allowed is None:
            row, column = first_position(matrix, value)
            raise unknown_character(alphabet, int(value), sets, taxa[row], int(columns[column]) + 1)
        if ambiguity == "missing" and len(allowed) > 1:
            rows.append(np.ones(n_states, bool))
        else:
            rows.append(np.isin(np.arange(n_states), allowed))
    codes, table = number_sets(rows, n_states)
    look_up = np.zeros(max(256, int(values[-1]) + 1), code_type(len(table)))
    look_up[values] = codes
    partial = [v for v in values if 1 < len(allowed_states(alphabet, int(v), sets) or ()) < n_states]
    n_ambiguous = sum(int((matrix == value).sum()) for value in partial)
    return CodedCharacters(look_up[matrix], table, n_ambiguous, n_masked)


def nucleotide_masks(
    taxa: tuple[str, ...],
    matrix: np.ndarray,
    columns: np.ndarray,
    alphabet: Alphabet,
    sets: Mapping[int, str],
) -> np.ndarray:
    """(T, L) uint8, bit i set where nucleotide i of A, C, G, T is allowed."""
    values = used_characters(matrix)
    table = np.zeros(max(256, int(values[-1]) + 1), np.uint8)
    for value in values:
        allowed = allowed_states(alphabet, int(value), sets)
        if allowed is None:
            row, column = first_position(matrix, value)
            raise unknown_character(alphabet, int(value), sets, taxa[row], int(columns[column]) + 1)
        table[value] = sum(1 << nucleotide for nucleotide in allowed)
    return table[matrix]


def guess_datatype(matrix: np.ndarray) -> str:
    """dna, rna, binary, standard or protein, from a (T, L) matrix of character values.

    Digits only: binary if 0 and 1 only, else standard. Letters of the nucleotide code only: rna if there is
    U and no T; dna if half or more of them are A, C, G, T, U, N or X. Nine in ten are A, C, G, T, U or N, and
    X do not count: nucleotides too, of which the others are slips that coding finds. Anything else: protein.
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
    is_rna = "U" in letters and "T" not in letters  # a protein with U lacks none of E, F, I, L, P and Q
    of_code = set(letters) <= set(nucleotide_characters())
    n_letters, unknown = sum(letters.values()), letters.get("X", 0)
    nearly_all = plain - unknown >= 0.9 * (n_letters - unknown) > 0
    if nearly_all or (of_code and (is_rna or plain >= 0.5 * n_letters)):
        return "rna" if is_rna else "dna"
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
