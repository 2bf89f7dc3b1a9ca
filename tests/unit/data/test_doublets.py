"""Pairs of columns as characters: which pair, what they allow, in files of parts, written and read again."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from phloem.analysis.mrbayes import block_analysis
from phloem.analysis.reading import DataOptions, parts_of
from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.data.doublets import format_pairs, parse_pairs
from phloem.errors import InputError, ModelError
from phloem.io.alignment import read_alignment, write_fasta, write_nexus
from phloem.likelihood.model_for_alignment import model_for_alignment

MEANS = {"A": "A", "C": "C", "G": "G", "T": "T", "U": "T", "R": "AG", "Y": "CT", "N": "ACGT", "-": "ACGT"}


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("5:70, 6-9:69-66", [(5, 70), (6, 69), (7, 68), (8, 67), (9, 66)]),
        ("1-3:11-13 20:9", [(1, 11), (2, 12), (3, 13), (20, 9)]),
        ("1-5\\2 : 2-6\\2", [(1, 2), (3, 4), (5, 6)]),
        ("9-7:10-12", [(9, 10), (8, 11), (7, 12)]),
    ],
)
def test_text_of_pairs(text, pairs):
    found = parse_pairs(text, 70)
    assert (found.reshape(-1, 2) + 1).tolist() == [list(pair) for pair in pairs]
    assert parse_pairs(format_pairs(found), 70).tolist() == found.tolist()


def test_any_pairs_are_written_so_that_they_are_read():
    rng = np.random.default_rng(2)
    for _ in range(200):
        columns = rng.permutation(40)[: 2 * rng.integers(1, 20)]
        if rng.random() < 0.5:
            columns = np.sort(columns)
        assert parse_pairs(format_pairs(columns), 40).tolist() == columns.tolist()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("1:2, 2:3", "column 2 pairs more than once"),
        ("4:4", "column 4 pairs more than once"),
        ("1-3:9-8", "3 and 2 columns"),
        ("1:71", "column 71 is past the last one, 70"),
        ("0:3", "counted from 1"),
        ("1:2, stems", "'stems' is no pair"),
        ("1-10", "is no pair"),
        (" ", "no pair"),
    ],
)
def test_what_is_no_pair(text, told):
    with pytest.raises(InputError, match=told):
        parse_pairs(text, 70)


def test_a_pair_allows_what_its_sides_allow():
    letters = "".join(a + b for a, b in product(MEANS, repeat=2))
    found = alignment_from_sequences({"x": letters, "y": letters[::-1]}, alphabet("doublet"))
    states = found.alphabet.states
    for site, (a, b) in enumerate(product(MEANS, repeat=2)):
        allowed = {states[s] for s in np.flatnonzero(found.state_sets[found.codes[0, site]])}
        assert allowed == {x + y for x in MEANS[a] for y in MEANS[b]}
    missing = alignment_from_sequences({"x": letters}, alphabet("doublet"), ambiguity="missing")
    known = missing.codes[0] < 16
    assert known.tolist() == [len(MEANS[a]) == len(MEANS[b]) == 1 for a, b in product(MEANS, repeat=2)]


def file_of(
    folder: Path, text: str = ">a\nACGUACGU\n>b\nACGGC-GU\n>c\nARGUANGA\n", name: str = "x.fa"
) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_files_are_written_and_read(tmp_path):
    path = file_of(tmp_path)
    first = read_alignment(path, datatype="doublet", sites="1-4:8-5")
    assert first.n_sites == 4 and first.settings["sites"] == "1-4:8-5"
    texts = [[first.alphabet.states[k] if k < 16 else "" for k in row] for row in first.codes]
    assert texts[0] == ["AT", "CG", "GC", "TA"]
    for writer in (write_fasta, write_nexus):
        writer(first, tmp_path / "again")
        again = read_alignment(tmp_path / "again", datatype="doublet", sites="1-7\\2:2-8\\2")
        assert again.codes.tolist() == first.codes.tolist()
        other = read_alignment(tmp_path / "again", datatype="doublet", sites="1-4:8-5")  # the control
        assert other.codes.tolist() != first.codes.tolist()


def test_which_columns_pair_must_be_said(tmp_path):
    path = file_of(tmp_path)
    with pytest.raises(InputError, match="which columns of the alignment pair is not said"):
        read_alignment(path, datatype="doublet")
    with pytest.raises(InputError, match="no pair"):
        read_alignment(path, datatype="doublet", sites="1-8")
    for line in ("DOUBLET, s = 1-8", "DOUBLET, s = DOUBLET, 1-8", "SH94, s = 1-8", "SH94K+G4, s = 1-8"):
        parts = file_of(tmp_path, line + "\n", "p")
        with pytest.raises(InputError, match="pair"):
            parts_of(DataOptions(path, partitions=parts))
    with pytest.raises(InputError, match="which columns of 's' pair"):
        parts_of(DataOptions(path, part=("JC, s = 1-8",), datatype="doublet"))


@pytest.mark.parametrize("line", ["SH94+FO+G4, stem = 1-2:8-7", "SH94, stem = DOUBLET, 1:8, 2:7"])
def test_parts_of_stems_and_loops(tmp_path, line):
    parts = file_of(tmp_path, line + "\nGTR, loop = 3-6\n", "p")
    stem, loop = parts_of(DataOptions(file_of(tmp_path), partitions=parts))[1]
    assert stem.alignment.alphabet.kind == "doublet" and stem.alignment.n_sites == 2
    assert loop.alignment.alphabet.kind == "rna" and loop.alignment.n_sites == 4
    both = file_of(tmp_path, line + "\nGTR, loop = 3-7\n", "p")
    with pytest.raises(InputError, match="columns 7 are in 'stem' and in 'loop'"):
        parts_of(DataOptions(file_of(tmp_path), partitions=both))


def test_frequencies_of_zero_that_cut_states_apart_are_refused(tmp_path):
    path = file_of(tmp_path, ">a\nAUGUCC\n>b\nCCAUCG\n>c\nAUGUCG\n")
    data = read_alignment(path, datatype="doublet", sites="1:2 3:4 5:6")
    with pytest.raises(ModelError, match="AT, GT and CC, CG cannot become each other"):
        model_for_alignment("SH94K+F", data)
    for text in ("SH94K+FO", "SH94K+FQ", "S16+F"):
        model_for_alignment(text, data)


BLOCK = """begin mrbayes;
pairs 1:8, 7:2;
charset stems = 1 2 7 8;
charset loops = 3-6;
partition p = 2: stems, loops;
set partition = p;
lset applyto=(1) nucmodel=doublet nst=2;
lset applyto=(2) nst=2;
{more}
mcmc;
end;
"""


def block_of(folder: Path, more: str = "") -> dict[str, object]:
    rows = "a ACGUACGU\nb ACGGC-GU\nc AAGUANGA"
    head = (
        f"#NEXUS\nbegin data; dimensions ntax=3 nchar=8; format datatype=rna gap=-; matrix\n{rows}\n;end;\n"
    )
    block = block_analysis(file_of(folder, head + BLOCK.format(more=more), "x.nex"))
    assert block is not None
    return block.options


def test_a_block_of_stems(tmp_path):
    options = block_of(tmp_path)
    assert options["part"] == ["SH94K+FO, stems = DOUBLET, 1-2:8-7", "HKY+FO, loops = RNA, 3-6"]
    assert options["link"] == ["kappa:stems,loops"]  # as MrBayes' showmodel lists them
    assert block_of(tmp_path, "exclude 2 7;")["part"][0] == "SH94K+FO, stems = DOUBLET, 1:8"
    assert block_of(tmp_path, "prset applyto=(1) tratiopr=fixed(3);").get("link", []) == []


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("exclude 2;", "column 7 of part 'stems' has no partner"),
        ("pairs 3:8;", "column 8 pairs more than once"),
        ("lset applyto=(2) nucmodel=doublet;", "column 3 of part 'loops' has no partner"),
    ],
)
def test_a_block_whose_stems_do_not_pair(tmp_path, more, told):
    with pytest.raises(InputError, match=told):
        block_of(tmp_path, more)
