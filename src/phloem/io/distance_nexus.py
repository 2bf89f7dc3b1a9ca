"""The DISTANCES block of a NEXUS file, as PAUP* and SplitsTree write it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from phloem.errors import InputError
from phloem.io.distance_rows import Form, RowSpans, columns_of
from phloem.io.nexus import Block, Command, Token, read_blocks
from phloem.io.nexus_names import read_dimension, taxa_block, taxon_labels
from phloem.io.source_text import read_source

_DISTANCES = re.compile(r"\bbegin\s+distances\s*;", re.IGNORECASE)
_CHARACTERS = re.compile(r"\bbegin\s+(?:data|characters)\s*;", re.IGNORECASE)
_FORMS: dict[str, tuple[Form, Form]] = {  # without diagonal, and with
    "lower": ("lower", "lower with diagonal"),
    "upper": ("upper", "upper with diagonal"),
    "both": ("square", "square"),
}


def has_distances(head: str) -> bool:
    """Whether a NEXUS file, by its beginning, has distances and no characters to measure them by."""
    return _DISTANCES.search(head) is not None and _CHARACTERS.search(head) is None


def distances_of_nexus(path: str) -> tuple[np.ndarray, RowSpans]:
    """A text of the numbers alone, a row a taxon, and where they lie in it.

    InputError for a file with another number of such blocks than one, for FORMAT INTERLEAVE, for a triangle
    that is none, and for rows that do not fit it.
    """
    blocks = read_blocks(read_source(path))
    found = [block for block in blocks if block.name == "distances"]
    if len(found) != 1:
        hint = "Give a file with one block of distances."
        raise InputError(f"the file has {len(found)} DISTANCES blocks", file=path, hint=hint)
    block, labels = found[0], taxon_labels(taxa_block(blocks, found[0]))
    matrix = block.command("matrix")
    if matrix is None:
        raise block.error("this block has no MATRIX", hint="Give the distances after 'matrix'.")
    form, named = _form(block)
    words = matrix.tokens(punctuation="")
    n = read_dimension(block, "ntax") or len(labels) or len(_starts_of_lines(matrix, words))
    if not named and len(labels) != n:
        raise matrix.error("rows without names need a TAXA block", hint="Name every row, or the taxa.")
    own, rows, lines = _rows(matrix, words, [columns_of(form, n, i)[1] for i in range(n)], named)
    stops = np.cumsum([len(row) for row in rows])
    starts = stops - [len(row) for row in rows]
    text = np.frombuffer(b"".join(rows), np.uint8)
    return text, RowSpans(own if named else labels, starts, stops, np.array(lines), form, lambda row, _: row)


def _form(block: Block) -> tuple[Form, bool]:
    """What FORMAT says: which part of the matrix there is, and whether rows begin with names."""
    command = block.command("format")
    words = [] if command is None else [token.text.lower() for token in command.tokens()]
    values = {a: c for a, b, c in zip(words, words[1:], words[2:]) if b == "="}
    triangle = values.get("triangle", "lower")
    if command is not None and triangle not in _FORMS:
        raise command.error(f"there is no triangle '{triangle}'", hint="Write lower, upper or both.")
    if command is not None and "interleave" in words and values.get("interleave") != "no":
        raise command.error("distances in several blocks are not read", hint="Write every row at once.")
    refused = {
        f"no{b}" for before, a, b in zip(["", *words], words, words[1:]) if a == "no" and before != "="
    }
    refused |= set(words)  # "no diagonal" is "nodiagonal"; in "labels=no diagonal" it is none
    diagonal = "nodiagonal" not in refused and values.get("diagonal") != "no"
    named = "nolabels" not in refused and values.get("labels") != "no"
    return _FORMS[triangle][diagonal], named


def _starts_of_lines(matrix: Command, words: Sequence[Token]) -> list[Token]:
    """The words that are the first of their lines."""
    text, ends = matrix.source.text, [matrix.start, *(word.end for word in words)]
    return [word for word, end in zip(words, ends) if end == matrix.start or "\n" in text[end : word.start]]


def _rows(
    matrix: Command, words: Sequence[Token], widths: Sequence[int], named: bool
) -> tuple[list[str], list[bytes], list[int]]:
    """Names, where rows have them, numbers and lines of as many rows as there are widths."""
    source, n = matrix.source, len(widths)
    breaks = [match.start() for match in re.finditer("\n", source.text)]
    names: list[str] = []
    rows, lines, at = [], [], 0
    for i, numbers in enumerate(widths):
        row = words[at : at + named + numbers]
        if len(row) < named + numbers:
            told = f"the matrix ends in row {i + 1:,} of {n:,}"
            raise source.error(told, matrix.end, hint="Complete it, or correct NTAX and FORMAT.")
        lines.append(bisect_right(breaks, row[0].start if row else matrix.end) + 1)
        names += [word.text for word in row[:named]]
        rows.append((" ".join(word.text for word in row[named:]) + "\n").encode())
        at += len(row)
    if at < len(words):
        told = f"'{words[at].text[:40]}' stands behind the last of {n:,} rows"
        raise source.error(told, words[at].start, hint="Correct NTAX, or TRIANGLE and DIAGONAL in FORMAT.")
    return names, rows, lines
