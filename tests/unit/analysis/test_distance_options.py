"""Options of the distance commands: what goes together, what is refused, and where results go."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from phloem.analysis.distance import run_distance_analysis
from phloem.analysis.distance_source import DistanceAnalysisSettings
from phloem.cli import build_app
from phloem.errors import InputError
from phloem.io.trees import read_tree

MATRIX = "4\na 0 2 7 7\nb 2 0 7 7\nc 7 7 0 4\nd 7 7 4 0\n"
CODING = "ATGGCCTGA"  # ends in a stop codon of the universal code, tryptophan in vertebrate mitochondria


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.phy").write_text(MATRIX)
    (tmp_path / "a.fa").write_text(">a\nACGTACGT\n>b\nACGTACGA\n>c\nACTTACGA\n>d\nACTTAGGA\n")
    (tmp_path / "codons.fa").write_text(f">a\n{CODING}\n>b\n{CODING}\n>c\nATGGCATGA\n")
    return tmp_path


def invoke(*arguments):
    return CliRunner().invoke(build_app(), list(arguments))


@pytest.mark.parametrize(
    "options, message",
    [
        ({"bootstrap": -1}, "--bootstrap is -1"),
        ({"seed": -1}, "--seed is -1"),
        ({"threads": 0}, "--threads is 0"),
        ({"digits": 0}, "--digits is 0"),
        ({"digits": 18}, "from 1 to 17"),
        ({"tolerance": -1.0}, "--tolerance is -1"),
        ({"tolerance": float("nan")}, "--tolerance is nan"),
        ({"longest": float("inf")}, "not inf"),
        ({"names": "m.phy"}, "--names needs a distance matrix"),
        ({"tolerance": 0.1}, "--tolerance needs a distance matrix"),
        ({"out": "a.fa", "redo": True}, "is an input"),
        ({"model": "HKY+F"}, "kappa of HKY.F have no value"),
    ],
)
def test_what_cannot_be_meant_is_refused(files, options, message):
    with pytest.raises(InputError) as caught:
        run_distance_analysis(DistanceAnalysisSettings("a.fa", "nj", **options))
    assert message.replace(".", "") in str(caught.value).replace(".", "").replace("+", "")


@pytest.mark.parametrize(
    "option",
    [{"deletion": "complete"}, {"ambiguity": "partial"}, {"saturated": "error"}, {"longest": 2.0},
     {"shape": 1.0}, {"bootstrap": 5}, {"genetic_code": 2}, {"stop_codons": "mask"}, {"distance": "p"}],
)  # fmt: skip
def test_a_matrix_takes_no_option_of_an_alignment(files, option):
    name = next(iter(option)).replace("_", "-")
    with pytest.raises(InputError, match=f"--{name} needs an alignment"):
        run_distance_analysis(DistanceAnalysisSettings("m.phy", "upgma", **option))


def test_codons_under_another_genetic_code(files):
    with pytest.raises(InputError, match="stop codon"):
        run_distance_analysis(DistanceAnalysisSettings("codons.fa", "upgma", datatype="codon"))
    other = run_distance_analysis(DistanceAnalysisSettings("codons.fa", datatype="codon", genetic_code=2))
    assert other.choices["genetic_code"] == 2 and other.matrix.values[0, 2] == pytest.approx(1 / 3)
    masked = run_distance_analysis(
        DistanceAnalysisSettings("codons.fa", datatype="codon", stop_codons="mask")
    )
    assert masked.choices["stop_codons_masked"] == 3 and masked.matrix.values[0, 2] == pytest.approx(1 / 2)


def test_what_was_guessed_is_said(files):
    assert "datatype dna, datatype guessed, distance jc69" in invoke("upgma", "a.fa").stderr
    told = invoke("upgma", "a.fa", "--datatype", "dna").stderr
    assert "datatype dna, distance jc69" in told and "saturated pairs 0" in told


def test_equal_distances_have_no_cophenetic_correlation(files):
    (files / "equal.phy").write_text("3\na\nb 1\nc 1 1\n")
    answer = invoke("upgma", "equal.phy", "--cophenetic", "--json", "-")
    assert answer.exit_code == 0 and "none: all distances" in answer.stderr
    assert json.loads(answer.stdout)["cophenetic_correlation"] is None


def test_the_tree_is_printed_beside_a_json_file_and_within_json(files):
    """It was lost where --json was given without --out."""
    beside = invoke("upgma", "m.phy", "--json", "record.json")
    assert beside.stdout.count("(") == 3
    record = json.loads(invoke("upgma", "m.phy", "--json", "-").stdout)
    assert record["tree"] == beside.stdout.strip()
    invoke("upgma", "m.phy", "-o", "t.nwk", "--json", "again.json")
    assert "tree" not in json.loads((files / "again.json").read_text())


def test_progress_moves_on_to_the_tree(files):
    seen = []
    run_distance_analysis(
        DistanceAnalysisSettings("a.fa", "nj", bootstrap=2),
        progress=lambda step, done, total: seen.append((step, done, total)),
    )
    steps = [step for step, *_ in seen]
    assert steps.index("distances") < steps.index("tree") < steps.index("bootstrap")
    assert seen[-1] == ("bootstrap", 2, 2) and ("tree", 0, 0) in seen


def test_minus_is_standard_output(files):
    assert invoke("upgma", "m.phy", "-o", "-").stdout.count("(") == 3
    matrix = invoke("distances", "m.phy", "-o", "-").stdout
    assert matrix.splitlines() == ["4", "a  0 2 7 7", "b  2 0 7 7", "c  7 7 0 4", "d  7 7 4 0"]
    assert not (files / "-").exists()


def test_outputs_neither_share_a_file_nor_replace_the_names_of_another_matrix(files):
    assert "two outputs" in str(invoke("upgma", "m.phy", "-o", "t.svg", "--picture", "t.svg").exception)
    (files / "d.names").write_text("mine\n")
    with pytest.raises(InputError, match=r"d\.names: this file exists"):
        run_distance_analysis(DistanceAnalysisSettings("m.phy", out="d.npy"))
    assert (files / "d.names").read_text() == "mine\n"


def test_names_with_blanks_leave_no_half_written_phylip_file(files):
    (files / "m.csv").write_text(",a b,c\na b,0,1\nc,1,0\n")
    with pytest.raises(InputError, match="has a blank"):
        run_distance_analysis(DistanceAnalysisSettings("m.csv", out="d.phy"))
    assert not (files / "d.phy").exists()


def test_negative_paths_are_refused_before_the_bootstrap(files):
    (files / "n.fa").write_text(
        ">a\nAAAAAAAAAA\n>b\nAAAAAAAACC\n>c\nAAAAACCCAA\n>d\nACCCCAAAAA\n>e\nGAAAAAAACC\n"
    )
    seen = []
    settings = DistanceAnalysisSettings("n.fa", "nj", midpoint=True, bootstrap=5)
    negative = run_distance_analysis(DistanceAnalysisSettings("n.fa", "nj")).tree.lengths.min()
    assert negative < 0
    with pytest.raises(InputError, match="--midpoint measures paths"):
        run_distance_analysis(settings, progress=lambda step, *_: seen.append(step))
    assert "bootstrap" not in seen


def test_sequences_without_a_nucleotide_have_no_logdet_distance(files):
    """Their determinants are zero: equal sequences were 'saturated', five substitutions per site apart."""
    (files / "g.fa").write_text(">a\nACTACTGACT\n>b\nACTACTACTA\n>c\nACTRCTACTA\n")
    settings = DistanceAnalysisSettings("g.fa", distance="logdet")
    with pytest.raises(InputError, match="'b' has no G"):
        run_distance_analysis(settings)
    with pytest.raises(InputError, match="'b' has no G"):
        run_distance_analysis(replace(settings, ambiguity="partial", bootstrap=3, method="nj"))


def test_a_file_of_no_known_kind_is_told_what_distances_look_like(files):
    (files / "odd.txt").write_text("# distances\na b 0.5\n")
    with pytest.raises(InputError, match=r"odd.txt:1: .* and no distance matrix\n.*each further row a name"):
        run_distance_analysis(DistanceAnalysisSettings("odd.txt", "nj"))


def test_an_outgroup_roots_the_joined_tree(files):
    """Supports stay with their branches; what is no outgroup is told before the bootstrap."""
    settings = {"alignment": "a.fa", "method": "nj", "bootstrap": 20}
    free = run_distance_analysis(DistanceAnalysisSettings(**settings)).tree
    rooted = run_distance_analysis(DistanceAnalysisSettings(**settings, outgroup="d, c")).tree
    top = rooted.children(rooted.n_nodes - 1).tolist()
    assert rooted.rooted and {rooted.labels[x] for x in top} == set(free.labels) - {None}
    assert sorted(rooted.taxa[x] for x in rooted.children(top[0])) in (["a", "b"], ["c", "d"])
    assert rooted.lengths[top[0]] == rooted.lengths[top[1]]
    for options, message in (
        ({"outgroup": "a,c"}, "not a group"), ({"outgroup": "e"}, "no taxon 'e'"),
        ({"outgroup": "a", "midpoint": True}, "--outgroup with --midpoint"),
        ({"outgroup": "a", "method": "upgma"}, "--outgroup of a tree that has a root"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=message):
            run_distance_analysis(DistanceAnalysisSettings(**(settings | options)))


def test_an_unrooted_picture_is_drawn_from_its_midpoint(files):
    answer = invoke("nj", "m.phy", "--picture", "t.svg", "-o", "t.nwk")
    assert "drawn from the midpoint" in answer.stderr
    assert not read_tree("t.nwk").rooted
    assert "midpoint" not in invoke("upgma", "m.phy", "--picture", "u.svg", "-o", "u.nwk").stderr
    assert np.isclose(read_tree("t.nwk").lengths[:-1].sum(), 10)


PATCHY = {
    "a": "ACGTAC----------",
    "b": "-----CGTACGTACGT",
    "c": "ACGTACGTACGAACGT",
    "d": "ACGTACGAACGAACTT",
}


def test_complete_deletion_comes_before_the_bootstrap(files):
    """Only site 6 is in all: drawn from sixteen columns it was missing from every third replicate."""
    (files / "p.fa").write_text("".join(f">{name}\n{text}\n" for name, text in PATCHY.items()))
    result = run_distance_analysis(DistanceAnalysisSettings("p.fa", "nj", deletion="complete", bootstrap=50))
    assert result.choices["sites"] == 1 and result.tree.lengths.max() == 0


def test_a_replicate_without_common_sites_says_that_it_is_one(files):
    (files / "p.fa").write_text("".join(f">{name}\n{text}\n" for name, text in PATCHY.items()))
    run_distance_analysis(DistanceAnalysisSettings("p.fa", "nj"))
    with pytest.raises(InputError, match=r"in bootstrap replicate \d+: 'a' and 'b' have no site in common"):
        run_distance_analysis(DistanceAnalysisSettings("p.fa", "nj", bootstrap=50))
