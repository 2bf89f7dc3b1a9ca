"""Alignments from files of any supported format, and back."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from phloem.data.alignment import Alignment, Ambiguity, Coding, StopCodons, alignment_from_matrix
from phloem.data.alphabet import STANDARD_SYMBOLS, TRANSLATED, Alphabet, alphabet, canonical_kind
from phloem.data.coding import guess_datatype, highest_symbol
from phloem.data.doublets import pairs_not_said, parse_pairs
from phloem.data.partition import Scheme, Subset, Unassigned, make_scheme, with_declared_datatypes
from phloem.data.recorded import kept_kind, only_of_kind
from phloem.data.sites import parse_sites
from phloem.data.translation import reads_codons, translated
from phloem.errors import InputError
from phloem.io.alignment_text import (
    PhylipLayout,
    format_fasta,
    format_phylip,
    is_fasta,
    is_phylip,
    read_fasta,
    read_phylip,
)
from phloem.io.beast_xml import is_beast, read_beast_characters
from phloem.io.character_rows import CharacterRows
from phloem.io.clustal import is_clustal, read_clustal
from phloem.io.nexus import is_nexus
from phloem.io.nexus_characters import format_nexus, read_nexus_characters
from phloem.io.output_file import write_file
from phloem.io.partition_words import plain_sets, typed_columns
from phloem.io.partitions import read_partitions
from phloem.io.source_text import SourceText, read_source

FilePath = str | os.PathLike[str]

_AS_DECLARED = Coding()

_OTHER_FORMATS = {
    "# STOCKHOLM": "a Stockholm alignment; convert it to FASTA",
    "#mega": "a MEGA file of sequences; export FASTA or PAUP (NEXUS) from MEGA",
    "#MEGA": "a MEGA file of sequences; export FASTA or PAUP (NEXUS) from MEGA",
    "<": "XML or HTML; give the alignment itself",
    "(": "a Newick tree; give the alignment, and the tree with --tree",
}


class UnknownFormat(InputError):
    """A text in no format that alignments come in."""


def read_alignment(
    path: FilePath,
    datatype: str | Alphabet | None = None,
    genetic_code: int = 1,
    stop_codons: StopCodons = "error",
    ambiguity: Ambiguity = "partial",
    sites: str | None = None,
    block: str | None = None,
    phylip_layout: PhylipLayout | None = None,
    quiet: bool = False,
) -> Alignment:
    """Read an alignment from FASTA, PHYLIP, NEXUS, Clustal or BEAST XML, gzip-compressed or not.

    datatype: dna, rna, protein, codon, translated (nucleotides, as the amino acids of their codons),
        doublet (pairs of columns, which sites names), binary, standard, or an Alphabet of your own; None
        takes what a NEXUS file says, or guesses (settings["datatype_guessed"]).
    genetic_code: NCBI number, for codons and their translation. stop_codons: "error", or "mask" for missing
        data.
    ambiguity: partly ambiguous characters as sets of states ("partial") or as "missing".
    sites: columns to keep, as in "1-11028", "1-900\\3", "1-10,20-30", a CHARSET of the file, or "variable" or
        "informative" ones (data/recorded.py); of doublets
        as in "5:70, 6-9:69-66".
    block: which DATA or CHARACTERS block of a NEXUS file, by title or number, where it has several, or
        which alignment of a BEAST file, by id.
    phylip_layout: sequential, interleaved, strict-sequential or strict-interleaved, where several fit.
    quiet: no warning of what a MRBAYES block asks for, which the caller obeys.
    Raises InputError with file, line, column, taxon, site and remedy for anything that is wrong.
    """
    characters = read_characters(path, block, phylip_layout, quiet)
    return one_alignment(characters, Coding(datatype, genetic_code, stop_codons, ambiguity), sites)


def one_alignment(characters: CharacterRows, coding: Coding, sites: str | None = None) -> Alignment:
    """The characters of a file as one alignment; sites and errors as of `read_alignment`."""
    if (kept := kept_kind(sites)) is not None and kept not in map(str.lower, characters.charsets):
        alignment, _ = only_of_kind(one_alignment(characters, coding), kept)
        return replace(alignment, settings={**alignment.settings, "sites": kept})
    if coding.datatype is None:
        coding = _as_the_set_says(characters, coding, sites)
    if characters.parts and coding.datatype is None:
        coding = replace(coding, datatype=_part_datatype(characters, sites))
    alignment = _alignment(characters, coding, sites)
    kind = alignment.alphabet.kind
    if coding.genetic_code != 1 and not reads_codons(alignment):
        message = f"genetic code {coding.genetic_code} is chosen, and the data are read as {kind}"
        hint = "Add --datatype codon, or leave the genetic code out."
        raise InputError(message, file=characters.source.file, hint=hint)
    require_stop_codons(coding.stop_codons, [kind], characters.source.file)
    return alignment


def _as_the_set_says(characters: CharacterRows, coding: Coding, sites: str | None) -> Coding:
    """With the data type of the set that the sites name, where its definition has one (`MULTI5, 1-9`)."""
    named = {name.lower(): text for name, text in characters.charsets.items()}
    said = typed_columns(named.get((sites or "").strip().lower(), "")).kind
    if said is None or said.datatype == "doublet":  # pairs of columns are named otherwise
        return coding
    if said.n_states is not None:
        return replace(coding, datatype=_of_states(said.n_states))
    return replace(coding, datatype=said.datatype, genetic_code=said.genetic_code or coding.genetic_code)


def _of_states(n_states: int) -> Alphabet:
    return alphabet("standard", symbols=STANDARD_SYMBOLS[:n_states])


def require_stop_codons(stop_codons: StopCodons, kinds: Sequence[str], file: str | None) -> None:
    """InputError where they are to be masked and no data of these kinds can have any."""
    if stop_codons == "mask" and not {"codon", "protein"} & set(kinds):
        raise InputError(
            f"stop codons are to be masked, and the data are read as {' and '.join(dict.fromkeys(kinds))}",
            file=file,
            hint="Add --datatype codon, or leave --stop-codons out.",
        )


def read_characters(
    path: FilePath,
    block: str | None = None,
    phylip_layout: PhylipLayout | None = None,
    quiet: bool = False,
) -> CharacterRows:
    """The characters of an alignment file, not yet taken for states of any kind.

    block, phylip_layout: as in `read_alignment`; block may also be "all", which puts the blocks of a NEXUS
    file, or the alignments of a BEAST file, side by side, each a part of its data type.
    quiet: no warning of what a MRBAYES block asks for.

    characters = read_characters("genes.nex")
    scheme = read_scheme(characters, "genes.partitions")
    alignments = [part_alignment(characters, subset) for subset in scheme.subsets]
    """
    source = read_source(path)
    text = source.text
    if is_nexus(text):
        _refuse(phylip_layout, "--phylip-layout", source)
        return read_nexus_characters(source, block, quiet)
    if is_beast(text):
        _refuse(phylip_layout, "--phylip-layout", source)
        return read_beast_characters(source, block)
    _refuse(block, "--block", source)
    if is_phylip(text):
        return read_phylip(source, phylip_layout)
    _refuse(phylip_layout, "--phylip-layout", source)
    if is_fasta(text):
        return read_fasta(source)
    if is_clustal(text):
        return read_clustal(source)
    start = text.lstrip()
    for opening, what in _OTHER_FORMATS.items():
        if start.startswith(opening):
            guess, remedy = what.split("; ")
            raise source.error(f"this looks like {guess}", 0, hint=f"{remedy[0].upper()}{remedy[1:]}.")
    raise UnknownFormat(
        "this is neither FASTA, PHYLIP, NEXUS nor Clustal",
        file=source.file,
        line=1,
        column=1,
        hint="Start with '>name', 'ntax nchar' or '#NEXUS'.",
    )


def _refuse(option: str | None, name: str, source: SourceText) -> None:
    """InputError for an option that says nothing about this format."""
    if option is not None:
        format_of = "NEXUS and BEAST" if name == "--block" else "PHYLIP"
        raise source.error(f"{name} is for {format_of} files, and this is none", 0, hint="Leave it out.")


def read_scheme(
    characters: CharacterRows,
    partitions: FilePath | None = None,
    *,
    name: str | None = None,
    unassigned: Unassigned = "error",
) -> Scheme:
    """How the columns of an alignment are partitioned, with the data types its file declares.

    partitions: a partition file, see `read_partitions` (which name and unassigned are for); without it the
    parts of DATATYPE=MIXED, called by their data types ("dna", a second one "dna_2"), or one subset "all".
    """
    declared = _declared_parts(characters)
    if partitions is None:
        return declared
    scheme = read_partitions(
        partitions,
        characters.n_sites,
        charsets=characters.charsets,
        alignment=characters.source.file,
        name=name,
        unassigned=unassigned,
    )
    return with_declared_datatypes(scheme, declared) if characters.parts else scheme


def part_alignment(characters: CharacterRows, subset: Subset, coding: Coding = _AS_DECLARED) -> Alignment:
    """The columns of a subset as an alignment of their own, coded anew from the file's characters.

    The subset's data type and genetic code come before those of `coding`.
    """
    kind: str | Alphabet | None = subset.datatype or coding.datatype
    if subset.n_states is not None:
        kind = _of_states(subset.n_states)
    coding = replace(
        coding,
        datatype=kind,
        genetic_code=subset.genetic_code or coding.genetic_code,
    )
    alignment = _alignment(characters, coding, subset.sites)
    return replace(alignment, settings={**alignment.settings, "subset": subset.name})


def write_fasta(alignment: Alignment, path: FilePath, width: int | None = None) -> None:
    """Write an alignment as FASTA; `width` wraps the sequences."""
    write_file(path, format_fasta(alignment, width))


def write_phylip(alignment: Alignment, path: FilePath, strict: bool = False) -> None:
    """Write an alignment as sequential PHYLIP, with relaxed or ten-column names."""
    write_file(path, format_phylip(alignment, strict))


def write_nexus(alignment: Alignment, path: FilePath, foreign: tuple = ()) -> None:
    """Write an alignment as NEXUS, and blocks of another file (from `read_blocks`) verbatim after it."""
    write_file(path, format_nexus(alignment, foreign))


def _declared_parts(characters: CharacterRows) -> Scheme:
    """The parts of DATATYPE=MIXED, or one subset of all columns."""
    n_sites, file = characters.n_sites, characters.source.file
    if not characters.parts:
        return make_scheme([Subset("all", np.arange(n_sites, dtype=np.int64))], n_sites, file=file)
    subsets: list[Subset] = []
    try:
        for k, (kind, text) in enumerate(characters.parts):
            number = 1 + sum(subset.datatype == kind for subset in subsets)
            name = kind if number == 1 else f"{kind}_{number}"
            name = characters.part_names[k] if characters.part_names else name
            sites = parse_sites(text, n_sites, plain_sets(characters.charsets))
            subsets.append(Subset(name, sites, datatype=kind))
    except InputError as error:
        raise characters.placed(error) from None
    return make_scheme(subsets, n_sites, file=file)


def _part_datatype(characters: CharacterRows, sites: str | None) -> str:
    """The datatype of the one part of a MIXED matrix that holds all chosen sites; InputError if none does."""
    n_sites = characters.n_sites
    try:
        chosen = set(parse_sites(sites or "all", n_sites, plain_sets(characters.charsets)).tolist())
    except InputError as error:
        raise characters.placed(error) from None
    kinds = {kind for kind, _ in characters.parts}
    if len(kinds) == 1:
        return kinds.pop()
    for subset in _declared_parts(characters).subsets:
        if chosen <= set(subset.sites.tolist()):
            assert subset.datatype is not None
            return subset.datatype
    listed = ", ".join(f"{kind}: {text}" for kind, text in characters.parts)
    raise InputError(
        f"the matrix has several datatypes ({listed})",
        file=characters.source.file,
        hint=f"Choose the sites of one, such as {characters.parts[-1][1]}, or read all as parts "
        "(--partitions declared).",
    )


def _alignment(characters: CharacterRows, coding: Coding, sites: str | np.ndarray | None) -> Alignment:
    if isinstance(coding.datatype, str) and canonical_kind(coding.datatype) == TRANSLATED:
        return translated(_alignment(characters, replace(coding, datatype="codon"), sites))
    guessed = coding.datatype is None and characters.datatype is None
    try:
        text = sites if isinstance(sites, str) else None
        columns = None if isinstance(sites, str) else sites
        if _is_doublet(coding.datatype):
            columns = _pairs(characters, text) if columns is None else columns
        elif text is not None:
            columns = parse_sites(text, characters.n_sites, plain_sets(characters.charsets))
        states = _alphabet(characters, coding, columns)
        alignment = alignment_from_matrix(
            characters.taxa,
            characters.matrix,
            states,
            ambiguity=coding.ambiguity,
            stop_codons=coding.stop_codons,
            sites=columns,
            sets=characters.sets,
            source=characters.source.file,
        )
    except InputError as error:
        raise characters.placed(error) from None
    settings = {"format": characters.format_name, **alignment.settings, "datatype_guessed": guessed}
    if text is not None:
        settings["sites"] = text
    return replace(alignment, settings=settings)


def _is_doublet(datatype: str | Alphabet | None) -> bool:
    if isinstance(datatype, Alphabet):
        return datatype.kind == "doublet"
    return datatype is not None and canonical_kind(datatype) == "doublet"


def _pairs(characters: CharacterRows, text: str | None) -> np.ndarray:
    if text is None:
        raise pairs_not_said("of the alignment")
    return parse_pairs(text, characters.n_sites)


def _alphabet(characters: CharacterRows, coding: Coding, columns: np.ndarray | None) -> Alphabet:
    """The alphabet asked for, declared or guessed; standard data without symbols: 0 to the highest seen."""
    if isinstance(coding.datatype, Alphabet):
        return coding.datatype
    matrix = characters.matrix if columns is None else characters.matrix[:, columns]
    kind = canonical_kind(coding.datatype or characters.datatype or guess_datatype(matrix))
    if kind == "standard":
        return alphabet(kind, symbols=characters.symbols or highest_symbol(matrix, dict(characters.sets)))
    return alphabet(kind, coding.genetic_code)
