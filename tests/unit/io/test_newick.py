"""Newick: what is accepted, how it is understood, and what is said about the rest."""

import numpy as np
import pytest

from phloem.errors import InputError, InputWarning
from phloem.io.newick import parse_newick
from phloem.io.newick_text import write_newick
from phloem.io.trees import parse_trees, read_tree, read_tree_sample, read_trees, write_trees


def one(text, **options):
    (tree,) = parse_newick(text, **options)
    return tree


def test_arrays_follow_the_record():
    tree = one("((B:1,A:2)x:3,C:4e-1)y:0.5;")
    assert tree.taxa == ("B", "A", "C")
    assert tree.parent.tolist() == [3, 3, 4, 4, -1]
    assert tree.lengths.tolist() == [1, 2, 0.4, 3, 0.5]
    assert tree.labels == (None, None, None, "x", "y")
    assert tree.parent.dtype == np.int32


def test_quoted_names_keep_their_characters():
    tree = one("('it''s (a); [b]':1,\"x,y\":2,O'Brien_1:3);")
    assert tree.taxa == ("it's (a); [b]", "x,y", "O'Brien_1")


def test_names_of_any_alphabet():
    assert one("(Ünïcödé:1,'學名[x]':2[&c=1],c[é]:3);").taxa == ("Ünïcödé", "學名[x]", "c")


def test_annotations_before_and_after_lengths():
    tree = one('(A[&rate=0.1,height_95%_HPD={1,2}]:1[&n="a,b",!color=#ff0000,flag],(B,C)[&p=1]:2[&q=2]);')
    assert tree.annotations[0] == {
        "rate": 0.1, "height_95%_HPD": (1, 2), "n": "a,b", "!color": "#ff0000", "flag": True,
    }  # fmt: skip
    assert tree.annotations[3] == {"p": 1, "q": 2}
    assert sorted(tree.annotations) == [0, 3]


def test_nhx_and_nested_braces():
    tree = one("(A[&&NHX:S=human:E=1.1.1.1:B=90],B[&h={{1,0.5,A},{2,0.1,C}},k=3]);")
    assert tree.annotations[0] == {"S": "human", "E": "1.1.1.1", "B": 90}
    assert tree.annotations[1] == {"h": ((1, 0.5, "A"), (2, 0.1, "C")), "k": 3}


def test_comments_nest_and_vanish():
    tree = one("[a [nested; comment] (x] (A[b]:1[c[d]],[e]B[&x=1][&y=2]:2[f])[g];[after]")
    assert tree.taxa == ("A", "B")
    assert tree.lengths.tolist() == [1, 2, 0]
    assert dict(tree.annotations) == {1: {"x": 1, "y": 2}}


@pytest.mark.parametrize(
    ("text", "rooted"),
    [
        ("(A,B,C);", False),
        ("((A,B),C);", True),
        ("[&R](A,B,C);", True),
        ("[&U] ((A,B),C);", False),
        ("[&r] [&lnP=-3.5] (A,B,C);", True),
        ("(A,B);", True),
    ],
)
def test_rootedness(text, rooted):
    assert one(text).rooted is rooted


def test_absent_lengths_are_nan():
    lengths = one("(A:1,(B,C):2,D);").lengths
    assert np.isnan(lengths[[1, 2, 3]]).all()
    assert lengths[[0, 4, 5]].tolist() == [1, 2, 0]


def test_one_child_nodes_are_suppressed_and_lengths_added():
    tree = one("(((A:1):2,(B:3)b:4)[&p=1]:5);")
    assert tree.taxa == ("A", "B")
    assert tree.lengths.tolist() == [3, 7, 5]
    assert tree.rooted
    assert tree.annotations[2] == {"p": 1}


def test_trees_of_one_file_share_the_order_of_tips():
    first, second, other = parse_newick("(A:1,B:2,C:3);\n(C:3,(A:1,B:2):4)\n;(A,D);")
    assert first.taxa == second.taxa == ("A", "B", "C")
    assert second.lengths.tolist() == [1, 2, 3, 4, 0]
    assert other.taxa == ("A", "D")


def test_given_order_of_taxa():
    tree = one("(A:1,B:2,C:3);", taxa=["C", "A", "B"])
    assert tree.taxa == ("C", "A", "B")
    assert tree.lengths.tolist() == [3, 1, 2, 0]


def test_missing_semicolon_is_forgiven_but_missing_bracket_is_not():
    assert one("(A,B)\n").n_tips == 2
    with pytest.raises(InputError, match="before every"):
        parse_newick("((A,B)\n")


def test_deep_trees_need_no_recursion():
    n = 20_000
    text = "(" * (n - 1) + "t0:1" + "".join(f",t{i}:1):1" for i in range(1, n)) + ";"
    tree = one(text)
    assert tree.n_tips == n and tree.n_nodes == 2 * n - 1
    assert write_newick(tree).count("(") == n - 1


