from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from phloem.errors import InputError
from phloem.io.alignment import part_alignment, read_alignment, read_characters, read_scheme
from phloem.io.partitions import read_partitions

ROOT = Path(__file__).resolve().parents[3]
GOLDEN = ROOT / "tests" / "golden" / "partitions"

FIRST, SECOND, THIRD = (list(range(k, 60, 3)) for k in range(3))
PRESENCE = list(range(80, 90))
ENZYME = [*range(60, 80), *range(90, 100)]
COLUMNS = {"first": FIRST, "second": SECOND, "third": THIRD, "enzyme": ENZYME, "presence": PRESENCE}

GTR_RAXML = "GTR{1.2/4.0/0.7/0.9/5.0/1.0}+FU{0.3/0.2/0.2/0.3}+G4{0.5}"
GTR_IQTREE = "GTR{1.2,4.0,0.7,0.9,5.0}+F{0.3,0.2,0.2,0.3}+G4{0.5}"
EXPECTED = {
    "raxml.txt": {
        "first": (None, "dna"), "second": (None, "dna"), "third": (None, "dna"),
        "enzyme": ("WAG", None), "presence": (None, "binary"),
    },
    "raxml_ng.txt": {
        "first": (GTR_RAXML, None), "second": ("HKY{kappa=3,}+F", None), "third": ("JC+I", None),
        "enzyme": ("LG+F+G4", None), "presence": ("MK", None),
    },
    "iqtree.nex": {
        "first": (GTR_IQTREE, "dna"), "second": ("HKY+F", None), "third": (None, "dna"),
        "enzyme": ("LG+F+G4", "protein"), "presence": ("GTR2+FO", "binary"),
    },
}  # fmt: skip


@pytest.mark.parametrize("file", EXPECTED)
def test_models_datatypes_and_columns(file):
    scheme = read_partitions(GOLDEN / file, 100, alignment="/data/alignment.fasta")
    found = {subset.name: (subset.model_text, subset.datatype) for subset in scheme.subsets}
    assert found == EXPECTED[file]
    assert list(found) == list(EXPECTED[file])
    assert {subset.name: subset.sites.tolist() for subset in scheme.subsets} == COLUMNS
    assert all(subset.sites.dtype == np.int64 for subset in scheme.subsets)


def test_nexus_without_models():
    scheme = read_partitions(GOLDEN / "paup.nex", 100)
    assert scheme.name == "mine"
    assert {subset.name: subset.sites.tolist() for subset in scheme.subsets} == COLUMNS
    assert {subset.model_text for subset in scheme.subsets} == {None}
    assert read_partitions(GOLDEN / "paup.nex", 100, name="other").subsets[0].n_sites == 100


def test_mrbayes():
    scheme = read_partitions(GOLDEN / "mrbayes.nex", 100)
    names = ["first", "second", "third", "subset4", "presence"]
    assert (scheme.name, [subset.name for subset in scheme.subsets]) == ("everything", names)
    assert [subset.sites.tolist() for subset in scheme.subsets] == [FIRST, SECOND, THIRD, ENZYME, PRESENCE]
    genes = read_partitions(GOLDEN / "mrbayes.nex", 100, name="Genes")
    assert [subset.n_sites for subset in genes.subsets] == [60, 30, 10]


def test_the_line_of_every_subset():
    assert [s.line for s in read_partitions(GOLDEN / "raxml_ng.txt", 100).subsets] == [2, 3, 4, 6, 7]
    assert [s.line for s in read_partitions(GOLDEN / "mrbayes.nex", 100).subsets] == [3, 4, 5, 10, 7]


NEXUS = "#NEXUS\nbegin sets;\ncharset a = 1-4;\ncharset b = 5-.;\n{}\nend;\n"
MRBAYES = "#NEXUS\nbegin mrbayes;\ncharset a = 1-4;\ncharset b = 5-.;\n{}\nend;\n"


