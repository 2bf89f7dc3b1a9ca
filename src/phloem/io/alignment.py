"""Alignments from files of any supported format, and back."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path

from phloem.data.alignment import Alignment, Ambiguity, StopCodons, alignment_from_matrix
from phloem.data.alphabet import Alphabet, alphabet, canonical_kind
from phloem.data.datatype import guess_datatype, highest_symbol
from phloem.data.sites import parse_sites
from phloem.errors import InputError
from phloem.io.character_rows import CharacterRows
from phloem.io.fasta import format_fasta, is_fasta, read_fasta
from phloem.io.nexus import is_nexus
from phloem.io.nexus_characters import format_nexus, part_of, read_nexus_characters
from phloem.io.phylip import format_phylip, is_phylip, read_phylip
from phloem.io.source_text import SourceText, read_source

FilePath = str | os.PathLike[str]

_OTHER_FORMATS = {
    "CLUSTAL": "a Clustal alignment; convert it to FASTA",
    "# STOCKHOLM": "a Stockholm alignment; convert it to FASTA",
    "<": "XML or HTML; give the alignment itself",
    "(": "a Newick tree; give the alignment, and the tree with --tree",
}


def read_alignment(
    path: FilePath,
    datatype: str | Alphabet | None = None,
    genetic_code: int = 1,
    stop_codons: StopCodons = "error",
    ambiguity: Ambiguity = "partial",
    sites: str | None = None,
) -> Alignment:
    """Read an alignment from FASTA, PHYLIP or NEXUS, gzip-compressed or not; the content tells the format.

    datatype: dna, rna, protein, codon, binary, standard, or an Alphabet of your own; None takes what a NEXUS
        file says, or guesses (settings["datatype_guessed"]).
    genetic_code: NCBI number, for codons. stop_codons: "error", or "mask" for missing data.
    ambiguity: partly ambiguous characters as sets of states ("partial") or as "missing".
    sites: columns to keep, as in "1-11028", "1-900\\3", "1-10,20-30", or a CHARSET of the file.
    Raises InputError with file, line, column, taxon, site and remedy for anything that is wrong.
    """
    characters, parts = _read_characters(read_source(path))
    if parts and datatype is None:
        datatype = _part_datatype(characters, parts, sites)
    alignment = _alignment(characters, datatype, genetic_code, stop_codons, ambiguity, sites)
    kind = alignment.alphabet.kind
    if genetic_code != 1 and kind != "codon":
        message = f"genetic code {genetic_code} is chosen, and the data are read as {kind}"
        hint = "Add --datatype codon, or leave the genetic code out."
        raise InputError(message, file=characters.source.file, hint=hint)
    return alignment


def read_partitions(
    path: FilePath,
    genetic_code: int = 1,
    stop_codons: StopCodons = "error",
    ambiguity: Ambiguity = "partial",
) -> dict[str, Alignment]:
    """The parts of a file by name: those of NEXUS DATATYPE=MIXED(…), else each CHARSET, else the whole.

    The parts of MIXED are called by their datatype, a second one of the same datatype "dna_2", and so on.
    """
    characters, parts = _read_characters(read_source(path))
    if not parts:
        columns: Mapping[str, str] = characters.charsets or {"all": "all"}
        kind = characters.datatype or guess_datatype(characters.matrix)
        named = {name: (kind, text) for name, text in columns.items()}
    else:
        named = {}
        for kind, text in parts:
            number = 1 + sum(name.split("_")[0] == kind for name in named)
            named[kind if number == 1 else f"{kind}_{number}"] = (kind, text)
    return {
        name: _alignment(part_of(characters, kind), None, genetic_code, stop_codons, ambiguity, text)
        for name, (kind, text) in named.items()
    }


def write_fasta(alignment: Alignment, path: FilePath, width: int | None = None) -> None:
    """Write an alignment as FASTA; `width` wraps the sequences."""
    _write(format_fasta(alignment, width), path)


def write_phylip(alignment: Alignment, path: FilePath, strict: bool = False) -> None:
    """Write an alignment as sequential PHYLIP, with relaxed or ten-column names."""
    _write(format_phylip(alignment, strict), path)


def write_nexus(alignment: Alignment, path: FilePath, foreign: tuple = ()) -> None:
    """Write an alignment as NEXUS, and blocks of another file (from `read_blocks`) verbatim after it."""
    _write(format_nexus(alignment, foreign), path)


def _write(text: str, path: FilePath) -> None:
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"the file cannot be written: {error}", file=os.fspath(path), hint="Check the folder."
        ) from None


def _read_characters(source: SourceText) -> tuple[CharacterRows, tuple[tuple[str, str], ...]]:
    text = source.text
    if is_nexus(text):
        return read_nexus_characters(source)
    if is_fasta(text):
        return read_fasta(source), ()
    if is_phylip(text):
        return read_phylip(source), ()
    start = text.lstrip()
    for opening, what in _OTHER_FORMATS.items():
        if start.startswith(opening):
            guess, remedy = what.split("; ")
            raise source.error(f"this looks like {guess}", 0, hint=f"{remedy[0].upper()}{remedy[1:]}.")
    raise source.error(
        "this is neither FASTA, PHYLIP nor NEXUS", 0, hint="Start with '>name', 'ntax nchar' or '#NEXUS'."
    )


def _part_datatype(characters: CharacterRows, parts: tuple[tuple[str, str], ...], sites: str | None) -> str:
    """The datatype of the one part of a MIXED matrix that holds all chosen sites; InputError if none does."""
    n_sites = characters.matrix.shape[1]
    try:
        chosen = set(parse_sites(sites or "all", n_sites, characters.charsets).tolist())
        for kind, text in parts:
            if chosen <= set(parse_sites(text, n_sites, characters.charsets).tolist()):
                return kind
    except InputError as error:
        raise characters.placed(error) from None
    listed = ", ".join(f"{kind}: {text}" for kind, text in parts)
    raise InputError(
        f"the matrix has several datatypes ({listed})",
        file=characters.source.file,
        hint=f'Choose the sites of one, as in sites="{parts[-1][1]}", or read all with read_partitions.',
    )


def _alignment(
    characters: CharacterRows,
    datatype: str | Alphabet | None,
    genetic_code: int,
    stop_codons: StopCodons,
    ambiguity: Ambiguity,
    sites: str | None,
) -> Alignment:
    guessed = datatype is None and characters.datatype is None
    try:
        states = _alphabet(characters, datatype, genetic_code, sites)
        alignment = alignment_from_matrix(
            characters.taxa,
            characters.matrix,
            states,
            ambiguity=ambiguity,
            stop_codons=stop_codons,
            sites=sites,
            charsets=characters.charsets,
            sets=characters.sets,
            source=characters.source.file,
        )
    except InputError as error:
        raise characters.placed(error) from None
    settings = {"format": characters.format_name, **alignment.settings, "datatype_guessed": guessed}
    return dataclasses.replace(alignment, settings=settings)


def _alphabet(
    characters: CharacterRows, datatype: str | Alphabet | None, genetic_code: int, sites: str | None
) -> Alphabet:
    """The alphabet asked for, declared or guessed; standard data without symbols: 0 to the highest seen."""
    if isinstance(datatype, Alphabet):
        return datatype
    matrix = characters.matrix
    if sites is not None:
        matrix = matrix[:, parse_sites(sites, matrix.shape[1], characters.charsets)]
    kind = canonical_kind(datatype or characters.datatype or guess_datatype(matrix))
    if kind == "standard":
        return alphabet(kind, symbols=characters.symbols or highest_symbol(matrix, dict(characters.sets)))
    return alphabet(kind, genetic_code)
