"""Sampling dates of taxa from their names; and how dates, wherever they are from, are matched with taxa."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal

import numpy as np

from phloem.data.dates import TipDates
from phloem.errors import InputError, InputWarning, shown_file
from phloem.io.date_text import UNKNOWN, DateRange, WholeYears, as_asked, parse_date, require_years
from phloem.tree.match import folded, likely_name, spellings

Undated = Literal["error", "unknown"]

_BETWEEN = r"[_|@/ ]"
_LAST_FIELD = re.compile(
    rf"(?:^|{_BETWEEN})"
    r"(\d{4}([-/])[\dX]{1,2}(?:\2[\dX]{1,2})?|\d{1,2}-[A-Za-z]{3}-\d{4}|-?\d{1,9}(?:\.\d{1,20})?"
    r"|(?:0?[1-9]|1[0-2]|(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec))-(?:1[5-9]|20)\d\d)$"
)
_SEVERAL_FIELDS = re.compile(  # of which the last alone would be a day or a year
    r"(?:^|[_|@ ])((?:1[5-9]|20)\d\d_(?:0?[1-9]|1[0-2]|XX)(?:_(?:0?[1-9]|[12]\d|3[01]|XX))?"
    r"|\d{1,2}/(?:\d{1,2}/)?(?:1[5-9]|20)\d\d)$"
)
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d(?:[.-]\d[\d-]*)?")  # what looks like a date wherever it stands
_SHOWN = 3


@dataclass(frozen=True)
class DateReading:
    """How dates are to be read.

    whole_years: a bare year such as 1982 is its start ("exact": 1982.0, as BEAST, TreeTime and LSD2 take it)
    or may be any time in it ("range"); "auto" takes it for its start unless other dates have months.
    ages: numbers are years before the present. undated: taxa without a date are an "error", or their date is
    "unknown". name_column, date_column: headers, where a table has several that fit.
    """

    whole_years: WholeYears = "auto"
    ages: bool = False
    undated: Undated = "error"
    name_column: str | None = None
    date_column: str | None = None


USUAL = DateReading()


def dates_from_names(
    taxa: Sequence[str],
    pattern: str | None = None,
    delimiter: str | None = None,
    field: int = -1,
    reading: DateReading = USUAL,
) -> TipDates:
    """Dates from the names of taxa: the last field after '|', '_', '/', '@' or a blank; or several where all
    names end in a month or day written so, as 2014_06_15 or 06/2014.

    delimiter: what stands between a name's fields, any of these where it is None; field: which of them is the
    date, from 0, or from the end (-1 is the last). pattern: a regular expression whose group `date`, or
    groups `year`, `month` and `day`, or first group, or whole, is the date. Raises InputError naming a taxon
    whose name has no date.
    """
    if pattern is not None and delimiter is not None:
        raise InputError("a pattern and a delimiter are both given", hint="Leave one out.")
    try:
        expression = _LAST_FIELD if pattern is None else re.compile(pattern)
    except re.error as error:
        raise InputError(
            f"the date pattern cannot be read: {error}", hint=r"Write as in '_(?P<date>\d+\.\d+)$'."
        ) from None
    found: dict[str, tuple[int, DateRange]] = {}
    without = []
    by_field = delimiter is not None or (pattern is None and field != -1)
    if expression is _LAST_FIELD and not by_field and not reading.ages:
        expression = _fields_of_date(taxa)
    for taxon in taxa:
        text = _field(taxon, delimiter, field) if by_field else _matched(taxon, expression)
        if text is not None and expression is _SEVERAL_FIELDS:
            text = text.replace("_", "-")
        if text is None:
            without.append(taxon)
        else:
            found[taxon] = 0, date_of([text], taxon, reading, reading.ages)
    if without and reading.undated == "error":
        few = 2 * len(without) < len(taxa)
        raise InputError(
            f"{len(without):,} of {len(taxa):,} names have no date in them, among them '{without[0]}'",
            taxon=without[0],
            hint="Give a table of dates; --without leaves them out, and phloem date can estimate them "
            "(--undated unknown)."
            if few
            else _where(without, field)
            or "Give a table of dates, or a pattern, or a delimiter and a field, that find them.",
        )
    return dates_record(found, tuple(taxa), reading, reading.ages, None)


def _fields_of_date(taxa: Sequence[str]) -> re.Pattern[str]:
    """Whether dates are the last fields of names or several; InputError where some are years and of others
    the last field is a month or day."""
    several = [taxon for taxon in taxa if _SEVERAL_FIELDS.search(taxon)]
    if len(several) == len(taxa):
        return _SEVERAL_FIELDS
    others = (taxon for taxon in taxa if not _SEVERAL_FIELDS.search(taxon))
    years = [taxon for taxon in others if _YEAR.fullmatch(_field(taxon, None, -1) or "")]
    if several and years:
        raise InputError(
            f"dates in names have several forms, as in '{several[0]}' and '{years[0]}'",
            taxon=several[0],
            hint="Give a table of dates (it may say 2014, 2014-06 and 2014-06-15), or --date-pattern with "
            "groups year, month and day.",
        )
    return _LAST_FIELD


def field_of_years(taxa: Sequence[str], but: int | None = None) -> tuple[int, tuple[str, ...]] | None:
    """Which field of the names, from 0, looks like a date in all, and its texts; None if there is none.

    but: a field that was tried."""
    for field in range(4):
        texts = tuple(_field(taxon, None, field) or "" for taxon in taxa)
        if field != but and all(_YEAR.fullmatch(text) for text in texts):
            return field, texts
    return None


def _where(taxa: Sequence[str], tried: int) -> str:
    """The same in words; '' where there is none."""
    found = field_of_years(taxa, tried)
    if found is None:
        return ""
    field, texts = found
    return f"Field {field} looks like one, {texts[0]}: --date-field {field}."


def _field(taxon: str, delimiter: str | None, field: int) -> str | None:
    fields = re.split(_BETWEEN, taxon) if delimiter is None else taxon.split(delimiter or "\0")
    return fields[field] if len(fields) > 1 and -len(fields) <= field < len(fields) else None


def _matched(taxon: str, expression: re.Pattern[str]) -> str | None:
    match = expression.search(taxon)
    if match is None:
        return None
    named = match.groupdict()
    if named.get("date") is not None:
        return named["date"]
    if named.get("year") is not None:
        return "-".join(part for part in (named.get(key) for key in ("year", "month", "day")) if part)
    return match.group(1 if expression.groups else 0) or ""


def date_of(texts: list[str], taxon: str, reading: DateReading, ages: bool) -> DateRange:
    """One date, or what two bound; ages become years before a present at 0."""
    parts = [parse_date(text, taxon) for text in texts]
    if len(parts) > 1 and any(part.error for part in parts):
        hint = "Give one date with its error, or the earliest and the latest."
        raise InputError("a date with an error is the end of a range", taxon=taxon, hint=hint)
    if ages:
        if any(part.calendar for part in parts):
            raise InputError(
                "a calendar date stands among ages", taxon=taxon, hint="Write years before present."
            )
        known = [0.0 - x for part in parts for x in (part.lower, part.upper) if np.isfinite(x)]
        if parts[0].error:
            return DateRange(min(known), min(max(known), 0.0), mean=-parts[0].mean, error=parts[0].error)
        return DateRange(min(known), max(known)) if known else UNKNOWN
    for part, text in zip(parts, texts):
        require_years(part, text.strip(), taxon)
    if len(parts) == 1:
        return parts[0]
    lower, upper = parts[0].lower, parts[1].upper
    if lower > upper:
        raise InputError(
            f"the range from {texts[0]} to {texts[1]} ends before it begins",
            taxon=taxon,
            hint="Swap the dates.",
        )
    return DateRange(lower, upper, calendar=parts[0].calendar or parts[1].calendar)


def dates_record(
    found: Mapping[str, tuple[int, DateRange]],
    wanted: tuple[str, ...] | None,
    reading: DateReading,
    ages: bool,
    file: str | None,
) -> TipDates:
    """The dates of the wanted taxa, whole years read as asked, with what is odd about them told."""
    whole = reading.whole_years
    if whole == "auto":
        whole = "range" if any(date.calendar for _, date in found.values()) else "exact"
    names = tuple(found) if wanted is None else wanted
    rows = _rows_of(names, found, reading, file) if wanted is not None else dict(zip(names, names))
    dates = [as_asked(found[rows[name]][1], whole) if name in rows else UNKNOWN for name in names]
    bare = [name for name in names if name in rows and found[rows[name]][0] is not None]
    if not ages:
        _tell_odd(
            {name: (found[rows[name]][0], date) for name, date in zip(names, dates) if name in bare}, file
        )
    lower, upper = [date.lower for date in dates], [date.upper for date in dates]
    if not any(np.isfinite(lower)) and not any(np.isfinite(upper)):
        raise InputError("no taxon has a date", file=file, hint="Give a date to at least two taxa.")
    means, errors = [date.mean for date in dates], [date.error for date in dates]
    return TipDates(names, lower, upper, not ages, means, errors)  # type: ignore[arg-type]


def _rows_of(
    names: tuple[str, ...], found: Mapping[str, tuple[int, DateRange]], reading: DateReading, file: str | None
) -> dict[str, str]:
    """Wanted taxon → the table's name for it; case and '_' for a blank make no difference."""
    rows, spelling = {}, spellings(found)
    for name in names:
        same = name if name in found else spelling.get(folded(name))
        if same is not None:
            rows[name] = same
    undated = [name for name in names if name not in rows or found[rows[name]][1] == UNKNOWN]
    surplus = [name for name in found if name not in set(rows.values())]
    if undated and reading.undated == "error":
        raise _undated(undated, found, surplus, names, file)
    if surplus:
        line = found[surplus[0]][0]
        near = likely_name(surplus[0], [name for name in names if name not in rows])
        guess = f" (is it '{near}'?)" if near else ""
        at = f"{shown_file(file)}:{line}: " if file else f"line {line}: "
        told = f"{at}{len(surplus):,} dates belong to no taxon of the data, among them '{surplus[0]}'{guess}"
        warnings.warn(told, InputWarning, stacklevel=5)
    return rows


