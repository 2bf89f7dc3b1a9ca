"""Genes in files of their own as one alignment: characters, names, missing genes, parts, errors."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from phloem.analysis.concatenation import ConcatenationSettings, run_concatenation
from phloem.analysis.reading import DataOptions, parts_of
from phloem.errors import InputError
from phloem.io.alignment import part_alignment, read_characters, read_scheme

FILES = {
    "one.fasta": ">A\nACGTAC\n>B_b\nACGTAA\n>C\nACG-AA\n>D\nACGTTT\n",
    "two.phy": "3 4\nb_B MKLV\nA MKLI\nE MKL-\n",
    "three.nex": "#NEXUS\nbegin data;\ndimensions ntax=3 nchar=3;\nformat datatype=standard symbols="
    "'0123';\nmatrix\na 01{02}\n'B b' 112\nD 0?2\n;\nend;\n",
    "4.fas": ">D\nACCT\n>A\nACRT\n",
}
SETS = "#NEXUS\nbegin sets;\n{}end;\n"


@pytest.fixture
def genes(tmp_path):
    folder = tmp_path / "genes"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return folder


def concatenated(out, *sources, **options):
    return run_concatenation(ConcatenationSettings(tuple(map(str, sources)), str(out), **options))


def rows_of(path):
    """Taxon → its characters, a set as its members."""
    rows = read_characters(path)
    return {
        taxon: "".join(chr(v) if v < 256 else f"<{rows.sets[v]}>" for v in row)
        for taxon, row in zip(rows.taxa, rows.matrix.tolist())
    }


def test_a_folder_of_all_kinds(genes, tmp_path):
    found = concatenated(tmp_path / "all.nex", genes)
    assert rows_of(tmp_path / "all.nex") == {
        "D": "ACCTACGTTT0?2????", "A": "ACRTACGTAC01<02>MKLI", "B_b": "????ACGTAA112MKLV",
        "C": "????ACG-AA???????", "E": "?????????????MKL-",
    }  # fmt: skip
    names = [gene.name for gene in found.matrix.genes]
    assert names == ["gene_4", "one", "three", "two"] and found.matrix.ranges[1] == "5-10"
    assert found.missing == pytest.approx(1 - (4 * 2 + 6 * 4 + 3 * 3 + 4 * 3) / (5 * 17))


def test_parts_are_the_genes(genes, tmp_path):
    """Read back, part by part, each with the states of its own file."""
    out = tmp_path / "all.nex"
    concatenated(out, genes)
    characters = read_characters(out)
    scheme = read_scheme(characters, out)
    parts = {subset.name: part_alignment(characters, subset) for subset in scheme.subsets}
    kinds = {name: part.alphabet.kind for name, part in parts.items()}
    assert kinds == {"gene_4": "dna", "one": "dna", "three": "standard", "two": "protein"}
    assert parts["three"].alphabet.n_states == 4  # as the file says, though 3 never occurs
    assert parts["one"].codes[parts["one"].taxa.index("E")].tolist() == [4] * 6


def test_genes_of_one_kind_are_not_mixed_and_lists_name_the_parts(genes, tmp_path):
    out = tmp_path / "two.phy"
    concatenated(out, genes / "one.fasta", genes / "4.fas")
    assert (tmp_path / "two.phy.partitions").read_text() == "DNA, one = 1-6\nDNA, gene_4 = 7-10\n"
    assert rows_of(out)["A"] == "ACGTACACRT" and rows_of(out)["C"] == "ACG-AA????"
    sets = tmp_path / "sets.nex"
    sets.write_text(SETS.format("charset three = genes/three.nex: 1-2;\n"))
    concatenated(tmp_path / "without.phy", sets)  # the set is in column 3
    assert rows_of(tmp_path / "without.phy") == {"a": "01", "B_b": "11", "D": "0?"}
    concatenated(tmp_path / "two.nex", genes / "one.fasta", genes / "4.fas")
    assert "datatype=dna" in (tmp_path / "two.nex").read_text()
    concatenated(tmp_path / "two.fasta", genes / "one.fasta", genes / "4.fas")
    assert rows_of(tmp_path / "two.fasta") == rows_of(out)


def test_charsets_that_name_files(genes, tmp_path):
    """As IQ-TREE has them: some columns of a file, every third, and what kind they are."""
    sets = tmp_path / "parts.nex"
    sets.write_text(
        SETS.format(
            "charset a = genes/one.fasta: 1-3;\ncharset 'b c' = genes/two.phy: AA, *;\n"
            "charset d = genes/one.fasta: CODON2, 4-6;\ncharset e = genes/4.fas: 1-.\\3;\n"
        )
    )
    found = concatenated(tmp_path / "all.nex", sets)
    assert [gene.n_sites for gene in found.matrix.genes] == [3, 4, 3, 2]
    assert rows_of(tmp_path / "all.nex")["A"] == "ACGMKLITACAT"
    scheme = read_scheme(read_characters(tmp_path / "all.nex"), tmp_path / "all.nex")
    assert [(s.name, s.datatype, s.genetic_code) for s in scheme.subsets[2:]] == [
        ("d", "codon", 2), ("e", "dna", None),
    ]  # fmt: skip
    concatenated(tmp_path / "all.phy", sets)
    assert "AA, b_c = 4-7\nCODON2, d = 8-10\n" in (tmp_path / "all.phy.partitions").read_text()


def test_alignments_of_a_beast_file(tmp_path):
    file = tmp_path / "x.xml"
    row = "<sequence><taxon idref='{}'/>{}</sequence>"
    dna, protein = row.format("a", "ACG") + row.format("b", "ACT"), row.format("b", "MK")
    one = f"<alignment id='one' dataType='nucleotide'>{dna}</alignment>"
    file.write_text(f"<beast>{one}<alignment id='two'>{protein}</alignment></beast>")
    found = concatenated(tmp_path / "all.nex", file)
    assert [(gene.name, gene.datatype) for gene in found.matrix.genes] == [("one", "dna"), ("two", "protein")]
    assert rows_of(tmp_path / "all.nex") == {"a": "ACG??", "b": "ACTMK"}
    file.write_text(f"<beast>{one}</beast>")
    assert [gene.name for gene in concatenated(tmp_path / "one.nex", file).matrix.genes] == ["x"]


def test_names_that_hardly_a_gene_has(genes, tmp_path):
    """Planted: a taxon misspelled in one of many genes."""
    many = tmp_path / "many"
    many.mkdir()
    for i in range(6):
        names = ["A", "B", "C", "D" if i else "d1"]
        (many / f"g{i}.fasta").write_text("".join(f">{name}\nACGT\n" for name in names))
    (warning,) = concatenated(tmp_path / "many.nex", many).warnings
    assert warning.endswith(": d1 (1)")
    (many / "g0.fasta").unlink()
    assert concatenated(tmp_path / "right.nex", many).warnings == ()


@pytest.mark.parametrize(
    "text, message, line",
    [
        ("charset a = genes/none.fasta: 1-3;\n", "there is no file 'genes/none.fasta'", 3),
        ("charset a = genes/one.fasta: 1-30;\n", "past the last column, 6", 3),
        ("\ncharset a = 1-30;\n", "names no file", 4),
        ("", "neither characters nor charsets", None),
    ],
)
def test_errors_name_the_line(genes, tmp_path, text, message, line):
    sets = tmp_path / "parts.nex"
    sets.write_text(SETS.format(text))
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        concatenated(tmp_path / "all.nex", sets)
    assert caught.value.line == line and caught.value.file == str(sets) and caught.value.hint
    assert not (tmp_path / "all.nex").exists()


def test_errors_of_files(genes, tmp_path):
    twice = tmp_path / "twice.fasta"
    twice.write_text(">a_b\nAC\n>A_B\nAC\n")
    cases = {
        "there twice, in other capitals": (twice,),
        "would be the same gene, 'one'": (genes / "one.fasta", genes),
        "sets of states": (genes / "three.nex",),
        "no such file": (genes / "none.fasta",),
    }
    for message, sources in cases.items():
        with pytest.raises(InputError, match=message):
            concatenated(tmp_path / "all.phy", *sources)
    (tmp_path / "all.nex").write_text("")
    with pytest.raises(InputError, match="exists already"):
        concatenated(tmp_path / "all.nex", genes)
    with pytest.raises(InputError, match="is an input"):
        concatenated(genes / "one.fasta", genes / "one.fasta", redo=True)


def test_the_record(genes, tmp_path):
    concatenated(tmp_path / "all.nex", genes, json=str(tmp_path / "r.json"))
    record = json.loads((tmp_path / "r.json").read_text())
    assert (record["taxa"], record["sites"], record["genes"][1]["taxa"]) == (5, 17, 4)
    assert len(record["provenance"]["files"]) == 4 and np.isfinite(record["missing"])


STANDARD = (
    "#NEXUS\nbegin data;\ndimensions ntax=2 nchar=3;\nformat datatype=standard symbols='{}';\n"
    "matrix\nA {}\nB {}\n;\nend;\n"
)


def numbers_of_states(alignment, partitions):
    """Of every part, by its name."""
    _, parts = parts_of(DataOptions(str(alignment), partitions=str(partitions)))
    return {part.name: part.alignment.alphabet.n_states for part in parts}


@pytest.mark.parametrize("with_dna", [False, True])
@pytest.mark.parametrize("ending", ["nex", "phy"])
def test_genes_keep_the_states_that_they_declare(tmp_path, ending, with_dna):
    """Seen or not, as MK counts them: beside genes of other states too."""
    folder, out = tmp_path / "genes", tmp_path / f"all.{ending}"
    folder.mkdir()
    (folder / "few.nex").write_text(STANDARD.format("01", "010", "101"))
    (folder / "many.nex").write_text(STANDARD.format("01234", "012", "110"))
    (folder / "digits.phy").write_text("2 3\nA 010\nB 110\n")
    expected = {"digits": 2, "few": 2, "many": 5}
    if with_dna:
        (folder / "one.fasta").write_text(">A\nACGT\n>B\nACGA\n")
        expected["one"] = 4
    found = concatenated(out, folder)
    assert not found.warnings
    kinds = {gene.name: word for gene, word in zip(found.matrix.genes, found.data)}
    assert (kinds["few"], kinds["many"], kinds.get("one", "dna")) == ("MULTI2", "MULTI5", "dna")
    assert numbers_of_states(out, found.settings.partitions) == expected
    if ending == "nex":
        assert numbers_of_states(out, "declared") == expected


def test_genes_of_the_same_states_are_written_without_a_word(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.nex").write_text(STANDARD.format("012", "012", "110"))
    concatenated(tmp_path / "all.nex", tmp_path / "a.nex", tmp_path / "b.nex")
    text = (tmp_path / "all.nex").read_text()
    assert 'symbols="012"' in text and "charset a = 1-3;" in text and "MULTI" not in text


def test_states_that_no_file_can_declare_are_told_of(tmp_path):
    (tmp_path / "a.nex").write_text(STANDARD.format("01", "010", "101"))
    (tmp_path / "b.nex").write_text(STANDARD.format("123", "123", "211"))
    for ending in ("nex", "phy"):
        found = concatenated(tmp_path / f"all.{ending}", tmp_path / "a.nex", tmp_path / "b.nex")
        assert len(found.warnings) == 1 and "gene 'b'" in found.warnings[0] and "123" in found.warnings[0]


def test_a_taxon_of_which_nothing_is_known_lacks_the_gene(tmp_path):
    (tmp_path / "a.fasta").write_text(">A\nACGT\n>B\n-?NN\n")
    (tmp_path / "b.phy").write_text("2 4\nA MKLV\nB NNNN\n")  # asparagines
    found = concatenated(tmp_path / "all.nex", tmp_path / "a.fasta", tmp_path / "b.phy")
    assert found.matrix.there.tolist() == [[True, True], [False, True]] and found.missing == 0.25
