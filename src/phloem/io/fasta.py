"""FASTA: '>name description' and the sequence below it, wrapped or not."""

from __future__ import annotations

import re

from phloem.data.alignment import Alignment
from phloem.errors import InputError
from phloem.io.alignment_text import sequence_texts
from phloem.io.character_rows import CharacterRow, CharacterRows, character_matrix, check_names
from phloem.io.source_text import SourceText

_HEADER = re.compile(r"^>(.*)$", re.MULTILINE)
_COMMENT = re.compile(r"^;.*$", re.MULTILINE)


def is_fasta(text: str) -> bool:
    """Whether a text starts as a FASTA file does."""
    return text.lstrip()[:1] in (">", ";")


def read_fasta(source: SourceText) -> CharacterRows:
    """Read an aligned FASTA file. A name is the header's first word, as in IQ-TREE and RAxML-NG.

    Lines that start with ';' are comments. Raises InputError for text before the first header, headers
    without a name, repeated names, unequal lengths.
    """
    text = _COMMENT.sub(lambda match: " " * len(match.group()), source.text)
    headers = list(_HEADER.finditer(text))
    start = len(text) - len(text.lstrip())
    if not headers or headers[0].start() > start:
        raise source.error("expected a header", start, hint="Start each sequence with a line '>name'.")
    ends = [header.start() for header in headers[1:]] + [len(text)]
    rows = [_row(source, text, header, end) for header, end in zip(headers, ends)]
    check_names(source, rows, "Rename one; a name is the header's first word, the rest does not count.")
    matrix, sets = character_matrix(source, rows)
    return CharacterRows(source, rows, matrix, sets, format_name="FASTA")


def _row(source: SourceText, text: str, header: re.Match[str], end: int) -> CharacterRow:
    words = header.group(1).split(None, 1)
    if not words:
        raise source.error("the header has no name", header.start(), hint="Write the name after '>'.")
    row = CharacterRow(words[0], header.start(1))
    row.add(text[header.end() : end], header.end())
    return row


def format_fasta(alignment: Alignment, width: int | None = None) -> str:
    """An alignment as FASTA, each sequence on one line or wrapped at `width` columns."""
    records = []
    for taxon, text in zip(alignment.taxa, sequence_texts(alignment)):
        if len(taxon.split()) != 1 or taxon != taxon.strip():
            raise InputError(
                "a FASTA name is one word", taxon=taxon, hint="Rename the taxon, or write NEXUS."
            )
        step = width or max(len(text), 1)
        lines = [text[start : start + step] for start in range(0, len(text), step)]
        records.append("\n".join([f">{taxon}", *lines]))
    return "\n".join(records) + "\n"