def _undated(
    undated: list[str],
    found: Mapping[str, tuple[int, DateRange]],
    surplus: list[str],
    names: tuple[str, ...],
    file: str | None,
) -> InputError:
    """Which taxa have no date, and what their names may be in the table."""
    shown = ", ".join(f"'{name}'" for name in undated[:_SHOWN])
    more = "" if len(undated) <= _SHOWN else f" and {len(undated) - _SHOWN:,} more"
    guesses = [(name, near) for name in undated[:50] if (near := likely_name(name, surplus))]
    hint = (
        "Add a line for each, which may have limits, 1990..2016; --without leaves them out, and phloem date "
        "can estimate them (--undated unknown)."
    )
    if guesses:
        said = "; ".join(f"is '{name}' the table's '{near}'?" for name, near in guesses[:_SHOWN])
        hint = f"{said[0].upper()}{said[1:]} Use the same names in both."
    elif surplus and len(surplus) == len(found):
        hint = (
            f"No name is the same in both: the table has '{surplus[0]}'. Use the same names, or say which "
            "column has them (--name-column); of dates in the names leave --dates out."
        )
    line = found[undated[0]][0] if undated[0] in found else None
    message = f"{len(undated):,} of {len(names):,} taxa have no date: {shown}{more}"
    return InputError(message, file=file, line=line, taxon=undated[0], hint=hint)


