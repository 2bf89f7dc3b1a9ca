import re
import warnings
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from phloem.errors import InputError, InputWarning
from phloem.io.alignment import read_alignment
from phloem.io.date_table import dates_from_table, read_dates
from phloem.io.date_text import parse_date, require_years
from phloem.io.dates import DateReading, dates_from_names
from phloem.io.trees import read_tree
from phloem.tree.tree import node_heights, tip_heights

INF = np.inf
MARCH = (2020 + 60 / 366, 2020 + 91 / 366)
MARCH_2021 = 2021 + 59 / 365, 2021 + 90 / 365


@pytest.mark.parametrize(
    "text, lower, upper",
    [
        ("2005.59", 2005.59, 2005.59),
        ("2007", 2007.0, 2007.0),
        ("-500", -500.0, -500.0),
        ("2020-03-01", MARCH[0], MARCH[0]),
        ("2019-03-01", 2019 + 59 / 365, 2019 + 59 / 365),
        ("20200301", MARCH[0], MARCH[0]),
        ("2020-03-01T12:30:00Z", MARCH[0], MARCH[0]),
        ("01-Mar-2020", MARCH[0], MARCH[0]),
        ("2019/01/01", 2019.0, 2019.0),
        ("2020-12-31", 2020 + 365 / 366, 2020 + 365 / 366),
        ("2020-03", *MARCH),
        ("2020-03-XX", *MARCH),
        ("Mar-2020", *MARCH),
        ("2021-02", 2021 + 31 / 365, 2021 + 59 / 365),
        ("2020-XX-XX", 2020.0, 2021.0),
        ("201X-XX-XX", 2010.0, 2020.0),
        ("20XX", 2000.0, date.today().year + 1.0),
        ("21XX-XX-XX", 2100.0, 2101.0),
        ("[2010:2012.5]", 2010.0, 2012.5),
        ("[2010.5]", 2010.5, 2010.5),
        ("2010..2012", 2010.0, 2012.0),
        ("2013.2:2013.7", 2013.2, 2013.7),
        ("2020-01-01/2020-03", 2020.0, MARCH[1]),
        ("b(2010,2012)", 2010.0, 2012.0),
        ("4520±35", 4520 - 68.6, 4520 + 68.6),
        ("2020-03-01 +/- 0.5", MARCH[0] - 0.98, MARCH[0] + 0.98),
        ("normal(-500, 10)", -519.6, -480.4),
        ("l(2010)", 2010.0, INF),
        ("u(2012)", -INF, 2012.0),
        (">2010", 2010.0, INF),
        ("?", -INF, INF),
        ("XXXX-XX-XX", -INF, INF),
        ("", -INF, INF),
    ],
)
def test_one_date(text, lower, upper):
    found = parse_date(text)
    assert (found.lower, found.upper) == pytest.approx((lower, upper), abs=1e-12)


@pytest.mark.parametrize(
    "text",
    ["2020-02-30", "2020-13", "2019-02-29", "yesterday", "1e5", "٢٠٢٠", "01/02/2020", "2005,59", "20201301",
     "2012..2010", "b(2010)", "2010:2012", "[", "1982-85"],
)  # fmt: skip
def test_no_dates(text):
    with pytest.raises(InputError) as error:
        parse_date(text, "tip")
    assert error.value.taxon == "tip" and error.value.hint
    assert text != "2005,59" or "point, 2005.59" in error.value.hint


@pytest.mark.parametrize(
    "text, told", [("43891", "day number"), ("18262", "--ages"), ("123456789", "--ages")]
)
def test_numbers_that_are_days(text, told):
    with pytest.raises(InputError) as error:
        require_years(parse_date(text), text, "tip")
    assert error.value.taxon == "tip" and told in error.value.hint
    require_years(parse_date("9999"), "9999")


