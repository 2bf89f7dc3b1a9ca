from __future__ import annotations

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
