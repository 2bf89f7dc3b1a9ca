import pytest

from phloem.errors import InputError, InputWarning
from phloem.io.alignment import read_alignment
from phloem.io.nexus import find_block, is_nexus, quote_name, read_blocks, tokens
from phloem.io.nexus_names import read_charsets, read_taxsets
from phloem.io.source_text import SourceText, decode

TEXT = """#NEXUS
[comment with 'quote and ; and [nesting]]
begin foreign;
  say 'it''s; here' O'Brien's "a;b" [;] (x,y)=z;
  ;
end;
Begin Trees;
  tree one = [&R] (a[&x={1,2}],'b;c');
END;
"""


def words(text):
    return [(token.text, token.quoted) for token in tokens(SourceText(text), 0)]


def test_blocks_and_commands():
    foreign, trees = read_blocks(TEXT)
    assert (foreign.name, foreign.line, trees.name, trees.line) == ("foreign", 3, "trees", 7)
    assert [command.name for command in foreign.commands] == ["say", ""]
    assert foreign.text.startswith("begin foreign;") and foreign.text.endswith("end;")
    tree = trees.command("tree")
    assert tree.arguments == " one = [&R] (a[&x={1,2}],'b;c')" and tree.line == 8
    assert find_block([foreign, trees], "data", "trees") is trees and find_block([foreign], "trees") is None


def test_tokens():
    assert words("a 'it''s' O'B \"q ;\"(x,y)[c[d]]=1e-3 ''") == [
        ("a", False), ("it's", True), ("O'B", False), ("q ;", True), ("(", False), ("x", False), (",", False),
        ("y", False), (")", False), ("=", False), ("1e-3", False), ("", True),
    ]  # fmt: skip


def test_quoting_round_trip():
    for name in ("plain_name", "it's", "a b", "x;y", "[c]", "", "a,b", '"', "'"):
        assert [token.text for token in tokens(SourceText(quote_name(name)), 0)] == [name]
    assert quote_name("A.b-c_1") == "A.b-c_1"


def test_a_running_trees_block_may_lack_its_end():
    (block,) = read_blocks("#NEXUS begin trees; tree a = (b,c);\n")
    assert len(block.commands) == 1
    with pytest.raises(InputError):
        read_blocks("#NEXUS begin trees; tree a = (b,c);\ntree b = (b")


@pytest.mark.parametrize(
    "text, line, column",
    [
        ("begin data;", 1, 1),
        ("#NEXUS\nfoo;", 2, 1),
        ("#NEXUS\nbegin;", 2, 1),
        ("#NEXUS\nbegin a;\nx;\nbegin b;\nend;", 4, 1),
        ("#NEXUS\nbegin a;\n x [open;\nend;", 3, 4),
        ("#NEXUS\nbegin a;\n x 'open;\nend;", 3, 4),
        ('#NEXUS\nbegin a;\n x "open;\nend;', 3, 4),
        ("#NEXUS\nbegin a; end;\n end;", 3, 2),
    ],
)
def test_errors(text, line, column):
    with pytest.raises(InputError) as caught:
        read_blocks(text, "file.nex")
    assert (caught.value.file, caught.value.line, caught.value.column) == ("file.nex", line, column)
    assert caught.value.hint


def test_sets():
    blocks = read_blocks(
        "#NEXUS begin sets; charset * a = 1 - 9 \\ 3 [x] 12; charset 'b c' = 'a' 13-.; "
        "taxset t = x 'y z' 3-4; end;"
        "begin mrbayes; charset COI = 167-1244; end; begin other; charset no = 1; end;"
    )
    assert read_charsets(blocks) == {"a": "1-9\\3 12", "b c": "'a' 13-.", "COI": "167-1244"}
    assert read_taxsets(blocks) == {"t": ("x", "y z", "3-4")}
    with pytest.raises(InputError):
        read_charsets(read_blocks("#NEXUS begin sets; charset 1-3; end;"))


def test_latin_1_text_is_read():
    assert decode("Müller".encode("latin-1")) == decode("Müller".encode()) == "Müller"


def test_files_of_commands_may_begin_with_a_block():
    """As MrBayes reads them: its batch files are often without #NEXUS."""
    (block,) = read_blocks("\n begin MrBayes;\n lset nst=2;\nend;\n")
    assert block.name == "mrbayes" and block.commands[0].line == 3
    for text in ("begin;", "begin the story;", "beginmrbayes;\nend;", "(a,b);"):
        assert not is_nexus(text)
        with pytest.raises(InputError, match="not a NEXUS file"):
            read_blocks(text)


DATA = "#NEXUS\nbegin data;\ndimensions ntax=2 nchar=4;\nformat datatype=dna;\nmatrix\na ACGT\nb ACGA\n;\n"


@pytest.mark.parametrize(
    ("end", "line", "message"),
    [
        ("END", 9, "the last END has no ';'"),
        ("end;\nbegin trees;\ntree t = (a,b);\nendblock \n\n", 12, "the last END has no ';'"),
        ("\nbegin mrbayes;\nmcmc;\nend;\n", 10, "block 'data' has no END before this next block"),
    ],
)
def test_ends_that_mrbayes_does_without(tmp_path, end, line, message):
    file = tmp_path / "data.nex"
    file.write_text(DATA + end)
    with pytest.warns(InputWarning, match=rf"data\.nex, line {line}: {message}"):
        assert read_alignment(file, quiet=True).n_sites == 4


def test_other_ends_are_missed(tmp_path):
    for text in ("", "ENDE", "END x", "END [", "begin trees;\ntree t = (a,b);\nbegin sets;\nend;"):
        with pytest.raises(InputError):
            read_blocks(DATA + text)


def test_a_control_character_in_a_name(tmp_path):
    """Is told of, and read; a zero, or many of them, are no text."""
    file = tmp_path / "data.nex"
    file.write_text(DATA.replace("b ACGA", "b\x7f ACGA") + "end;\n")
    told = r"data\.nex, line 7: a control character \(0x7f\) stands in column 2"
    with pytest.warns(InputWarning, match=told):
        assert read_alignment(file).taxa == ("a", "b\x7f")
    for text, column in (("b\0 ACGA", 2), ("b\x01\x02\x03\x04\x05\x06 ACGA", 2)):
        file.write_text(DATA.replace("b ACGA", text) + "end;\n")
        with pytest.raises(InputError, match="binary") as error:
            read_alignment(file)
        assert (error.value.line, error.value.column) == (7, column)