@pytest.mark.parametrize(
    "text, line, message",
    [
        ("DNA, a = 1-6\nDNA, b = 6-9", 2, "columns 6 are in 'a' and in 'b'"),
        ("DNA, a = 1-4\nDNA, b = 6-9", None, "1 columns are in no subset: 5"),
        ("DNA, a = 1-4\nDNA, b = 5-10", 2, "past the last column, 9"),
        ("DNA, a = 1-4\n\n#\nDNA, a = 5-9", 4, "'a' is there twice, first in line 1"),
        ("DNA, a = 4-1\nDNA, b = 5-9", 1, "'4-1' is no range"),
        ("DNA, a = 1-4, 4-5\nDNA, b = 6-9", 1, "columns 4 more than once"),
        ("DNA, a =\nDNA, b = 1-9", 1, "choose no column"),
        ("DNA, a = x\nDNA, b = 1-9", 1, "'x' is neither"),
        ("DNA a = 1-9", 1, "is no subset"),
        ("GTR{1,2}, = 1-9", 1, "no name"),
        ("DNA, a: 1-9", 1, "no name"),
        (", a = 1-9", 1, "no model"),
        ("AUTO, a = 1-9", 1, "no model"),
        ("[asc~p1.txt], ASC_DNA, a = 1-9", 1, "ascertainment"),
        ("CODON, a = 1-8\nDNA, b = 9", 1, "multiple of three"),
        ("CODON2, a = 1-9\\3\nDNA, b = 2-9\\3\nDNA, c = 3-9\\3", 1, "a codon of the columns 1, 4 and 7"),
        (NEXUS.format("charpartition p = GTR:a, HKY:c;"), 5, "'c' is neither"),
        (NEXUS.format("charpartition p = GTR:a;"), None, "5 columns are in no subset: 5-9"),
        (NEXUS.format("charpartition p = GTR:a, HKY:b{0.5};"), 5, "lengths of trees"),
        (NEXUS.format("charpartition p = GTR:a, HKY:;"), 5, "is no subset"),
        (NEXUS.format("charpartition p = a, b;"), 5, "is no subset"),
        (NEXUS.format("charpartition = GTR:a;"), 5, "no name"),
        (NEXUS.format("charpartition p = 1:all;\ncharpartition q = 1:all;"), 6, "several partitions: p, q"),
        (NEXUS.format("charpartition p = 1:all;\ncharpartition P = 1:all;"), 6, "'P' is there twice"),
        (NEXUS.format("charset c = 2-3;"), 5, "columns 2-3 are in 'a' and in 'c'"),
        (NEXUS.format("charset A = 2-3;"), 5, "charset 'A' is there twice, first in line 3"),
        (NEXUS.format("charset c = other.fasta: 1-3;"), 5, "columns of another file, 'other.fasta'"),
        (
            NEXUS.format("charset c = AA, 1-4;\ncharpartition p = DNA:c, HKY:b;"),
            6,
            "protein by its set and dna",
        ),
        (NEXUS.format("charpartition p = all:1-9, rest:remainder;"), 5, "'rest' has no columns"),
        (MRBAYES.format("partition p = 3: a, b;"), 5, "announces 3 subsets and lists 2"),
        (MRBAYES.format("partition p = a, b;"), 5, "no number of subsets"),
        (MRBAYES.format("partition p = 2: a, c;"), 5, "'c' is neither"),
        (MRBAYES.format("partition p = 2: a, a;"), 3, "'a' is there twice"),
        (MRBAYES.format("partition p = 2: a, b;\nset partition = q;"), 6, "no partition 'q'"),
        (MRBAYES.format("partition p = 2: a, b;\nset partition;"), 6, "SET PARTITION has no name"),
        ("#NEXUS\nbegin sets;\nend;", None, "neither CHARPARTITION"),
    ],
)
def test_what_is_refused(tmp_path, text, line, message):
    path = tmp_path / "genes"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as error:
        read_partitions(path, 9)
    assert (error.value.file, error.value.line) == (str(path), line)
    assert error.value.hint


@pytest.mark.parametrize(
    "text",
    [
        NEXUS.format(""),
        NEXUS.format("charpartition p = GTR:a, HKY+G:b;"),
        NEXUS.format("charpartition p = GTR:a, rest:remainder;"),
        NEXUS.format("charpartition p = x: 1-3, 4, HKY+G: 5-9;"),
        MRBAYES.format("partition p = 2: a, b; partition q = 1: all; set partition=2;"),
        "DNA, a = 1-4\nDNA, b = 5-.",
    ],
)
def test_the_same_files_without_the_error_are_read(tmp_path, text):
    (tmp_path / "genes").write_text(text)
    scheme = read_partitions(tmp_path / "genes", 9)
    assert [subset.sites.tolist() for subset in scheme.subsets] == [[0, 1, 2, 3], [4, 5, 6, 7, 8]]


