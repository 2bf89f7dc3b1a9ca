from datetime import date, timedelta

import numpy as np
import pytest

from phloem.data.dates import TipDates, day_of_year, days_in_month, shown_year, year_of_day
from phloem.errors import InputError


def test_every_day_of_four_centuries_there_and_back():
    day, one = date(1799, 12, 30), timedelta(days=1)
    while day < date(2101, 1, 3):
        decimal = year_of_day(day.year, day.month, day.day)
        first, next_first = date(day.year, 1, 1), date(day.year + 1, 1, 1)
        assert decimal == day.year + (day - first).days / (next_first - first).days
        assert day_of_year(decimal) == (day.year, day.month, day.day)
        day += one * (1 if day.day < 3 or day.day > 27 else 7)


def test_leap_years():
    assert year_of_day(2020, 3, 1) == 2020 + 60 / 366 and year_of_day(2019, 3, 1) == 2019 + 59 / 365
    assert [days_in_month(year, 2) for year in (1900, 2000, 2019, 2020)] == [28, 29, 28, 29]
    assert year_of_day(2019, 12, 32) == 2020.0


def test_ranges_middles_and_ages():
    dates = TipDates(
        ("a", "b", "c", "d"), [2000.5, 2001.0, -np.inf, -np.inf], [2000.5, 2002.0, 1999.0, np.inf]
    )
    assert dates.exact.tolist() == [True, False, False, False]
    assert dates.middle[:3].tolist() == [2000.5, 2001.5, 1999.0] and np.isnan(dates.middle[3])
    assert dates.latest == 2002.0
    youngest, oldest = dates.ages
    assert youngest.tolist() == [1.5, 0.0, 3.0, 0.0] and oldest.tolist() == [1.5, 1.0, np.inf, np.inf]
    assert dates.of(["b", "a"]).lower.tolist() == [2001.0, 2000.5]


@pytest.mark.parametrize(
    "lower, upper", [([2.0, 1.0], [1.0, 1.0]), ([np.nan, 1.0], [1.0, 1.0]), ([1.0], [1.0])]
)
def test_refused(lower, upper):
    with pytest.raises(InputError):
        TipDates(("a", "b"), lower, upper)
    with pytest.raises(InputError) as error:
        TipDates(("a",), [1.0], [1.0]).of(["a", "b"])
    assert error.value.taxon == "b"


def test_shown():
    assert shown_year(2020 + 60 / 366) == "2020-03-01" and shown_year(-3.25) == "-3.25"
    assert shown_year(1998.58, calendar=False) == "1998.58"
