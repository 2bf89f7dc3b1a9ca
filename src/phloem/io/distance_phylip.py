"""Distance matrices as PHYLIP text: square or triangular, names up to a blank or of ten columns."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from phloem.errors import InputError, count_of
from phloem.io.cpu import distance_text
from phloem.io.distance_rows import (
    MAPPED_LINES,
    NAME_BYTES,
    Form,
    LayoutError,
    Lines,
    RowSpans,
    columns_of,
    encoding_of,
    points_for_commas,
    release,
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


FORMS: tuple[Form, ...] = ("square", "lower", "lower with diagonal", "upper", "upper with diagonal")
Cut = Callable[[int], tuple[bytes, int]]
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
        names, rows, form = self._spans(reading.ten_columns)
        begins, stops = rows.starts, rows.stops
        if form is None:
            counts = [distance_text.count_words(self.text, begins[i], stops[i]) for i in (0, -1)]
            form = _form(counts[0], counts[1], self.n_taxa, self.source, int(rows.numbers[0]))
        if not reading.decimal_comma:
            return RowSpans(names, begins, stops, rows.numbers, form)
        if not any(b"," in bytes(self.text[a:b]) for a, b in zip(begins.tolist(), stops.tolist())):
            raise LayoutError("no decimal commas", file=self.source, hint="Write decimal points.")
        return RowSpans(names, begins, stops, rows.numbers, form, points_for_commas(self.source), True)

    def _spans(self, ten_columns: bool) -> tuple[list[str], Lines, Form | None]:
        """Names, where the numbers of every row are, and the form, None where every row is a line."""
        width = _COLUMN_BYTES if ten_columns else NAME_BYTES
        encoding = encoding_of(self.lines.heads(self.text, width)) if ten_columns else "utf-8"
        cuts = self._cuts(ten_columns, encoding)
        form: Form | None = None
        if len(self.lines) == self.n_taxa:
            names, rows = self._gathered(cuts, np.zeros(self.n_taxa, np.int64))
        else:
            names, rows, form = self._over_lines(cuts)
        if not ten_columns:
            encoding = encoding_of(name + b" " for name in names)
        return [name.decode(encoding) for name in names], rows, form

    def _cuts(self, ten_columns: bool, encoding: str) -> Cut:
        """Takes the name off the line k: its bytes, and where they end."""

        def cut(k: int) -> tuple[bytes, int]:
            start = int(self.lines.starts[k])
            width = _COLUMN_BYTES if ten_columns else NAME_BYTES
            head = bytes(self.text[start : min(int(self.lines.stops[k]), start + width)])
            found = _columns(head, encoding) if ten_columns else _word(head)
            if found is None:
                raise self._no_name(ten_columns, int(self.lines.numbers[k]))
            return found

        return cut

    def _over_lines(self, cuts: Cut) -> tuple[list[bytes], Lines, Form]:
        """The same of rows that run over several lines, in the first form whose rows are all complete.

        A square has other numbers of words than a triangle, and a lower triangle begins with a short line.
        """
        failed: list[LayoutError] = []
        for form in FORMS:
            widths = np.array([columns_of(form, self.n_taxa, i)[1] for i in range(self.n_taxa)])
            try:
                return *self._gathered(cuts, widths), form
            except LayoutError as error:
                failed.append(error)
        raise max(failed, key=lambda error: error.line or 0)

    def _gathered(self, cuts: Cut, widths: np.ndarray) -> tuple[list[bytes], Lines]:
        """Rows of the lines that it takes to have at least widths[i] words behind name i."""
        n, lines, text = self.n_taxa, self.lines, self.text
        names: list[bytes] = []
        starts, stops, numbers = [], [], []
        words, several = 0, len(lines) > n
        for k, (start, stop, number) in enumerate(
            zip(lines.starts.tolist(), lines.stops.tolist(), lines.numbers.tolist())
        ):
            if k % MAPPED_LINES == 0:
                release(text)
            if not names or words >= widths[len(names) - 1]:
                if len(names) == n:
                    raise self._beyond(start, stop, number)
                name, end = cuts(k)
                words, start = 0, start + end
                names.append(name)
                starts.append(start)
                stops.append(stop)
                numbers.append(number)
            stops[-1] = stop
            words += distance_text.count_words(text, start, stop) if several else 0
            if several and words > widths[len(names) - 1]:
                break
        if len(names) != n or (several and words != widths[-1]):
            complete = len(names) - bool(words != widths[len(names) - 1])
            raise LayoutError(
                f"{n:,} taxa announced, {complete:,} complete rows found",
                file=self.source,
                line=numbers[-1],
                hint="Complete this row, or correct the number of taxa.",
            )
        return names, Lines(*(np.array(part, np.int64) for part in (starts, stops, numbers)))

    def _beyond(self, start: int, stop: int, number: int) -> InputError:
        """The error for a line behind the last row; no other reading fits where one more matrix begins."""
        line = bytes(self.text[start:stop]).decode("utf-8", "replace").strip()
        if announced_taxa(line, self.source) == self.n_taxa:
            return InputError(
                "a second matrix begins here",
                file=self.source,
                line=number,
                hint="Give one matrix a file; of an alignment, --bootstrap makes replicates.",
            )
        return LayoutError(
            f"'{line[:20]}' stands behind the last of {self.n_taxa:,} rows",
            file=self.source,
            line=number,
            hint="Take it out, or correct the number of taxa.",
        )

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
