"""Titles, links, numbers and spellings: a name in a NEXUS file means what its block says, or is refused."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.errors import InputError, InputWarning
from phloem.io.alignment import part_alignment, read_alignment, read_characters, read_scheme
from phloem.io.newick_text import write_newick
from phloem.io.nexus import read_blocks, tokens
from phloem.io.source_text import SourceText
from phloem.io.trees import parse_trees
from phloem.tree.match import match_taxa

TWO_TAXA = """#NEXUS
begin taxa; title X1; dimensions ntax=4; taxlabels a b c d; end;
begin taxa; title X2; dimensions ntax=4; taxlabels d c b a; end;
begin trees; {link} tree t=((1:1,2:2):1,(3:3,4:4):1); end;
"""
BLOCKS = """#NEXUS
begin taxa; title T; dimensions ntax=3; taxlabels a b 'Homo sapiens'; end;
begin characters; title empty; dimensions nchar=3; end;
begin characters; title DNA; link taxa=T; dimensions nchar=4; format datatype=dna items=(MEAN X) gap=*;
  matrix a AC*T b AC{AG}A homo_sapiens ACGC; end;
begin characters; title morph; link taxa=T; dimensions nchar=2; format datatype=standard symbols="01";
  matrix 1 01 2 0{01} 3 11; end;