def _tell_odd(dates: Mapping[str, tuple[int, DateRange]], file: str | None) -> None:
    """Warnings of dates in the future, of years of two digits among years of four, of what may be ages."""
    now = time.gmtime()
    today = now.tm_year + now.tm_yday / 365.25
    ahead = [name for name, (_, date) in dates.items() if today < date.lower < inf]
    begins = {name: date.lower for name, (_, date) in dates.items() if np.isfinite(date.lower)}
    furthest = max(map(abs, begins.values()), default=0.0)
    short = [name for name, year in begins.items() if abs(year) < 100 and furthest > 1000]
    padded = [name for name, (_, date) in dates.items() if date.padded and furthest < 100]
    if min(begins.values(), default=1.0) == 0.0 < furthest < 1000.0:
        at = f"{shown_file(file)}: " if file else ""
        what = "is the youngest of dates that go on from 0; if they are years before the present, say --ages"
        warnings.warn(f"{at}'{max(begins, key=begins.__getitem__)}' {what}", InputWarning, stacklevel=5)
    for names, what in (
        (ahead, "lie in the future"),
        (short, "are years of two digits, others of four (write 1985 for 85)"),
        (padded, "look like years of two digits, of which 99 is later than 09 (write 2009 for 09)"),
    ):
        if names:
            line = dates[names[0]][0]
            at = f"{shown_file(file)}:{line}: " if file else ""
            told = f"{at}{len(names):,} dates {what}, among them that of '{names[0]}'"
            warnings.warn(told, InputWarning, stacklevel=5)
