"""Distance matrices in all forms that are read, and what is refused."""

from __future__ import annotations

import gzip
import os
import re
import tracemalloc

import numpy as np
import pytest

from phloem.data.distance_matrix import DistanceMatrix
from phloem.errors import InputError
from phloem.io import distance_rows
from phloem.io.cpu.distance_text import parse_numbers
from phloem.io.distance_matrix import (
    is_distance_matrix,
    read_distance_matrix,
    read_distance_triangle,
    taxa_of_matrix,
    write_distance_matrix,
)

VALUES = np.array([[0, 1.5, 2, 4], [1.5, 0, 2.25, 3], [2, 2.25, 0, 1e-3], [4, 3, 1e-3, 0]])
TAXA = ("Homo", "Pan", "Gorilla_g", "Pongo")


def row_text(numbers):
    return " ".join(repr(float(x)) for x in numbers)


FORMS = {
    "square": [VALUES[i] for i in range(4)],
    "lower": [VALUES[i, :i] for i in range(4)],
    "lower with diagonal": [VALUES[i, : i + 1] for i in range(4)],
    "upper": [VALUES[i, i + 1 :] for i in range(4)],
    "upper with diagonal": [VALUES[i, i:] for i in range(4)],
}


@pytest.mark.parametrize("form", FORMS)
def test_phylip_forms(tmp_path, form):
    file = tmp_path / "m.phy"
    rows = [f"{name}  {row_text(row)}" for name, row in zip(TAXA, FORMS[form])]
    file.write_text("  4\n" + "\n".join(rows) + "\n")
    matrix = read_distance_matrix(file)
    assert matrix.taxa == TAXA and matrix.settings["format"] == f"PHYLIP, {form}"
    np.testing.assert_array_equal(matrix.values, VALUES)
    np.testing.assert_array_equal(read_distance_triangle(file).entries, VALUES[np.tril_indices(4, -1)])
    assert is_distance_matrix(file)


def large(n):
    upper = np.triu(np.random.default_rng(1).random((n, n)).astype(np.float32), 1)
    return upper + upper.T


@pytest.mark.parametrize("form", ["square", "lower", "upper with diagonal"])
def test_batches_of_rows_meet(tmp_path, form, monkeypatch):
    monkeypatch.setattr(distance_rows, "BATCH", 32)
    d, file = large(150), tmp_path / "m.phy"
    cut = {"square": lambda i: d[i], "lower": lambda i: d[i, :i], "upper with diagonal": lambda i: d[i, i:]}
    file.write_text("150\n" + "".join(f"t{i} {row_text(cut[form](i))}\n" for i in range(150)))
    np.testing.assert_array_equal(read_distance_matrix(file, precision="float32").values, d)
    triangle = read_distance_triangle(file, precision="float32")
    np.testing.assert_array_equal(triangle.entries, d[np.tril_indices(150, -1)])


@pytest.mark.parametrize("i, j", [(1, 0), (31, 30), (32, 31), (149, 0), (149, 148), (70, 40), (100, 64)])
@pytest.mark.parametrize("value", [7.0, np.nan, -1.0])
def test_a_wrong_cell_is_found_wherever_it_is(tmp_path, i, j, value, monkeypatch):
    monkeypatch.setattr(distance_rows, "BATCH", 32)
    for row, column in ((i, j), (j, i)):
        d = large(150)
        d[row, column] = value
        np.save(tmp_path / "m.npy", d)
        with pytest.raises(InputError, match=rf"\(row {i + 1}\) and 'taxon_{j + 1}' \(column {j + 1}\)"):
            read_distance_triangle(tmp_path / "m.npy")
    np.save(tmp_path / "m.npy", large(150))
    read_distance_triangle(tmp_path / "m.npy")


def test_reading_takes_no_square_for_a_triangle(tmp_path):
    np.save(tmp_path / "m.npy", large(2000))
    read_distance_triangle(tmp_path / "m.npy")
    tracemalloc.start()
    read_distance_triangle(tmp_path / "m.npy", precision="float64")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.reset_peak()
    read_distance_matrix(tmp_path / "m.npy", precision="float64")
    square = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.7 * 2000**2 * 8 < 2000**2 * 8 < square < 1.2 * 2000**2 * 8


