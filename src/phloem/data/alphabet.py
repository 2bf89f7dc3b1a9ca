"""State spaces: which states there are, and which characters stand for which of them.

Nucleotide ambiguity codes: IUPAC-IUB (Cornish-Bowden 1985, Nucleic Acids Res. 13:3021).
Amino-acid codes: IUPAC-IUB (1984, Eur. J. Biochem. 138:9), J = I or L as in mass spectrometry.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from phloem.data.genetic_code import genetic_code as ncbi_code
from phloem.errors import InputError

GAPS = "-?"
MAX_STATES = 256
AMINO_ACIDS = "ARNDCQEGHILKMFPSTWYV"
STANDARD_SYMBOLS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"

_IUPAC = {
    "R": "AG", "Y": "CT", "S": "CG", "W": "AT", "K": "GT", "M": "AC",
    "B": "CGT", "D": "AGT", "H": "ACT", "V": "ACG", "N": "ACGT", "X": "ACGT",
}  # fmt: skip
# U (selenocysteine) and O (pyrrolysine) are no states of the empirical matrices: missing, as in IQ-TREE.
_AMINO_AMBIGUITY = {"B": "ND", "Z": "QE", "J": "IL", "X": AMINO_ACIDS, "U": AMINO_ACIDS, "O": AMINO_ACIDS}

TRANSLATED = "translated"
"""How nucleotides may be read: as the amino acids of their codons. No alphabet is of this kind."""

_SYNONYMS = {
    "nucleotide": "dna", "nt": "dna", "aa": "protein", "aminoacid": "protein", "prot": "protein",
    "nt2aa": TRANSLATED, "bin": "binary", "restriction": "binary", "morph": "standard",
    "morphology": "standard",
}  # fmt: skip
KINDS = ("dna", "rna", "protein", "codon", "doublet", "binary", "standard", "custom")

_COLUMNS = {"codon": 3, "doublet": 2}


@dataclass(frozen=True)
class Alphabet:
    """A state space of S states.

    kind: dna | rna | protein | codon | doublet | binary | standard | custom.
    states: S symbols in phloem's order (docs/architecture.md).
    characters: every accepted character (upper case where case does not matter) → indices of the states it
        allows. For codons and doublets: the nucleotide characters, → indices into A, C, G, T.
    genetic_code: NCBI number, for codons.
    case_sensitive: whether `a` and `A` are different characters.
    """

    kind: str
    states: tuple[str, ...]
    characters: Mapping[str, tuple[int, ...]] = field(default_factory=dict, repr=False)
    genetic_code: int | None = None
    case_sensitive: bool = False

    @property
    def n_states(self) -> int:
        return len(self.states)


def columns_of(kind: str) -> int:
    """Columns of a file that one character of this kind takes: 3 of a codon, 2 of a doublet."""
    return _COLUMNS.get(kind, 1)


def canonical_kind(kind: str) -> str:
    """The name phloem uses for a data type, from any usual spelling; InputError when it is none."""
    name = kind.strip().lower().replace("_", "").replace("-", "").replace(" ", "")
    name = _SYNONYMS.get(name, name)
    if name not in (*KINDS, TRANSLATED):
        known = ", ".join((*KINDS, TRANSLATED))
        raise InputError(f"there is no data type '{kind}'", hint=f"Use one of {known}.")
    return name


def alphabet(kind: str, genetic_code: int = 1, symbols: Iterable[str] | None = None) -> Alphabet:
    """The alphabet of a kind of data.

    genetic_code: NCBI number, used by codons. symbols: the states of standard and custom data, in order
    (a string of characters, or for custom data any names); standard data have 0-9 and A-Z without it.
    Raises InputError for an unknown kind or code, and for symbols that are none, too many or repeated.
    """
    kind = canonical_kind(kind)
    if kind == TRANSLATED:
        told = f"'{TRANSLATED}' says how nucleotides are read, and is no alphabet"
        raise InputError(told, hint="Use protein.")
    if symbols is not None and kind not in ("standard", "custom"):
        raise InputError(f"{kind} data have fixed states", hint="Leave out the symbols, or use 'standard'.")
    if kind == "dna" or kind == "rna":
        return Alphabet(kind, tuple("ACGT" if kind == "dna" else "ACGU"), nucleotide_characters())
    if kind == "protein":
        return Alphabet(kind, tuple(AMINO_ACIDS), _characters(AMINO_ACIDS, _AMINO_AMBIGUITY))
    if kind == "codon":
        return Alphabet(kind, ncbi_code(genetic_code).sense_codons, nucleotide_characters(), genetic_code)
    if kind == "doublet":
        return Alphabet(kind, tuple(a + b for a in "ACGT" for b in "ACGT"), nucleotide_characters())
    if kind == "binary":
        return Alphabet(kind, ("0", "1"), _characters("01", {}))
    if kind == "custom" and symbols is None:
        raise InputError("custom data need symbols", hint="Give the states, as in symbols='abcd'.")
    return _symbol_alphabet(kind, tuple(STANDARD_SYMBOLS if symbols is None else symbols))


def nucleotide_characters() -> dict[str, tuple[int, ...]]:
    """Accepted nucleotide characters → indices into A, C, G, T; U is T."""
    return _characters("ACGT", {"U": "T", **_IUPAC})


def _characters(states: str, ambiguous: Mapping[str, str]) -> dict[str, tuple[int, ...]]:
    table: dict[str, tuple[int, ...]] = {state: (index,) for index, state in enumerate(states)}
    table |= {character: tuple(states.index(s) for s in allowed) for character, allowed in ambiguous.items()}
    return table | {gap: tuple(range(len(states))) for gap in GAPS}


def _symbol_alphabet(kind: str, symbols: tuple[str, ...]) -> Alphabet:
    """States named by the user; case matters as soon as both cases of a letter are states."""
    if not 0 < len(symbols) <= MAX_STATES:
        raise InputError(f"{len(symbols)} states are given", hint=f"Give 1 to {MAX_STATES} states.")
    if len(set(symbols)) < len(symbols):
        twice = next(symbol for symbol in symbols if symbols.count(symbol) > 1)
        raise InputError(f"the state '{twice}' is given twice", hint="List every state once.")
    bad = [symbol for symbol in symbols if symbol in GAPS or not symbol.strip()]
    if bad:
        raise InputError(f"'{bad[0]}' cannot be a state", hint="'-', '?' and blanks stand for missing data.")
    case_sensitive = len({symbol.upper() for symbol in symbols}) < len(symbols)
    keys = symbols if case_sensitive else tuple(symbol.upper() for symbol in symbols)
    characters: dict[str, tuple[int, ...]] = {key: (index,) for index, key in enumerate(keys)}
    characters |= {gap: tuple(range(len(symbols))) for gap in GAPS}
    return Alphabet(kind, symbols, characters, case_sensitive=case_sensitive)
