"""Sampling dates as decimal years, from a file of names and dates or from the names themselves.

A decimal number is a year as it stands (2005.59; 2007 is 2007.0). A calendar date is the start of that day,
year + (day of year − 1) / days in the year, as in BEAST; a month without a day is the middle of the month.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from phloem.errors import InputError
from phloem.io.source_text import read_source

_DECIMAL = re.compile(r"[-+]?\d{1,7}(?:\.\d{1,20})?")
_CALENDAR = re.compile(r"(\d{4})[-/](\d{1,2})(?:[-/](\d{1,2}))?")
_LAST_FIELD = re.compile(r"(?:^|[_|@])(\d{4}[-/]\d{1,2}(?:[-/]\d{1,2})?|-?\d{1,7}(?:\.\d{1,20})?)$")
_HINT = "Write 2005.59, 2020-03-01 or 2020-03."


@dataclass(frozen=True)
class SamplingDates:
    """When each taxon was sampled: taxa, years (T,) decimal years, widths (T,) years the date leaves open."""

    taxa: tuple[str, ...]
    years: np.ndarray
    widths: np.ndarray


def parse_date(text: str, taxon: str | None = None) -> tuple[float, float]:
    """Decimal year and the width in years that the text leaves open; InputError naming the taxon."""
    text = text.strip()
    if text.isascii() and _DECIMAL.fullmatch(text):
        return float(text), 0.0
    match = _CALENDAR.fullmatch(text) if text.isascii() else None
    if match is None:
        raise InputError(f"'{text[:60]}' is no date", taxon=taxon, hint=_HINT)
    year, month, day = int(match[1]), int(match[2]), match[3]
    try:
        start = date(year, month, int(day or 1))
        following = date(year + month // 12, month % 12 + 1, 1)
        new_year, length = date(year, 1, 1), (date(year + 1, 1, 1) - date(year, 1, 1)).days
    except ValueError:
        raise InputError(f"'{text}' is not in the calendar", taxon=taxon, hint=_HINT) from None
    width = 1 if day else (following - start).days
    offset = (start - new_year).days + (0 if day else width / 2)
    return year + offset / length, width / length


def dates_from_names(taxa: Sequence[str], pattern: str | None = None) -> SamplingDates:
    """Dates from tip names: the last field after '_', '|' or '@', or the first group of a regular expression.

    Raises InputError naming the taxon whose name has no date, and for a pattern that is none.
    """
    try:
        expression = _LAST_FIELD if pattern is None else re.compile(pattern)
    except re.error as error:
        raise InputError(
            f"the date pattern cannot be read: {error}", hint=r"Write as in '_(\d+\.\d+)$'."
        ) from None
    return _record(tuple(taxa), [parse_date(_dated_part(taxon, expression), taxon) for taxon in taxa])


def dates_from_table(text: str, file: str | None = None, taxa: Iterable[str] | None = None) -> SamplingDates:
    """Dates from lines of name, tab (or comma, or blanks), date; a first line "name date" is a header.

    taxa: those that need a date, in that order; None takes the table's. Raises InputError with line and
    taxon for lines that are no such pair, names that are there twice, dates that are none, missing taxa.
    """
    found: dict[str, tuple[float, float]] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = _fields(line)
        if not found and len(fields) > 1 and fields[1].lower() in ("date", "dates", "year", "years", "time"):
            continue
        if len(fields) < 2:
            raise InputError("expected a name and a date", file=file, line=number, hint=_HINT)
        taxon = fields[0]
        if taxon in found:
            raise InputError(
                f"'{taxon}' has two dates", file=file, line=number, taxon=taxon, hint="Keep one of them."
            )
        try:
            found[taxon] = parse_date(fields[1], taxon)
        except InputError as error:
            raise InputError(error.message, file=file, line=number, taxon=taxon, hint=error.hint) from None
    names = tuple(found if taxa is None else taxa)
    for taxon in names:
        if taxon not in found:
            raise InputError(f"'{taxon}' has no date", file=file, taxon=taxon, hint="Add a line for it.")
    return _record(names, [found[taxon] for taxon in names])


def _fields(line: str) -> list[str]:
    for separator in ("\t", ","):
        if separator in line:
            return [field.strip() for field in line.split(separator)]
    return line.split()


def _dated_part(taxon: str, expression: re.Pattern[str]) -> str:
    match = expression.search(taxon)
    if match is None:
        raise InputError(
            f"the name '{taxon}' has no date", taxon=taxon, hint="Give a date file or a pattern."
        )
    return match.group(1 if expression.groups else 0) or ""


def _record(taxa: tuple[str, ...], values: Sequence[tuple[float, float]]) -> SamplingDates:
    pairs = np.array(values, np.float64).reshape(-1, 2)
    return SamplingDates(taxa, pairs[:, 0].copy(), pairs[:, 1].copy())


def read_dates(path: str | os.PathLike[str], taxa: Iterable[str] | None = None) -> SamplingDates:
    """Read name and date from each line of a file (tab, comma or blanks between); see `dates_from_table`."""
    source = read_source(path)
    return dates_from_table(source.text, source.file, taxa)
