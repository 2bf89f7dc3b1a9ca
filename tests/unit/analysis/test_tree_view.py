"""Trees as plain lists for a page, rooted anew, compared, written."""

from __future__ import annotations

import json

import dendropy
import numpy as np
import pytest
from dendropy.calculate.treecompare import symmetric_difference

from phloem.analysis.tree_view import (
    RootChoice,
    compared,
    exported,
    pdf_of,
    read_view,
    tree_record,
    youngest_date,
)
from phloem.errors import InputError
from phloem.io.trees import newick_text, parse_trees, read_trees
from phloem.tree.random import uniform_unrooted

TEXT = "((a:1,b:2)[&prob=0.9,height_95%_HPD={0.5,1.5}]:1,(c:1,d:4)[&prob=0.4]:2,e:1);"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "t.tre"
    path.write_text(TEXT)
    return str(path)


def test_a_record_is_plain_and_whole(file):
    tree, n = read_view(file)
    record = tree_record(tree, n)
    json.dumps(record, allow_nan=False)
    assert n == 1 and record["names"] == ["a", "b", "c", "d", "e"] and record["support"] == "prob"
    assert sorted(v for v in record["numbers"]["prob"] if v is not None) == [0.4, 0.9]
    assert [0.5, 1.5] in record["intervals"]["height_95%_HPD"]
    assert record["lengths"][:5] == [1, 2, 1, 4, 1]


def test_numeric_labels_are_support_and_names_are_names():
    record = tree_record(parse_trees("((a,b)95,(c,d)apes,e);")[0])
    assert record["support"] == "label" and 95 in record["numbers"]["label"]
    assert "apes" in record["labels"] and record["lengths"][0] is None


def test_labels_of_two_supports_are_two_numbers():
    record = tree_record(parse_trees("((a,b)99.1/95,(c,d)80/7,e);")[0])
    assert sorted(v for v in record["numbers"]["label 1"] if v is not None) == [80, 99.1]
    assert sorted(v for v in record["numbers"]["label 2"] if v is not None) == [7, 95]
    assert record["support"] == "label 1" and "99.1/95" in record["written"]
    assert record["labels"] == [None] * 8 and tree_record(parse_trees("((a,b),c);")[0])["written"] is None


def test_roots(file):
    tree, _ = read_view(file)
    middle, _ = read_view(file, 0, RootChoice("midpoint"))
    assert middle.rooted and middle.lengths.sum() == pytest.approx(tree.lengths.sum())
    at, _ = read_view(file, 0, RootChoice("branch", 3))
    assert 3 in at.children(at.n_nodes - 1)
    for wrong in (RootChoice("branch", 99), RootChoice("branch", None)):
        with pytest.raises(InputError):
            read_view(file, 0, wrong)
    with pytest.raises(InputError, match="number 7"):
        read_view(file, 7)


@pytest.mark.parametrize("seed", range(5))
def test_the_distance_is_that_of_dendropy(seed):
    first, second = (uniform_unrooted(12, np.random.default_rng(s)) for s in (seed, 100 + seed))
    found = compared(first, second)["comparison"]
    space = dendropy.TaxonNamespace()
    trees = [
        dendropy.Tree.get(
            data=newick_text([tree]), schema="newick", taxon_namespace=space, rooting="force-unrooted"
        )
        for tree in (first, second)
    ]
    assert found["distance"] == symmetric_difference(*trees)
    assert found["most"] == 2 * 9
    assert sum(not shared for shared in found["shared"][0]) >= found["distance"] / 2


def test_the_same_tree_in_another_order_differs_nowhere():
    first = parse_trees("((a,b),(c,d),e);")[0]
    second = parse_trees("(d,(e,(b,a)),c);")[0]
    both = compared(first, second)
    assert both["comparison"]["distance"] == 0 and all(both["comparison"]["shared"][1])
    assert both["first"]["names"] == both["second"]["names"]
    planted = compared(first, parse_trees("(d,(e,(b,c)),a);")[0])["comparison"]
    assert planted["distance"] == 4 and not all(planted["shared"][0])


def test_other_taxa_are_an_error():
    with pytest.raises(InputError):
        compared(parse_trees("(a,b,c,d);")[0], parse_trees("(a,b,c,x);")[0])


def test_what_is_exported_is_read_again(file, tmp_path):
    tree, _ = read_view(file, 0, RootChoice("midpoint"))
    for form in ("newick", "nexus"):
        path = tmp_path / f"again.{form}"
        path.write_bytes(exported(tree, form))
        again = read_trees(str(path))[0]
        assert compared(tree, again)["comparison"]["distance"] == 0
        tips = [dict(zip(one.taxa, one.lengths.tolist())) for one in (tree, again)]
        assert tips[0] == pytest.approx(tips[1])
        assert sorted(map(str, again.annotations.values())) == sorted(map(str, tree.annotations.values()))


def test_exports_that_are_none(file):
    tree, _ = read_view(file)
    with pytest.raises(InputError, match="no export"):
        exported(tree, "exe")


def test_the_youngest_date_is_that_of_the_tips_or_of_the_table_beside_the_tree(tmp_path):
    dated = parse_trees("(a[&date=2001.5]:1,(b[&date=2003.25]:2,c[&date=1999]:1):1);")[0]
    assert youngest_date(dated, "x.tre") == 2003.25
    plain = parse_trees("(a:1,(b[&date=2003.25]:2,c:1):1);")[0]
    assert youngest_date(plain, "x.tre") is None
    tree, table = str(tmp_path / "x.mcc.tre"), tmp_path / "x.past.tsv"
    assert youngest_date(plain, tree) is None
    table.write_text("age\tdate\tlineages\n0\t1994.5\t1\n1\t1993.5\t2\n")
    assert youngest_date(plain, tree) == 1994.5
    assert youngest_date(plain, str(tmp_path / "x.con.tre")) is None
    table.write_text("age\tlineages\n0\t1\n")
    assert youngest_date(plain, tree) is None


LINE = {"lines": [[0, 0, 50, 60]], "colour": "#17211d", "width": 1.3}
AREA = {"lines": [[0, 0, 90, 0, 90, 80]], "colour": "#ffffff", "width": 0, "opacity": 0.5, "filled": True}
WORDS = {"x": 5, "y": 6, "text": "Ünïcode γ $x$ <b>", "size": 12, "colour": "#17211d"}
WORDS |= {"anchor": "start", "angle": -30}
PICTURE = {"width": 100, "height": 80, "strokes": [AREA, LINE], "texts": [WORDS]}


def test_a_picture_of_the_page_becomes_a_pdf():
    pytest.importorskip("matplotlib")
    assert pdf_of(PICTURE).startswith(b"%PDF")
    # As the page draws it: 1/96 inch a pixel, 72 points an inch.
    assert b"/MediaBox [ 0 0 75 60 ]" in pdf_of(PICTURE)


@pytest.mark.parametrize(
    "planted",
    [
        {"width": 0}, {"width": 1e9}, {"height": "x"}, {"strokes": None},
        {"strokes": [LINE | {"lines": [[1, 2, 3]]}]},
        {"strokes": [LINE | {"lines": [[1, float("nan")]]}]}, {"strokes": [LINE | {"colour": "url(x)"}]},
        {"texts": [WORDS | {"anchor": "top"}]}, {"texts": [WORDS | {"size": -1}]}, {"texts": ["x"]},
    ],
)  # fmt: skip
def test_what_is_no_picture_is_refused(planted):
    with pytest.raises(InputError, match="no picture"):
        pdf_of(PICTURE | planted)