def test_a_model_of_columns_without_a_set_is_kept(tmp_path):
    (tmp_path / "genes").write_text(NEXUS.format("charpartition p = x: 1-4, HKY+G: 5-9;"))
    first, second = read_partitions(tmp_path / "genes", 9).subsets
    assert (first.name, first.model_text) == ("x", None)
    assert (second.name, second.model_text) == ("subset2", "HKY+G")


@pytest.mark.parametrize("word", ["default", "1"])
def test_the_default_partition_of_mrbayes(tmp_path, word):
    (tmp_path / "genes").write_text(MRBAYES.format(f"partition p = 2: a, b; set partition={word};"))
    (only,) = read_partitions(tmp_path / "genes", 9).subsets
    assert (only.name, only.n_sites) == ("all", 9)


def test_a_number_is_a_name_before_it_is_a_place(tmp_path):
    two = "partition 3 = 2: a, b; partition 1 = 1: all; set partition="
    for word, n in (("1", 1), ("2", 2), ("3", 2)):
        (tmp_path / "genes").write_text(MRBAYES.format(f"{two}{word};"))
        assert len(read_partitions(tmp_path / "genes", 9).subsets) == n
    (tmp_path / "genes").write_text(MRBAYES.format(f"{two}4;"))
    with pytest.raises(InputError, match="no partition '4'"):
        read_partitions(tmp_path / "genes", 9)


def test_names_that_a_file_does_not_have(tmp_path):
    for text in ("DNA, a = 1-9", NEXUS.format(""), NEXUS.format("charpartition p = 1:all;")):
        (tmp_path / "genes").write_text(text)
        with pytest.raises(InputError, match="no partition 'q'"):
            read_partitions(tmp_path / "genes", 9, name="q")


def test_sets_of_the_alignment_serve_the_partition_file(tmp_path):
    (tmp_path / "genes").write_text("DNA, x = coding\nDNA, y = 7-9")
    scheme = read_partitions(tmp_path / "genes", 9, charsets={"Coding": "1-6"})
    assert [subset.n_sites for subset in scheme.subsets] == [6, 3]


def test_codon_positions_of_the_primates():
    characters = read_characters(ROOT / "examples" / "primates.nex")
    scheme = read_scheme(characters, ROOT / "examples" / "primates.partitions")
    assert [(s.name, s.n_sites) for s in scheme.subsets] == [
        ("position1", 232), ("position2", 232), ("position3", 232), ("trna", 202),
    ]  # fmt: skip
    variable = [
        np.mean((part.codes != part.codes[0]).any(axis=0))
        for part in (part_alignment(characters, subset) for subset in scheme.subsets)
    ]
    assert variable[2] > 0.9 > variable[0] > variable[1]  # third positions vary most, second least


def test_the_reading_frame_of_the_primates(tmp_path):
    characters = read_characters(ROOT / "examples" / "primates.nex")

    def codons(text):
        (tmp_path / "genes").write_text(f"CODON2, genes = {text}")
        scheme = read_scheme(characters, tmp_path / "genes", unassigned="drop")
        return part_alignment(characters, scheme.subsets[0])

    assert codons("2-457, 660-896").codes.shape == (12, 231)
    with pytest.raises(InputError, match="stop codon"):
        codons("3-458, 661-897")


MIXED = """#NEXUS
begin data; dimensions ntax=3 nchar=12;
format datatype=mixed(DNA:1-6, Standard:7-10, Protein:11-12) missing=? gap=-;
matrix
a ACGTAC 0123 WA
b ACGT-C 0(01)1? GA
c NCGTRC 1100 -A
; end;
begin mrbayes;
charset gene = 1-6; charset first = 1-6\\2; charset bones = 7-10; charset enzyme = 11 12; charset wrong = 6 7;
partition p = 4: first, 2-6\\2, bones, enzyme; partition q = 2: wrong, 1-5 8-12; set partition = p;
end;
"""


