"""Where `phloem time` has its dates from: a table, the names, or nothing, and what is said of it."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace

import numpy as np
import pytest

from phloem.analysis.dated_input import DateOptions
from phloem.analysis.time import TimeTreeSettings, time_input
from phloem.analysis.time_options import time_settings
from phloem.analysis.time_record import time_identity
from phloem.density.tree_priors.epochs import FIRST, places_of_first
from phloem.errors import InputError, InputWarning
from phloem.inference.time.settings import TreeModel
from phloem.plot.through_time_figure import Course, through_time_drawing

FASTA = ">a|2001.5|x\nACGT\n>b|2003|x\nACGA\n>c|1999|x\nACGG\n"
TABLE = "name\tdate\na|2001.5|x\t1990\nb|2003|x\t1995\nc|1999|x\t2000\n"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "a.fasta").write_text(FASTA)
    (tmp_path / "last.fasta").write_text(FASTA.replace("|x", ""))
    (tmp_path / "none.fasta").write_text(re.sub("[|].*", "", FASTA))
    (tmp_path / "dates.tsv").write_text(TABLE)
    return tmp_path


def read(folder, dates, name="a.fasta"):
    return time_input(TimeTreeSettings(str(folder / name), dates=dates, model="JC"))


def test_dates_of_the_names_are_those_of_a_table_that_says_them(files):
    found = read(files, DateOptions(date_delimiter="|", date_field=1))
    assert found.dates.lower.tolist() == [2001.5, 2003.0, 1999.0]
    assert found.model.tip_bounds[:, 0].tolist() == [1.5, 0.0, 4.0]
    for field in (0, -1):
        asked = time_settings({"alignment": "x", "date_field": field, "ages": False, "tip_age": []})
        assert asked.dates == DateOptions(date_field=field)
    table = read(files, str(files / "dates.tsv"))
    assert table.dates.lower.tolist() == [1990.0, 1995.0, 2000.0]
    with pytest.raises(InputError, match="not from both"):
        read(files, DateOptions(str(files / "dates.tsv"), date_delimiter="|", date_field=1))
    for field in (-1, 0):
        with pytest.raises(InputError, match="not from both"):
            read(files, DateOptions(str(files / "dates.tsv"), date_field=field))


def test_from_when_ages_count_is_told_where_the_youngest_is_dated_within_limits(files):
    exact = DateOptions(date_delimiter="|", date_field=1)
    assert read(files, exact).ages_before == "the youngest tip" and read(files, exact).told == ()
    ranges = read(files, DateOptions(date_delimiter="|", date_field=1, whole_years="range"))
    assert ranges.told == ("all ages count from 2004, the latest date that a tip may have",)
    assert ranges.ages_before == "2004, the latest date that a tip may have"
    assert read(files, None, "none.fasta").ages_before == "the youngest tip"


def test_names_with_years_that_nobody_asked_for_are_told(files):
    with pytest.warns(InputWarning, match="1999 to 2003"):
        assert read(files, None, "last.fasta").dates is None
    with pytest.warns(InputWarning, match="1999 to 2003.*--date-field 1"):
        assert read(files, None).dates is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # numbers that are no years, and names that do not end in one
        (files / "numbered.fasta").write_text(">a_1\nAC\n>b_2\nAG\n>c_3\nAT\n")
        assert read(files, None, "numbered.fasta").dates is None


def test_an_analysis_of_other_dates_is_another_one(files):
    def identity(dates, name="last.fasta"):
        settings = TimeTreeSettings(str(files / name), dates=dates, model="JC")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return time_identity(settings, time_input(settings).model)["dates"]

    of_names, of_field = identity(DateOptions()), identity(DateOptions(date_delimiter="|"))
    assert len({str(d) for d in (of_names, of_field, identity(None))}) == 3
    in_years = identity(DateOptions(whole_years="range"))
    assert in_years != of_names


@pytest.mark.parametrize(
    "dates",
    ['<trait traitname="date" value="a=1982,b=1990,c=1994"/>', '<trait traitname="host" value="a=x"/>', ""],
)
def test_dates_of_a_beast_file_are_taken_with_its_sequences(tmp_path, dates):
    sequences = "".join(f'<sequence taxon="{t}" value="ACG{t.upper()}"/>' for t in "abc")
    path = tmp_path / "x.xml"
    path.write_text(
        f'<beast version="2.7"><data id="d" dataType="nucleotide">{sequences}</data>{dates}</beast>'
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what is not read
        found = read(tmp_path, None, "x.xml").dates
        if "1982" not in dates:
            assert found is None
            return
        assert found.lower.tolist() == [1982.0, 1990.0, 1994.0]
        (tmp_path / "other.tsv").write_text("a\t2001\nb\t2002\nc\t2003\n")
        assert read(tmp_path, str(tmp_path / "other.tsv"), "x.xml").dates.lower.tolist() == [
            2001.0,
            2002.0,
            2003.0,
        ]


def shifted(folder, *shift, dates=None, **tree):
    dates = dates or DateOptions(date_delimiter="|", date_field=1)
    return time_input(
        TimeTreeSettings(
            str(folder / "a.fasta"),
            dates=dates,
            model="JC",
            tree=TreeModel(prior="bdsky", **tree),
            shift=shift,
        )
    )


def test_numbers_shift_at_dates_where_tips_have_dates_else_at_ages(files):
    """The youngest tip is of 2003; 2002-07-02 is half of a year in."""
    found = shifted(files, "reproductive_number=2002-07-02,2000.5")
    begins = found.model.parameters.settings[FIRST : FIRST + 3]
    assert begins == pytest.approx([0.0, 2003 - 2002 - 182 / 365, 2.5])
    assert places_of_first(found.model.parameters.settings, np.array([0.1, 2.5, 2.6])).tolist() == [0, 1, 2]
    ages = shifted(
        files, "sampling_proportion=1.25", dates=DateOptions(tip_age=("a|2001.5|x=1.5",)), pieces=1
    )
    assert ages.model.parameters.settings[FIRST : FIRST + 2].tolist() == [0.0, 1.25]
    names = [b.name for b in ages.model.parameters.blocks]
    assert names[-3:] == ["sampling_proportion_1", "sampling_proportion_2", "origin_gap"]
    assert ages.model.parameters.shifts_text == ("sampling_proportion shifts at 1.25",)


def test_an_age_that_is_taken_for_a_date_is_told(files):
    with pytest.warns(InputWarning, match="0.5 is 2,002.5 years before the youngest tip, and all are of 4"):
        shifted(files, "reproductive_number=0.5")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shifted(files, "reproductive_number=1900")


def test_a_cutoff_that_is_a_year_by_its_looks_is_told(files):
    def grid(cutoff: float):
        settings = TimeTreeSettings(
            str(files / "a.fasta"), dates=DateOptions(date_delimiter="|", date_field=1), model="JC",
            tree=TreeModel(prior="skygrid", pieces=3, options={"cutoff": cutoff}),
        )  # fmt: skip
        return time_input(settings)

    with pytest.warns(InputWarning, match=r"--cutoff 2000.5 is an age, .* of the year 2000.5 it is 2.5"):
        grid(2000.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        grid(2.5)
        grid(900.0)


def test_cells_are_of_the_dates_and_not_of_a_wide_density_of_the_origin(files):
    settings = TimeTreeSettings(
        str(files / "a.fasta"), dates=DateOptions(date_delimiter="|", date_field=1), model="JC",
        tree=TreeModel(prior="bdsky", pieces=4), calibrate=("origin=gamma(0.5,0.005)",),
    )  # fmt: skip
    (told,) = time_input(settings).model.parameters.shifts_text
    assert told == "reproductive_number in 4 cells of 1.333, the oldest from 4 on"


def test_the_stem_of_a_clade_may_have_an_age_beside_its_own(tmp_path):
    (tmp_path / "b.fasta").write_text("".join(f">{name}\nACGT\n" for name in "pqrs"))
    ages = "stem(pq)=1+normal(2,0.1)", "pq=uniform(0,2)"
    settings = TimeTreeSettings(str(tmp_path / "b.fasta"), model="JC", clade=("pq=p,q",), calibrate=ages)
    own, stem = time_input(settings).model.clades
    assert (own.name, own.stem, stem.name, stem.stem, stem.taxa) == (
        "pq",
        False,
        "stem(pq)",
        True,
        ("p", "q"),
    )
    assert stem.age_text == "1+normal(2,0.1)" and "stem" not in repr(replace(stem, name=""))
    with pytest.raises(InputError, match="no clade 'qr'"):
        time_input(replace(settings, calibrate=("stem(qr)=normal(2,0.1)",)))
    with pytest.raises(InputError, match="no stem above all"):
        time_input(replace(settings, calibrate=("stem(root)=normal(2,0.1)",)))


@pytest.mark.parametrize(
    ("shift", "told"),
    [
        (("sampling_proportion",), "expected a new name"),
        (("sampling_proportion=2001", "sampling_proportion=2002"), "expected a new name"),
        (("sampling_proportion=2004",), "not every time is before the youngest date, 2003"),
        (("sampling_proportion=<2002",), "without a beginning"),
        (("sampling_proportion=then",), "'then' is no date"),
        (("pop_size=2001",), "there is no 'pop_size' that shifts"),
    ],
)
def test_shifts_that_say_nothing_are_refused(files, shift, told):
    with pytest.raises(InputError, match=told):
        shifted(files, *shift)


def test_a_shift_makes_another_analysis(files):
    def identity(*shift):
        settings = TimeTreeSettings(
            str(files / "a.fasta"), dates=DateOptions(date_delimiter="|", date_field=1), model="JC",
            tree=TreeModel(prior="bdsky"), shift=shift,
        )  # fmt: skip
        return time_identity(settings, time_input(settings).model)

    one, other = identity("sampling_proportion=2001"), identity("sampling_proportion=2002")
    assert one != other and "shift" not in identity()


def test_the_picture_of_a_reproductive_number_marks_one():
    times, values = np.linspace(2003.0, 2000.0, 5), np.array([[1.5, 0.5, 2.0]] * 5)
    drawn = [
        through_time_drawing(
            times, [Course("R", values, False, mark)], np.array([2001.0, 2000.5, 2001.5]), ""
        )
        for mark in (None, 1.0, 9.0)
    ]
    assert [len(one.strokes) for one in drawn] == [len(drawn[0].strokes) + more for more in (0, 1, 0)]
