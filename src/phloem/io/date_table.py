"""Sampling dates from a table: a line a taxon, its name and its date, or two dates it was sampled between.

Tabs, semicolons, commas or blanks stand between, with a header or without. So BEAST, TreeTime, LSD2 (which
begins with the number of lines) and Nextstrain (metadata with many columns) write them; `name=date,` is the
trait of BEAST 2.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from phloem.data.dates import TipDates
from phloem.errors import InputError, InputWarning, count_of, shown_file
from phloem.io.beast_traits import read_beast_dates
from phloem.io.beast_xml import is_beast
from phloem.io.date_text import UNKNOWN, DateRange, as_asked, parse_date
from phloem.io.dates import USUAL, DateReading, date_of, dates_record
from phloem.io.input_file import first_bytes
from phloem.io.source_text import SourceText, read_source
from phloem.tree.match import folded

Line = tuple[int, list[str]]  # its number, its fields

_TAG_WITHIN = 1 << 16  # bytes of a file, the first of which is a tag's if it is XML
_BEAST_DATE = re.compile(r"<date\b|<trait\b[^>]*\btraitname\s*=\s*.(?:date|age)", re.IGNORECASE)
_NAME_COLUMNS = (
    "name", "taxon", "taxa", "tip", "strain", "sequence", "seq_name", "sequence_name", "label", "node_name",
    "node", "id", "accession", "isolate", "sample", "virus",
)  # fmt: skip
_DATE_COLUMNS = (
    "date", "dates", "num_date", "numdate", "numeric_date", "decimal_date", "year", "years", "time",
    "tip_date", "collection_date", "collectiondate", "sampling_date", "sample_date", "collected",
    "age", "ages", "height",
)  # fmt: skip
_BOUND_COLUMNS = (
    ("lower", "upper"), ("min", "max"), ("date_min", "date_max"), ("date_lower", "date_upper"),
    ("lower_bound", "upper_bound"), ("earliest", "latest"), ("from", "to"), ("start", "end"),
    ("min_age", "max_age"), ("age_min", "age_max"), ("min_ma", "max_ma"), ("lad", "fad"),
)  # fmt: skip
_AGE_COLUMNS = ("age", "ages", "height", "min_age", "age_min", "min_ma", "lad")
_OF_SUBMISSION = re.compile("submi|release|upload|deposit|publi|updat|modif|received")
_ROUNDED = 0.006  # years: two days
_OPENING = re.compile(r"(?<![^\s;,=b])[\"'(\[]")
_CLOSING = {'"': '"', "'": "'", "[": "]", "(": ")"}


def read_dates(
    path: str | os.PathLike[str], taxa: Iterable[str] | None = None, reading: DateReading = USUAL
) -> TipDates:
    """Dates from a table, see the module, or from a BEAST file.

    taxa: whose dates are wanted, in that order; None takes all. Raises InputError with file, line, taxon and
    remedy; warns of lines whose taxon is not wanted, and of dates in the future.
    """
    source = read_source(path)
    return dates_from_table(source, taxa, reading)


def carries_dates(file: str) -> bool:
    """Whether a file of sequences says when they were sampled: a BEAST file with dates."""
    if b"<" not in first_bytes(file, _TAG_WITHIN):  # so that large alignments are not read twice
        return False
    text = read_source(file).text
    return is_beast(text) and _BEAST_DATE.search(text) is not None


def _date_the_rest(
    of_file: dict[str, tuple[int, DateRange]], date: DateRange, wanted: tuple[str, ...], source: SourceText
) -> None:
    """As in BEAST, taxa without a date are of the present where others have an age, else of the time of the
    youngest; which is told."""
    known = {folded(name) for name in of_file}
    rest = [name for name in wanted if folded(name) not in known]
    if rest and len(rest) < len(wanted):
        of_file.update((name, (0, date)) for name in rest)
        taken = f"date and are taken to be of {date.lower:.6g}, the youngest"
        taken = taken if date.lower else "age and are taken to be of the present"
        told = f"{len(rest):,} of {len(wanted):,} taxa have no {taken}, as"
        file = shown_file(source.file or "the file")
        warnings.warn(f"{file}: {told} '{rest[0]}'", InputWarning, stacklevel=3)


def dates_from_table(
    source: SourceText | str, taxa: Iterable[str] | None = None, reading: DateReading = USUAL
) -> TipDates:
    """The same for a text in memory."""
    source = source if isinstance(source, SourceText) else SourceText(source)
    wanted = None if taxa is None else tuple(taxa)
    if is_beast(source.text):
        of_file, ages, of_rest = read_beast_dates(source)
        if of_rest is not None and wanted is not None:
            _date_the_rest(of_file, of_rest, wanted, source)
        return dates_record(of_file, wanted, reading, ages, source.file)
    lines = list(table_lines(source))
    columns = _columns(lines, source, wanted, reading)
    found: dict[str, tuple[int, DateRange]] = {}
    known = None if wanted is None or not columns.width else {folded(name) for name in wanted}
    for number, fields in lines[columns.first :]:
        taxon = unquoted(fields[columns.name]) if columns.name < len(fields) else ""
        if (not taxon or taxon in found) and known is not None and folded(taxon) not in known:
            continue  # such as '?' in a column of accessions: of no taxon of the data
        ragged = columns.width and len(fields) > 1  # empty fields at the end, which editors cut off
        if not taxon or (len(fields) <= columns.dates[0] and not ragged):
            raise _error("expected a name and a date", source, number, hint="Separate them by a tab.")
        if taxon in found:
            before = found[taxon][0]
            raise _error(
                f"'{taxon}' has two dates, the first in line {before}",
                source,
                number,
                taxon,
                "Keep one of them.",
            )
        if columns.width and len([field for field in fields if field]) > columns.width:
            raise _error(
                f"{len(fields)} fields, under a header of {columns.width}", source, number, taxon,
                "Quote what has the separator in it, and write decimals with a point.",
            )  # fmt: skip
        try:
            texts = columns.date_texts(fields)
            found[taxon] = number, date_of(texts, taxon, reading, columns.ages)
        except InputError as error:
            raise _error(error.message, source, number, taxon, error.hint) from None
    if reading.date_column is None and columns.width and not columns.ages:
        _tell_other_columns(lines, columns, found, source, wanted)
    if not found:
        raise _error("the table has no date", source, 1, hint="Write a line of name, tab and date a taxon.")
    return dates_record(found, wanted, reading, columns.ages, source.file)


@dataclass(frozen=True)
class _Columns:
    """Which fields of a line are which. first: the number of lines above the first taxon. width: how many the
    header has, 0 without one. by_parts: dates are the year, month and day of one."""

    name: int
    dates: tuple[int, ...]
    first: int
    ages: bool
    width: int = 0
    by_parts: bool = False

    def date_texts(self, fields: list[str]) -> list[str]:
        """What a line says of its date: one text, or two that bound it."""
        texts = [unquoted(fields[column]) if column < len(fields) else "" for column in self.dates]
        if not self.by_parts:
            return texts
        year, *others = [text if text and parse_date(text) != UNKNOWN else "XX" for text in texts]
        return ["-".join((year, *others)) if year != "XX" else ""]


def table_lines(source: SourceText) -> Iterator[Line]:
    """The fields of every line that has any."""
    listed = [
        (number, line)
        for number, line in enumerate(source.text.split("\n"), start=1)
        if line.strip() and not (line.startswith("#") and number > 1)
    ]
    count = count_of(listed[0][1].strip()) if len(listed) > 1 else -1
    if count >= 0:
        if count != len(listed) - 1:
            told = f"{_place(source, listed[0][0])}: {count} dates are announced, {len(listed) - 1} follow"
            warnings.warn(told, InputWarning, stacklevel=4)
        listed = listed[1:]
    for number, line in listed:
        line = line.lstrip("#").strip(" ,;") if "=" in line else line.lstrip("#")
        yield number, _split(line)


def _split(line: str) -> list[str]:
    """Fields between tabs; else between semicolons, commas, an equals sign or blanks, none of them inside
    quotes or brackets."""
    line = line.strip("\r\n")
    if "\t" in line:
        return [field.strip() for field in line.split("\t")]
    pieces = _protected(line)
    separator = next((one for one in ";,=" if any(one in piece for piece in pieces[::2])), None)
    fields = [""]
    for i, piece in enumerate(pieces):
        if i % 2:
            fields[-1] += piece
            continue
        first, *others = piece.split(separator) if separator else re.split(r"\s+", piece)
        fields[-1] += first
        fields += others
    return [field.strip() for field in fields] if separator else [field for field in fields if field]


def _protected(line: str) -> list[str]:
    """The line in pieces, every second one in quotes or brackets."""
    pieces, start, position = [], 0, 0
    open_ended: set[str] = set()
    for match in _OPENING.finditer(line):
        if match.start() < position or match.group() in open_ended:
            continue
        end = line.find(_CLOSING[match.group()], match.end())
        if end < 0:
            open_ended.add(match.group())
            continue
        position = end + 1
        pieces += [line[start : match.start()], line[match.start() : position]]
        start = position
    return [*pieces, line[start:]]


def unquoted(name: str) -> str:
    """A name without the quotes around it."""
    name = name.strip()
    quoted = len(name) > 1 and name[0] == name[-1] and name[0] in "\"'"
    return name[1:-1].replace(name[0] * 2, name[0]) if quoted else name


def _columns(
    lines: list[Line], source: SourceText, wanted: tuple[str, ...] | None, reading: DateReading
) -> _Columns:
    """From a header if the first line is one, else name, date and perhaps a second date."""
    if not lines:
        raise _error("the table is empty", source, 1, hint="Write a line of name, tab and date a taxon.")
    number, first = lines[0]
    heads = _heads(first)
    asked = reading.name_column is not None or reading.date_column is not None
    dates = _date_columns(heads, source, number, reading.date_column)
    if not dates or (not asked and (len(heads) == 1 or _is_date(first[-1]))):
        if asked:
            raise _error("no column is called 'date'", source, number, hint="Name it (--date-column).")
        if len(first) == 2 and not _is_date(first[1]) and len(lines) > 1 and _is_date(lines[1][1][-1]):
            _tell_submission(heads[1], source)
            return _Columns(0, (1,), 1, reading.ages)
        dates = _called_date(heads, lines, source)
        if not dates:
            return _without_header(lines, source, reading)
    if reading.date_column is None and not reading.ages and heads[dates[0]] in _AGE_COLUMNS:
        _refuse_patients_ages(heads, dates, lines, source)
    usable = [heads.index(one) for one in _NAME_COLUMNS if one in heads and heads.index(one) not in dates]
    if reading.name_column is not None:
        usable = [_column(heads, reading.name_column, source, number)]
    usable = usable or [next(i for i in range(len(heads) + 1) if i not in dates)]
    if wanted is not None:
        names = set(wanted)

        def held(i: int) -> int:
            return sum(unquoted(fields[i]) in names for _, fields in lines[1:] if i < len(fields))

        if reading.name_column is None and not any(map(held, usable)):
            others = [i for i in range(len(heads)) if i not in dates and held(i)]
            usable = others or usable  # such as gisaid_epi_isl
        usable = [max(usable, key=held)]
    ages = reading.ages or (heads[dates[0]] in _AGE_COLUMNS)
    parts = _parts_of_dates(heads, dates) if reading.date_column is None else ()
    return _Columns(usable[0], parts or dates, 1, ages, len(heads), bool(parts))


def _heads(fields: list[str]) -> list[str]:
    return [_head(unquoted(field)) for field in fields]


def _head(name: str) -> str:
    """A header in one spelling: 'Collection Date', and what R makes of it, 'Collection.Date'."""
    return re.sub(r"[ .]", "_", name.lower())


def _date_columns(heads: list[str], source: SourceText, line: int, asked: str | None) -> tuple[int, ...]:
    if asked is not None:
        return (_column(heads, asked, source, line),)
    for lower, upper in _BOUND_COLUMNS:
        if lower in heads and upper in heads:
            return heads.index(lower), heads.index(upper)
    return tuple(heads.index(one) for one in _DATE_COLUMNS if one in heads)[:1]


def _parts_of_dates(heads: list[str], dates: tuple[int, ...]) -> tuple[int, ...]:
    """The columns of year, month and day, where a year has its month beside it; () where it has not."""
    if heads[dates[0]] not in ("year", "years") or "month" not in heads:
        return ()
    return dates[0], heads.index("month"), *(heads.index(one) for one in ("day",) if one in heads)


def _called_date(heads: list[str], lines: list[Line], source: SourceText) -> tuple[int, ...]:
    """The one column with dates whose header has "date" in it, such as numdate_given; () if none."""
    called = _with_dates(heads, lines)
    if len(called) > 1:
        raise _error(
            f"{' and '.join(repr(heads[i]) for i in called)[:200]} all have dates", source, lines[0][0],
            hint="Say which (--date-column).",
        )  # fmt: skip
    if called:
        _tell_submission(heads[called[0]], source)
    return tuple(called)


def _with_dates(heads: list[str], lines: list[Line]) -> list[int]:
    """The columns with dates whose header has "date" in it."""
    called = [i for i, head in enumerate(heads) if "date" in head and not _is_date(lines[0][1][i])]
    return [i for i in called if any(i < len(fields) and _is_date(fields[i]) for _, fields in lines[1:])]


def _refuse_patients_ages(
    heads: list[str], dates: tuple[int, ...], lines: list[Line], source: SourceText
) -> None:
    """InputError where ages stand beside dates: they may be those of patients."""
    others = [i for i in _with_dates(heads, lines) if i not in dates]
    if others:
        age, date = heads[dates[0]], heads[others[0]]
        raise _error(
            f"the samples' ages may be in '{age}', or their dates in '{date}'", source, lines[0][0],
            hint=f"Say which (--date-column {date}).",
        )  # fmt: skip


def _tell_submission(head: str, source: SourceText) -> None:
    if _OF_SUBMISSION.search(head):
        at = f"{shown_file(source.file)}: " if source.file else ""
        told = f"the only dates are of '{head}', which says when sequences came to a database"
        warnings.warn(f"{at}{told} rather than when they were sampled", InputWarning, stacklevel=4)


def _tell_other_columns(
    lines: list[Line],
    columns: _Columns,
    found: dict[str, tuple[int, DateRange]],
    source: SourceText,
    wanted: tuple[str, ...] | None,
) -> None:
    """A warning of another column of dates which says more, or other, than what was read: where a date that
    was read is not within the other."""
    if len(columns.dates) > 1 and not columns.by_parts:
        return  # limits, which the other is within
    heads = _heads(lines[columns.first - 1][1])
    others = [i for i, head in enumerate(heads) if head in _DATE_COLUMNS and head not in _AGE_COLUMNS]
    names = None if wanted is None else {folded(name) for name in wanted}
    read, at = heads[columns.dates[0]], f"{shown_file(source.file)}: " if source.file else ""
    for other in (i for i in others if i not in columns.dates):
        for _, fields in lines[columns.first :]:
            taxon = unquoted(fields[columns.name])
            text = unquoted(fields[other]) if other < len(fields) else ""
            if (names is not None and folded(taxon) not in names) or _within(found[taxon][1], text):
                continue
            shown = "-".join(columns.date_texts(fields)) or "none"
            told = (
                f"dates are of the column '{read}', {shown} for '{taxon}'; '{heads[other]}' has {text} there"
            )
            warnings.warn(f"{at}{told} (--date-column {heads[other]} takes it)", InputWarning, stacklevel=4)
            break


def _within(found: DateRange, text: str) -> bool:
    """Whether a date is, but for what is rounded, within another, which may be none."""
    try:
        other = as_asked(parse_date(text), "range")
    except InputError:
        return True
    return found.lower >= other.lower - _ROUNDED and found.upper <= other.upper + _ROUNDED


def _column(heads: list[str], name: str, source: SourceText, line: int) -> int:
    wanted = _head(name)
    if wanted not in heads:
        raise _error(
            f"no column is called '{name}'", source, line, hint=f"Choose one of {', '.join(heads)[:200]}."
        )
    return heads.index(wanted)


def _without_header(lines: list[Line], source: SourceText, reading: DateReading) -> _Columns:
    number, first = lines[0]
    width = max(len(fields) for _, fields in lines)
    if width > 3:
        raise _error(
            f"a table of {width} columns needs a header that says which is the date", source, number,
            hint="Add a first line with 'name' and 'date' over their columns.",
        )  # fmt: skip
    if width == 3 and len(first) == 3 and not (_is_date(first[1]) and _is_date(first[2])):
        raise _error(
            "three columns are a name and two dates, and here they are not", source, number,
            hint="Add a first line that names them: 'name', 'date'; or 'name', 'lower', 'upper'. If it has "
            "one with other names, say which column is the date (--date-column).",
        )  # fmt: skip
    return _Columns(0, (1, 2) if width == 3 else (1,), 0, reading.ages)


def _is_date(text: str) -> bool:
    try:
        return parse_date(text) != UNKNOWN
    except InputError:
        return False


def _place(source: SourceText, line: int) -> str:
    return f"{shown_file(source.file)}:{line}" if source.file else f"line {line}"


def _error(
    message: str, source: SourceText, line: int, taxon: str | None = None, hint: str | None = None
) -> InputError:
    return InputError(message, file=source.file, line=line, taxon=taxon, hint=hint)
