"""Discrete traits of taxa from tables."""

from __future__ import annotations

import numpy as np
import pytest

from phloem.errors import InputError, InputWarning
from phloem.io.source_text import SourceText
from phloem.io.trait_table import traits_from_table

TAXA = ("a", "b", "c", "d")
TABLE = "name\tdate\tlocation\nb\t2001\tNew York\na\t2000\tHanoi\nc\t2002\t?\nd\t2003\tHanoi|Rome\n"


def test_states_unknown_and_known_in_part():
    found = traits_from_table(TABLE, TAXA, "location")
    assert found.name == "location" and found.taxa == TAXA and found.states == ("Hanoi", "New York", "Rome")
    expected = [[1, 0, 0], [0, 1, 0], [1, 1, 1], [1, 0, 1]]
    assert (found.possible == np.array(expected, bool)).all() and found.n_missing == 1
    assert found.ignored().possible.all() and found.ignored().states == found.states


BEAST_1 = """<beast><taxa id="taxa">
<taxon id="a"><date value="2000"/><attr name="location">Hanoi</attr></taxon>
<taxon id="b"><attr name="location"> New York </attr><attr name="host">duck</attr></taxon>
<taxon id="c"><attr name="location">?</attr></taxon>
<taxon id="d"><attr name="location">Hanoi|Rome</attr></taxon></taxa></beast>"""
BEAST_2 = """<beast version="2.7"><trait spec="TraitSet" traitname="date" value="a=2000,b=2001"/>
<traitSet spec="TraitSet" traitname="location" value="a=Hanoi, b=New York,c=?,
d=Hanoi|Rome"/></beast>"""


@pytest.mark.parametrize("text, column", [(BEAST_1, "Location"), (BEAST_2, None)])
def test_beast_files_say_what_a_table_says(text, column):
    found, table = traits_from_table(text, TAXA, column), traits_from_table(TABLE, TAXA, "location")
    assert (found.name, found.states) == (table.name, table.states)
    assert (found.possible == table.possible).all()


@pytest.mark.parametrize(
    "text, column, message, line",
    [
        (BEAST_1, None, "2 traits", None),
        (BEAST_1, "host", "3 taxa have no 'host' there", None),
        (BEAST_1, "place", "no column is called 'place'", None),
        (BEAST_1.replace("|Rome", "|"), "location", "names a state and nothing", 5),
        (BEAST_2.replace("b=New", "New"), None, "'New York' is not name=state", 2),
        ("<beast><taxon id='a'/></beast>", None, "no traits of taxa", 1),
    ],
)
def test_beast_files_whose_traits_cannot_be_read(text, column, message, line):
    with pytest.raises(InputError, match=message) as error:
        traits_from_table(SourceText(text, "t.xml"), TAXA, column)
    assert error.value.file == "t.xml" and error.value.hint and error.value.line == line


@pytest.mark.parametrize("table", ["host,taxon\nx,a\ny,b\n-,c\n,d\n", "taxon host\na x\nb y\nc ?\nd ?\n"])
def test_one_column_needs_no_name(table):
    found = traits_from_table(table, TAXA)
    assert found.name == "host" and found.states == ("x", "y") and found.n_missing == 2


@pytest.mark.parametrize(
    "table, column, message",
    [
        (TABLE, None, "2 columns besides the names"),
        (TABLE, "host", "no column is called 'host'"),
        (TABLE.replace("a\t2000\tHanoi\n", ""), "location", "1 taxa have no 'location' there"),
        (TABLE.replace("b\t", "a\t"), "location", "'a' has two lines"),
        (TABLE.split("\n", 1)[1], "location", "the first line is a taxon's"),
        (TABLE.replace("|Rome", "|"), "location", "names a state and nothing"),
        ("name\tplace\n", None, "the table has no taxa"),
    ],
)
def test_tables_that_cannot_be_read(table, column, message):
    with pytest.raises(InputError, match=message) as error:
        traits_from_table(SourceText(table, "t.tsv"), TAXA, column)
    assert error.value.file == "t.tsv" and error.value.hint


def test_names_that_are_no_taxa_and_states_that_look_missing_are_told():
    with pytest.warns(InputWarning, match="1 of its names are no taxon here, as 'e'"):
        traits_from_table(TABLE + "e\t2000\tRome\n", TAXA, "location")
    with pytest.warns(InputWarning, match="'NA' is taken for a state"):
        assert "NA" in traits_from_table(TABLE.replace("?", "NA"), TAXA, "location").states
