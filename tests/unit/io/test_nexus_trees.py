"""TREES blocks: TRANSLATE, names, rootedness, comments, errors with their lines."""

import pytest

from phloem.errors import InputError
from phloem.io.newick import parse_newick
from phloem.io.trees import nexus_text, parse_trees

FILE = """#NEXUS
[a comment; with begin trees; inside]
begin taxa; dimensions ntax=3; taxlabels 'Homo sapiens' Pan Gorilla; end;
begin mrbayes; lset nst=6; end;
Begin Trees;
  Translate
    1 'Homo sapiens',
    2 Pan [the chimp],
    3 Gorilla
    ;
  tree * 'best one' [&lnP=-1.5] = [&U] [&W 1/2] (1[&rate=1]:0.1,(2:0.2,3:0.3)[&prob=0.9]:0.4);
  UTREE second = (3:3,(1:1,2:2):4);
  tree third = [&R] (Pan:2,(1:1,3:3):4);
End;
"""


def test_trees_block():
    best, second, third = parse_trees(FILE)
    assert best.taxa == second.taxa == third.taxa == ("Homo sapiens", "Pan", "Gorilla")
    assert (best.name, second.name, third.name) == ("best one", "second", "third")
    assert (best.rooted, second.rooted, third.rooted) == (False, False, True)
    assert best.lengths.tolist() == [0.1, 0.2, 0.3, 0.4, 0]
    assert second.lengths.tolist() == third.lengths.tolist() == [1, 2, 3, 4, 0]
    assert dict(best.annotations) == {0: {"rate": 1}, 3: {"prob": 0.9}}


def test_numbers_of_the_taxa_block_without_translate():
    (tree,) = parse_trees("#NEXUS begin taxa; taxlabels a b c; end; begin trees; tree t = (3,(2,a)); end;")
    assert tree.taxa == ("a", "b", "c")
    assert tree.parent.tolist() == [3, 3, 4, 4, -1]


def test_output_of_a_run_that_still_goes_on():
    (tree,) = parse_trees("#NEXUS\nbegin trees;\n tree one = (a:1,b:1);\n")
    assert tree.taxa == ("a", "b")


def test_figtree_can_read_what_is_written():
    (tree,) = parse_newick("(A[&prob=1]:1,B:2,(C:1,'D d':1)[&p=0.9,length_95%HPD={1,2}]:3);")
    assert nexus_text([tree]).splitlines()[-3:] == [
        "begin trees;",
        "\ttree tree_1 = [&U] (A[&prob=1]:1.0,B:2.0,(C:1.0,'D d':1.0)[&p=0.9,length_95%HPD={1,2}]:3.0);",
        "end;",
    ]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("#NEXUS\nbegin trees;\ntree a = ((1,2);\nend;", 3, "before every"),
        ("#NEXUS\nbegin trees;\ntree a = (1,2);\ntree b (1,2);\nend;", 4, "no '='"),
        ("#NEXUS\nbegin trees;\ntranslate 1 A B, 2 C;\ntree a = (1,2);\nend;", 3, "not a pair"),
        ("#NEXUS\nbegin trees;\ntranslate 1 A, 1 C;\ntree a = (1,2);\nend;", 3, "stands twice"),
        ("#NEXUS\nbegin trees;\ntree a = (1[x,2);\nend;", 3, "comment"),
        ("#NEXUS\nbegin trees;\ntree a = ('1,2);\nend;", 3, "quote"),
        ("#NEXUS\nbegin trees;\ntree a = (1,2);\ntree b = (1,(2,1));\nend;", 4, "stands twice"),
        ("#NEXUS\nbegin trees;\nend;", 1, "no tree"),
        ("#NEXUS\nbegin trees;\ntranslate 1 A, 2 B;\ntree a = (1,(B,\n 3));\nend;", 5, "tip '3' is neither"),
    ],
)
def test_errors_name_the_line(text, line, message):
    with pytest.raises(InputError, match=message) as caught:
        parse_trees(text)
    assert caught.value.line == line
    assert caught.value.hint
