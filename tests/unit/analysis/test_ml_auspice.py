"""`phloem ml --auspice`: supports, and mutations that lead from the root's sequence to those of the tips."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from phloem.analysis.ml import run_ml
from phloem.analysis.ml_auspice import changes_of_branches
from phloem.analysis.ml_settings import MlSettings
from phloem.errors import InputError, InputWarning
from phloem.io.trees import parse_trees
from unit.auspice_rules import problems, walk

ROWS = {
    "a": "ACGTRCGTNCGTACGAAC",
    "b": "ACGTACGTNCGTACTAAC",
    "b2": "ACGTACGTNCGTACTAAC",
    "c": "ACGTTCGANCGTACTAGC",
    "d": "ACGATCGANCGGACTAGC",
    "e": "AAAAAAAANAAAAA-TAA",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("s.fasta").write_text("".join(f">{name}\n{row}\n" for name, row in ROWS.items()))
    Path("m.tsv").write_text("strain\tplace\n" + "".join(f"{name}\tP{name}\n" for name in ROWS))
    return tmp_path


def dataset(**given) -> dict:
    settings = {"model": "F81+F", "threads": 1, "fast": True, "auspice": True, "prefix": "o", "redo": True}
    run_ml(MlSettings("s.fasta", **(settings | given)))
    found = json.loads(Path("o.auspice.json").read_text())
    assert problems(found) == []
    return found


def paths(found: dict) -> dict[str, dict[int, str]]:
    """Tip → site → its letter after all mutations from the root; every one begins where the last ended."""
    letters: dict[str, dict[int, str]] = {}
    for node, above in walk(found):
        own = dict(letters[above["name"]]) if above else {}
        for text in node.get("branch_attrs", {}).get("mutations", {}).get("nuc", []):
            before, site, after = text[0], int(text[1:-1]), text[-1]
            assert own.get(site, before) == before != after, text
            own[site] = after
        letters[node["name"]] = own
    return {name: letters[name] for name in ROWS}


def faults(ends: dict[str, dict[int, str]]) -> list[tuple[str, int]]:
    """Tips and sites whose letter is not that of the alignment, by the mutations."""
    wrong = [
        (name, site)
        for name, own in ends.items()
        for site, letter in own.items()
        if ROWS[name][site - 1] in "ACGT" and ROWS[name][site - 1] != letter
    ]
    for one, other in combinations(ROWS, 2):
        pairs = enumerate(zip(ROWS[one], ROWS[other]), 1)
        differ = [site for site, (p, q) in pairs if p != q and {p, q} <= set("ACGT")]
        wrong += [(one, site) for site in differ if site not in ends[one] and site not in ends[other]]
    return wrong


@pytest.mark.parametrize("outgroup", [None, "e", "a,b,b2"])
def test_mutations_lead_from_the_root_to_the_tips(folder, outgroup):
    found = dataset(ancestral=True, outgroup=outgroup)
    ends = paths(found)
    assert faults(ends) == [] and any(ends.values())
    assert ends["b"] == ends["b2"]
    assert found["meta"]["genome_annotations"] == {"nuc": {"start": 1, "end": 18, "strand": "+"}}
    assert found["meta"]["panels"] == ["tree", "entropy"] and found["meta"]["colorings"][-1]["key"] == "gt"
    own = {node["name"] for node, _ in walk(found)}
    table = {line.split("\t")[0] for line in Path("o.state").read_text().splitlines() if line[:4] == "Node"}
    assert {name for name in own if name[:4] == "Node"} <= table and len(own & table) >= 3
    least = sum(len(set(column) & set("ACGT")) - 1 for column in zip(*ROWS.values()) if set(column) != {"N"})
    n = sum(len(n.get("branch_attrs", {}).get("mutations", {}).get("nuc", [])) for n, _ in walk(found))
    assert least <= n <= least + 3
    planted = {name: own | {1: "G"} if name == "d" else own for name, own in ends.items()}
    assert faults(planted) == [("d", 1)]


def test_what_is_not_known_is_as_above():
    """A change is told where it is seen: not at the node that is undecided, but below it."""
    tree = parse_trees("((a:1,b:1):1,c:1);")[0]
    letters = [np.array(own, np.int8) for own in ([0, 1], [2, -1], [0, 1], [-1, 1], [0, -1])]
    changes = changes_of_branches(tree, letters)
    assert changes == [[], [(0, 0, 2)], [], [], []]
    letters[3] = np.array([2, 1], np.int8)
    assert changes_of_branches(tree, letters) == [[(0, 2, 0)], [], [], [(0, 0, 2)], []]


def test_supports_and_columns(folder):
    found = dataset(alrt=100, abayes=True, metadata="m.tsv", metadata_column=("place",))
    keys = [one["key"] for one in found["meta"]["colorings"]]
    assert keys == ["place", "SH-aLRT", "aBayes"] and found["meta"]["filters"] == ["place"]
    assert found["meta"]["display_defaults"]["distance_measure"] == "div"
    own = {node["name"]: node for node, _ in walk(found)}
    assert own["d"]["node_attrs"]["place"] == {"value": "Pd"}
    labels = [node["branch_attrs"]["labels"] for node in own.values() if "branch_attrs" in node]
    assert labels and all(set(one) == {"SHaLRT", "aBayes"} for one in labels)
    assert not any("mutations" in node.get("branch_attrs", {}) for node in own.values())
    assert "genome_annotations" not in found["meta"]


def test_sites_whose_place_is_not_known_have_no_mutations(folder):
    with pytest.warns(InputWarning, match="mutations are of whole alignments"):
        found = dataset(ancestral=True, sites="3-18")
    assert "genome_annotations" not in found["meta"] and not any(paths(found).values())


def test_parts_of_one_genome_have_mutations_at_their_columns(folder):
    Path("p.txt").write_text("JC, one = 1-9\nF81+F, two = 10-18\n")
    found = dataset(ancestral=True, partitions="p.txt", model=None, outgroup="e")
    assert faults(paths(found)) == [] and found["meta"]["genome_annotations"]["nuc"]["end"] == 18
    assert any(site > 9 for own in paths(found).values() for site in own)


def test_what_is_asked_wrongly(folder):
    for more, told in (
        ({"metadata_column": ("place",), "auspice": False}, "is for a dataset of Auspice"),
        ({"metadata_column": ("plce",), "metadata": "m.tsv"}, "no column is called 'plce'"),
        ({"metadata_column": ("place",)}, "no table"),
        ({"engine": "differences", "fast": False}, "has no --auspice"),
        ({"model": "MF", "fast": False}, "--auspice is about a tree"),
    ):
        with pytest.raises(InputError, match=told) as error:
            dataset(**more)
        assert error.value.hint
