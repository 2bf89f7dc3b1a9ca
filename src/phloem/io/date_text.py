"""One date as people write it: what it says of the decimal year, and how exactly.

| text | read as |
|---|---|
| 2005.59, -500, 1982 | that decimal year; a whole one may also be asked to last until the next |
| 2020-03-01, 2020/03/01, 20200301, 01-Mar-2020, 2020-03-01T12:30 | the start of that day |
| 2020-03, 03/2020, 03-2020, 2020-03-XX, Mar-2020, 2020-XX-XX, 201X | all of that time, till now |
| [2010:2012.5], 2010..2012, 2020-01-01/2020-02-01, b(2010,2012) | from the first's begin to the last's end |
| l(2010), u(2012), >2010, <2012 | that end alone |
| 4520±35, 4520+/-35, normal(4520,35) | that year with a normal error of this standard deviation |
| ?, NA, XXXX-XX-XX, nothing | not known |
"""

from __future__ import annotations

import re
from datetime import date
from math import inf
from typing import Literal, NamedTuple

from phloem.data.dates import days_in_month, year_of_day
from phloem.errors import InputError

WholeYears = Literal["auto", "exact", "range"]

_NUMBER = re.compile(r"[-+]?\d{1,9}(?:\.\d{0,20})?")
_DAY = re.compile(
    r"([\dX]{4})([-/])([\dX]{1,2})(?:\2([\dX]{1,2}))?(?:[T ]\d\d:\d\d[\d:.]*(?:Z|[-+]\d\d:?\d\d)?)?"
)
_COMPACT = re.compile(r"([12]\d{3})(\d\d)(\d\d)")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NAMED_MONTH = re.compile(r"(?:(\d{1,2})-)?([A-Z]{3})[A-Z]*-(\d{4})", re.IGNORECASE)
_MONTH_FIRST = re.compile(r"(\d{1,2})[/-](\d{4})")
_OTHER_ORDER = re.compile(r"\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}")
_UNKNOWN = {"", "?", "-", "na", "n/a", "nan", "none", "null", "unknown", "missing", "not available", "xxxx"}
_BETWEEN = re.compile(r"\[(.+?)[:,](.+)\]|b\((.+?),(.+)\)|(.+?)\.\.(.+)|([^:/\[]+[-.][^:/]+)[:/]([^:/\]]+)")
_BRACKETS = re.compile(r"[\[(](.*)[\])]")
_ONE_SIDED = re.compile(r"([lu])\((.+)\)|([<>])=?(.+)", re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"-?\d{1,9},\d{1,20}")
_ERA = re.compile(r"(?<![A-Z])(BCE?|BP|CE|AD|[km]a|kyr)\b", re.IGNORECASE)
_WITH_ERROR = re.compile(r"(.+?)\s*(?:\+/-|\+-|±)\s*(.+)|n(?:ormal)?\((.+),(.+)\)", re.IGNORECASE)
_LIMITS = 1.96  # standard deviations to either side that leave 95 %
_HINT = "Write 2005.59, 2020-03-01, 2020-03, or [2010:2012.5] for a range."
_LONGEST = 100  # characters of a date
_SERIAL_DAYS = 25_569  # of 1970-01-01, counted from the end of 1899 as spreadsheets do


class DateRange(NamedTuple):
    """lower, upper: decimal years. whole: a bare whole year; calendar: written with month, day or X. error:
    the standard deviation of a normal error, 0 without one; lower and upper leave 95 % then, about mean.
    padded: written as 09, which may be a year of two digits."""

    lower: float
    upper: float
    whole: bool = False
    calendar: bool = False
    mean: float = 0.0
    error: float = 0.0
    padded: bool = False


UNKNOWN = DateRange(-inf, inf)


def parse_date(text: str, taxon: str | None = None) -> DateRange:
    """What a text says of a date, see the module; InputError naming the taxon where it says nothing."""
    text = text.strip().strip("\"'").strip()
    if text.lower() in _UNKNOWN:
        return UNKNOWN
    usual = text.replace("±", "").isascii() and len(text) <= _LONGEST
    found = (_one_date(text, taxon) or _with_error(text, taxon)) if usual else None
    if found is None and usual:
        found = _range(text, taxon)
    if found is None:
        hint = "Write the year first, as in 2020-03-01." if _OTHER_ORDER.fullmatch(text) else _HINT
        if _DECIMAL_COMMA.fullmatch(text):
            hint = f"Write decimals with a point, {text.replace(',', '.')}."
        if _ERA.search(text):
            hint = "Write years before Christ as -1200, of ages before the present the number, with --ages."
        raise InputError(f"'{text[:60]}' is no date", taxon=taxon, hint=hint)
    return found


