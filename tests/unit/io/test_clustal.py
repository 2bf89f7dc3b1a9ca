"""Clustal alignments: their blocks, what stands between them, what is refused."""

from __future__ import annotations

import pytest

from phloem.errors import InputError
from phloem.io.alignment import read_alignment, read_characters

HEAD = "CLUSTAL W (1.83) multiple sequence alignment\n\n\n"
BLOCKS = """Homo_sapiens    ACGTACGTAC 10
Pan|x.1         ACG-ACGTAT 9
Gorilla         ---------- 0
                *** *****  

Homo_sapiens    TTG 13
Pan|x.1         TTA 12
Gorilla         -TA 2
                 *.
"""


@pytest.fixture
def written(tmp_path):
    def write(text):
        file = tmp_path / "genes.aln"
        file.write_text(text)
        return file

    return write


@pytest.mark.parametrize(
    "text",
    [
        HEAD + BLOCKS,
        (HEAD + BLOCKS).replace("\n", "\r\n"),
        "\nMUSCLE (3.8) multiple sequence alignment\n\n" + BLOCKS,
        "CLUSTAL O(1.2.4) multiple sequence alignment\n\nHomo_sapiens ACGTACGTAC\nPan|x.1 ACG-ACGTAT\n"
        "Gorilla ----------\n\nPan|x.1 TTA\nHomo_sapiens TTG\nGorilla -TA",
    ],
)
def test_blocks_are_put_together(written, text):
    rows = read_characters(written(text))
    assert rows.taxa == ("Homo_sapiens", "Pan|x.1", "Gorilla") and rows.format_name == "Clustal"
    sequences = [row.astype("uint8").tobytes().decode() for row in rows.matrix]
    assert sequences == ["ACGTACGTACTTG", "ACG-ACGTATTTA", "-----------TA"]
    assert read_alignment(written(text)).settings["datatype"] == "dna"


@pytest.mark.parametrize(
    ("change", "line", "taxon", "message"),
    [
        (("TTA 12", "TT 11"), 10, "Pan|x.1", "has 2 characters in this block, 'Homo_sapiens' has 3"),
        (("Pan|x.1         TTA 12\n", ""), 9, "Pan|x.1", "this block has no line of 'Pan|x.1'"),
        (("Pan|x.1         TTA", "Pongo           TTA"), 10, "Pongo", "'Pongo' is not in the first block"),
        (("Gorilla         -TA", "Pan|x.1         -TA"), 11, "Pan|x.1", "twice in this block"),
        (("TTA 12", "TT A 12"), 10, None, "'Pan|x.1 TT A 12' is no line of an alignment"),
        (("TTA 12", ""), 10, None, "'Pan|x.1' is no line of an alignment"),
        (("TTA 12", "T!A 12"), 10, "Pan|x.1", "unknown character '!'"),
        ((BLOCKS, ""), 1, None, "no sequence follows the first line"),
    ],
)
def test_errors_name_line_and_taxon(written, change, line, taxon, message):
    file = written((HEAD + BLOCKS).replace(*change))
    with pytest.raises(InputError) as error:
        read_alignment(file, datatype="dna")
    assert message in error.value.message
    assert (error.value.file, error.value.line, error.value.taxon) == (str(file), line, taxon)
    assert error.value.hint