def test_parts_of_a_mixed_matrix_are_coded_anew(tmp_path):
    file = tmp_path / "mixed.nex"
    file.write_text(MIXED)
    characters = read_characters(file)
    whole = [part_alignment(characters, subset) for subset in read_scheme(characters).subsets]
    assert [part.alphabet.kind for part in whole] == ["dna", "standard", "protein"]
    assert [part.n_sites for part in whole] == [6, 4, 2]
    scheme = read_scheme(characters, file)
    assert [subset.datatype for subset in scheme.subsets] == ["dna", "dna", "standard", "protein"]
    parts = [part_alignment(characters, subset) for subset in scheme.subsets]
    assert [part.alphabet.n_states for part in parts] == [4, 4, 4, 20]
    assert parts[0].codes.tolist() == [[0, 2, 0], [0, 2, 4], [4, 2, parts[0].codes[2, 2]]]
    assert parts[0].state_sets[parts[0].codes[2, 2]].tolist() == [True, False, True, False]  # R
    assert parts[2].codes[0].tolist() == [0, 1, 2, 3]
    assert parts[3].codes[:, 1].tolist() == [0, 0, 0]  # A is alanine here
    assert parts[0].settings["subset"] == "first" and parts[0].settings["sites"] == "1-5\\2"
    with pytest.raises(InputError, match=r"'wrong' are of several data types \(dna, standard\)"):
        read_scheme(characters, file, name="q")


def test_errors_in_a_part_name_line_and_column(tmp_path):
    file = tmp_path / "genes.fasta"
    file.write_text(">a\nACGTWWWW\n>b\nACGTWWLW\n")
    (tmp_path / "genes").write_text("DNA, one = 1-5\nAA, two = 6-8\n")
    characters = read_characters(file)
    scheme = read_scheme(characters, tmp_path / "genes")
    assert [part_alignment(characters, s).alphabet.kind for s in scheme.subsets] == ["dna", "protein"]
    (tmp_path / "genes").write_text("DNA, one = 1-4\nDNA, two = 5-8\n")
    bad = read_scheme(characters, tmp_path / "genes").subsets[1]
    with pytest.raises(InputError, match="unknown character 'L'") as error:
        part_alignment(characters, bad)
    assert (error.value.line, error.value.column, error.value.site) == (4, 7, 7)


def test_characters_of_raxml_ng_with_their_numbers_of_states(tmp_path):
    file = tmp_path / "traits.fasta"
    file.write_text(">a\n010012\n>b\n011020\n>c\n100211\n")
    characters = read_characters(file)
    (tmp_path / "parts").write_text("MULTI5_MK+G, one = 4-6\nmulti4_gtr, two = 1-3\n")
    subsets = read_scheme(characters, tmp_path / "parts").subsets
    assert [(subset.model_text, subset.datatype) for subset in subsets] == [
        ("MK+G", "standard"),
        ("GTRK", "standard"),
    ]
    assert [part_alignment(characters, subset).alphabet.n_states for subset in subsets] == [5, 4]
    refused = [
        ("MULTI2_MK, one = 1-6", "'2'"),
        ("MULTI37_MK, one = 1-6", "37 states"),
        ("MULTI2, one = 1-6", "'2'"),
        ("MULTI3, one = MULTI4, 1-6", "4 states by its set and 3"),
    ]
    for text, message in refused:
        (tmp_path / "parts").write_text(text)
        with pytest.raises(InputError, match=message):
            part_alignment(characters, read_scheme(characters, tmp_path / "parts").subsets[0])


def test_numbers_of_states_without_a_model(tmp_path):
    """In lists and in sets, also of an alignment whose sets then choose sites."""
    file = tmp_path / "traits.nex"
    sets = "begin sets;\ncharset one = MULTI5, 4-6;\ncharset two = 1-3;\nend;\n"
    head = "#NEXUS\nbegin data;\ndimensions ntax=2 nchar=6;\nformat datatype=standard symbols='012345';\n"
    file.write_text(f"{head}matrix\na 010012\nb 011020\n;\nend;\n{sets}")
    (tmp_path / "parts").write_text("MULTI5, one = 4-6\nmulti6, two = 1-3\n")
    characters = read_characters(file)
    for partitions in (file, tmp_path / "parts"):
        subsets = read_scheme(characters, partitions).subsets
        assert [subset.model_text for subset in subsets] == [None, None]
        assert [part_alignment(characters, subset).alphabet.n_states for subset in subsets] == [5, 6]
    one = read_alignment(file, sites="one")
    assert (one.n_sites, one.alphabet.n_states) == (3, 5)
    assert read_alignment(file, sites="two").alphabet.n_states == 6
    genes = tmp_path / "genes.nex"
    genes.write_text(
        "#NEXUS\nbegin data;\ndimensions ntax=2 nchar=6;\nmatrix\na AGATAA\nb AGATAG\n;\nend;\n"
        "begin sets;\ncharset coding = CODON2, 4-6;\nend;\n"
    )
    with pytest.raises(InputError, match="stop"):  # TAA and TAG
        read_alignment(genes, sites="coding")
