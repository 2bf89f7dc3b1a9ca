"""Names that a blank in a FASTA header cuts short are told of, and descriptions are not."""

from __future__ import annotations

import warnings

import pytest

from phloem.errors import InputWarning
from phloem.io.alignment import read_alignment
from phloem.io.genomes import read_genomes

WHOLE = ["hCoV-19/France/IDF-1/2021|EPI_ISL_1|2021-03-15", "hCoV-19/Spain/MD-2/2021|EPI_ISL_2|2021-03-XX"]
CUT = "hCoV-19/South Africa/KRISP-3/2021|EPI_ISL_3|2021-04-01"


def told_of(path, read) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read(str(path))
    return [str(one.message) for one in caught if issubclass(one.category, InputWarning)]


def written(path, headers):
    path.write_text("".join(f">{header}\nACGTAC\n" for header in headers))
    return path


@pytest.mark.parametrize("read", [read_alignment, read_genomes])
def test_a_name_that_is_cut_is_told(tmp_path, read):
    file = written(tmp_path / "x.fa", [*WHOLE, CUT])
    (told,) = told_of(file, read)
    assert "1 name ends at the first blank, as 'hCoV-19/South' of 'hCoV-19/South Africa/KRISP-3/2021" in told
    assert "x.fa" in told and "write _ for blanks" in told
    more = written(tmp_path / "y.fa", [*WHOLE, CUT, CUT.replace("South Africa", "New Zealand")])
    assert "2 names end" in told_of(more, read)[0]
    fields = [name.split("|")[0] for name in (*WHOLE, CUT)]
    assert len(told_of(written(tmp_path / "z.fa", fields), read)) == 1  # slashes alone


@pytest.mark.parametrize("read", [read_alignment, read_genomes])
@pytest.mark.parametrize(
    "headers",
    [
        WHOLE,
        [f"{name} a description" for name in WHOLE],
        [*WHOLE, "MN908947.3 Severe acute respiratory syndrome coronavirus 2 isolate Wuhan-Hu-1"],
        ["MN908947.3 |Severe acute respiratory|2019-12", "OM1.1", "OM2.1 |x|y"],
        ["a b/c", "d", "e"],
    ],
)
def test_descriptions_are_not_told(tmp_path, read, headers):
    assert told_of(written(tmp_path / "x.fa", headers), read) == []
