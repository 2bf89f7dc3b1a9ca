"""DATA and CHARACTERS blocks to characters, and an alignment back to a NEXUS file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phloem.data.alignment import Alignment
from phloem.data.alphabet import columns_of
from phloem.data.coding import FIRST_SET
from phloem.errors import InputError, count_of
from phloem.io.alignment_text import sequence_texts
from phloem.io.blocks_together import together
from phloem.io.character_rows import (
    CharacterRow,
    CharacterRows,
    character_matrix,
    check_names,
)
from phloem.io.nexus import Block, Command, quote_name, read_blocks, warn_of_line
from phloem.io.nexus_format import NexusFormat, read_format
from phloem.io.nexus_matrix import read_rows
from phloem.io.nexus_names import (
    link,
    read_charsets,
    read_dimension,
    taxa_block,
    taxon_labels,
    title,
    warn_of_commands,
)
from phloem.io.source_text import SourceText
from phloem.tree.match import folded

_WRITTEN_DATATYPES = {"codon": "dna", "doublet": "dna", "binary": "standard", "custom": "standard"}


def read_nexus_characters(
    source: SourceText, wanted: str | None = None, quiet: bool = False
) -> CharacterRows:
    """The characters of a NEXUS file's DATA or CHARACTERS block.

    wanted: which block, by its title or number, where there are several, or "all": side by side, each one a
    part, taxa that a block lacks missing. Afterwards gaps are '-', missing data '?', matching and equated
    characters what they stand for. quiet: no warning of what a
    MRBAYES block, or a command between blocks, asks for.
    """
    between = list[Command]() if quiet else None
    blocks = read_blocks(source, enough=lambda read: bool(_with_matrix(read)), between=between)
    warn_of_commands(blocks, quiet)
    chosen = _chosen(source, blocks, wanted)
    for block in chosen:
        dropped = block.command("eliminate")
        if dropped is not None:
            raise dropped.error("ELIMINATE cannot be read", hint="Delete it; --sites chooses sites.")
    parts = [_read_block(source, blocks, block) for block in chosen]
    return parts[0] if len(parts) == 1 else together(parts)


def _with_matrix(blocks: Sequence[Block]) -> list[Block]:
    return [one for one in blocks if one.name in ("data", "characters") and one.command("matrix")]


def _chosen(source: SourceText, blocks: Sequence[Block], wanted: str | None) -> list[Block]:
    """The blocks to read; InputError where the file has several and nothing chooses."""
    found = _with_matrix(blocks)
    if not found:
        empty = next((one for one in blocks if one.name in ("data", "characters")), None)
        if empty is not None:
            read_format(empty)  # without its ';' it would hold the matrix
            read_dimension(empty, "nchar")
            raise empty.error(f"block '{empty.name}' has no MATRIX", hint="Add 'matrix' and the characters.")
        names = ", ".join(block.name for block in blocks) or "commands"
        raise source.error(
            f"there is no DATA or CHARACTERS block, only {names[:80]}", 0, hint="Name the data file."
        )
    if (wanted is None and len(found) == 1) or (wanted is not None and wanted.lower() == "all"):
        return found
    listed = ", ".join(
        f"{k} '{title(one)}'" if title(one) else f"{k} (line {one.line})" for k, one in enumerate(found, 1)
    )
    hint = f"Choose one by its number or title, or 'all', with --block: {listed[:300]}."
    if wanted is None:
        raise found[1].error(f"the file has {len(found)} blocks of characters", hint=hint)
    titled = [one for one in found if folded(title(one) or "") == folded(wanted)]
    if len(titled) == 1:
        return titled
    if titled or not 1 <= count_of(wanted) <= len(found):
        told = "several blocks of characters have" if titled else "no block of characters has"
        raise source.error(f"{told} the title or number '{wanted[:60]}'", 0, hint=hint)
    return [found[count_of(wanted) - 1]]


def _read_block(source: SourceText, blocks: Sequence[Block], block: Block) -> CharacterRows:
    command = block.command("matrix")
    assert command is not None
    form = read_format(block)
    taxa = taxa_block(blocks, block) if block.name == "characters" or link(block, "taxa") else None
    labels = taxon_labels(block if block.command("taxlabels") else taxa)
    own, n_sites = read_dimension(block, "ntax"), read_dimension(block, "nchar")
    n_taxa = read_dimension(taxa, "ntax") if own is None and taxa is not None else own
    rows = read_rows(command, form.interleave, n_taxa, n_sites)
    if not rows:
        raise command.error("the matrix is empty", hint="Write one row for each taxon.")
    _name_numbers(rows, labels)
    check_names(source, rows, "Rename one of them.")
    matrix, sets = character_matrix(source, rows, True, n_sites)
    known = {folded(label) for label in labels}
    if own is None and labels and len(rows) < len(labels) and all(folded(row.taxon) in known for row in rows):
        message = f"{len(labels) - len(rows)} of the {len(labels)} taxa have no characters"
        warn_of_line(source, command.line, message)
    elif n_taxa is not None and len(rows) != n_taxa:
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
        charsets=read_charsets(_about(blocks, block)),
        datatype=form.datatype,
        symbols=form.symbols,
        format_name="NEXUS",
        parts=form.parts,
    )


def _name_numbers(rows: Sequence[CharacterRow], labels: Sequence[str]) -> None:
    """Rows that give a taxon's number get its name."""
    known = {folded(label) for label in labels}
    for row in rows:
        number = count_of(row.taxon) if row.taxon not in known else 0
        if 1 <= number <= len(labels):
            row.taxon = labels[number - 1]


def _about(blocks: Sequence[Block], block: Block) -> list[Block]:
    """The blocks that are not about another block of characters than this one."""
    own = folded(title(block) or "")
    words = [(one, link(one, "characters")) for one in blocks]
    return [one for one, word in words if word is None or folded(word.text) == own]


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
    n_sites = alignment.n_sites * columns_of(kind)
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
