"""What a file holds, before any analysis."""

from __future__ import annotations

import numpy as np
import pytest

from phloem.analysis.look import content_of, look_at, overview, table_of_dates
from phloem.errors import InputError
from phloem.io.date_table import read_dates

FASTA = ">a\nACGTN-\n>b\nACGTRC\n>c\nATGTAC\n>d\nATGTAC\n>e\nACCTA?\n"


def written(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    return str(path)


def test_an_alignment(tmp_path):
    found = look_at(written(tmp_path, "a.fasta", FASTA))
    assert (found.content, found.taxa, found.sites, found.datatype, found.guessed) == (
        "alignment",
        5,
        6,
        "dna",
        True,
    )
    assert found.patterns == 6 and found.ambiguous == 1
    assert found.missing_share == pytest.approx(3 / 30) and found.missing_by_taxon[0] == pytest.approx(2 / 6)
    assert (found.variable, found.informative) == (2, 1)  # columns 2 and 3; two taxa have T in column 2
    assert found.identical == (("c", "d"),)
    assert not found.names_have_dates and found.warnings == ()


def test_parts_of_several_data_types(tmp_path):
    text = "#NEXUS\nbegin data;\ndimensions ntax=4 nchar=6;\nformat missing=? "
    text += "datatype=mixed(standard:1-2,dna:3-6);\nmatrix\na 01ACGT\nb 01ACGT\nc 1?ATGA\nd 10ATGR\n;\nend;\n"
    found = look_at(written(tmp_path, "a.nex", text))
    assert (found.content, found.datatype, found.sites, found.patterns) == ("alignment", "mixed", 6, 6)
    assert found.parts == (("standard", "standard", 2), ("dna", "dna", 4))
    assert found.identical == (("a", "b"),) and (found.variable, found.informative) == (4, 2)
    assert found.missing_by_taxon == (0, 0, 1 / 6, 0) and found.ambiguous == 1
    with pytest.raises(InputError, match="unknown character '0' in dna"):
        look_at(written(tmp_path, "b.nex", text), "dna")
    one = look_at(
        written(tmp_path, "c.nex", text.replace("standard:1-2,dna", "standard:1-2,standard")), "standard"
    )
    assert one.parts == ()  # what is asked for is read


def test_several_partitions_keep_nobody_from_looking(tmp_path):
    text = "#NEXUS\nbegin data;\ndimensions ntax=2 nchar=6;\nformat datatype=mixed(standard:1-2,dna:3-6);\n"
    text += "matrix\na 01ACGT\nb 01ACGA\n;\nend;\nbegin sets;\ncharset m = 1-2;\ncharset one = 3-4;\n"
    text += "charset two = 5-6;\ncharset d = 3-6;\ncharpartition p = MK:m, JC:d;\n"
    several = text + "charpartition q = MK:m, JC:one, JC:two;\nend;\n"
    found = look_at(written(tmp_path, "several.nex", several))
    assert [name for name, _, _ in found.parts] == ["standard", "dna"]
    assert "several partitions: p, q" in found.warnings[0]
    assert not found.has_block
    assert look_at(written(tmp_path, "b.nex", f"{several}begin mrbayes; lset nst=1; end;\n")).has_block
    one = look_at(written(tmp_path, "one.nex", f"{text}end;\n"))  # the control
    assert [name for name, _, _ in one.parts] == ["m", "d"] and not any("several" in w for w in one.warnings)


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        (
            "x.partitions",
            "# codons\nGTR{1,2,3,4,5}+G4, p1 = 2-457\\3, 660-897\\3\n\nDNA,p2=1-3\n",
            ("p1", "p2"),
        ),
        ("x.txt", "DNA,a=1-9\nDNA,b=10-20\nDNA,c=21-30\nDNA,d=31-40\n", ("a", "b", "c", "d")),
        ("x.nex", "#nexus\nbegin sets;\n charset a = 1-9;\n charset b = 10-.;\nend;\n", ("a", "b")),
    ],
)
def test_a_partition_file_is_recognised(tmp_path, name, text, wanted):
    found = look_at(written(tmp_path, name, text))
    assert (found.content, found.subsets) == ("partitions", wanted)


def test_a_change_of_the_data_changes_what_is_told(tmp_path):
    other = look_at(written(tmp_path, "a.fasta", FASTA.replace(">d\nATGTAC", ">d\nATGTAA")))
    assert other.identical == () and other.variable == 3


def test_names_with_dates_and_empty_rows(tmp_path):
    text = "".join(f">x{k}|{2000 + k}.5\n{'N' * 4 if k == 2 else 'ACGT'}\n" for k in range(3))
    found = look_at(written(tmp_path, "a.fasta", text), "dna")
    assert found.names_have_dates
    assert any("no data at all" in text and "x2" in text for text in found.warnings)
    assert any("3 taxa" in text for text in found.warnings)


