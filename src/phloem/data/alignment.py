"""The alignment record: names × characters as small integer codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import numpy as np

from phloem.data.alphabet import Alphabet
from phloem.data.coding import CodedCharacters, code_characters, code_type
from phloem.data.codons import code_codons
from phloem.data.doublets import code_doublets, columns_text, parse_pairs
from phloem.data.sites import parse_sites
from phloem.errors import InputError, first_names

Ambiguity = Literal["partial", "missing"]
StopCodons = Literal["error", "mask"]


@dataclass(frozen=True)
class Coding:
    """How a file's characters become states.

    datatype: dna, rna, protein, codon, doublet, binary, standard, or an Alphabet; None takes what the file
        says, or guesses. genetic_code: NCBI number, for codons.
    stop_codons: "error", or "mask" for missing data.
    ambiguity: partly ambiguous characters as sets of states ("partial") or as "missing".
    """

    datatype: str | Alphabet | None = None
    genetic_code: int = 1
    stop_codons: StopCodons = "error"
    ambiguity: Ambiguity = "partial"


@dataclass(frozen=True, eq=False)
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
    places: (L,) the column of the file, 0-based, in which each site begins; None where sites are simply one
        after the other. What makes an alignment with other sites says it anew.
    """

    taxa: tuple[str, ...]
    alphabet: Alphabet
    codes: np.ndarray
    state_sets: np.ndarray
    source: str | None = None
    settings: Mapping[str, object] = field(default_factory=dict)
    places: np.ndarray | None = None

    def __post_init__(self) -> None:
        if self.places is not None and len(self.places) != self.codes.shape[1]:
            raise ValueError(f"{len(self.places)} places are given for {self.codes.shape[1]} sites")

    def __repr__(self) -> str:
        size = f"{self.n_taxa:,} taxa × {self.n_sites:,} sites"
        return f"Alignment({size}, {self.alphabet.kind}: {first_names(self.taxa)})"

    @property
    def n_taxa(self) -> int:
        return self.codes.shape[0]

    @property
    def n_sites(self) -> int:
        return self.codes.shape[1]


def alignment_from_sequences(
    sequences: Mapping[str, str],
    alphabet: Alphabet,
    *,
    ambiguity: Ambiguity = "partial",
    stop_codons: StopCodons = "error",
    sites: str | None = None,
) -> Alignment:
    """An alignment from name → sequence, one character a column (sets such as {AC} are not read here).

    Raises InputError as `alignment_from_matrix` does, and for sequences of unequal length.
    """
    taxa = tuple(sequences)
    width = len(sequences[taxa[0]]) if taxa else 0
    for taxon, sequence in sequences.items():
        if len(sequence) != width:
            raise InputError(
                f"'{taxon}' has {len(sequence)} characters, '{taxa[0]}' has {width}",
                taxon=taxon,
                hint="Align the sequences to one length.",
            )
    text = "".join(sequences.values()).encode("utf-32-le", errors="surrogatepass")
    matrix = np.frombuffer(text, np.uint32).reshape(len(taxa), width)
    large = matrix.max(initial=0) > 255
    if large:
        row, column = np.argwhere(matrix > 255)[0]
        raise InputError(
            f"unknown character '{chr(matrix[row, column])}'",
            taxon=taxa[row],
            site=int(column) + 1,
            hint="Sequences are plain ASCII or Latin-1 text.",
        )
    return alignment_from_matrix(
        taxa, matrix.astype(np.uint8), alphabet, ambiguity=ambiguity, stop_codons=stop_codons, sites=sites
    )