def _one_date(text: str, taxon: str | None) -> DateRange | None:
    """A moment, a day, a month, a year; None if it is none of them."""
    compact = _COMPACT.fullmatch(text)
    if compact is not None:
        return _calendar(compact[1], compact[2], compact[3], text, taxon)
    if _NUMBER.fullmatch(text):
        padded = len(text) == 2 and text[0] == "0"
        return DateRange(float(text), float(text), whole=text.lstrip("+-").isdigit(), padded=padded)
    day = _DAY.fullmatch(text.upper())
    if day is not None:
        return _calendar(day[1], day[3], day[4], text, taxon)
    named = _NAMED_MONTH.fullmatch(text)
    if named is not None and named[2].lower() in _MONTHS:
        return _calendar(named[3], str(_MONTHS.index(named[2].lower()) + 1), named[1], text, taxon)
    month_first = _MONTH_FIRST.fullmatch(text)
    if month_first is not None:
        return _calendar(month_first[2], month_first[1], None, text, taxon)
    years = re.fullmatch(r"\d{1,3}X{1,3}|XXXX", text.upper())
    return _calendar(text.upper(), "XX", None, text, taxon) if years and len(text) == 4 else None


def _calendar(year: str, month: str, day: str | None, text: str, taxon: str | None) -> DateRange:
    """X stands for any digit; what is not written lasts as long as it leaves open."""
    if year == "XXXX":
        return UNKNOWN
    first, last = int(year.replace("X", "0")), int(year.replace("X", "9"))
    if "X" in year:  # nothing is sampled later than this year
        last = max(min(last, date.today().year), first)
    known_day = None if day is None or "X" in day else int(day)
    months = (1, 12) if "X" in month or first < last else (int(month), int(month))
    if not 1 <= months[0] <= 12 or (
        known_day is not None and not 1 <= known_day <= days_in_month(last, months[0])
    ):
        nothing = not months[0] or known_day == 0
        hint = "Write XX for a month or day that is not known: 2020-06-XX, 2020-XX-XX." if nothing else _HINT
        raise InputError(f"'{text}' is not in the calendar", taxon=taxon, hint=hint)
    if known_day is not None and months[0] == months[1]:
        start = year_of_day(first, months[0], known_day)
        return DateRange(start, start, calendar=True)
    end = year_of_day(last, months[1], days_in_month(last, months[1]) + 1)
    return DateRange(year_of_day(first, months[0], 1), end, calendar=True)


def _with_error(text: str, taxon: str | None) -> DateRange | None:
    """A moment and how far it may be off; None if it is no such thing."""
    match = _WITH_ERROR.fullmatch(text)
    if match is None:
        return None
    moment = _one_date((match[1] or match[3]).strip(), taxon)
    error = (match[2] or match[4]).strip()
    if moment is None or moment.lower < moment.upper or not _NUMBER.fullmatch(error) or float(error) <= 0.0:
        hint = "Write a year or a day and a standard deviation in years, as in 4520+/-35."
        raise InputError(f"'{text}' is no date with an error", taxon=taxon, hint=hint)
    return with_normal_error(moment.lower, float(error))._replace(calendar=moment.calendar)


def with_normal_error(mean: float, error: float) -> DateRange:
    """A decimal year that is known with a normal error of this standard deviation."""
    return DateRange(mean - _LIMITS * error, mean + _LIMITS * error, mean=mean, error=error)


def _range(text: str, taxon: str | None) -> DateRange | None:
    """Two dates, or one with the side it bounds; None if it is neither."""
    bounded = _ONE_SIDED.fullmatch(text)
    if bounded is not None:
        below = (bounded[1] or bounded[3]).lower() in ("u", "<")
        end = _one_date((bounded[2] or bounded[4]).strip(), taxon)
        if end is None:
            return None
        return DateRange(-inf, end.upper) if below else DateRange(end.lower, inf)
    match = _BETWEEN.fullmatch(text)
    if match is None:
        inside = _BRACKETS.fullmatch(text)
        return None if inside is None else _one_date(inside[1].strip(), taxon)
    ends = [_one_date(part.strip(), taxon) for part in match.groups() if part is not None]
    if ends[0] is None or ends[1] is None:
        return None
    if ends[0].lower > ends[1].upper:
        raise InputError(
            f"the range '{text}' ends before it begins", taxon=taxon, hint="Give the earliest date first."
        )
    return DateRange(ends[0].lower, ends[1].upper, calendar=ends[0].calendar or ends[1].calendar)


def require_years(found: DateRange, text: str, taxon: str | None = None) -> None:
    """InputError for numbers that are no years: days as spreadsheets count them, or others above 9999."""
    latest = found.upper if found.upper < inf else found.lower
    if not 9999 < latest < inf:
        return
    hint = (
        "Write a year such as 2020.17 or a date such as 2020-03-01; for years before the present say --ages."
    )
    days = int(latest)
    if 36_000 < days < 80_000:  # from 1998 to 2118
        year = 1970 + (days - _SERIAL_DAYS) / 365.2425
        hint = f"As a spreadsheet's day number it would be in {year:.1f}: save dates as text, 2020-03-01."
    raise InputError(f"'{text}' is no year", taxon=taxon, hint=hint)


def as_asked(found: DateRange, whole_years: WholeYears) -> DateRange:
    """A bare whole year as its start ("exact"), or all of it ("range")."""
    return found._replace(upper=found.lower + 1.0) if found.whole and whole_years == "range" else found
