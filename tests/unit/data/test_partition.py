from __future__ import annotations

import numpy as np
import pytest

from phloem.data.partition import Subset, make_scheme, with_declared_datatypes
from phloem.errors import InputError


def subset(name, *sites, **more):
    return Subset(name, np.array(sites, np.int64), **more)


def test_a_scheme_keeps_subsets_in_order():
    scheme = make_scheme([subset("b", 1, 3), subset("a", 0, 2)], 4, name="p", file="f")
    assert [one.name for one in scheme.subsets] == ["b", "a"]
    assert [one.n_sites for one in scheme.subsets] == [2, 2]
    assert (scheme.n_sites, scheme.name, scheme.file, scheme.dropped.tolist()) == (4, "p", "f", [])


@pytest.mark.parametrize(
    "subsets, message",
    [
        ([], "no subsets"),
        ([subset("a", 0, 1), subset("b")], "'b' has no columns"),
        ([subset("a", 0, 1, 2), subset("b", 2, 3)], "columns 3 are in 'a' and in 'b'"),
        ([subset("a", 0, 1), subset("A", 2, 3)], "'A' is there twice"),
        ([subset("a", 0, 1, 2, 4)], "'a' reaches to column 5, the alignment has 4"),
        ([subset("a", 0, 1, 2)], "1 columns are in no subset: 4"),
        ([subset("a", 0, 1, 2, 3, datatype="codon")], "the 4 columns of 'a' are not a multiple of three"),
        ([subset("", 0, 1, 2, 3)], "has no name"),
        ([subset("a", 3, 2, 1, 0)], "not ascending"),
    ],
)
def test_what_is_no_scheme(subsets, message):
    with pytest.raises(InputError, match=message) as error:
        make_scheme(subsets, 4, file="genes.txt")
    assert error.value.file == "genes.txt"


def test_columns_in_no_subset_may_be_dropped():
    scheme = make_scheme([subset("a", 0, 2)], 4, unassigned="drop")
    assert scheme.dropped.tolist() == [1, 3]
    with pytest.raises(InputError, match="unassigned"):
        make_scheme([subset("a", 0, 2)], 4, unassigned="keep")


def test_codons_are_three_neighbours_but_for_one_intron():
    make_scheme([subset("gene", 0, 1, 5, 6, 7, 8, datatype="codon")], 9, unassigned="drop")
    strided = subset("gene", *range(0, 18, 3), datatype="codon")
    with pytest.raises(InputError, match="a codon of the columns 1, 4 and 7"):
        make_scheme([strided], 18, unassigned="drop")


def test_declared_datatypes():
    declared = make_scheme(
        [subset("dna", 0, 1, 2, datatype="dna"), subset("s", 3, 4, datatype="standard")], 5
    )
    scheme = make_scheme([subset("x", 0, 2), subset("y", 1), subset("z", 3, 4)], 5)
    typed = with_declared_datatypes(scheme, declared)
    assert [one.datatype for one in typed.subsets] == ["dna", "dna", "standard"]
    across = make_scheme([subset("x", 0, 1, 2, 3), subset("z", 4)], 5)
    with pytest.raises(InputError, match="'x' are of several data types"):
        with_declared_datatypes(across, declared)
    wrong = make_scheme([subset("x", 0, 1, 2), subset("z", 3, 4, datatype="protein")], 5)
    with pytest.raises(InputError, match="'z' is protein, and its columns are declared as standard"):
        with_declared_datatypes(wrong, declared)
    codons = make_scheme([subset("x", 0, 1, 2, datatype="codon"), subset("z", 3, 4)], 5)
    assert with_declared_datatypes(codons, declared).subsets[0].datatype == "codon"
