from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from phloem.analysis.reading import DataOptions, alignment_of, parts_of
from phloem.errors import InputError

PRIMATES = Path(__file__).resolve().parents[3] / "examples" / "primates.nex"


def options(tmp_path, text, **more):
    (tmp_path / "genes").write_text(text)
    return DataOptions(str(PRIMATES), partitions=str(tmp_path / "genes"), **more)


def test_parts_with_models_of_their_own_and_of_the_command():
    scheme, parts = parts_of(DataOptions(str(PRIMATES), partitions=str(PRIMATES.with_suffix(".partitions"))))
    assert [part.model_text for part in parts] == ["GTR+G4"] * 3 + ["HKY+G4"]
    assert [part.alignment.n_sites for part in parts] == [s.n_sites for s in scheme.subsets]
    scheme, (only,) = parts_of(DataOptions(str(PRIMATES)), "JC")
    assert (only.name, only.model_text, only.alignment.n_sites) == ("all", "JC", 898)


def test_a_model_tells_the_datatype(tmp_path):
    text = "GY94+F3X4, genes = 2-457, 660-896\nDNA, rest = 1, 458-659, 897-898"
    scheme, parts = parts_of(options(tmp_path, text, genetic_code=2), "HKY")
    assert [part.alignment.alphabet.kind for part in parts] == ["codon", "dna"]
    assert [part.model_text for part in parts] == ["GY94+F3X4", "HKY"]
    assert [subset.datatype for subset in scheme.subsets] == ["codon", "dna"]
    with pytest.raises(InputError, match="no part is read as codons"):
        parts_of(options(tmp_path, "DNA, a = 1-898", genetic_code=2))


def test_what_goes_together(tmp_path):
    with pytest.raises(InputError, match="both choose columns"):
        parts_of(options(tmp_path, "DNA, a = 1-898", sites="1-9"))
    with pytest.raises(InputError, match="this analysis has one part"):
        alignment_of(options(tmp_path, "DNA, a = 1-898"))
    nexus = "#NEXUS\nbegin sets; charpartition p = HKY: 1-800, GTR: 801-.; end;"
    with pytest.raises(InputError, match="'HKY' is the name of a subset here, and of a model"):
        parts_of(options(tmp_path, nexus))
    dropped, _ = parts_of(options(tmp_path, "DNA, a = 1-800", unassigned_sites="drop"))
    assert len(dropped.dropped) == 98


def test_sets_that_divide_all_columns_are_spoken_of(tmp_path):
    def told(sets: str, **more) -> list[str]:
        path = tmp_path / "x.nex"
        path.write_text(
            "#NEXUS\nbegin data; dimensions ntax=2 nchar=6; format datatype=dna;\n"
            f"matrix a ACGTAC b ACGTAT; end;\nbegin sets; {sets} end;\n"
        )
        undivided = more.pop("undivided", False)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            if more.get("partitions"):
                parts_of(DataOptions(str(path), partitions=str(path)))
            else:
                alignment_of(DataOptions(str(path), **more), undivided=undivided)
        return [str(one.message) for one in found]

    dividing = "charset one = 1-3; charset two = 4-.;"
    (message,) = told(dividing)
    assert "x.nex: its 2 sets of columns (one, two) are read as one; --partitions" in message
    assert told("charset p1 = 1-.\\3; charset p2 = 2-.\\3; charset p3 = 3-.\\3;")
    for other in ("charset all = 1-.;", "charset one = 1-3; charset two = 5-.;", dividing + "charset z = 1;"):
        assert not told(other)
    assert not told(dividing + "charset wrong = 1-99;") and not told(dividing, sites="1-3")
    assert not told("charset p1 = 1-.\\3; charset p2 = 2-.\\3; charset p3 = 3-.\\3;", datatype="codon")
    assert not told(dividing, undivided=True) and not told(dividing, partitions=True)


def test_lines_stand_in_the_place_of_a_file(tmp_path):
    told = ("JC, a = 1-898\\3", "HKY+G4, b = 2-898\\3", "DNA, c = 3-898\\3")
    _, parts = parts_of(DataOptions(str(PRIMATES), part=told), "GTR")
    assert [part.model_text for part in parts] == ["JC", "HKY+G4", "GTR"]
    assert [part.alignment.n_sites for part in parts] == [300, 299, 299]
    assert not DataOptions(str(PRIMATES)).partitioned and DataOptions(str(PRIMATES), part=told).partitioned
    for more, message in (
        ({"partitions": "x"}, "both say what the parts are"),
        ({"sites": "1-9"}, "--sites and --part both choose columns"),
        ({"partition_name": "x"}, "--partition-name is about --partitions"),
    ):
        with pytest.raises(InputError, match=message):
            parts_of(DataOptions(str(PRIMATES), part=told, **more))
    with pytest.raises(InputError, match="--part gives several"):
        alignment_of(DataOptions(str(PRIMATES), part=told))
