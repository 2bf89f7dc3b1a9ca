"""What records look like where Python shows them, and how they compare."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import phloem
from phloem.data.alignment import Alignment
from phloem.summary.trace import trace_summary


@pytest.fixture
def caterpillar(tmp_path):
    names = [f"a_long_name_of_taxon_number_{k}" for k in range(200)]
    newick = names[0]
    for name in names[1:]:
        newick = f"({newick}:0.1,{name}:0.2)"
    (tmp_path / "t.nwk").write_text(f"{newick};\n")
    (tmp_path / "a.fasta").write_text("".join(f">{name}\nACGT\n" for name in names))
    return phloem.read_alignment(tmp_path / "a.fasta"), phloem.read_tree(tmp_path / "t.nwk")


def test_records_are_shown_in_a_line(caterpillar):
    alignment, tree = caterpillar
    likelihood = phloem.TreeLikelihood(alignment, tree, "JC", engine="reference")
    shown = {
        alignment: "Alignment(200 taxa × 4 sites, dna: 'a_long_name_of_taxon_number_0', ",
        tree: "Tree(200 taxa: 'a_long_name_of_taxon_number_0', ",
        likelihood: "TreeLikelihood(200 taxa × 4 sites, JC, engine reference)",
        phloem.pairwise_distances(alignment): "DistanceMatrix(200 taxa: ",
        likelihood.gradient(): "Gradient(log_likelihood=-",
    }
    for record, begins in shown.items():
        assert repr(record).startswith(begins) and len(repr(record)) < 200
    assert repr(tree).endswith("…; rooted, 398 branches with lengths)")


def test_records_with_arrays_compare_and_are_stored(caterpillar):
    for record in caterpillar:
        again = pickle.loads(pickle.dumps(record))
        assert record == record and record != again and record in {record: 1} and again.taxa == record.taxa
        assert isinstance(again, Alignment) or np.array_equal(again.parent, record.parent)


@pytest.mark.parametrize("engine", ["reference", "cpu"])
def test_a_likelihood_is_stored_with_its_values(tmp_path, engine):
    (tmp_path / "a.fasta").write_text(">a\nACGTT\n>b\nACGTA\n>c\nATGAA\n")
    (tmp_path / "t.nwk").write_text("(a:0.1,b:0.2,c:0.3);\n")
    alignment, tree = phloem.read_alignment(tmp_path / "a.fasta"), phloem.read_tree(tmp_path / "t.nwk")
    likelihood = phloem.TreeLikelihood(alignment, tree, "HKY{3}+FQ", engine=engine)
    likelihood.propose(branch_lengths={"a": 0.7})
    likelihood.accept()
    again = pickle.loads(pickle.dumps(likelihood))
    assert again.branch_lengths.tolist() == likelihood.branch_lengths.tolist()
    assert again.gradient().log_likelihood == likelihood.gradient().log_likelihood
    again.propose(branch_lengths={"b": 0.9})
    again.accept()
    assert likelihood.branch_lengths.tolist() != again.branch_lengths.tolist()


def test_a_tree_is_text_and_a_file(caterpillar, tmp_path):
    _, tree = caterpillar
    text = phloem.newick_text(tree)
    assert text == phloem.newick_text([tree]) and text.startswith("(a_long_name_of_taxon_number_199:0.2,")
    phloem.write_trees(tmp_path / "out.nwk", tree)
    assert (tmp_path / "out.nwk").read_text() == text


def test_a_summary_is_shown_as_a_table():
    draws = np.random.default_rng(1).normal(size=(2, 50, 41))
    lines = repr(trace_summary(tuple(f"number_{k}" for k in range(41)), draws)).split("\n")
    assert len(lines) == 42 and lines[0].split() == ["mean", "95%", "HPD", "from", "to", "ESS", "R-hat"]
    assert lines[1].startswith("number_0 ") and lines[-1] == "… 1 more"
