"""When taxa were sampled, in decimal years, and the calendar behind them.

The start of day k of a year of m days (k = 1 is January 1st) is year + (k − 1)/m, with m = 366 in leap years:
2020-03-01 is 2020 + 60/366. Years are those of the Gregorian calendar, carried on before its beginning; year
0 is 1 BC. A day is exact and stands for its start, as in BEAST; a month or a year lasts from the start of its
first day to the start of the next one's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from phloem.errors import InputError

_BEFORE_MONTH = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365)  # days, in a common year


@dataclass(frozen=True, eq=False)
class TipDates:
    """When each taxon was sampled.

    names: T distinct taxa. lower, upper: (T,) float64, the earliest and latest decimal year it may have been;
    equal where the date is exact, infinite where that side is not known. calendar: False if the years count
    from an unknown present, which is 0: they are ages with a minus. error: (T,) standard deviations of normal
    errors, 0 where there is none; mean: (T,) what these are about, and lower and upper leave 95 % between
    them. Raises InputError naming the taxon.
    """

    names: tuple[str, ...]
    lower: np.ndarray
    upper: np.ndarray
    calendar: bool = True
    mean: np.ndarray = ()  # type: ignore[assignment]
    error: np.ndarray = ()  # type: ignore[assignment]

    def __post_init__(self) -> None:
        n = len(self.names)
        for of_taxa in ("lower", "upper", "mean", "error"):
            given = np.array(getattr(self, of_taxa), np.float64)
            object.__setattr__(self, of_taxa, given if given.size or not n else np.zeros(n))
        sizes = {len(own) for own in (self.lower, self.upper, self.mean, self.error)}
        if sizes != {n} or n != len(set(self.names)):
            raise InputError("dates need one name each, and each name once")
        wrong = np.isnan(self.lower) | np.isnan(self.upper) | (self.lower > self.upper)
        if wrong.any():
            taxon = self.names[int(np.argmax(wrong))]
            hint = "Give the earliest year first."
            raise InputError("a date's range ends before it begins", taxon=taxon, hint=hint)

    @property
    def exact(self) -> np.ndarray:
        """(T,) whether the date is one moment."""
        return self.lower == self.upper

    @cached_property
    def middle(self) -> np.ndarray:
        """(T,) the middle of each range, or what an error is about; its known end where the other is not, NaN
        where neither is."""
        lower = np.where(np.isfinite(self.lower), self.lower, self.upper)
        upper = np.where(np.isfinite(self.upper), self.upper, self.lower)
        known = np.isfinite(lower)
        middle = 0.5 * (np.where(known, lower, 0.0) + np.where(known, upper, 0.0))
        return np.where(self.error > 0, self.mean, np.where(known, middle, np.nan))

    @property
    def latest(self) -> float:
        """The year in which ages begin: the latest that any taxon may have been sampled in; of years that
        count from the present that, also where all taxa are older."""
        if not self.calendar:
            return 0.0
        known = self.upper[np.isfinite(self.upper)]
        return float(known.max()) if len(known) else float(np.nanmax(self.middle))

    @property
    def ages(self) -> tuple[np.ndarray, np.ndarray]:
        """(T,) the least and the largest age of each taxon, years before `latest`."""
        return np.maximum(self.latest - self.upper, 0.0), self.latest - self.lower

    def of(self, taxa: Sequence[str]) -> TipDates:
        """The dates of these taxa, in their order; InputError naming one that has none."""
        place = {name: i for i, name in enumerate(self.names)}
        absent = [name for name in taxa if name not in place]
        if absent:
            message = f"{len(absent)} taxa have no date, among them '{absent[0]}'"
            raise InputError(message, taxon=absent[0], hint="Give a date for every taxon.")
        rows = [place[name] for name in taxa]
        lower, upper, mean, error = (x[rows] for x in (self.lower, self.upper, self.mean, self.error))
        return TipDates(tuple(taxa), lower, upper, self.calendar, mean, error)

    def within(self, deviations: float) -> TipDates:
        """The same dates, those with errors within so many standard deviations; no age is below 0."""
        away, wrong = deviations * self.error, self.error > 0
        upper = self.mean + away if self.calendar else np.minimum(self.mean + away, 0.0)
        lower, upper = np.where(wrong, self.mean - away, self.lower), np.where(wrong, upper, self.upper)
        return TipDates(self.names, lower, upper, self.calendar, self.mean, self.error)


def is_leap(year: int) -> bool:
    """Whether a year has 366 days."""
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def days_in_month(year: int, month: int) -> int:
    """Of months 1 … 12."""
    return _BEFORE_MONTH[month] - _BEFORE_MONTH[month - 1] + (month == 2 and is_leap(year))


def year_of_day(year: int, month: int, day: int) -> float:
    """The decimal year at which a day starts; the day may be the last one's follower."""
    before = _BEFORE_MONTH[month - 1] + (month > 2 and is_leap(year)) + day - 1
    return year + before / (365 + is_leap(year))


def day_of_year(decimal: float) -> tuple[int, int, int]:
    """Year, month and day that hold a moment; a moment that rounding put just before a day belongs to it."""
    year = int(np.floor(decimal + 1e-9))
    length = 365 + is_leap(year)
    left = min(max(int(np.floor((decimal - year) * length + 1e-6)), 0), length - 1)
    month = 1
    while left >= days_in_month(year, month):
        left -= days_in_month(year, month)
        month += 1
    return year, month, left + 1


def shown_year(decimal: float, calendar: bool = True) -> str:
    """A moment as people read it, 1998-07-31; as a number before year 1 and where there is no calendar."""
    if not calendar or not 1 <= decimal < 10000:
        return f"{decimal:.6g}"
    year, month, day = day_of_year(decimal)
    return f"{year:04d}-{month:02d}-{day:02d}"
