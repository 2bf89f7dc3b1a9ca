"""Distances as a list of pairs, a line each: two names and a number, as mash and mothur write them."""

from __future__ import annotations

import math
import re

import numpy as np

from phloem.errors import InputError
from phloem.io.distance_rows import Form, RowSpans
from phloem.io.distance_table import cells_of, is_number, lacks, separator_of
from phloem.io.source_text import SourceText, read_source

_COLUMNS = 3
_LOOKED_AT = 1000  # lines
_SIMILARITY = re.compile(r"(?<![a-z])(ani|aai|identity|similarity|pident)(?![a-z])", re.IGNORECASE)
_HINT = "Each line is two names and their distance; further columns are passed over."


def is_pairs(head: str) -> bool:
    """Whether a text, by its beginning, lists pairs: a number is third, and names of the first column occur
    in the second, as those of other tables do not. Headings may come first."""
    lines = [line for line in head.split("\n")[:-1] if line.strip()][:_LOOKED_AT]
    if len(lines) < 2 or lines[0][0] in "#>(":
        return False
    separator = separator_of(lines[0])
    if len(cells_of(lines[0], separator)) < _COLUMNS or not _is_pair(cells_of(lines[1], separator)):
        return False
    rows = [cells_of(line, separator) for line in lines]
    rows = rows if _is_pair(rows[0]) else rows[1:]
    return all(map(_is_pair, rows)) and not {row[0] for row in rows}.isdisjoint(row[1] for row in rows)


def distances_of_pairs(path: str) -> tuple[np.ndarray, RowSpans]:
    """A text of the numbers alone, a row a taxon, and where they lie in it.

    Taxa are in the order of the file. A pair may be given in both directions, and a taxon beside itself.
    InputError for a line that is none, a pair that is given twice, and one that is missing.
    """
    source = read_source(path)
    taxa, lines, words = _words(source)
    both = any(i < j for i, j in words) and any(i > j for i, j in words)
    n, rows = len(taxa), []
    for i in range(n):
        columns = range(n) if both else range(i + 1)
        rows.append((" ".join(_word(words, taxa, i, j, path) for j in columns) + "\n").encode())
    stops = np.cumsum([len(row) for row in rows])
    starts = stops - [len(row) for row in rows]
    form: Form = "square" if both else "lower with diagonal"
    data = np.frombuffer(b"".join(rows), np.uint8)
    return data, RowSpans(taxa, starts, stops, np.array(lines), form, lambda row, _: row)


def _words(source: SourceText) -> tuple[list[str], list[int], dict[tuple[int, int], str]]:
    """The taxa, the lines on which they come first, and the number of every pair that is given."""
    number: dict[str, int] = {}
    lines: list[int] = []
    words: dict[tuple[int, int], str] = {}
    separator = ""
    for k, line in enumerate(source.text.split("\n"), 1):
        if not line.strip():
            continue
        separator, first = separator or separator_of(line), not separator
        row = [cell.strip() for cell in cells_of(line, separator)]
        if first and not _is_pair(row):
            _refuse_similarities(row, source.file, k)
            continue
        if len(row) < _COLUMNS or not _is_finite(row[2]):
            raise InputError("this is no pair and its distance", file=source.file, line=k, hint=_HINT)
        for name in row[:2]:
            if name not in number:
                number[name] = len(number)
                lines.append(k)
        pair = number[row[0]], number[row[1]]
        if words.setdefault(pair, row[2]) != row[2]:
            told = f"the distance of '{row[0]}' and '{row[1]}' is given twice: {words[pair]} and {row[2]}"
            raise InputError(told, file=source.file, line=k, taxon=row[0], hint="Leave out one of the two.")
    return list(number), lines, words


def _refuse_similarities(headings: list[str], file: str | None, line: int) -> None:
    if _SIMILARITY.search(headings[_COLUMNS - 1]):
        raise InputError(
            f"the third column is '{headings[_COLUMNS - 1][:40]}', which is no distance",
            file=file,
            line=line,
            hint="Make distances first: 1 - s, or 100 - s of percents.",
        )


def _word(words: dict[tuple[int, int], str], taxa: list[str], i: int, j: int, path: str) -> str:
    """The number of a pair, given in this direction or the other, as it stands in the file."""
    found = words.get((i, j), words.get((j, i), "0" if i == j else None))
    if found is None:
        n = len(taxa)
        missing = n * (n - 1) // 2 - len({(min(pair), max(pair)) for pair in words if pair[0] != pair[1]})
        raise InputError(
            f"the distance of '{taxa[i]}' and '{taxa[j]}' is missing ({missing:,} pairs are)",
            file=path,
            taxon=taxa[i],
            hint="Every pair needs a distance: write without a cutoff, or leave out one of the two taxa.",
        )
    return found


def _is_pair(row: list[str]) -> bool:
    """Whether a row begins with two names and a number, or a word for none."""
    if len(row) < _COLUMNS or not (row[0].strip() and row[1].strip()):
        return False
    if is_number(row[0]) and is_number(row[1]):
        return False
    return is_number(row[2]) or lacks(row[2])


def _is_finite(word: str) -> bool:
    try:
        return math.isfinite(float(word))
    except ValueError:
        return False
