"""Parts that are called as a model is: refused only where a model could stand in the name's place."""

from __future__ import annotations

import pytest

from phloem.analysis.reading import DataOptions, parts_of
from phloem.errors import InputError

DATA = (
    "#NEXUS\nbegin data;\ndimensions ntax=2 nchar=6;\nformat datatype=dna;\n"
    "matrix\nA ACGTAC\nB ACGTAA\n;\nend;\n"
)
SETS = "begin sets;\n{}\nend;\n"


def parts(tmp_path, text, partitions):
    file = tmp_path / "genes.nex"
    file.write_text(DATA + text)
    _, found = parts_of(DataOptions(str(file), partitions=partitions))
    return [(part.name, part.model_text) for part in found]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("charset mk = 1-3; charset HKY = 4-6;", ["mk", "HKY"]),
        ("charset mk = 1-3; charset b = 4-6; charpartition p = 1:mk, 2:b;", ["mk", "b"]),
        ("charset mk = 1-3; charset b = 4-6; charpartition p = DNA:mk, DNA:b;", ["mk", "b"]),
    ],
)
def test_sets_are_called_as_they_like(tmp_path, text, names):
    assert parts(tmp_path, SETS.format(text), "declared") == [(name, None) for name in names]


def test_lists_have_the_model_before_the_comma(tmp_path):
    (tmp_path / "list").write_text("DNA, LG = 1-3\nHKY, bin = 4-6\n")
    assert parts(tmp_path, "", str(tmp_path / "list")) == [("LG", None), ("bin", "HKY")]


@pytest.mark.parametrize(
    "text", ["charpartition p = HKY:1-3, b:4-6;", "charpartition p = b:4-6, hky:remainder;"]
)
def test_a_name_that_may_be_a_model_is_refused(tmp_path, text):
    with pytest.raises(InputError, match=r"(?i)'hky' is the name of a subset here, and of a model") as error:
        parts(tmp_path, SETS.format(text), str(tmp_path / "genes.nex"))
    assert error.value.line == 11
