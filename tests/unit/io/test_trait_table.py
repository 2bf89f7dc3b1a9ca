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


@pytest.mark.parametrize("table", ["host,taxon\nx,a\ny,b\n-,c\n,d\n", "taxon host\na x\nb y\nc ?\nd ?\n"])
def test_one_column_needs_no_name(table):
    found = traits_from_table(table, TAXA)
    assert found.name == "host" and found.states == ("x", "y") and found.n_missing == 2


@pytest.mark.parametrize(
    "table, column, message",
    [
        (TABLE, None, "2 columns besides the names"),
        (TABLE, "host", "no column is called 'host'"),
        (TABLE.replace("a\t2000\tHanoi\n", ""), "location", "1 taxa are not in the table"),
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
