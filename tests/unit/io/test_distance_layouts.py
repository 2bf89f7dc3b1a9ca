"""Distance matrices as programs and spreadsheets write them: read as they are meant, or refused by name."""

from __future__ import annotations

import gzip
from itertools import product

import numpy as np
import pytest

from phloem.errors import InputError, InputWarning
from phloem.io.alignment import read_alignment
from phloem.io.distance_matrix import is_distance_matrix, read_distance_matrix, taxa_of_matrix

VALUES = [[0.0, 1.5, 2.0], [1.5, 0.0, 3.25], [2.0, 3.25, 0.0]]


def read(folder, text, ending=".phy"):
    file = folder / f"m{ending}"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert is_distance_matrix(file) and taxa_of_matrix(str(file)) == 3
    return read_distance_matrix(file)


def phylip(names, width=0, form="square"):
    cut = {"square": lambda r, i: r, "lower": lambda r, i: r[:i], "upper": lambda r, i: r[i + 1 :]}[form]
    rows = (" ".join(map(str, cut(row, i))) for i, row in enumerate(VALUES))
    return "3\n" + "".join(f"{name:<{width}} {row}\n" for name, row in zip(names, rows))


@pytest.mark.parametrize("end", ["\r", "\r\n", "\n"])
@pytest.mark.parametrize("packed", [False, True])
def test_every_kind_of_line_end(tmp_path, end, packed):
    """Lines that ended with CR alone were one line, which was no matrix."""
    for text, ending in (
        (phylip("abc"), ".phy"),
        (phylip("abc", form="lower"), ".phy"),
        (",a,b,c\na,0,1.5,2\nb,1.5,0,3.25\nc,2,3.25,0\n", ".csv"),
    ):
        raw = text.replace("\n", end).encode()
        found = read(tmp_path, gzip.compress(raw) if packed else raw, ending)
        assert found.taxa == ("a", "b", "c") and found.values.tolist() == VALUES


def test_line_ends_of_several_kinds_and_where_an_error_is(tmp_path):
    mixed = phylip("abc").replace("\n", "\r", 1).replace("\n", "\r\n", 1)
    assert read(tmp_path, mixed).values.tolist() == VALUES
    with pytest.raises(InputError, match="'oops' is no number") as caught:
        read(tmp_path, mixed.replace("3.25 0.0", "oops 0.0"))
    assert (caught.value.line, caught.value.column) == (4, 7)
    rng = np.random.default_rng(1)
    for _ in range(50):
        ends = rng.choice(["\n", "\r", "\r\n", "\r\r\n"], 4)
        text = "".join(line + end for line, end in zip(phylip("abc").split("\n"), ends))
        assert read(tmp_path, text).values.tolist() == VALUES


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_names_that_are_not_ascii(tmp_path, encoding):
    names = ("Ångström", "Ma\u0085x", "c")
    read_names = names[0], "Ma\u0085x", "c"
    assert read(tmp_path, phylip(names).encode(encoding)).taxa == read_names
    assert read(tmp_path, phylip(("Å b", "cc d", "e"), 10).encode(encoding)).taxa == ("Å b", "cc d", "e")
    rows = [f"{name};{row[0]};{row[1]};{row[2]}" for name, row in zip(names, VALUES)]
    table = "\n".join([";" + ";".join(names), *rows])
    assert read(tmp_path, table.encode(encoding), ".csv").taxa == names


@pytest.mark.parametrize("form", ["square", "lower", "upper"])
@pytest.mark.parametrize(
    "names",
    [
        ("Homo sapie", "Pan t", "Gorilla"),
        ("Homo", "Pan t", "Gorilla"),
        ("sample 1", "sample 2", "sample 3"),
        ("out", "sample 2", "ref"),
        (" a b", "b", "Gorilla g "),
    ],
)
def test_names_of_ten_columns_with_blanks(tmp_path, form, names):
    found = read(tmp_path, phylip(names, 10, form))
    assert found.taxa == tuple(name.strip() for name in names) and found.values.tolist() == VALUES
    assert found.settings["format"] == f"PHYLIP, {form}, ten-column names"


def test_names_of_ten_columns_with_numbers_right_behind_them(tmp_path):
    text = "3\nHomo sapie0.0 1.5 2\nAaaaaaaaaa1.5 0 3.25\nPan t     2.0\n 3.25 0\n"
    assert read(tmp_path, text.replace("\n 3.25", " 3.25")).values.tolist() == VALUES
    wrapped = "3\nHomo sapie0.0 1.5\n 2\nAaaaaaaaaa1.5 0\n3.25\nPan t     2.0\n 3.25 0\n"
    found = read(tmp_path, wrapped)
    assert found.taxa == ("Homo sapie", "Aaaaaaaaaa", "Pan t") and found.values.tolist() == VALUES


