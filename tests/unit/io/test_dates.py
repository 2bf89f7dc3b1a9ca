from pathlib import Path

import numpy as np
import pytest

from phloem.errors import InputError
from phloem.io.alignment import read_alignment
from phloem.io.dates import dates_from_names, dates_from_table, parse_date, read_dates
from phloem.io.trees import read_tree
from phloem.tree.tree import node_heights, tip_heights


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


def test_the_dates_of_the_west_nile_genomes_are_those_in_their_names():
    examples = Path(__file__).resolve().parents[3] / "examples"
    taxa = read_alignment(examples / "west_nile.fasta.gz").taxa
    table, names = read_dates(examples / "west_nile.dates.tsv", taxa), dates_from_names(taxa)
    assert table.taxa == names.taxa == taxa
    assert np.array_equal(table.years, names.years)
    assert (table.years.min(), table.years.max()) == (1999.5, 2007.63)
    tree = read_tree(examples / "west_nile.nwk")
    heights = node_heights(tree)[: tree.n_tips]
    dated = dict(zip(table.taxa, table.years))
    assert np.allclose(heights, tip_heights(tree.taxa, dated), atol=1e-6)