def test_negative_zero_is_read_as_zero(tmp_path):
    (tmp_path / "m.phy").write_text("2\na 0 -0.0\nb -0.0 0\n")
    assert not np.signbit(read_distance_triangle(tmp_path / "m.phy").entries).any()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("taxa", [TAXA, ("H sapiens", "P t", "Gorilla_g", "P pygmaeus")])
def test_rows_over_several_lines_in_every_form(tmp_path, form, taxa):
    """As dnadist writes them, triangles too; and several matrices, of which one is not chosen silently."""
    file, wrapped = tmp_path / "m.phy", []
    for name, row in zip(taxa, FORMS[form]):
        lines = [row_text(row[k : k + 2]) for k in range(0, max(len(row), 1), 2)]
        wrapped.append(f"{name:<10}" + "\n          ".join(lines))
    text = "    4\n" + "\n".join(wrapped) + "\n"
    file.write_text(text)
    matrix = read_distance_matrix(file)
    assert matrix.taxa == taxa and matrix.settings["format"].startswith(f"PHYLIP, {form}")
    np.testing.assert_array_equal(matrix.values, VALUES)
    file.write_text(text + text)
    with pytest.raises(InputError, match="a second matrix begins here"):
        read_distance_matrix(file)


def test_rows_over_several_lines_windows_ends_and_gzip(tmp_path):
    rows = [f"{name} {row_text(row[:2])}\r\n   {row_text(row[2:])}" for name, row in zip(TAXA, VALUES)]
    file = tmp_path / "m.phy.gz"
    file.write_bytes(gzip.compress(("4\r\n" + "\r\n".join(rows) + "\r\n\r\n").encode()))
    np.testing.assert_array_equal(read_distance_matrix(file).values, VALUES)


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".npy", ".phy", ".csv.gz", ".gz"])
def test_round_trip(tmp_path, ending):
    rng = np.random.default_rng(0)
    upper = np.triu(rng.random((70, 70)), 1)
    taxa = tuple(f"taxon{k}" for k in range(70))
    if ending.startswith((".csv", ".tsv")):
        taxa = ('a "quoted", name', "Homo sapiens", *taxa[2:])
    matrix = DistanceMatrix(taxa, upper + upper.T)
    write_distance_matrix(matrix, tmp_path / f"m{ending}", digits=17)
    again = read_distance_matrix(tmp_path / f"m{ending}")
    assert again.taxa == taxa
    assert ((tmp_path / f"m{ending}").read_bytes()[:2] == b"\x1f\x8b") == ending.endswith(".gz")
    np.testing.assert_array_equal(again.values, matrix.values)


def test_numbers_are_correctly_rounded():
    rng = np.random.default_rng(1)
    numbers = [float(x) for x in np.exp(rng.uniform(-40, 40, 3000))]
    words = [repr(x) for x in numbers] + [f"{x:.3e}" for x in numbers] + [f"{x:.30f}" for x in numbers[:300]]
    words += ["0", "00.5", ".5", "5.", "+1", "1E3", "1e-300", "123456789012345678901234567890"]
    text = np.frombuffer("\n".join(words).encode(), np.uint8)
    out = np.empty(len(words))
    assert parse_numbers(text, 0, len(text), out, len(out)) == (len(words), -1)
    np.testing.assert_array_equal(out, [float(word) for word in words])


@pytest.mark.parametrize("word", ["x", "1.2.3", "1e", "--1", ".", "0.1x", "nan", "1_0"])
def test_what_is_no_number_is_pointed_at(word):
    text = np.frombuffer(f"0.5 {word} 1".encode(), np.uint8)
    assert parse_numbers(text, 0, len(text), np.empty(3), 3)[1] == 4


def test_single_precision_is_the_nearest(tmp_path):
    file = tmp_path / "m.phy"
    file.write_text("2\na 0 0.1234567890123\nb 0.1234567890123 0\n")
    assert read_distance_matrix(file, precision="float32").values[0, 1] == np.float32(0.1234567890123)


