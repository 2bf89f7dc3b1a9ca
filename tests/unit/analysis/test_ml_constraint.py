"""`phloem ml --constraint`: files, reports, choice of model, parts, equal sequences, what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from phloem.analysis.ml import run_ml
from phloem.analysis.ml_constraint import assure
from phloem.analysis.ml_data import MlData
from phloem.analysis.ml_genes import genes_of
from phloem.analysis.ml_settings import MlSettings, checkpoint_of
from phloem.errors import InputError
from phloem.inference.ml import branch_tests
from phloem.inference.ml.constrained_messages import unconstrained
from phloem.inference.ml.search_state import SearchState
from phloem.io.trees import newick_text, parse_trees, read_tree
from phloem.tree.constraint import Constraint
from phloem.tree.half_edges import half_edges

ROWS = {
    "a": "ACGTACGTACGTACGAACGTTACG",
    "b": "ACGTACGTACGTACTAACGTTACG",
    "c": "ACGTTCGAACGTACTAGCGTTACG",
    "d": "ACGATCGAACGGACTAGCGATACG",
    "e": "ACGATCGTACGGACTTGCGATAGG",
    "f": "ACGATCGTACGGACTTGCGATAGG",  # as e
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("small.fasta").write_text("".join(f">{name}\n{row}\n" for name, row in ROWS.items()))
    Path("wrong.nwk").write_text("((a,e),b,f);")  # parts the equal sequences
    Path("parts.txt").write_text("DNA, one = 1-12\nDNA, two = 13-24\n")


def of(**given):
    given = {"model": "JC", "patience": 1, "threads": 1, "prefix": "out", "constraint": "wrong.nwk"} | given
    return MlSettings("small.fasta", **given)


def obeys(text):
    constraint = Constraint(parse_trees("((a,e),b,f);")[0], tuple(ROWS))
    return constraint.obeyed(half_edges(parse_trees(text)[0], tuple(ROWS)).back)


@pytest.mark.parametrize(
    "given",
    [
        {"alrt": 100},
        {"fast": True, "patience": None},
        {"model": "auto", "model_set": "JC,HKY", "rate_set": "E"},
        {"model": None, "partitions": "parts.txt", "linkage": "linked", "starts": 2},
    ],
)
def test_equal_sequences_are_set_apart_where_the_constraint_says_so(given):
    result = run_ml(of(**given))
    assert obeys(Path("out.tree").read_text())
    record = json.loads(Path("out.json").read_text())
    assert record["constraint"] == {"file": "wrong.nwk", "taxa": 4, "splits": 1, "obeyed": True}
    assert record["settings"]["constraint"] == "wrong.nwk" and not record["identical_sequences"]
    report = Path("out.report").read_text()
    assert "constraint wrong.nwk: its split obeyed; 4 taxa in it, 2 free" in report
    assert result.found.origin.startswith(("parsimony", "the tree on which"))


def test_without_it_the_tree_breaks_it_which_the_last_look_refuses():
    run_ml(of(constraint=None))
    assert not obeys(Path("out.tree").read_text())
    constraint = Constraint(parse_trees("((a,e),b,f);")[0], tuple(ROWS))
    with pytest.raises(RuntimeError, match="breaks the constraint"):
        assure(constraint, read_tree("out.tree"))


def test_a_tree_to_begin_from_has_to_obey():
    Path("start.nwk").write_text("((a,b),c,(d,(e,f)));")
    with pytest.raises(InputError, match="does not obey the constraint: no branch sets apart b, f") as caught:
        run_ml(of(tree="start.nwk"))
    assert caught.value.file == "start.nwk"
    Path("start.nwk").write_text("((a,e),c,(d,(b,f)));")
    assert run_ml(of(tree="start.nwk")).found.origin == "the tree given"


def test_names_in_another_spelling_are_those_of_the_alignment():
    """As in a tree to begin from."""
    Path("wrong.nwk").write_text("((A,E),b,F);")
    result = run_ml(of())
    assert result.constraint is not None and result.constraint.tree.taxa == ("a", "e", "b", "f")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("((a,e),b,x);", "in the constraint and not in the alignment: 'x'"),
        ("((a,e),b,a);", "a"),
        ("(a,b,c,d);", "no split"),
        ("((a,e),b,f", "wrong"),
        ("((a,e),b,f);((a,b),e,f);", "2 trees"),
    ],
)
def test_constraints_that_mean_nothing(text, said):
    Path("wrong.nwk").write_text(text)
    with pytest.raises(InputError) as caught:
        run_ml(of())
    assert said in f"{caught.value.place} {caught.value.message}" and caught.value.file == "wrong.nwk"
    assert caught.value.hint


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"engine": "differences", "patience": 10}, "constraint"),
        ({"constraint": "none.nwk"}, "none.nwk|no such file|not found"),
    ],
)
def test_what_does_not_obey_is_refused(given, said):
    with pytest.raises(InputError, match=said):
        run_ml(of(**given))
    assert not Path("out.tree").exists()


@pytest.mark.parametrize("given", [{"ufboot": 1000}, {"ufboot": 1000, "bnni": True}, {"bootstrap": "6"}])
def test_trees_of_replicates_obey(given, monkeypatch):
    Path("wrong.nwk").write_text("((a,e),b,c,d,f);")

    def shares():
        branches = json.loads(Path("out.json").read_text())["supports"]["branches"]
        return sum(b[name] for b in branches if set(b["taxa"]) == {"b", "c", "d", "f"})

    name = "UFBoot" if "ufboot" in given else "bootstrap"
    result = run_ml(of(**given, iqtree_files=True))
    assert shares() == 1.0 and obeys(Path("out.contree").read_text())
    assert all(obeys(newick_text([tree])) for tree in result.supports.replicates)
    for part in ("ultrafast", "climb_each"):  # the same without the constraint breaks it
        place = f"phloem.inference.ml.branch_tests.{part}"
        monkeypatch.setattr(place, unfiltered(getattr(branch_tests, part)))
    monkeypatch.setattr(MlData, "resampling", without_constraint(MlData.resampling))
    run_ml(of(**given, redo=True))
    assert shares() < 1.0


def unfiltered(work):
    return lambda messages, *given: work(unconstrained(messages), *given)


def without_constraint(resampling):
    return lambda *given: replace(resampling(*given), constraint=None)


def test_many_genes_have_no_constraint():
    with pytest.raises(InputError, match="--constraint"):
        genes_of(of())


def test_another_constraint_is_another_search():
    state = SearchState(0.0, None, {}, set(), [], [], "")  # type: ignore[arg-type]
    state.to_json = lambda: {}  # type: ignore[method-assign]
    checkpoint_of(of(), ["JC"]).write(state, now=True)
    checkpoint_of(of(), ["JC"], from_json=dict).read()
    Path("wrong.nwk").write_text("((a,d),b,f);")
    with pytest.raises(InputError, match="another analysis"):
        checkpoint_of(of(), ["JC"], from_json=dict).read()
