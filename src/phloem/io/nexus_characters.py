"""DATA and CHARACTERS blocks to characters, and an alignment back to a NEXUS file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phloem.data.alignment import Alignment
from phloem.data.coding import FIRST_SET
from phloem.errors import InputError
from phloem.io.alignment_text import sequence_texts
from phloem.io.character_rows import CharacterRow, CharacterRows, character_matrix, check_names
from phloem.io.nexus import Block, find_block, read_blocks
from phloem.io.nexus_format import NexusFormat, read_dimension, read_format
from phloem.io.nexus_matrix import read_rows
from phloem.io.nexus_sets import read_charsets
from phloem.io.nexus_tokens import quote_name
from phloem.io.source_text import SourceText

_WRITTEN_DATATYPES = {"codon": "dna", "binary": "standard", "custom": "standard"}


def read_nexus_characters(source: SourceText) -> CharacterRows:
    """The characters of a NEXUS file's DATA or CHARACTERS block.

    Afterwards gaps are '-', missing data '?', matching and equated characters what they stand for.
    """
    blocks = read_blocks(source)
    block = find_block(blocks, "data", "characters")
    if block is None:
        found = ", ".join(block.name for block in blocks)
        raise source.error(
            f"there is no DATA or CHARACTERS block, only {found}", 0, hint="Name the data file."
        )
    command = block.command("matrix")
    if command is None:
        raise block.error(f"block '{block.name}' has no MATRIX", hint="Add 'matrix' and the characters.")
    dropped = block.command("eliminate")
    if dropped is not None:
        raise dropped.error("ELIMINATE cannot be read", hint="Delete it, and choose the sites by --sites.")
    form = read_format(block)
    n_taxa, n_sites = _n_taxa(blocks, block), read_dimension(block, "nchar")
    rows = read_rows(command, form.interleave, n_taxa, n_sites)
    if not rows:
        raise command.error("the matrix is empty", hint="Write one row for each taxon.")
    check_names(source, rows, "Rename one of them.")
    matrix, sets = character_matrix(source, rows, True, n_sites)
    if n_taxa is not None and len(rows) != n_taxa:
        raise command.error(
            f"the matrix has {len(rows)} taxa, NTAX is {n_taxa}", hint="Correct NTAX or the matrix."
        )
    matrix, sets = _plain_characters(source, rows, matrix, sets, form)
    return CharacterRows(
        source,
        rows,
        matrix,
        sets,
        with_sets=True,
        charsets=read_charsets(blocks),
        datatype=form.datatype,
        symbols=form.symbols,
        format_name="NEXUS",
        parts=form.parts,
    )


def _n_taxa(blocks: Sequence[Block], block: Block) -> int | None:
    n_taxa = read_dimension(block, "ntax")
    taxa = find_block(blocks, "taxa")
    return read_dimension(taxa, "ntax") if n_taxa is None and taxa is not None else n_taxa


def _plain_characters(
    source: SourceText,
    rows: Sequence[CharacterRow],
    matrix: np.ndarray,
    sets: dict[int, str],
    form: NexusFormat,
) -> tuple[np.ndarray, dict[int, str]]:
    """Replace MATCHCHAR by the first row's characters, GAP by '-', MISSING by '?', EQUATE by its meaning."""
    if form.matchchar is not None:
        matches = matrix == ord(form.matchchar)
        if matches[0].any():
            site = int(matches[0].argmax()) + 1
            row = rows[0]
            message = f"the first taxon has the MATCHCHAR '{form.matchchar}'"
            raise source.error(
                message, row.name_start, taxon=row.taxon, site=site, hint="Write its characters."
            )
        matrix = np.where(matches, matrix[0], matrix)
    table = np.arange(FIRST_SET + len(sets) + len(form.equate), dtype=np.uint16)
    sets = dict(sets)
    for key, meaning in form.equate.items():
        if len(meaning) == 1:
            table[_values(key, form)] = ord(meaning) if ord(meaning) < 256 else ord(key)
        else:
            value = FIRST_SET + len(sets)
            sets[value] = meaning
            table[_values(key, form)] = value
    table[ord(form.gap or "-")] = ord("-")
    table[_values(form.missing or "?", form)] = ord("?")
    if (table[:256] == np.arange(256)).all():
        return matrix, sets
    return table[matrix], sets


def _values(character: str, form: NexusFormat) -> list[int]:
    """A character's value, and that of its other case unless FORMAT says RESPECTCASE or equates it too."""
    cases = {
        character,
        *(c for c in (character.lower(), character.upper()) if len(c) == 1 and c not in form.equate),
    }
    return [ord(case) for case in ({character} if form.respectcase else cases) if ord(case) < 256]


def format_nexus(alignment: Alignment, foreign: Sequence[Block] = ()) -> str:
    """An alignment as a NEXUS DATA block; `foreign` blocks follow it verbatim.

    Missing data become gaps; codons are written as nucleotides, binary data as standard with symbols 01.
    """
    kind = alignment.alphabet.kind
    if any(not taxon for taxon in alignment.taxa):
        raise InputError("a taxon has no name", hint="Name every taxon.")
    texts = sequence_texts(alignment, with_sets=True)
    n_sites = alignment.n_sites * (3 if kind == "codon" else 1)
    symbols = ""
    if kind in ("standard", "binary", "custom"):
        symbols = f' symbols="{"".join(alignment.alphabet.states)}"'
        symbols += " respectcase" if alignment.alphabet.case_sensitive else ""
    names = [quote_name(taxon) for taxon in alignment.taxa]
    width = max(len(name) for name in names) + 2
    lines = [
        "#NEXUS",
        "begin data;",
        f"  dimensions ntax={alignment.n_taxa} nchar={n_sites};",
        f"  format datatype={_WRITTEN_DATATYPES.get(kind, kind)} missing=? gap=-{symbols};",
        "  matrix",
        *(f"    {name.ljust(width)}{text}" for name, text in zip(names, texts)),
        "  ;",
        "end;",
        *(block.text for block in foreign),
    ]
    return "\n".join(lines) + "\n"
