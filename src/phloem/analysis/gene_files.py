"""Genes in files of their own: which ones there are, in a folder or in a partition file that names them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from phloem.data.alphabet import STANDARD_SYMBOLS
from phloem.data.coding import guess_datatype
from phloem.data.sites import parse_sites
from phloem.errors import InputError
from phloem.io.alignment import read_characters
from phloem.io.beast_xml import is_beast, read_beast_blocks
from phloem.io.character_rows import CharacterRows
from phloem.io.input_file import first_bytes, unpacked_name
from phloem.io.nexus import Block, is_nexus, read_blocks
from phloem.io.nexus_names import named_sets
from phloem.io.partition_words import plain_sets, typed_columns
from phloem.io.source_text import read_source
from phloem.io.supermatrix import LISTED, Gene

ENDINGS = ("fasta", "fas", "fa", "fna", "faa", "ffn", "phy", "phylip", "nex", "nexus", "aln")
_START = 4096  # bytes, in which a file says what it is
_AS_CHARACTERS = {"codon": "dna", "translated": "dna"}
Told = Callable[[str, int, int], None]


class NamedGene(NamedTuple):
    """A gene that is to be read: its file, its columns as text, and where that is said, if anywhere; rows:
    of a file that has several alignments, the gene's, which were read."""

    name: str
    file: str
    columns: str = "all"
    source: str | None = None
    line: int | None = None
    rows: CharacterRows | None = None


def alignments_in(folder: str) -> dict[str, str]:
    """Name of every gene → its file, in order of names."""
    found: dict[str, str] = {}
    for entry in sorted(os.listdir(folder)):
        stem, ending = os.path.splitext(unpacked_name(entry))
        path = os.path.join(folder, entry)
        if ending[1:].lower() not in ENDINGS or entry.startswith(".") or not os.path.isfile(path):
            continue
        if stem in found:
            raise InputError(
                f"'{os.path.basename(found[stem])}' and '{entry}' would be the same gene, '{stem}'",
                file=folder,
                hint="Rename one of them, or move it away.",
            )
        found[stem] = path
    if not found:
        endings = ", .".join(ENDINGS)
        raise InputError(
            "there are no alignments in this folder", file=folder, hint=f"Their names end in .{endings}."
        )
    return found


def named_genes(sources: Sequence[str]) -> list[NamedGene]:
    """Genes of folders, of alignment files, of BEAST files with several alignments, and of NEXUS files whose
    CHARSETs name others (IQ-TREE's `charset a = gene.fasta: 1-300;`), in this order. Errors: InputError with
    file and line."""
    return [one for source in sources for one in _named(source)]


def read_genes(named: Sequence[NamedGene], datatype: str | None, told: Told) -> list[Gene]:
    """Their characters. datatype: of all, None: declared, or guessed of each. told: (name, number, of how
    many), as they are read. Errors: InputError with file and line."""
    read, found = dict[str, CharacterRows](), []
    for number, one in enumerate(named, 1):
        told(one.name, number, len(named))
        if one.rows is None and one.file not in read:
            read = {one.file: read_characters(one.file, quiet=True)}
        try:
            found.append(_gene(one, one.rows or read[one.file], datatype))
        except InputError as error:
            error.file, error.line = one.source or one.file, one.line
            raise
    return found


def _gene(one: NamedGene, rows: CharacterRows, datatype: str | None) -> Gene:
    said, kind = typed_columns(one.columns)
    columns = parse_sites(said or "all", rows.n_sites, plain_sets(rows.charsets))
    own_rows = replace(rows, matrix=rows.matrix[:, columns])
    if kind is not None and kind.n_states is not None:
        own_rows = replace(own_rows, symbols=STANDARD_SYMBOLS[: kind.n_states])
    own = datatype or (kind and _AS_CHARACTERS.get(kind.datatype, kind.datatype)) or rows.datatype
    if rows.parts and own is None:
        hint = "Write each into a file of its own, or say --datatype."
        raise InputError(f"'{one.file}' declares parts of several data types", hint=hint)
    own = own or guess_datatype(own_rows.matrix)
    if own not in LISTED:
        hint = f"Choose {', '.join(LISTED)} as --datatype."
        raise InputError(f"'{one.file}' is read as {own}, which cannot be put beside others", hint=hint)
    said_so = one.columns.partition(",")[0].strip() if kind and kind.datatype in _AS_CHARACTERS else None
    name = f"gene_{one.name}" if one.name.isdigit() else one.name  # a number is a column
    return Gene(name, one.file, own_rows, own, said_so)


def _named(source: str) -> list[NamedGene]:
    """The genes of a source."""
    if os.path.isdir(source):
        return [NamedGene(name, file) for name, file in alignments_in(source).items()]
    start = first_bytes(source, _START).decode("latin-1")
    of_beast = read_beast_blocks(read_source(source)) if is_beast(start) else {}
    if len(of_beast) > 1:
        return [NamedGene(name, source, rows=rows) for name, rows in of_beast.items()]
    blocks = _blocks(source) if is_nexus(start) else []
    if not blocks or _has_characters(blocks):
        return [NamedGene(os.path.splitext(unpacked_name(source))[0], source)]
    found = []
    for name, one in named_sets(blocks, "charset").items():
        file, colon, text = one.columns.partition(":")
        if not colon:
            raise one.command.error(
                f"the charset '{name}' names no file, and this file has no characters",
                hint="Write 'charset a = gene.fasta: 1-300;', or give the alignment.",
            )
        place = file.strip().strip("'")
        places = [os.path.join(os.path.dirname(source), place), place]
        there = next((path for path in places if os.path.isfile(path)), None)
        if there is None:
            raise one.command.error(f"there is no file '{place}'", hint="Check the path and its spelling.")
        found.append(NamedGene(name, there, text.strip(), source, one.command.line))
    if not found:
        hint = "Give alignments, or charsets that name them."
        raise InputError("this file has neither characters nor charsets", file=source, hint=hint)
    return found


def _blocks(source: str) -> list[Block]:
    """Of a NEXUS file, as far as its characters, if it has any."""
    return read_blocks(read_source(source), enough=_has_characters)


def _has_characters(blocks: Sequence[Block]) -> bool:
    return any(block.command("matrix") for block in blocks)
