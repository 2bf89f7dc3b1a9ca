"""Alignments and sets of columns of BEAST 1 and BEAST 2 files; dates and traits are those of
io.beast_traits; models, priors and moves are not read.

BEAST 1: sequences that name their taxon. BEAST 2: `<data>` with `<sequence taxon="a" value="ACGT"/>`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from phloem.data.coding import guess_datatype
from phloem.io.beast_elements import Element, parsed, tell_unread
from phloem.io.beast_sets import check_counting, column_sets
from phloem.io.blocks_together import together
from phloem.io.character_rows import CharacterRow, CharacterRows, character_matrix, check_names
from phloem.io.source_text import SourceText

_BEAST = re.compile(r"\s*(?:<\?xml[^>]*\?>|<!--.*?-->|\s)*<beast\b", re.DOTALL)
_DATATYPES = {"nucleotide": "dna", "aminoacid": "protein", "amino acid": "protein", "binary": "binary"}
_SHOWN = 12
BEAST_FORMAT = "BEAST XML"


def is_beast(text: str) -> bool:
    """Whether a text is a BEAST file."""
    return _BEAST.match(text) is not None


def read_beast_characters(source: SourceText, block: str | None = None) -> CharacterRows:
    """The alignment of a BEAST file. block: its id where there are several, or "all": side by side, each one
    a part of its id, or one for each set of its columns, taxa that one lacks missing.

    Raises InputError with line for damaged XML, no or several alignments, sequences of unequal lengths.
    """
    root = parsed(source)
    found = _alignments(root, source)
    if not found:
        raise source.error("the file has no sequences", 0, hint="Give the alignment as FASTA or NEXUS.")
    chosen = _chosen(source, found, block)
    tell_unread(root, source)
    check_counting(root, chosen, source)
    names = [_id(one, found) for one in chosen]
    guess, sets = len(chosen) > 1, column_sets(root, source)
    read = [
        replace(_characters(source, one, guess), charsets=sets.get(name, {}))
        for one, name in zip(chosen, names)
    ]
    return together(read, names) if guess else read[0]


def read_beast_blocks(source: SourceText) -> dict[str, CharacterRows]:
    """The alignments of a BEAST file by their ids, or numbers. Raises InputError as read_beast_characters."""
    root = parsed(source)
    found = _alignments(root, source)
    check_counting(root, found, source)
    return {_id(one, found): _characters(source, one, guess=True) for one in found}


def _alignments(root: Element, source: SourceText) -> list[Element]:
    """Those with sequences; InputError where two have one id."""
    found = [one for one in root.every("alignment", "data") if any(one.every("sequence"))]
    ids = [_id(one, found) for one in found]
    for k, name in enumerate(ids):
        if name in ids[:k]:
            told = f"two alignments are called '{name}'"
            raise source.error(told, found[k].offset, hint="Give each an id of its own.")
    return found


def _id(alignment: Element, found: Sequence[Element]) -> str:
    return alignment.attributes.get("id") or str(found.index(alignment) + 1)


def _chosen(source: SourceText, found: Sequence[Element], block: str | None) -> Sequence[Element]:
    """The alignments to read; InputError where there are several and nothing chooses."""
    names = [_id(one, found) for one in found]
    shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
    if block is None and len(found) > 1:
        raise source.error(
            f"the file has {len(found)} alignments",
            found[1].offset,
            hint=f"Choose one by --block: {shown}; or all as parts: --block all --partitions declared.",
        )
    if block is None or block.lower() == "all":
        return found
    if block not in names:
        raise source.error(f"no alignment is called '{block}'", 0, hint=f"Choose all, or one of {shown}.")
    return [found[names.index(block)]]


def _characters(source: SourceText, alignment: Element, guess: bool = False) -> CharacterRows:
    """guess: the data type where the file says none."""
    rows = [_row(sequence, source) for sequence in alignment.every("sequence")]
    check_names(source, rows, "Give each taxon one sequence.")
    matrix, sets = character_matrix(source, rows)
    kind = _DATATYPES.get(alignment.attributes.get("dataType", "").lower())
    if kind is None and guess:
        kind = guess_datatype(matrix)
    return CharacterRows(source, rows, matrix, sets, datatype=kind, format_name=BEAST_FORMAT)


def _row(sequence: Element, source: SourceText) -> CharacterRow:
    taxon = sequence.attributes.get("taxon")
    if taxon is None:
        inside = next(sequence.every("taxon"), None)
        taxon = None if inside is None else inside.attributes.get("idref") or inside.attributes.get("id")
    if not taxon:
        raise source.error("this sequence names no taxon", sequence.offset, hint='Add taxon="name".')
    row = CharacterRow(taxon.removeprefix("@"), sequence.offset)
    text = sequence.attributes.get("value") or sequence.text
    for piece in text.split():
        after = row.starts[-1] + len(row.pieces[-1]) if row.starts else sequence.offset
        row.add(piece, max(source.text.find(piece, after), sequence.offset))
    if not row.pieces:
        raise source.error(f"'{taxon}' has no characters", sequence.offset, taxon=taxon, hint="Add them.")
    return row
