"""Distance matrices as PHYLIP text: square or triangular, names up to a blank or of ten columns."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from phloem.errors import InputError, count_of
from phloem.io.cpu import distance_text
from phloem.io.distance_rows import (
    NAME_BYTES,
    Form,
    LayoutError,
    Lines,
    RowSpans,
    encoding_of,
    points_for_commas,
    text_lines,
)

_COLUMNS = 10  # of a name that may have blanks
_COLUMN_BYTES = 4 * _COLUMNS + 1  # that hold it in UTF-8, and one that ends it
_TOO_MANY = 10**12  # taxa
_NUMERIC = re.compile(r"[-+]?(\d+[.,]?\d*|[.,]\d+)([eE][-+]?\d*)?", re.ASCII)
_GLUED = re.compile(r"[-+]?\d*\.\d+([eE][-+]?\d+)?")


@dataclass(frozen=True)
class Reading:
    """One way to read a PHYLIP matrix: where names end, and what parts the digits of a number."""

    ten_columns: bool
    decimal_comma: bool

    def text(self) -> str:
        """What is unusual in it, for the user."""
        return ", ten-column names" * self.ten_columns + ", decimal commas" * self.decimal_comma


READINGS = tuple(Reading(ten_columns, comma) for comma in (False, True) for ten_columns in (False, True))


def announced_taxa(line: str, source: str) -> int | None:
    """The number of taxa that a first line announces, None for another line; InputError for an absurd one."""
    n = count_of(line.strip())
    if n >= _TOO_MANY:
        raise InputError(
            f"the first line announces {line.strip()[:12]}… taxa, a number of {len(line.strip()):,} digits",
            file=source,
            line=1,
            hint="Write the number of taxa there.",
        )
    return None if n < 0 else n


@dataclass(frozen=True)
class PhylipText:
    """A PHYLIP matrix not yet taken apart: its text, the lines after the first, the taxa it announces."""

    text: np.ndarray
    lines: Lines
    n_taxa: int
    source: str

    def rows(self, reading: Reading) -> RowSpans:
        """The rows as a reading has them; LayoutError where it does not fit."""
        names, rows = self._spans(reading.ten_columns)
        begins, stops = rows.starts, rows.stops
        counts = [distance_text.count_words(self.text, begins[i], stops[i]) for i in (0, -1)]
        form = _form(counts[0], counts[1], self.n_taxa, self.source, int(rows.numbers[0]))
        if not reading.decimal_comma:
            return RowSpans(names, begins, stops, rows.numbers, form)
        if not any(b"," in bytes(self.text[a:b]) for a, b in zip(begins.tolist(), stops.tolist())):
            raise LayoutError("no decimal commas", file=self.source, hint="Write decimal points.")
        return RowSpans(names, begins, stops, rows.numbers, form, points_for_commas(self.source), True)

    def _spans(self, ten_columns: bool) -> tuple[list[str], Lines]:
        """Names, and where the numbers of every row are; rows of a square may run over several lines."""
        n, lines = self.n_taxa, self.lines
        width = _COLUMN_BYTES if ten_columns else NAME_BYTES
        encoding = encoding_of(lines.heads(self.text, width)) if ten_columns else "utf-8"
        names, starts, stops, numbers = [], [], [], []
        words, several = n, len(lines) > n
        heads = lines.heads(self.text, width)
        for head, start, stop, number in zip(
            heads, lines.starts.tolist(), lines.stops.tolist(), lines.numbers.tolist()
        ):
            if words >= n or not several:
                cut = _columns(head, encoding) if ten_columns else _word(head)
                if cut is None:
                    raise self._no_name(ten_columns, number)
                name, end = cut
                words, start = 0, start + end
                names.append(name)
                starts.append(start)
                stops.append(stop)
                numbers.append(number)
            stops[-1] = stop
            words += distance_text.count_words(self.text, start, stop) if several else 0
        if len(names) != n or (several and words != n):
            raise LayoutError(
                f"{n:,} taxa announced, {len(names) - (words < n):,} complete rows found",
                file=self.source,
                line=numbers[-1],
                hint="Rows that run over several lines must be those of a square matrix.",
            )
        rows = Lines(*(np.array(part, np.int64) for part in (starts, stops, numbers)))
        if not ten_columns:
            encoding = encoding_of(name + b" " for name in names)
        return [name.decode(encoding) for name in names], rows

    def _no_name(self, ten_columns: bool, line: int) -> LayoutError:
        message, hint = f"a name of more than {NAME_BYTES:,} bytes", "Shorten it."
        if ten_columns:
            message, hint = "distances in the first ten columns", "Write names there."
        return LayoutError(message, file=self.source, line=line, hint=hint)


def phylip_text(text: np.ndarray, source: str) -> PhylipText:
    """A text whose first line is a number of taxa; InputError for any other, and where rows are missing."""
    lines = text_lines(text)
    head = bytes(text[lines.starts[0] : lines.stops[0]]) if len(lines) else b""
    n = announced_taxa(head.decode("utf-8", "replace"), source)
    if not n:
        raise InputError(
            "a PHYLIP matrix starts with the number of taxa alone on a line",
            file=source,
            line=int(lines.numbers[0]) if len(lines) else 1,
            hint="Give PHYLIP, CSV or TSV with names, or .npy.",
        )
    if len(lines) <= n:
        raise InputError(
            f"{n:,} taxa announced, {len(lines) - 1:,} rows found",
            file=source,
            line=1,
            hint="Check the first line.",
        )
    return PhylipText(text, lines[1:], n, source)


def names_may_hold_numbers(names: list[str]) -> bool:
    """Whether every name goes on after ten columns as a number would that stands right behind it."""
    return all(_GLUED.fullmatch(name[_COLUMNS:]) for name in names)


def _word(head: bytes) -> tuple[bytes, int] | None:
    """The first word of a row, and the bytes up to its end; None if that is not there."""
    name = head.split(None, 1)[0]
    return None if len(name) >= NAME_BYTES else (name, head.index(name) + len(name))


def _columns(head: bytes, encoding: str) -> tuple[bytes, int] | None:
    """The first ten characters of a row without the blanks around them, and their bytes.

    None where distances stand in these columns: of a name's further words one at most is a number, and whole.
    """
    text = head.decode(encoding, "ignore")
    name, rest = text[:_COLUMNS], text[_COLUMNS:]
    numbers = [word for word in name.split()[1:] if _NUMERIC.fullmatch(word)]
    cut = bool(numbers) and name.endswith(numbers[-1]) and not rest[:1].isspace() and rest != ""
    if len(numbers) > 1 or cut or any(not word.isdigit() for word in numbers):
        return None
    raw = name.encode(encoding)
    return raw.strip(), len(raw)


def _form(first: int, last: int, n: int, source: str, line: int) -> Form:
    """The shape of a PHYLIP matrix from how many numbers its first and last rows hold."""
    forms: dict[tuple[int, int], Form] = {
        (n - 1, 0): "upper",
        (n, 1): "upper with diagonal",
        (0, n - 1): "lower",
        (1, n): "lower with diagonal",
        (n, n): "square",
    }
    if (first, last) not in forms:
        raise LayoutError(
            f"rows of {first:,} … {last:,} numbers make no square or triangular matrix of {n:,} taxa",
            file=source,
            line=line,
            hint=f"A square matrix has {n:,} numbers a row; names with blanks take ten columns.",
        )
    return forms[first, last]