@pytest.mark.parametrize(
    "text",
    ["3\nAaaaaaaaaa0.0\nBbbbbbbbbb1.5 0\nCccccccccc2.0 3.25 0\n",
     "3\nAaaaaaaaaa0.0 1.5 2\nBbbbbbbbbb0.0 3.25\nCccccccccc0.0\n"],
)  # fmt: skip
def test_what_fits_two_readings_is_refused(tmp_path, text):
    with pytest.raises(InputError, match=r"'Aaaaaaaaaa', with a number right behind it(.|\n)*Put a blank"):
        read(tmp_path, text)
    names = ("ABCD010000.1", "ABCD010001.1", "ABCD010002.1")  # their ten columns give no zero diagonal
    assert read(tmp_path, phylip(names, form="upper")).taxa == names


def test_distances_are_never_read_as_names(tmp_path):
    """The first ten columns of a damaged matrix hold numbers: no reading makes names of them."""
    for text in (
        "3\na 0 1e+ 1 2\nb 1 0 3\nc 2 3 0\n",
        "3\na\nb 1.5x\nc 2.5 3 1\n",
        "3\na\nb 1 x\nc 12345.67 1\n",
    ):
        with pytest.raises(InputError):
            read(tmp_path, text)


@pytest.mark.parametrize("separator, quote", [(";", ""), ("\t", ""), (";", '"'), (",", '"')])
def test_decimal_commas_in_tables(tmp_path, separator, quote):
    rows = [[f"{quote}{x:g}{quote}".replace(".", ",") for x in row] for row in VALUES]
    table = "\n".join(separator.join([name, *row]) for name, row in zip(["", *"abc"], [list("abc"), *rows]))
    for ending in (".csv", ".txt", ".tsv"):
        found = read(tmp_path, table, ending)
        assert found.taxa == ("a", "b", "c") and found.values.tolist() == VALUES
        assert found.settings["format"] == "table, decimal commas"


def test_decimal_commas_in_phylip(tmp_path):
    for names, width, told in (("abc", 0, ""), (("a b", "c", "d"), 10, ", ten-column names")):
        found = read(tmp_path, phylip(names, width).replace(".", ","))
        assert found.values.tolist() == VALUES
        assert found.settings["format"] == f"PHYLIP, square{told}, decimal commas"
    assert read(tmp_path, "3\na 0, 1.5, 2\nb 1.5, 0, 3.25\nc 2, 3.25, 0\n").values.tolist() == VALUES


@pytest.mark.parametrize(
    "text, message",
    [
        (";a;b\na;0;1.234,5\nb;1.234,5;0\n", "decimal points and decimal commas"),
        (";a;b\na;0,0;1.5\nb;1.5;0\n", "decimal points and decimal commas"),
        (";a;b\na;0;1,234\nb;1,234;0\n", "'1,234' may be 1.234 or 1234"),
        (";a;b\na;0;1,2,3\nb;1;0\n", "is no number"),
        (";a;b;c\na;0,1;2\nb;1;0;3\nc;2;3;0\n", "2 distances where 3 belong"),
        (',a,b\na,"0 1",\nb,1,0\n', "'0 1' is no number"),
    ],
)
def test_commas_that_may_be_something_else(tmp_path, text, message):
    (tmp_path / "m.csv").write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        read_distance_matrix(tmp_path / "m.csv")
    assert caught.value.line == 2 and caught.value.hint


def test_names_that_look_like_numbers_to_python_are_names(tmp_path):
    found = read(tmp_path, ",1_1,1_2,١\n1_1,0,1.5,2\n1_2,1.5,0,3.25\n١,2,3.25,0\n", ".txt")
    assert found.taxa == ("1_1", "1_2", "١") and found.values.tolist() == VALUES


@pytest.mark.parametrize("first", ["²", "9" * 6000, "9" * 13, "1" * 70_000, "٣"])
def test_first_lines_that_are_no_number_of_taxa(tmp_path, first):
    """int() refuses what isdigit() takes, and more than 4,300 digits."""
    file = tmp_path / "m"
    file.write_text(f"{first}\na 0 1 2\nb 1 0 3\nc 2 3 0\n")
    for look in (is_distance_matrix, taxa_of_matrix, read_distance_matrix):
        try:
            assert look(str(file)) in (False, 3)
        except InputError as error:
            assert error.hint and len(error.message) < 120
            assert first[0] != "9" or f"a number of {len(first):,} digits" in error.message
        else:
            assert first in "²٣" and look is not read_distance_matrix


