import pytest

from phloem.errors import InputError
from phloem.io.dates import dates_from_names, dates_from_table, parse_date


@pytest.mark.parametrize(
    "text, year",
    [
        ("2005.59", 2005.59),
        ("2007", 2007.0),
        ("-500", -500.0),
        ("2020-03-01", 2020 + 60 / 366),
        ("2019/01/01", 2019.0),
    ],
)
def test_exact_dates(text, year):
    assert parse_date(text)[0] == pytest.approx(year, abs=1e-12)


def test_a_month_is_its_middle():
    year, width = parse_date("2021-02")
    assert year == pytest.approx(2021 + (31 + 14) / 365) and width == pytest.approx(28 / 365)


def test_names():
    dates = dates_from_names(["a_2005.59", "b|2020-03-01", "c@1999"])
    assert dates.years.tolist() == pytest.approx([2005.59, 2020 + 60 / 366, 1999.0])
    assert dates_from_names(["x1987y"], r"x(\d+)y").years.tolist() == [1987.0]


def test_table():
    dates = dates_from_table("name\tdate\na\t2001.5\nb\t2002-01-01\n", taxa=["b", "a"])
    assert dates.taxa == ("b", "a") and dates.years.tolist() == [2002.0, 2001.5]
    assert dates_from_table("a,2001\n").years.tolist() == [2001.0]


@pytest.mark.parametrize("text", ["2020-02-30", "2020-13", "yesterday", "", "1e5", "٢٠٢٠"])
def test_no_dates(text):
    with pytest.raises(InputError) as error:
        parse_date(text, "tip")
    assert error.value.taxon == "tip" and error.value.hint


@pytest.mark.parametrize("text, line", [("a\t1\na\t2\n", 2), ("a\t1\nb\n", 2), ("a\tx\n", 1)])
def test_bad_tables(text, line):
    with pytest.raises(InputError) as error:
        dates_from_table(text)
    assert error.value.line == line


def test_missing_taxa_and_patterns():
    with pytest.raises(InputError) as error:
        dates_from_table("a\t1\n", taxa=["a", "b"])
    assert error.value.taxon == "b"
    with pytest.raises(InputError) as error:
        dates_from_names(["a_2001", "plain"])
    assert error.value.taxon == "plain"
    with pytest.raises(InputError):
        dates_from_names(["a"], "(")