def test_names():
    dates = dates_from_names(
        ["a_2005.59", "b|2020-03-01", "c@1999", "A/HK/1/1968", "d|2020-03-XX", "e_2019/12/31"]
    )
    assert dates.lower.tolist() == pytest.approx(
        [2005.59, MARCH[0], 1999.0, 1968.0, MARCH[0], 2019 + 364 / 365]
    )
    assert dates.upper[2:5].tolist() == pytest.approx([2000.0, 1969.0, MARCH[1]])  # bare years beside months
    months = dates_from_names(["a|03-2020", "b_Mar-2020", "c_2019"])
    assert months.upper.tolist() == pytest.approx([MARCH[1], MARCH[1], 2020.0])
    for name in ("a|13-2020", "a|15-03-2020", "a|Mai-2020"):
        with pytest.raises(InputError, match="no date"):
            dates_from_names([name])
    assert dates_from_names(["x1987y"], r"x(\d+)y").lower.tolist() == [1987.0]
    assert dates_from_names(["x1987y5"], r"x(?P<n>.)(?P<date>\d+)y").lower.tolist() == [987.0]
    parts = dates_from_names(["3.2020.x"], r"(?P<month>\d+)\.(?P<year>\d+)")
    assert (parts.lower[0], parts.upper[0]) == pytest.approx(MARCH)
    assert dates_from_names(["a|1999|x"], delimiter="|", field=1).lower.tolist() == [1999.0]
    assert dates_from_names(
        ["a|1999|x", "b"], delimiter="|", field=-2, reading=DateReading(undated="unknown")
    ).lower.tolist() == [1999.0, -INF]


def test_names_that_end_in_a_date_of_several_fields():
    """The last field alone would be the year 15, or all of 2020 without its month."""
    dates = dates_from_names(["a_2020_03_01", "b_2020_3", "c|2020_03_XX", "d 2020_XX_XX"])
    assert dates.lower.tolist() == pytest.approx([MARCH[0], MARCH[0], MARCH[0], 2020.0])
    assert dates.upper.tolist() == pytest.approx([MARCH[0], MARCH[1], MARCH[1], 2021.0])
    assert dates_from_names(["a|03/2020"]).upper.tolist() == pytest.approx([MARCH[1]])
    assert dates_from_names(["A/HK/03/2020"]).upper.tolist() == [2020.0], "03 is a field of its own"
    with pytest.raises(InputError, match="15/03/2020' is no date"):
        dates_from_names(["a_15/03/2020"])
    with pytest.raises(InputError, match="not in the calendar"):
        dates_from_names(["a_13/2020"])
    assert dates_from_names(["a_2020_07", "b_26.5"], reading=DateReading(ages=True)).lower[0] == -7.0
    with pytest.raises(InputError, match="several forms, as in 'a_2020_03_15' and 'b_2019'"):
        dates_from_names(["b_2019", "a_2020_03_15"])  # 15 would be a year
    with pytest.raises(InputError, match="several forms"):
        dates_from_names(["a|03/2020", "b|2019.5"])


