"""From files to trees: the distance commands' one door, and the commands themselves."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from phloem.analysis.distance import DistanceAnalysisSettings, run_distance_analysis
from phloem.analysis.draw import DrawTreeSettings, run_draw
from phloem.cli import build_app
from phloem.errors import InputError
from phloem.io.trees import read_tree
from phloem.tree.splits import robinson_foulds
from phloem.tree.tree import is_ultrametric

SEQUENCES = {
    "human": "ACGTACGTACGTACGTACGTACGTACGTACGTACGTACGT",
    "chimp": "ACGTACGTACGTACGTACGTACGTACGTACGTACGTACGA",
    "gorilla": "ACGTACGTACGTACGTACGTACGTACGTACGTACGTTTGA",
    "orang": "ACGTACGTACGTCCGTACGTACGTACGTTCGTAGGTTTGA",
    "gibbon": "ACGGACGTAGGTCCGTACGTAAGTACGTTCGTAGGTTTCA",
}


@pytest.fixture
def fasta(tmp_path):
    file = tmp_path / "apes.fasta"
    file.write_text("".join(f">{name}\n{text}\n" for name, text in SEQUENCES.items()))
    return str(file)


@pytest.mark.parametrize("method", ["upgma", "wpgma", "single", "complete", "nj", "bionj", "unj"])
def test_every_method_from_an_alignment(fasta, method, tmp_path):
    out = str(tmp_path / "t.nwk")
    result = run_distance_analysis(DistanceAnalysisSettings(fasta, method, out=out, cophenetic=True))
    tree = read_tree(out, allow_negative=True)
    assert set(tree.taxa) == set(SEQUENCES)
    assert (
        robinson_foulds(tree, result.tree) == 0 if method in ("nj", "bionj", "unj") else is_ultrametric(tree)
    )
    assert result.cophenetic > (0.95 if method in ("nj", "bionj", "unj") else 0.6)
    assert result.choices["distance"] == "jc69" and result.provenance["files"][fasta]["sha256"]
    json.dumps(result.to_json())


@pytest.mark.parametrize("pairs", [1 << 22, 7])
def test_cophenetic_correlation_is_scipys(pairs, monkeypatch):
    from scipy.cluster.hierarchy import cophenet
    from scipy.spatial.distance import squareform

    from phloem.clustering import support
    from phloem.clustering.linkage import linkage
    from phloem.data.distance_matrix import DistanceTriangle

    upper = np.triu(np.random.default_rng(0).random((30, 30)), 1)
    d = upper + upper.T
    merges = linkage(d)
    expected, _ = cophenet(merges.linkage_matrix(), squareform(d, checks=False))
    taxa = tuple(f"t{k}" for k in range(30))
    monkeypatch.setattr(support, "PAIRS", pairs)
    for form in (d, DistanceTriangle(taxa, d[np.tril_indices(30, -1)])):
        found = support.cophenetic_correlation(merges.tree(taxa), form)
        assert found == pytest.approx(expected, rel=1e-12)


def test_matrix_and_alignment_give_the_same_tree(fasta, tmp_path):
    matrix = str(tmp_path / "m.phy")
    run_distance_analysis(DistanceAnalysisSettings(fasta, None, out=matrix, digits=17))
    from_matrix = run_distance_analysis(DistanceAnalysisSettings(matrix, "nj"))
    from_alignment = run_distance_analysis(DistanceAnalysisSettings(fasta, "nj"))
    np.testing.assert_allclose(from_matrix.tree.lengths, from_alignment.tree.lengths, atol=1e-12)


def test_bootstrap_is_repeatable_and_in_percent(fasta):
    settings = DistanceAnalysisSettings(fasta, "upgma", bootstrap=20, seed=3)
    labels = [run_distance_analysis(settings).tree.labels for _ in range(2)]
    assert labels[0] == labels[1]
    values = [float(label) for label in labels[0] if label is not None]
    assert len(values) == 3 and all(0 <= value <= 100 for value in values) and max(values) > 50
    other = run_distance_analysis(DistanceAnalysisSettings(fasta, "upgma", bootstrap=20, seed=4)).tree.labels
    assert other != labels[0]


def test_options_that_a_matrix_cannot_have(fasta, tmp_path):
    matrix = str(tmp_path / "m.phy")
    run_distance_analysis(DistanceAnalysisSettings(fasta, None, out=matrix))
    for option in ({"bootstrap": 5}, {"distance": "jc69"}, {"model": "JC"}, {"shape": 1.0}):
        with pytest.raises(InputError, match="needs an alignment"):
            run_distance_analysis(DistanceAnalysisSettings(matrix, "nj", **option))


@pytest.mark.parametrize("method", ["upgma", "nj"])
def test_memory_is_asked_for_before_it_is_taken(fasta, tmp_path, method, monkeypatch):
    from phloem.analysis import distance_source
    from phloem.clustering import settings

    matrix = str(tmp_path / "m.phy")
    run_distance_analysis(DistanceAnalysisSettings(fasta, None, out=matrix))
    monkeypatch.setattr(settings, "available_bytes", lambda: 100)
    for name in ("read_distance_matrix", "read_distance_triangle", "pairwise_distances", "pairwise_triangle"):
        monkeypatch.setattr(distance_source, name, lambda *_, **__: pytest.fail("memory was taken"))
    for file in (matrix, fasta):
        with pytest.raises(InputError, match=r"5 taxa need 0\.0 GB .* float64") as refusal:
            run_distance_analysis(DistanceAnalysisSettings(file, method))
        assert "float32" in str(refusal.value.hint)


def test_nothing_is_replaced_unasked(fasta, tmp_path):
    out = tmp_path / "t.nwk"
    out.write_text("precious")
    with pytest.raises(InputError, match="exists"):
        run_distance_analysis(DistanceAnalysisSettings(fasta, "upgma", out=str(out)))
    assert out.read_text() == "precious"


def test_commands(fasta, tmp_path):
    run = CliRunner().invoke
    app = build_app()
    tree, picture = str(tmp_path / "t.nwk"), str(tmp_path / "t.svg")
    assert run(app, ["upgma", fasta, "-o", tree, "--picture", picture, "-b", "5"]).exit_code == 0
    assert (tmp_path / "t.svg").read_text().startswith("<svg")
    drawn = run(app, ["draw", tree])
    assert drawn.exit_code == 0 and "gorilla" in drawn.stdout
    assert run(app, ["draw", tree, "-o", str(tmp_path / "c.svg"), "--circular"]).exit_code == 0
    joined = run(app, ["nj", fasta, "--midpoint", "-d", "k80", "--negative", "zero"])
    assert "saturated" in joined.stderr and max(map(len, joined.stderr.splitlines())) <= 80
    assert joined.exit_code == 0 and joined.stdout.rstrip().endswith(";")
    report = run(app, ["nj", fasta, "--json", "-"])
    assert json.loads(report.stdout)["distances"]["distance"] == "jc69"
    assert run(app, ["distances", fasta, "-o", str(tmp_path / "m.csv"), "-m", "HKY{2}+F"]).exit_code == 0
    assert (tmp_path / "m.csv").read_text().count("\n") == 6


def test_draw_refuses_an_unknown_picture(fasta, tmp_path):
    out = str(tmp_path / "t.nwk")
    run_distance_analysis(DistanceAnalysisSettings(fasta, "upgma", out=out))
    with pytest.raises(InputError, match="kind of picture"):
        run_draw(DrawTreeSettings(out, str(tmp_path / "t.jpeg")))


def test_terminal_drawing_finds_the_support(tmp_path):
    file = tmp_path / "t.nwk"
    file.write_text("((a:1,b:1)[&posterior=0.87]:1,c:2);")
    assert ".87" in run_draw(DrawTreeSettings(str(file)))


def test_ambiguity_is_an_option(tmp_path):
    file = tmp_path / "r.fasta"
    file.write_text(
        "".join(f">{name}\n{text[:-1]}R\n" for name, text in SEQUENCES.items()) + ">e\n" + "A" * 40
    )
    missing = run_distance_analysis(DistanceAnalysisSettings(str(file)))
    average = run_distance_analysis(DistanceAnalysisSettings(str(file), ambiguity="partial"))
    assert average.choices["ambiguous_characters"] == "partial"
    assert np.abs(missing.matrix.values - average.matrix.values).max() > 1e-3
    done = CliRunner().invoke(build_app(), ["nj", str(file), "--ambiguity", "partial"])
    assert done.exit_code == 0 and done.stdout.rstrip().endswith(";")


def test_simultaneous_joining_is_said(fasta):
    app = build_app()
    exact, rounds = (CliRunner().invoke(app, ["nj", fasta, *flag]) for flag in ([], ["--simultaneous"]))
    said = "not the neighbour-joining tree"
    assert said in rounds.output and said not in exact.output and rounds.exit_code == 0
    with pytest.raises(InputError, match="simultaneous"):
        run_distance_analysis(DistanceAnalysisSettings(fasta, "bionj", simultaneous=True))