def test_numbers_of_many_digits(tmp_path):
    long = "3" * 10_000
    for word, value in (
        (f"0.{long}", 1 / 3), (f"{'0' * 10_000}1.5", 1.5), (f"15{'0' * 9_999}e-10000", 1.5),
        (f"0.{'0' * 9_999}15e+10000", 1.5), ("15e-00000000001", 1.5), ("0e99999999999999999999", 0.0),
        (f"1e-{long}", 0.0),
    ):  # fmt: skip
        text = f"3\na 0 {word} 2\nb {word} 0 3.25\nc 2 3.25 0\n"
        assert read(tmp_path, text).values[0, 1] == value == float(word)
    for word in (long, f"1e{long}"):
        with pytest.raises(InputError, match="not finite") as caught:
            read(tmp_path, f"3\na 0 {word} 2\nb {word} 0 3\nc 2 3 0\n")
        assert len(str(caught.value)) < 400
    with pytest.raises(InputError, match="more than 4,096 bytes"):
        read(tmp_path, phylip((long, "b", "c")))


@pytest.mark.parametrize("blank", ["\u0085", "\u00a0", "\u2028", "\x0c", "\t \n"])
def test_lines_that_are_blank_to_python_alone(tmp_path, blank):
    """str.strip() takes away what bytes.strip() leaves: a file of one such line had no first line."""
    for encoding in ("utf-8", "latin-1"):
        for text in (blank, blank + "\n" + phylip("abc"), blank + "\r\n\n2 3 0a1 0 3"):
            for name, look in product(
                ("m", "m.tsv"),
                (is_distance_matrix, lambda path: taxa_of_matrix(str(path)), read_distance_matrix),
            ):
                (tmp_path / name).write_bytes(text.encode(encoding, "ignore"))
                try:
                    look(tmp_path / name)
                except InputError as error:
                    assert error.hint


NEXUS = """#NEXUS
begin taxa; dimensions ntax=3; taxlabels 'a b' b c; end;
begin distances;
 format triangle={triangle} {labels} {diagonal} missing=?;
 matrix [1]
{rows} ;
end;
"""


def nexus(triangle="lower", diagonal="diagonal", labels="labels"):
    rows = []
    for i, row in enumerate(VALUES):
        k = diagonal == "diagonal"
        cut = {"both": row, "lower": row[: i + k], "upper": row[i + 1 - k :]}[triangle]
        name = ("'a b'", "b", "c")[i] if labels == "labels" else ""
        rows.append(f"{name} {' '.join(map(str, cut))} [{i + 1}]\n")
    return NEXUS.format(triangle=triangle, diagonal=diagonal, labels=labels, rows="".join(rows))


@pytest.mark.parametrize("labels", ["labels", "nolabels", "no labels", "labels=no"])
@pytest.mark.parametrize("diagonal", ["diagonal", "nodiagonal", "no diagonal"])
@pytest.mark.parametrize("triangle", ["lower", "upper", "both"])
def test_distances_of_nexus(tmp_path, triangle, diagonal, labels):
    diagonal = "diagonal" if triangle == "both" else diagonal
    found = read(tmp_path, nexus(triangle, diagonal, labels), ".nex")
    assert found.taxa == ("a b", "b", "c") and found.values.tolist() == VALUES
    assert str(found.settings["format"]).startswith("NEXUS")


def test_distances_of_nexus_that_are_none(tmp_path):
    good = nexus()
    for old, new, message, line in (
        ("1.5", "?", r"'\?' is no number", 7),
        ("lower", "upper", "'b' is no number", 6),
        ("lower", "sideways", "no triangle 'sideways'", 4),
        ("[3]", "7", "'7' stands behind the last", 8),
        ("1.5", "-1.5", "negative", None),
        ("2.0 3.25", "2.0", "the matrix ends in row 3", 9),
    ):
        with pytest.raises(InputError, match=message) as caught:
            read(tmp_path, good.replace(old, new), ".nex")
        assert caught.value.line == line and caught.value.file
    with_characters = good + "begin characters; format datatype=dna; matrix a A b C c A; end;\n"
    file = tmp_path / "both.nex"
    file.write_text(with_characters)
    assert not is_distance_matrix(file), "an alignment is measured"


def test_a_distance_that_is_missing(tmp_path):
    with pytest.raises(InputError, match="'NA' is no number") as caught:
        read(tmp_path, ",a,b,c\na,0,NA,2\nb,NA,0,3\nc,2,3,0\n", ".csv")
    assert "leave out one of the two taxa" in caught.value.hint


MEGA = """#mega
!Title of three;
!Format DataType=Distance DataFormat={form} NTaxa=3;
!Description
  No. of Sites : 895
;
[1] #Homo_sapiens
[2] #Pan {{apes}}
[3] #Gorilla

[     1    2    3 ]
{rows}
"""
MEGAS = {
    "LowerLeft": "[1]      [0.1][0.2]\n[2] 1.5 [0.3]\n[3] 2.0\n  3.25",  # with standard errors
    "UpperRight": "[1] 1.5 2.0\n[2] 3.25\n[3]",
}