def alignment_from_matrix(
    taxa: Sequence[str],
    matrix: np.ndarray,
    alphabet: Alphabet,
    *,
    ambiguity: Ambiguity = "partial",
    stop_codons: StopCodons = "error",
    sites: str | np.ndarray | None = None,
    sets: Mapping[int, str] | None = None,
    source: str | None = None,
) -> Alignment:
    """An alignment from a (T, L) matrix of character values.

    A value below 256 is a character (Latin-1); a value in `sets` is a set of characters, such as "AC" for
    {AC}. ambiguity: partly ambiguous characters as sets of states, or as missing. stop_codons: an error, or
    masked as missing. sites: columns to keep, of nucleotides in the case of codons, as text for `parse_sites`
    or as ascending 0-based numbers; of doublets pairs, as text for `parse_pairs` or two numbers after two.
    Raises InputError naming taxon and site for duplicate names, unknown characters, stop codons and a number
    of columns that makes no codons.
    """
    names = tuple(taxa)
    _check_choice("ambiguity", ambiguity, get_args(Ambiguity))
    _check_choice("stop_codons", stop_codons, get_args(StopCodons))
    check_taxa(names)
    if not matrix.size:
        raise InputError("the alignment has no characters", file=source, hint="Check the file, or NCHAR.")
    columns = np.arange(matrix.shape[1])
    if sites is not None:
        read = parse_pairs if alphabet.kind == "doublet" else parse_sites
        columns = sites if isinstance(sites, np.ndarray) else read(sites, matrix.shape[1])
        matrix = matrix[:, columns]
        sites = sites if isinstance(sites, str) else columns_text(alphabet.kind, sites)
    code = {"codon": code_codons, "doublet": code_doublets}.get(alphabet.kind, code_characters)
    coded = code(names, matrix, columns, alphabet, sets or {}, ambiguity, stop_codons)
    choices = _settings(alphabet, coded, ambiguity, stop_codons, sites)
    codes = np.ascontiguousarray(coded.codes)
    places = None if sites is None else columns[:: len(columns) // codes.shape[1]]
    return Alignment(names, alphabet, codes, coded.state_sets, source, choices, places)


def alignment_from_states(rows: Mapping[str, Sequence[str]], alphabet: Alphabet) -> Alignment:
    """An alignment of states with names of any length (traits, places): name → one state a site.

    "-" and "?" are missing. Raises InputError for unknown states, unequal lengths and no data.
    """
    taxa = tuple(rows)
    check_taxa(taxa)
    index = {state: code for code, state in enumerate(alphabet.states)} | {"-": alphabet.n_states}
    index["?"] = alphabet.n_states
    width = len(rows[taxa[0]])
    codes = np.empty((len(taxa), width), code_type(alphabet.n_states + 1))
    for row, (taxon, states) in enumerate(rows.items()):
        if len(states) != width or not width:
            raise InputError(
                f"'{taxon}' has {len(states)} states, '{taxa[0]}' {width}",
                taxon=taxon,
                hint="Fill up with '?'.",
            )
        for site, state in enumerate(states):
            if state not in index:
                raise InputError(
                    f"unknown state '{state}'", taxon=taxon, site=site + 1, hint="Add it to the symbols."
                )
            codes[row, site] = index[state]
    table = np.vstack([np.eye(alphabet.n_states, dtype=bool), np.ones((1, alphabet.n_states), bool)])
    return Alignment(taxa, alphabet, codes, table, None, {"datatype": alphabet.kind})


def taxa_with_data(alignment: Alignment) -> np.ndarray:
    """(T,) bool: whether a taxon has a character that says anything, and is not missing from all columns."""
    told = np.array(~alignment.state_sets.all(1))
    return np.asarray(told[alignment.codes].any(1))


def has_constant_character(alignment: Alignment) -> bool:
    """Whether one state explains some column in which something is known."""
    sets, codes = alignment.state_sets, alignment.codes
    together = np.ones((alignment.n_sites, sets.shape[1]), bool)
    for row in codes:
        together &= sets[row]
    return bool((together.any(1) & ~together.all(1)).any())


def check_taxa(taxa: Sequence[str]) -> None:
    """InputError unless there are taxa, and every name is there once."""
    if not taxa:
        raise InputError("the alignment has no taxa", hint="Give at least one named sequence.")
    seen: set[str] = set()
    for taxon in taxa:
        if taxon in seen:
            raise InputError(
                f"the taxon '{taxon}' is there twice", taxon=taxon, hint="Rename or remove one of them."
            )
        seen.add(taxon)


def _check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise InputError(f"{name} cannot be {value!r}", hint=f"Use one of {', '.join(choices)}.")


def _settings(
    alphabet: Alphabet, coded: CodedCharacters, ambiguity: str, stop_codons: str, sites: str | None
) -> dict[str, object]:
    chosen: dict[str, object] = {
        "datatype": alphabet.kind,
        "datatype_guessed": False,
        "ambiguity": ambiguity,
        "n_ambiguous": coded.n_ambiguous,
        "sites": "all" if sites is None else sites,
    }
    if alphabet.kind in ("codon", "protein"):
        chosen |= {"stop_codons": stop_codons, "n_stop_codons_masked": coded.n_masked}
    if alphabet.kind == "codon":
        chosen["genetic_code"] = alphabet.genetic_code
    return chosen


def side_by_side(alignments: Sequence[Alignment]) -> Alignment:
    """The columns of all, of the same taxa in the same order and the same alphabet, one after the other."""
    first = alignments[0]
    n, sets, codes = first.alphabet.n_states, [first.state_sets], [first.codes.astype(np.int64)]
    for one in alignments[1:]:
        if one.taxa != first.taxa or one.alphabet != first.alphabet:
            raise InputError("alignments of unlike taxa or states have no common columns", file=one.source)
        shift = sum(map(len, sets)) - (n + 1)
        codes.append(np.where(one.codes > n, one.codes.astype(np.int64) + shift, one.codes))
        sets.append(one.state_sets[n + 1 :])
    table, every = np.concatenate(sets), np.concatenate(codes, axis=1)
    whole = np.ascontiguousarray(every.astype(code_type(len(table))))
    return replace(first, codes=whole, state_sets=table, places=None)