LAYOUTS = {
    "tabs": "name\tdate\na\t2001.5\nb c\t2002-01-01\n",
    "commas, no header": "a,2001.5\nb c,2002\n",
    "semicolons": "taxon;date\n'a';2001.5\n\"b c\";2002\n",
    "LSD2": "2\na 2001.5\n'b c' b(2002,2002)\n",
    "TreeTime": "#name,date\na,[2001.5:2001.5]\nb c,2002.0\n",
    "BEAST 2": "a=2001.5,\nb c=2002\n",
    "Nextstrain": "strain\tvirus\tdate\tregion\na\tzika\t2001.5\tAsia\nb c\tzika\t2002-01-01\tAsia\n",
    "phangorn": "name,numdate_given,Location\na,2001.5,Oregon\nb c,2002,Peru\n",
    "unknown header": "who\twhen\na\t2001.5\nb c\t2002\n",
    "two columns": "a\t2001.5\t2001.5\nb c\t2002\t2002\n",
    "bounds": "id,lower,upper\na,2001.5,2001.5\nb c,2002,2002\n",
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dates = dates_from_table(LAYOUTS[layout], taxa=["b c", "a"])
    assert dates.names == ("b c", "a")
    assert dates.lower.tolist() == dates.upper.tolist() == [2002.0, 2001.5]


def test_choice_of_columns():
    text = "accession\tstrain\tdate\tcollected\nX1\ta\t1999\t2001.5\nX2\tb\t1998\t2002\n"
    assert dates_from_table(text, ["a", "b"]).lower.tolist() == [1999.0, 1998.0]
    assert dates_from_table(text, ["X2"]).lower.tolist() == [1998.0]
    asked = DateReading(name_column="Strain", date_column="collected")
    assert dates_from_table(text, ["a", "b"], asked).lower.tolist() == [2001.5, 2002.0]
    with pytest.warns(InputWarning, match="'date', 1999 for 'a'; 'collected' has 2001.5 there .*--date"):
        dates_from_table(text)
    text = "name\tdate\tnum_date\tyear\na\t2009-XX-XX\t2009.164\t2009\nb\t2009-03-02\t2009.1658\t2009\n"
    with pytest.warns(
        InputWarning, match="'date', 2009-XX-XX for 'a'; 'num_date' has 2009.164 there"
    ) as told:
        dates_from_table(text, ["a", "b"])
    assert len(told) == 1, "not of the year, which says less"
    with warnings.catch_warnings():
        warnings.simplefilter("error", InputWarning)
        dates_from_table(text.replace("2009-XX-XX", "2009-03-02"), ["b", "a"])
    text = "accession\tstrain\tdate\tcollected\nX1\ta\t1999\t2001.5\nX2\tb\t1998\t2002\n"
    with pytest.raises(InputError) as error:
        dates_from_table(text, reading=DateReading(date_column="when"))
    assert "collected" in error.value.hint


def test_year_month_and_day_in_columns_of_their_own():
    text = "taxon,day,month,year\na,1,3,2020\nb,,03,2020\nc,NA,NA,2020\nd,,,\n"
    dates = dates_from_table(text)
    assert dates.lower.tolist() == [MARCH[0], MARCH[0], 2020.0, -INF]
    assert dates.upper.tolist() == [MARCH[0], MARCH[1], 2021.0, INF]
    alone = dates_from_table(text, list("abc"), DateReading(date_column="year"))
    assert alone.upper.tolist() == [2020.0, 2020.0, 2020.0]


def test_what_may_be_ages_is_told():
    with pytest.warns(InputWarning, match="'c' is the youngest of dates that go on from 0.*--ages"):
        dates_from_table("a\t0\nb\t0\nc\t36.6\n")
    for text in ("a\t0\nb\t0\n", "a\t1.5\nb\t36.6\n"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            dates_from_table(text)
    found = dates_from_table("taxon\tmin_age\tmax_age\na\t0\t0\nb\t20\t22.8\n")
    assert [bound.tolist() for bound in found.ages] == [[0.0, 20.0], [0.0, 22.8]] and not found.calendar


def test_whole_years_and_ages():
    text = "a\t1982\nb\t1994\n"
    assert dates_from_table(text).exact.all()
    assert dates_from_table(text, reading=DateReading(whole_years="range")).upper.tolist() == [1983.0, 1995.0]
    assert dates_from_table(text + "c\t1990-03\n").upper.tolist()[:2] == [1983.0, 1995.0]
    mixed = dates_from_table(text + "c\t1990-03\n", reading=DateReading(whole_years="exact"))
    assert mixed.exact.tolist() == [True, True, False]
    ages = dates_from_table("a\t0\nb\t12000..13000\n", reading=DateReading(ages=True))
    assert ages.lower.tolist() == [0.0, -13000.0] and ages.upper.tolist() == [0.0, -12000.0]
    assert not ages.calendar and not dates_from_table("name\tage\na\t3\n").calendar
    assert [bound.tolist() for bound in ages.ages] == [[0.0, 12000.0], [0.0, 13000.0]]


@pytest.mark.parametrize(
    "text, line, taxon",
    [
        ("a\t1\na\t2\n", 2, "a"),
        ("a\t1\nb\n", 2, None),
        ("a\tx\n", 1, "a"),
        ("name\tdate\na\t43891\n", 2, "a"),
        ("name\tlower\tupper\na\t2001\t2000\n", 2, "a"),
        ("a\t1\tx\n", 1, None),
        ("a\t1\t2\t3\n", 1, None),
        ("name\tdate\n", 1, None),
        ("name,date\na,2009,53\n", 2, "a"),  # a decimal comma, whose decimals would be left out
        ("name,year,month\na,2009,June\n", 2, "a"),
        ("name,date_given,place,date_sent\na,2001.5,Peru,2003\n", 1, None),
    ],
)
def test_bad_tables(text, line, taxon):
    with pytest.raises(InputError) as error:
        dates_from_table(text)
    assert (error.value.line, error.value.taxon) == (line, taxon) and error.value.hint


def test_names_that_do_not_match():
    table = "name\tdate\nHomo sapiens\t1\nPan-trog\t2\nPongo\t3\n"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert dates_from_table(table, ["homo_sapiens", "Pongo", "Pan-trog"]).lower.tolist() == [1, 3, 2]
    with pytest.raises(InputError) as error:
        dates_from_table(table, ["Homo sapiens", "Pongo", "Pan_trogl"])
    assert error.value.taxon == "Pan_trogl" and "Pan-trog" in error.value.hint
    with pytest.warns(InputWarning, match=r"line 3: 1 dates .*'Pan-trog' \(is it 'Pan_trogl'\?\)"):
        dates = dates_from_table(
            table, ["Homo sapiens", "Pongo", "Pan_trogl"], DateReading(undated="unknown")
        )
    assert np.isnan(dates.middle).tolist() == [False, False, True]
    with pytest.raises(InputError) as error:
        dates_from_table("a\t1\nb\t?\n", ["a", "b"])
    assert (error.value.line, error.value.taxon) == (2, "b")


METADATA = (
    "strain\tgisaid_epi_isl\tgenbank_accession\tdate\tdate_submitted\r\n"
    "A/x/1/2021\tEPI_1\t?\t2021-03-15\t2021-05-01\r\n"
    "A/x/2/2021\tEPI_2\tOM2.1\t2021-03-XX\t2021-05-02\r\n"
    "A/x/3/2021\tEPI_3\t?\t2021-XX-XX\t2021-05-03\r\n"
    "A/x/4/2021\tEPI_4\tOM4.1\t2021-04-15\t2021-05-04\r\n"
)


@pytest.mark.parametrize("taxa", [("A/x/2/2021", "A/x/4/2021"), ("EPI_2", "EPI_4"), ("OM2.1", "OM4.1")])
def test_the_column_that_holds_the_names_is_taken_whatever_it_is_called(taxa):
    """Accessions that two lines lack are of no taxon of the data, and no error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # of dates of no taxon
        dates = dates_from_table(METADATA, taxa)
        assert dates.lower.tolist() == pytest.approx([MARCH_2021[0], 2021 + 104 / 365])
        if taxa[0].startswith("OM"):
            asked = dates_from_table(METADATA, taxa, DateReading(name_column="genbank_accession"))
            assert asked.lower.tolist() == dates.lower.tolist()
    with pytest.raises(InputError, match="have no date") as error:
        dates_from_table(METADATA, (*taxa, "nobody"))
    assert error.value.taxon == "nobody"
    with pytest.raises(InputError, match="have no date"):
        dates_from_table(METADATA, taxa, DateReading(name_column="date_submitted"))


def test_two_dates_of_a_taxon_of_the_data_are_an_error_still():
    twice = METADATA + METADATA.splitlines(keepends=True)[2]
    for taxa in (("A/x/2/2021",), ("a/x/2/2021",), None):
        with pytest.raises(InputError, match="two dates, the first in line 3"):
            dates_from_table(twice, taxa)


def test_ages_of_patients_are_no_ages_of_samples():
    """The column 'age' alone is of samples; beside dates of another name it may be of patients."""
    rows = [("a", "2020-03-01", "71"), ("b", "2020-03-02", "8"), ("c", "2020-03-03", "35")]

    def table(date: str, age: str = "age") -> str:
        return "\n".join("\t".join(row) for row in [("strain", date, age), *rows])

    for head in ("date_of_collection", "Date received", "specimen.date"):
        with pytest.raises(InputError, match="ages may be in 'age', or their dates in") as error:
            dates_from_table(table(head))
        assert error.value.line == 1 and "--date-column" in error.value.hint
        asked = dates_from_table(table(head), reading=DateReading(date_column=head))
        assert asked.calendar and asked.lower[0] == pytest.approx(MARCH[0])
        ages = dates_from_table(table(head), reading=DateReading(date_column="age"))
        assert ages.lower.tolist() == [-71.0, -8.0, -35.0]
    for head in ("Collection.Date", "Collection Date", "date"):
        assert dates_from_table(table(head)).lower[0] == pytest.approx(MARCH[0])
    assert dates_from_table(table("note", "age")).lower.tolist() == [-71.0, -8.0, -35.0]


def test_dates_of_submission_alone_are_told():
    lines = [line.split("\t") for line in METADATA.splitlines()]
    without = "\n".join("\t".join((fields[0], fields[4])) for fields in lines)
    with pytest.warns(InputWarning, match="'date_submitted', which says when sequences came to a database"):
        dates_from_table(without)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dates_from_table(METADATA)
        dates_from_table(without, reading=DateReading(date_column="date_submitted"))


def test_a_field_without_a_delimiter_stands_between_any_of_the_usual():
    names = ["1999|a|x", "2001.5_b c", "2003/d@e"]
    assert dates_from_names(names, field=0).lower.tolist() == [1999.0, 2001.5, 2003.0]
    assert dates_from_names(["a_1999-05-02|x"], field=1).lower.tolist() == [pytest.approx(1999.3315)]
    with pytest.raises(InputError, match="2 of 3 names have no date in them") as error:
        dates_from_names(["1999|a|x", "plain", "b"], field=0)
    assert "--date-field" not in error.value.hint


def test_where_dates_stand_is_told():
    with pytest.raises(InputError) as error:
        dates_from_names(["2009_TVP11767_Trinidad", "1954_U52416_Tobago"])
    assert error.value.hint == "Field 0 looks like one, 2009: --date-field 0."
    with pytest.raises(InputError) as error:
        dates_from_names(["a|1999-02|x", "b|2001|y"])
    assert error.value.hint.endswith("--date-field 1.")


def test_names_without_dates():
    with pytest.raises(InputError) as error:
        dates_from_names(["a_2001", "plain"])
    assert error.value.taxon == "plain"
    for wrong in ({"pattern": "("}, {"pattern": "a", "delimiter": "_"}):
        with pytest.raises(InputError):
            dates_from_names(["a"], **wrong)


def test_what_is_odd_is_told():
    with pytest.warns(InputWarning, match="1 dates lie in the future, among them that of 'b'"):
        dates_from_table("a\t2001\nb\t2999.5\n")
    with pytest.warns(InputWarning, match="two digits"):
        dates_from_names(["a_1985", "b_87"])
    with pytest.warns(InputWarning, match="99 is later than 09.*'b_07'"):
        dates_from_names(["a_99", "b_07"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dates_from_names(["a_99", "b_17"])
        dates_from_names(["a_07", "b_120"])
    with pytest.warns(InputWarning, match="3 dates are announced, 2 follow"):
        dates_from_table("3\na 2001\nb 2002\n")


def test_the_dates_of_the_west_nile_genomes_are_those_in_their_names():
    examples = Path(__file__).resolve().parents[3] / "examples"
    taxa = read_alignment(examples / "west_nile.fasta.gz").taxa
    table, names = read_dates(examples / "west_nile.dates.tsv", taxa), dates_from_names(taxa)
    assert table.names == names.names == taxa
    assert np.array_equal(table.lower, names.lower) and np.array_equal(table.upper, names.upper)
    assert (table.lower.min(), table.latest) == (1999.5, 2007.63)
    tree = read_tree(examples / "west_nile.nwk")
    heights = node_heights(tree)[: tree.n_tips]
    dated = dict(zip(table.names, table.lower))
    assert np.allclose(heights, tip_heights(tree.taxa, dated), atol=1e-6)


def test_dates_with_errors(tmp_path):
    table = tmp_path / "dates.tsv"
    table.write_text("name\tage\na\t4520±35\nb\t20+-40\nc\t0\nd\t10..30\n")
    dates = read_dates(table, "abcd", DateReading(ages=True))
    assert dates.error.tolist() == [35, 40, 0, 0] and dates.mean.tolist() == [-4520, -20, 0, 0]
    assert dates.lower == pytest.approx([-4588.6, -98.4, 0, -30])
    assert dates.upper == pytest.approx([-4451.4, 0, 0, -10])
    assert dates.middle.tolist() == [-4520, -20, 0, -20] and dates.latest == 0
    wide = dates.within(4.0)
    assert wide.lower.tolist() == [-4660, -180, 0, -30] and wide.upper.tolist() == [-4380, 0, 0, -10]
    assert wide.of("ba").error.tolist() == [40, 35]

    table.write_text("name\tdate\na\t2010±2\nb\t2011.5\n")
    dates = read_dates(table, "ab")
    assert dates.calendar and dates.within(3.0).latest == 2016.0
    table.write_text("name\tlower\tupper\na\t2010±2\t2013\nb\t2011.5\t2012\n")
    with pytest.raises(InputError, match="an error is the end of a range"):
        read_dates(table, "ab")


@pytest.mark.parametrize("text", ["1200 BC", "5200 cal BP", "5200BP", "5.2ka", "AD 900"])
def test_other_eras_are_refused_with_what_to_write(text):
    with pytest.raises(InputError) as error:
        parse_date(text)
    assert "before Christ as -1200" in error.value.hint


@pytest.mark.parametrize("text", ["2010±", "±2", "2010±0", "2010±-1", "2010±x", "2020-03±1", "normal(1,2,3)"])
def test_what_is_no_error_of_a_date_is_refused(text):
    with pytest.raises(InputError, match=re.escape(f"'{text}' is no date")):
        parse_date(text, "a")


def test_a_row_whose_empty_fields_were_cut_off_has_no_date():
    table = "strain\tlab\tdate\tcountry\na\tx\t2020-01-01\tPeru\nb\nc\ty\n"
    reading = DateReading(undated="unknown")
    short = table.replace("b\n", "")
    found = dates_from_table(short, ["a", "c"], reading)
    assert found.exact.tolist() == [True, False] and not np.isfinite(found.lower[1])
    with pytest.raises(InputError, match="1 of 2 taxa have no date: 'c'") as error:
        dates_from_table(short, ["a", "c"])
    assert error.value.line == 3
    for wrong in (table, "a\t2020-01-01\nb\n"):
        with pytest.raises(InputError, match="expected a name and a date"):
            dates_from_table(wrong, None, reading)


@pytest.mark.parametrize("text", ["2020-00-00", "2020-06-00"])
def test_nought_is_no_day_and_the_hint_says_how_to_write_it(text):
    with pytest.raises(InputError, match="not in the calendar") as error:
        parse_date(text)
    assert "2020-XX-XX" in str(error.value.hint)


def test_names_that_are_others_altogether_are_shown():
    table = "strain\tdate\nt0\t2020-01-01\nt1\t2020-02-01\n"
    with pytest.raises(InputError, match="2 of 2 taxa have no date") as error:
        dates_from_table(table, ["hCoV-19/X/t0/2020|EPI_7", "hCoV-19/X/t1/2020|EPI_8"])
    assert "No name is the same in both: the table has 't0'" in str(error.value.hint)
    with pytest.raises(InputError, match="1 of 2 taxa have no date") as error:
        dates_from_table(table, ["t0", "somebody-else"])
    assert "No name" not in str(error.value.hint)