def test_warnings_of_readers_are_told(tmp_path):
    text = "#NEXUS\nbegin data;\ndimensions ntax=4 nchar=4;\nformat datatype=dna;\nmatrix\na ACGT\n"
    text += "b ACGA\nc ACCT\nd AAGT\n;\nend;\nbegin mrbayes;\nlset nst=6;\nend;\n"
    assert any("mrbayes" in told.lower() for told in look_at(written(tmp_path, "a.nex", text)).warnings)


@pytest.mark.parametrize("first", ["Gen", "state", "# BEAST\nSample", "Iteration"])
def test_a_trace_of_a_sampler_is_told(first, tmp_path):
    with pytest.raises(InputError, match="a trace of a sampler"):
        look_at(written(tmp_path, "a.log", f"{first}\tp\tq\n0\t1\t2\n10\t1\t2\n"))


@pytest.mark.parametrize(
    ("name", "text", "content"),
    [
        ("a.fasta", FASTA, "alignment"),
        ("a.phy", "2 4\na ACGT\nb ACGA\n", "alignment"),
        ("a.nex", "#NEXUS\nbegin distances;\ndimensions ntax=2;\nmatrix a 0 b 1 0;\nend;\n", "matrix"),
        ("a.trees", "Iteration\tpsi\n0\t(a,b,c);\n", "trees"),
        ("a.tsv", "sample\tdate\nx\t1999\ny\t2001\n", "dates"),
        ("a.dist", "3\na 0 1 2\nb 1 0 3\nc 2 3 0\n", "matrix"),
        ("a.csv", ",a,b,c,d\na,0,1,2,1\nb,1,0,3,1\nc,2,3,0,1\nd,1,1,1,0\n", "matrix"),
        ("a.nwk", "((a:1,b:2):1,c:3);", "trees"),
        ("a.tree", "[branch labels: SH-aLRT/UFBoot]\n((a:1,b:2)99/95:1,c:3);", "trees"),
        ("b.nwk", "[&R] ((a:1,b:2):1,c:3);", "trees"),
        ("a.tre", "#NEXUS\nbegin trees;\ntree one = [&R] ((a:1,b:2):1,c:3);\nend;\n", "trees"),
        ("a.tsv", "name\tdate\na\t2001.5\nb\t2002\nc\t2003\nd\t2004\n", "dates"),
        ("a.txt", "a 2001\nb 2002\nc 2003\nd 2004\n", "dates"),
    ],
)
def test_kinds_of_files(tmp_path, name, text, content):
    path = written(tmp_path, name, text)
    assert content_of(path) == content and look_at(path).content == content


def test_what_is_wrong_has_line_and_remedy(tmp_path):
    with pytest.raises(InputError) as wrong:
        look_at(written(tmp_path, "a.fasta", FASTA.replace("ATGTAC\n>e", "ATGTACA\n>e")))
    assert wrong.value.line and wrong.value.hint and wrong.value.taxon == "d"


def test_the_overview_is_the_alignment_where_it_fits_and_evenly_chosen_else(tmp_path):
    path = written(tmp_path, "a.fasta", FASTA)
    whole = overview(path, 10, 10)
    assert whole.codes.shape == (5, 6) and whole.missing == 4
    assert whole.codes[0].tolist() == [0, 1, 2, 3, 4, 4] and whole.codes[1, 4] == 4  # R is ambiguous
    part = overview(path, 3, 2)
    assert part.taxa.tolist() == [0, 2, 4] and part.sites.tolist() == [0, 5]
    assert np.array_equal(part.codes, whole.codes[np.ix_(part.taxa, part.sites)])


def test_the_dates_of_names_as_a_table_are_the_same_dates(tmp_path):
    file, table = tmp_path / "a.fasta", tmp_path / "a.tsv"
    file.write_text(">a|2001.5\nACGT\n>b|2003-07\nACGA\n>c|1999-01-02\nACGC\n")
    table.write_text(table_of_dates(str(file)))
    dates = read_dates(str(table))
    assert dates.names == ("a|2001.5", "b|2003-07", "c|1999-01-02")
    assert dates.lower[0] == dates.upper[0] == 2001.5
    assert dates.lower[1] == pytest.approx(2003 + 181 / 365) and dates.upper[1] > dates.lower[1] + 0.08
    file.write_text(">a\nACGT\n>b|2003\nACGA\n")
    with pytest.raises(InputError):
        table_of_dates(str(file))
