from __future__ import annotations

import io
import warnings
from pathlib import Path

import pytest

from phloem.analysis.reading import DataOptions, alignment_of, parts_of
from phloem.errors import InputError, InputWarning
from phloem.io.trees import parse_trees
from phloem.likelihood.tree_likelihood import TreeLikelihood

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


def test_characters_of_a_kind_are_kept(tmp_path):
    """What +ASC refuses is left out, of parts too, and what is left is what it takes."""
    (tmp_path / "a.fasta").write_text(">a\nAAACCA\n>b\nAACCCA\n>c\nA-RTCA\n>d\nAACTGT\n>e\nAACTGA\n")
    given = {"alignment": str(tmp_path / "a.fasta"), "datatype": "dna"}
    kept = alignment_of(DataOptions(**given, sites="Variable"))
    assert kept.n_sites == 4 and kept.settings["sites"] == "variable"  # R may be A: b and d are C
    assert alignment_of(DataOptions(**given, sites="informative")).n_sites == 2
    halves = "DNA, one = 1-3\nDNA, two = 4-6"
    (tmp_path / "halves").write_text(halves)
    _, parts = parts_of(DataOptions(**given, partitions=str(tmp_path / "halves"), sites="variable"))
    assert [part.sites.tolist() for part in parts] == [[2], [3, 4, 5]]
    assert [part.alignment.n_sites for part in parts] == [1, 3]
    tree = parse_trees("(a:1,b:1,(c:1,(d:1,e:1):1):1);")[0]
    assert TreeLikelihood(kept, tree, "JC+ASC").log_likelihood() < 0
    with pytest.raises(InputError, match="2 of 6 characters are constant") as refused:
        TreeLikelihood(alignment_of(DataOptions(**given)), tree, "JC+ASC")
    assert "--sites variable" in refused.value.hint
    with pytest.raises(InputError, match="part 'one': no character is informative"):
        parts_of(DataOptions(**given, partitions=str(tmp_path / "halves"), sites="informative"))


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
    assert "x.nex: its 2 sets of columns (one, two) are read as one; --partitions declared" in message
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


def test_a_files_own_partition_or_sets_are_declared_parts(tmp_path, monkeypatch):
    def columns(path, **more) -> dict[str, list[int]]:
        scheme, _ = parts_of(DataOptions(str(path), partitions="declared", **more))
        return {subset.name: (subset.sites + 1).tolist() for subset in scheme.subsets}

    path = tmp_path / "x.nex"
    data = (
        "#NEXUS\nbegin data; dimensions ntax=2 nchar=6; format datatype=dna;\n"
        "matrix a ACGTAC b ACGTAT; end;\nbegin sets; charset one = 1-2 4; charset rest = 3 5-.;"
    )
    path.write_text(data + " end;\n")
    assert columns(path) == {"one": [1, 2, 4], "rest": [3, 5, 6]}
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
    assert columns("-") == {"one": [1, 2, 4], "rest": [3, 5, 6]}
    with pytest.raises(InputError, match="there is no partition 'p'"):
        columns(path, partition_name="p")
    path.write_text(data + " charpartition p = HKY: one; charpartition q = JC: rest, HKY: one; end;\n")
    assert columns(path, partition_name="q") == {"rest": [3, 5, 6], "one": [1, 2, 4]}
    with pytest.raises(InputError, match="several partitions: p, q"):
        columns(path)
    path.write_text(data + " charset third = 3; end;\n")
    with pytest.raises(InputError, match="columns 3 are in 'rest' and in 'third'"):
        columns(path)
    path.write_text(data.replace("charset rest", "[charset rest") + "] end;\n")
    with pytest.raises(InputError, match="in no subset"):
        columns(path)
    assert columns(path, unassigned_sites="drop") == {"one": [1, 2, 4]}

    mixed = data.replace("datatype=dna", "datatype=mixed(dna:1-4,protein:5-6)").partition("begin sets;")[0]
    path.write_text(mixed + "begin sets; charset a = 1-2; charset b = 3-4; charset c = 5-6; end;\n")
    scheme, _ = parts_of(DataOptions(str(path), partitions="declared"))
    assert [(one.name, one.datatype) for one in scheme.subsets] == [
        ("a", "dna"), ("b", "dna"), ("c", "protein")
    ]  # fmt: skip
    path.write_text(mixed + "begin sets; charset a = 1-2; end;\n")
    assert columns(path) == {"dna": [1, 2, 3, 4], "protein": [5, 6]}
    overlapping = "begin mrbayes; charset a = 1-2; charset b = 2-4; partition p = 3: a, 3-4, 5-6; end;\n"
    path.write_text(mixed + overlapping)
    assert columns(path) == {"a": [1, 2], "subset2": [3, 4], "subset3": [5, 6]}
    path.write_text(mixed + overlapping + "begin mrbayes; set partition = default; end;\n")
    assert columns(path) == {"dna": [1, 2, 3, 4], "protein": [5, 6]}
    path.write_text(data.partition("begin sets;")[0] + "begin sets; charpartition p = x:1-3, y:4-6; end;\n")
    assert columns(path) == {"x": [1, 2, 3], "y": [4, 5, 6]}

    beast = tmp_path / "x.xml"
    beast.write_text(
        '<beast><data id="d"><sequence taxon="a" value="ACGTAC"/><sequence taxon="b" value="ACGTAT"/></data>'
        '<data id="p1" spec="FilteredAlignment" data="@d" filter="1::2"/>'
        '<data id="p2" spec="FilteredAlignment" data="@d" filter="2::2"/></beast>'
    )
    assert columns(beast) == {"p1": [1, 3, 5], "p2": [2, 4, 6]}
    with pytest.raises(InputError, match="there is no partition 'p'"):
        columns(beast, partition_name="p")
    with pytest.warns(InputWarning, match="its 2 sets of columns .p1, p2. are read as one"):
        alignment_of(DataOptions(str(beast)))
    beast.write_text(beast.read_text().replace("2::2", "4"))
    with pytest.warns(InputWarning, match="also those in none of its sets; --sites takes these: p1, p2"):
        alignment_of(DataOptions(str(beast)))
    beast.write_text(beast.read_text().replace('"4"', '"2-9"'))
    with pytest.raises(InputError, match=r"x\.xml.*column"):
        columns(beast)