begin sets; link characters = dna; charset one = 1-2; end;
begin sets; link characters = morph; charset two = 1; end;
"""


def quietly(function, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return function(*arguments, **options)


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("link taxa=X2;", "((d:1.0,c:2.0):1.0,(b:3.0,a:4.0):1.0);"),
        ("link TAXA = x1;", "((a:1.0,b:2.0):1.0,(c:3.0,d:4.0):1.0);"),
    ],
)
def test_numbers_are_those_of_the_linked_block(link, expected):
    (tree,) = quietly(parse_trees, TWO_TAXA.format(link=link))
    assert write_newick(tree) == expected


def test_without_a_link_two_taxa_blocks_that_differ_are_refused():
    with pytest.raises(InputError, match="does not say which") as caught:
        parse_trees(TWO_TAXA.format(link=""))
    assert caught.value.line == 4 and "link taxa" in caught.value.hint
    same = TWO_TAXA.format(link="").replace("d c b a", "a b c d")
    assert quietly(parse_trees, same)[0].taxa == ("a", "b", "c", "d")


def test_a_title_that_no_block_has_is_refused():
    with pytest.raises(InputError, match="no TAXA block has the title 'X3'"):
        parse_trees(TWO_TAXA.format(link="link taxa = X3;"))


def test_a_title_without_blocks_that_have_one():
    (tree,) = parse_trees("#NEXUS begin trees; link taxa = DEFAULT; tree t = (x,(y,z)); end;")
    assert tree.taxa == ("x", "y", "z")


def test_a_data_block_that_is_not_needed_is_not_read():
    data = "begin data; format datatype=continuous; matrix a 0.1 b 0.2; end;"
    text = f"#NEXUS {data} begin trees; tree t=(a,b); end;"
    assert parse_trees(text)[0].taxa == ("a", "b")


def test_numbers_of_a_data_block():
    text = (
        "#NEXUS begin data; dimensions ntax=3 nchar=2; format datatype=dna; matrix x AC y AG z TT; end;"
        " begin trees; tree t = (2,(1,z)); end;"
    )
    assert parse_trees(text)[0].taxa == ("x", "y", "z")
    assert write_newick(parse_trees(text)[0]) == "(y,(x,z));"


@pytest.mark.parametrize(
    ("labels", "message"),
    [("a b", "names 2 taxa, NTAX is 3"), ("a b a", "'a' is there twice"), ("a_b c 'a_b'", "there twice")],
)
def test_taxlabels_are_ntax_different_names(labels, message):
    text = f"#NEXUS\nbegin taxa; dimensions ntax=3; taxlabels {labels}; end; begin trees; tree t=(1,2); end;"
    with pytest.raises(InputError, match=message) as caught:
        parse_trees(text)
    assert caught.value.line == 2


def test_taxa_whose_names_differ_in_case_only_are_told_apart():
    taxa = "begin taxa; dimensions ntax=4; taxlabels homo Homo c_c d; end;"
    numbered = (
        f"#NEXUS {taxa} begin trees; translate 1 homo, 2 Homo, 3 'C C', 4 D; tree t=((1,3),(2,4)); end;"
    )
    named = f"#NEXUS {taxa} begin trees; tree t=((homo,C_C),(Homo,D)); end;"
    for text in (numbered, named):
        assert write_newick(parse_trees(text)[0]) == "((homo,c_c),(Homo,d));"
    with pytest.raises(InputError, match="tip 'HOMO' is neither"):  # which of the two nobody knows
        parse_trees(named.replace("Homo,D", "HOMO,D"))


def test_a_comment_inside_a_word_does_not_split_it(tmp_path):
    found = [token.text for token in tokens(SourceText("a[x]c a[1][2]b[3] [4]d e[5]=f g[6] h i[7]'j k'"), 0)]
    assert found == ["ac", "ab", "d", "e", "=", "f", "g", "h", "i", "j k"]
    file = tmp_path / "a.nex"
    file.write_text(
        "#NEXUS begin data; dimensions ntax=2 nchar=4; format datatype=dna;\n"
        "matrix\n a[x]c AC[3]GT\n[first]b[second] [third] A CGA\n; end;"
    )
    read = read_alignment(file)
    assert read.taxa == ("ac", "b") and read.codes.tolist() == [[0, 1, 2, 3], [0, 1, 2, 0]]


def test_blocks_of_characters_are_chosen(tmp_path):
    file = tmp_path / "two.nex"
    file.write_text(BLOCKS)
    with pytest.raises(InputError, match="2 blocks of characters") as caught:
        read_characters(file)
    assert "1 'DNA', 2 'morph'" in caught.value.hint and caught.value.line == 6
    for wanted in ("dna", "1"):
        chosen = quietly(read_characters, file, wanted)
        assert chosen.datatype == "dna" and dict(chosen.charsets) == {"one": "1-2"}
        assert chosen.taxa == ("a", "b", "homo_sapiens")
    assert dict(read_characters(file, "MORPH").charsets) == {"two": "1"}
    with pytest.raises(InputError, match="no block of characters has the title or number '3'"):
        read_characters(file, "3")


def test_blocks_side_by_side(tmp_path):
    file = tmp_path / "two.nex"
    file.write_text(BLOCKS.replace("2 0{01} 3 11", "2 0{01}"))
    with pytest.warns(InputWarning, match="1 of the 3 taxa"):
        both = read_characters(file, "all")
    scheme = read_scheme(both)
    dna, morph = (part_alignment(both, subset) for subset in scheme.subsets)
    assert (dna.alphabet.kind, morph.alphabet.kind) == ("dna", "standard")
    assert dna.taxa == morph.taxa == ("a", "b", "homo_sapiens")
    sets = [dna.state_sets[code].tolist() for code in dna.codes[1]]
    assert sets[2] == [True, False, True, False]
    assert morph.state_sets[morph.codes[2]].all() and morph.state_sets[morph.codes[1, 1]].all()
    line, _ = both.source.locate(both.locate("b", 5))
    assert line == 7


def test_what_a_reader_does_not_obey_is_said(tmp_path):
    file = tmp_path / "a.nex"
    good = "#NEXUS\n# a note\nbegin [comment]data; dimensions ntax=2 nchar=2; matrix a AC b AG; end;\n"
    file.write_text(good)
    assert quietly(read_alignment, file).taxa == ("a", "b")
    for more, said in [
        ("log file = x; set autoclose=yes;\n", "line 4: commands between blocks are not obeyed: LOG, SET"),
        ("begin paup; exclude 1; end;\n", "line 4: EXCLUDE in block 'paup' is not obeyed"),
        ("begin mrbayes; lset nst=6; prset x=y; mcmc; end;\n", "line 4: .*not obeyed: LSET, PRSET, MCMC"),
        ("begin foo;\n x [", "line 5: .*from here on the file is not read"),
        ("matrix a AC;", "from here on the file is not read"),
    ]:
        file.write_text(good + more)
        with pytest.warns(InputWarning, match=said):
            assert read_alignment(file).taxa == ("a", "b")
    file.write_text(good.replace("matrix", "atrix") + "begin foo;")
    with pytest.raises(InputError, match="never ends"):
        read_alignment(file)


def test_commands_that_change_data_do_not_stand_between_blocks():
    with pytest.raises(InputError, match="expected 'begin NAME;'"):
        read_blocks("#NEXUS begin data; end; exclude 1; begin trees; end;")


def test_several_taxa_on_a_line(tmp_path):
    file = tmp_path / "a.nex"
    head = "#NEXUS begin data; dimensions ntax=3 nchar=4; format datatype=dna; matrix\n"
    file.write_text(head + "a AC{AG}T b ACGA\nc ACGC; end;")
    read = read_alignment(file)
    assert read.taxa == ("a", "b", "c") and np.array_equal(read.codes[1], [0, 1, 2, 0])
    file.write_text(head + "a ACGTb ACGA\nc ACGC; end;")
    with pytest.raises(InputError, match="'a' has"):
        read_alignment(file)


def test_a_tree_is_spelled_as_the_data():
    data = alignment_from_sequences({"Homo_sapiens": "A", "pan": "C", "Gorilla": "G"}, alphabet("dna"))
    (tree,) = parse_trees("('homo sapiens',(PAN,Gorilla));")
    assert match_taxa(tree, data.taxa).taxa == ("Homo_sapiens", "pan", "Gorilla")
    (other,) = parse_trees("('homo sapiens',(Homo_sapiens,Gorilla));")
    with pytest.raises(InputError, match="in the tree and not in the alignment"):
        match_taxa(other, data.taxa)