@pytest.mark.parametrize("form", MEGAS)
def test_distances_of_mega(tmp_path, form):
    found = read(tmp_path, MEGA.format(form=form, rows=MEGAS[form]), ".meg")
    assert found.taxa == ("Homo_sapiens", "Pan", "Gorilla")
    assert found.values.tolist() == VALUES
    assert str(found.settings["format"]).startswith("MEGA")


def test_distances_of_mega_that_are_none(tmp_path):
    good = MEGA.format(form="LowerLeft", rows=MEGAS["LowerLeft"])
    file = tmp_path / "m.meg"
    for text, told, line in (
        (good.replace("NTaxa=3", "NTaxa=4"), "NTaxa is 4, and 3 taxa are named", 1),
        (good.replace("  3.25", ""), "2 distances, where 3 taxa have 3", 9),
        (good.replace("3.25", "n/c"), "'n/c' is no number", 14),
        (good.replace("LowerLeft", "Square"), "no DataFormat 'square'", 3),
    ):
        file.write_text(text)
        with pytest.raises(InputError, match=told) as raised:
            read_distance_matrix(file)
        assert raised.value.line == line
    file.write_text("#mega\n!Format DataType=DNA;\n#a\nACGT\n#b\nACGA\n")
    assert not is_distance_matrix(file)
    with pytest.raises(InputError, match="a MEGA file of sequences"):
        read_alignment(file)


PAIRS = (("a", "b", "1.5"), ("a", "c", "2"), ("b", "c", "3.25"))


def pairs(separator, both=False, more="", rows=PAIRS):
    rows = [*rows, *((y, x, d) for x, y, d in rows)] if both else rows
    return "".join(separator.join((*row, *more)) + "\n" for row in rows)


@pytest.mark.parametrize(
    "text",
    [
        pairs(" "),
        pairs("\t", more=("1e-10", "900/1000"), rows=(*PAIRS, ("c", "c", "0"))),
        "query,reference,distance\n" + pairs(",", both=True),
        pairs("\t", both=True).replace("\n", "\r\n"),
        pairs(",", rows=[("c", "a", "2"), *PAIRS[::2]]),
    ],
    ids=["column", "more columns", "headings", "both", "order"],
)
def test_distances_as_a_list_of_pairs(tmp_path, text):
    found = read(tmp_path, text, ".tsv")
    order = ["abc".index(name) for name in found.taxa]
    assert found.values.tolist() == np.array(VALUES)[np.ix_(order, order)].tolist()
    assert str(found.settings["format"]).startswith("pairs")


@pytest.mark.parametrize(
    "text, message",
    [
        (pairs("\t", rows=(*PAIRS, ("a", "d", "1"))), r"'d' and 'b' is missing \(2 pairs are\)"),
        (pairs("\t") + "a\tb\t1.25\n", ":4: the distance of 'a' and 'b' is given twice: 1.5 and 1.25"),
        (pairs("\t") + "b\ta\t1.25\n", "is 1.5, and 1.25 the other way|is 1.25, and 1.5 the other way"),
        (pairs("\t") + "c\td\tNA\n", ":4: this is no pair and its distance"),
        ("NA\n".join(pairs("\t").split("1.5\n")), ":1: this is no pair"),
        ("Ref\tQuery\tANI\n" + pairs("\t"), ":1: the third column is 'ANI'"),
        (pairs("\t") + "a\ta\t100\n", "'a' to itself .* 100\n.*similarities"),
    ],
)
def test_pairs_that_are_no_matrix(tmp_path, text, message):
    (tmp_path / "m.tsv").write_text(text)
    with pytest.raises(InputError, match=message):
        read_distance_matrix(tmp_path / "m.tsv")


def test_identities_in_percent_without_a_diagonal_are_told(tmp_path):
    """fastANI writes them in a lower triangle, which nothing tells from distances."""
    rows = [(x, y, str(99 - float(d))) for x, y, d in PAIRS]
    for text in (pairs("\t", rows=rows), "3\na\nb 98.5\nc 97 96.25\n"):
        with pytest.warns(InputWarning, match=r"between \S+ and \S+, as identities in percent"):
            read(tmp_path, text, ".tsv")


def test_other_tables_of_three_columns_list_no_pairs(tmp_path):
    for text in ("name,place,date\na,x,2001.5\nb,y,2002\n", "CLUSTAL W 2\n\na ACGT 4\nb ACGA 4\n"):
        (tmp_path / "m.txt").write_text(text)
        assert not is_distance_matrix(tmp_path / "m.txt")