ERRORS = {
    "": (None, None, "empty"),
    "(A,B));": (1, 6, "closes nothing"),
    "(A,\n(B,C);": (2, 6, "before every"),
    "(A,B),C;": (1, 6, "outside the brackets"),
    "(A:1:2,B);": (1, 5, "two ':'"),
    "(A,B)(C,D);": (1, 6, "where a ','"),
    "A(B,C);": (1, 2, "where a ','"),
    "(A,,B);": (1, 4, "no name"),
    "(A,B,\n  A);": (2, 3, "stands twice"),
    "(A:x,B);": (1, 4, "not a branch length"),
    "(A:,B);": (1, 4, "without a branch length"),
    "(A:nan,B);": (1, 4, "not a branch length"),
    "(A:1_0,B);": (1, 4, "not a branch length"),
    "(A:1e999,B);": (1, 4, "not a branch length"),
    "(A[c],B:-0.1);": (1, 9, "negative branch length -0.1"),
    "(A B,C);": (1, 2, "white space"),
    "('A'b,C);": (1, 2, "follows the quoted name"),
    "('A,B);": (1, 2, "quote"),
    "(A[&x=1,B);": (1, 3, "comment"),
    "(A],B);": (1, 3, "closes no comment"),
}


@pytest.mark.parametrize("text", list(ERRORS))
def test_errors_say_where_and_what_to_do(text):
    line, column, message = ERRORS[text]
    with pytest.raises(InputError, match=message) as caught:
        parse_newick(text)
    assert caught.value.hint
    assert (caught.value.line, caught.value.column) == (line, column)


def test_duplicate_names_name_the_taxon():
    with pytest.raises(InputError) as caught:
        parse_newick("(Pan,(Homo,Pan));")
    assert caught.value.taxon == "Pan"


def test_negative_lengths_on_request():
    assert one("(A:-0.1,B:1);", allow_negative=True).lengths[0] == -0.1


def test_precision_and_quotes_of_the_writer():
    tree = one("('a b':0.123456789,'it''s':1e-10,(c,d)0.9:2);")
    assert write_newick(tree, precision=3) == "('a b':0.123,'it''s':1e-10,(c,d)0.9:2);"
    assert one(write_newick(tree)).lengths[0] == 0.123456789


def test_files_gzip_and_index(tmp_path):
    trees = parse_newick("(A:1,B:2,C:3);(A:1,C:2,B:3);")
    for name in ("x.nwk", "x.nwk.gz", "x.tre", "x.trees.gz"):
        write_trees(tmp_path / name, trees)
        back = read_trees(tmp_path / name)
        assert [tree.lengths.tolist() for tree in back] == [tree.lengths.tolist() for tree in trees]
        assert read_tree(tmp_path / name, -1).lengths.tolist() == trees[1].lengths.tolist()
        assert not back[0].rooted
    with pytest.raises(InputError, match="no tree number 2"):
        read_tree(tmp_path / "x.nwk", 2)


@pytest.mark.parametrize(
    "data", [b"", b"  \n", b"\x00\x01\x02(A,B);", bytes(range(256)), b"\x1f\x8bbroken", b">A\nAC"]
)
def test_files_that_are_no_trees(tmp_path, data):
    path = tmp_path / "bad.nwk"
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        read_tree(path)
    assert caught.value.file == str(path)


def test_sample_without_burn_in(tmp_path):
    trees = parse_newick("(a:1,b:1,(c:1,d:1):1);" * 4 + "(a:2,c:2,(b:2,d:2):2);" * 6)
    write_trees(tmp_path / "x.t", trees)
    sample = read_tree_sample(tmp_path / "x.t", burn_in=0.45)
    assert sample.n_trees == 6 and np.all(sample.lengths[:, :-1] == 2)
    with pytest.raises(InputError, match="leaves no tree"):
        read_tree_sample(tmp_path / "x.t", burn_in=1.0)


def test_a_text_without_brackets_is_no_tree():
    with pytest.raises(InputError, match="no tree"):
        parse_trees("<html>404</html>")
    with pytest.raises(InputError, match="two ':'") as caught:
        parse_trees("((a:1,b:1:1,c:1);")
    assert "missing ')'" in caught.value.hint


@pytest.mark.parametrize(
    "text", ["((a,(b)#H1),(#H1,c));", "((a,(b)x#LGT2),(x#LGT2,c));", "((a,(b)#1),(#1,c));"]
)
def test_networks_are_refused(text):
    with pytest.raises(InputError, match="a network, not a tree") as caught:
        parse_newick(text)
    assert caught.value.column > 5


def test_labels_of_paml_are_no_networks():
    assert parse_newick("((a#1,b#1)#1,(c,d)#1);(a#H1,b);(a#H1,b);")[0].taxa == ("a#1", "b#1", "c", "d")


def test_counts_of_paml_before_the_trees():
    trees = parse_newick(" 4  2\n((a,b),(c,d));\n((a,c),(b,d));\n")
    assert [tree.n_tips for tree in trees] == [4, 4]
    assert len(parse_newick("4 1\n((a,b),(c,d)); // a note (with brackets)\n")) == 1
    with pytest.warns(InputWarning, match="only the first 1 tree"):
        assert len(parse_newick("4 1\n((a,b),(c,d));\n((a,c),(b,d));\n")) == 1
    with pytest.raises(InputError, match="announces 4 taxa and 2 trees; there are 4 and 1") as caught:
        parse_newick("4 2\n((a,b),(c,d));")
    assert caught.value.line == 1


def test_a_count_of_trees_alone_before_them():
    """As PAML has it too."""
    assert len(parse_newick("   2\n\n((a,b),(c,d));\n((a,c),(b,d));\n")) == 2
    assert parse_newick("1\n(1,2,(3,4));")[0].taxa == ("1", "2", "3", "4")
    with pytest.warns(InputWarning, match="only the first 1 tree"):
        assert len(parse_newick("1\n(a,b);\n(b,a);\n")) == 1
    with pytest.raises(InputError, match="announces 2 trees; there are 1") as caught:
        parse_newick("2\n((a,b),(c,d));")
    assert caught.value.line == 1