def test_names_of_an_array(tmp_path):
    np.save(tmp_path / "m.npy", VALUES)
    assert read_distance_matrix(tmp_path / "m.npy").taxa[3] == "taxon_4"
    (tmp_path / "names.txt").write_text("\n".join(TAXA))
    assert read_distance_matrix(tmp_path / "m.npy", names=tmp_path / "names.txt").taxa == TAXA
    (tmp_path / "names.txt").write_text("Homo\n")
    with pytest.raises(InputError, match="1 names for 4 rows"):
        read_distance_matrix(tmp_path / "m.npy", names=tmp_path / "names.txt")


def test_small_asymmetry_becomes_the_mean_and_is_bounded(tmp_path):
    file = tmp_path / "m.csv"
    file.write_text(",a,b\na,0,1.000004\nb,1,0\n")
    matrix = read_distance_matrix(file)
    assert matrix.values[0, 1] == matrix.values[1, 0] == pytest.approx(1.000002)
    with pytest.raises(InputError, match="the other way round"):
        read_distance_matrix(file, tolerance=1e-7)


def test_progress_reaches_the_end(tmp_path):
    n = 300
    write_distance_matrix(DistanceMatrix(tuple(map(str, range(n))), np.zeros((n, n))), tmp_path / "m.phy")
    seen = []
    read_distance_matrix(tmp_path / "m.phy", progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (n, n) and len(seen) > 1


BAD = {
    "2\na 0 1\nb 2 0\n": "'b'.*'a'.*2.*1",
    "2\na 0.5 1\nb 1 0\n": "to itself",
    "2\na 0 -1\nb -1 0\n": "negative",
    "2\na 0 1e999\nb 1e999 0\n": "not finite",
    "2\na 0 1\na 1 0\n": "occurs twice",
    "3\na 0 1\nb 1 0\n": "3 taxa announced",
    "2\na 0 1 2\nb 1 0 3\n": "no square or triangular",
    "2\na 0 x\nb 1 0\n": "'x' is no number",
    "3\na 0 1 2\nb 1 0\nc 2 1 0\n": "2 distances where 3 belong",
    "hello\n": "starts with the number of taxa",
    ",a,b\na,0,1\n": "2 names in the first row, 1 rows",
    ",a,b\na,0,1\nc,1,0\n": "row 2 is 'c', column 2 is 'b'",
    "0\n": "starts with the number of taxa",
    "\n\n": "empty",
    "": "empty",
}


@pytest.mark.parametrize("text", BAD)
def test_refusals(tmp_path, text):
    file = tmp_path / "m.txt"
    file.write_text(text)
    with pytest.raises(InputError, match=f"(?s){BAD[text]}") as error:
        read_distance_matrix(file)
    assert error.value.file == str(file) and error.value.hint


def test_the_place_of_a_bad_number(tmp_path):
    file = tmp_path / "m.txt"
    file.write_text("3\na 0 1 2\nb 1 0 oops\nc 2 1 0\n")
    with pytest.raises(InputError) as error:
        read_distance_matrix(file)
    assert (error.value.line, error.value.column, error.value.taxon) == (3, 7, "b")


def test_no_file_and_no_array(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_distance_matrix(tmp_path / "absent.phy")
    (tmp_path / "m.npy").write_bytes(b"not an array")
    with pytest.raises(InputError, match="not a NumPy array"):
        read_distance_matrix(tmp_path / "m.npy")
    np.save(tmp_path / "m.npy", np.zeros((2, 3)))
    with pytest.raises(InputError, match=r"\(2, 3\)"):
        read_distance_matrix(tmp_path / "m.npy")


def test_an_alignment_is_no_matrix(tmp_path):
    for text in (">a\nACGT\n", " 2 4\na ACGT\nb ACGT\n", "#NEXUS\n"):
        (tmp_path / "a").write_text(text)
        assert not is_distance_matrix(tmp_path / "a")


def test_blanks_in_phylip_names_are_refused(tmp_path):
    with pytest.raises(InputError, match="blank"):
        write_distance_matrix(DistanceMatrix(("a b", "c"), np.zeros((2, 2))), tmp_path / "m.phy")


def table(separator, corner="", quote=""):
    names = [f"{quote}{name}{quote}" for name in TAXA]
    rows = [separator.join([name, *map(str, row)]) for name, row in zip(names, VALUES.tolist())]
    heading = separator.join(names if corner is None else [corner, *names])
    return "\n".join([heading, *rows]) + "\n"


@pytest.mark.parametrize("separator", [",", "\t", ";"])
@pytest.mark.parametrize("corner", ["", "taxon", '""', None])
@pytest.mark.parametrize("ending", [".csv", ".dist", ".tsv.gz", ".gz", ".txt"])
def test_tables_of_spreadsheets_pandas_and_r(tmp_path, separator, corner, ending):
    """Whatever the name's ending; R's write.table leaves out the corner."""
    file, text = tmp_path / f"m{ending}", table(separator, corner, '"').encode()
    file.write_bytes(gzip.compress(text) if ending.endswith("gz") else b"\xef\xbb\xbf" + text)
    assert is_distance_matrix(file) and taxa_of_matrix(str(file)) == 4
    matrix = read_distance_matrix(file)
    assert matrix.taxa == TAXA and matrix.settings["format"] == "table"
    np.testing.assert_array_equal(matrix.values, VALUES)


def half_table(separator, form, corner, lacking):
    """One half of VALUES, the other cells empty or left out; of R's print, without a column and a row."""
    lower, size = form.startswith("lower"), len(TAXA)
    rows = [separator.join([*([] if corner is None else [corner]), *TAXA[: size - (corner == "R")]])]
    for i in range(corner == "R", size):
        cells = [TAXA[i]]
        for j in range(size - (corner == "R")):
            own = (j < i) == lower if i != j else "diagonal" in form
            cells += [repr(float(VALUES[i, j]))] if own else [] if lacking is None else [lacking]
        rows.append(separator.join(cells))
    return "\n".join(rows) + "\n"


@pytest.mark.parametrize("form", [form for form in FORMS if form != "square"])
@pytest.mark.parametrize("separator, corner, lacking", [(",", "", ""), ("\t", None, "NA"), (";", "x", "-")])
def test_half_a_table(tmp_path, form, separator, corner, lacking):
    file = tmp_path / "m.dist"
    file.write_text(half_table(separator, form, corner, lacking))
    assert is_distance_matrix(file) and taxa_of_matrix(str(file)) == 4
    matrix = read_distance_matrix(file)
    assert matrix.taxa == TAXA and matrix.settings["format"] == f"table, {form}"
    np.testing.assert_array_equal(matrix.values, VALUES)


@pytest.mark.parametrize("separator", [",", ";", "\t", " "])
def test_tables_whose_every_cell_is_quoted(tmp_path, separator):
    """The commas between them were taken for decimal ones."""
    rows = [
        ["", *TAXA][separator == " " :],
        *([name, *map(str, row)] for name, row in zip(TAXA, VALUES.tolist())),
    ]
    (tmp_path / "m.csv").write_text(
        "".join(separator.join(f'"{cell}"' for cell in row) + "\n" for row in rows)
    )
    matrix = read_distance_matrix(tmp_path / "m.csv")
    assert matrix.taxa == TAXA and matrix.settings["format"] == "table"
    np.testing.assert_array_equal(matrix.values, VALUES)


def test_tables_as_r_prints_and_writes_them(tmp_path):
    """write.table and print of a matrix, print of a dist object, the same in cells; a diagonal left empty."""
    quoted = [f'"{name}"' for name in TAXA]
    whole = [f"{name}   {row_text(row)}" for name, row in zip(quoted, VALUES)]
    dist = [f"{TAXA[i]:<12}{row_text(VALUES[i, :i])}" for i in range(1, 4)]
    written = half_table(",", "lower", "", "").split("\n")
    bare = [
        ",".join([TAXA[i], *("-" if i == j else repr(VALUES[i, j].item()) for j in range(4))])
        for i in range(4)
    ]
    for lines in (
        [" ".join(quoted), *whole],
        [f"{'':<12}{'  '.join(TAXA[:3])}", *dist],
        [written[0].removesuffix(",Pongo"), *(line.removesuffix(",") for line in written[2:])],
        ["," + ",".join(TAXA) + ",,", *bare, ",,,,,,"],
    ):
        (tmp_path / "m.txt").write_text("\n".join(lines) + "\n")
        matrix = read_distance_matrix(tmp_path / "m.txt")
        assert matrix.taxa == TAXA
        np.testing.assert_array_equal(matrix.values, VALUES)


@pytest.mark.parametrize("ending, separator", [(".csv", ","), (".dist", ","), (".txt", "  "), (".tsv", "\t")])
def test_a_table_without_names_is_not_read_as_if_its_numbers_were(tmp_path, ending, separator):
    """Its first row and column agree, as names would: three taxa 1.5, 2.0 and 4.0 came of it."""
    file = tmp_path / f"m{ending}"
    file.write_text("\n".join(separator.join(map(str, row)) for row in VALUES.tolist()))
    with pytest.raises(InputError, match=r"names.*\n.*can be a .npy file"):
        read_distance_matrix(file)


@pytest.mark.parametrize(
    "text",
    [
        "3 4\na ACGT\nb ACGA\nc ACGG\n",
        ">a one\n0 1 0\n>b two\n0 1 1\n",
        "2\t4\na\t0101\nb\t0111\n",
        ">a, b\nACGT\n",
        "#NEXUS\n",
        "((a,b),c);",
    ],
)
def test_alignments_and_trees_are_no_matrices(tmp_path, text):
    (tmp_path / "m.txt").write_text(text)
    assert not is_distance_matrix(tmp_path / "m.txt")


def test_long_first_lines_and_a_byte_order_mark(tmp_path):
    n = 3000
    names = [f"a_rather_long_name_of_{k}" for k in range(n)]
    (tmp_path / "m.dist").write_text("\ufefftaxon," + ",".join(names) + "\n" + names[0] + ",0" * n + "\n")
    assert is_distance_matrix(tmp_path / "m.dist") and taxa_of_matrix(str(tmp_path / "m.dist")) == n
    (tmp_path / "m.phy").write_text("\ufeff2\na 0 1\nb 1 0\n")
    assert read_distance_matrix(tmp_path / "m.phy").taxa == ("a", "b")


def test_where_the_names_of_an_array_come_from_is_told(tmp_path):
    np.save(tmp_path / "m.npy", VALUES)
    assert read_distance_matrix(tmp_path / "m.npy").settings["names"] == "taxon_1 … taxon_4"
    (tmp_path / "m.names").write_text("\n".join(TAXA))
    found = read_distance_matrix(tmp_path / "m.npy")
    assert found.taxa == TAXA and found.settings["names"] == str(tmp_path / "m.names")


@pytest.mark.parametrize(
    "name, text, message",
    [
        ("m.csv", ",a,,c\na,0,1,2\n,1,0,3\nc,2,3,0\n", "row 2 has no name"),
        ("m.csv", ",a,b,a\na,0,1,2\nb,1,0,3\na,2,3,0\n", "twice, in rows 1 and 3"),
        ("m.csv", ",a,b,c\na,,,\nb,1,,2\nc,2,3,\n", r":3: '2' stands above the diagonal"),
        ("m.csv", ",a,b,c\na,0,NA,2\nb,NA,0,3\nc,2,3,0\n", r":2:5: 'NA' is no number"),
        ("m.csv", ",a,b\na,100,98\nb,98,100\n", r"to itself .* 100\n.*100 - s of percents"),
        ("m.csv", "a,b\n0,1\n1,0\n", r"'0', column 1 is 'a'\n.*each further row a name"),
        ("m.npy", "hello", r"not a NumPy array\n"),
        ("m.phy", "", r"is empty\n  hint: Check how it was written"),
    ],
)
def test_errors_say_what_and_where(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError) as caught:
        read_distance_matrix(tmp_path / name)
    assert re.search(message, str(caught.value))


def test_names_for_a_matrix_that_has_names_and_a_pipe_are_refused(tmp_path):
    (tmp_path / "m.phy").write_text("2\na 0 1\nb 1 0\n")
    with pytest.raises(InputError, match="Leave out --names"):
        read_distance_matrix(tmp_path / "m.phy", names=tmp_path / "m.phy")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="not a regular file"):
        is_distance_matrix(tmp_path / "pipe")
