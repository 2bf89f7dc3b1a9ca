"""`phloem likelihood --partitions` against runs of every part on its own."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import typer
from typer.testing import CliRunner

from phloem.analysis.likelihood import LikelihoodSettings, run_likelihood
from phloem.analysis.partitioned_likelihood import run_partitioned_likelihood
from phloem.cli.likelihood import likelihood
from phloem.errors import InputError
from phloem.io.trees import read_trees

ROWS = {
    "a": "ATGGCAAAGTTACCGACGTAAGGTTCAGTA",
    "b": "ATGGCGAAGTTACCTACGAAAGGTTCAGTC",
    "c": "ATGTCAAAATTGCCGTACGAAGGCTAACTA",
    "d": "ATGTCTCGATTGCCATACCAAGGCTGACTC",
}
PARTITIONS = (
    "GTR{1,4,1,1,4}+F+G4{0.5}, first = 16-30\\3, 17-30\\3\nHKY{3}+F, third = 18-30\\3\nCODON, coding = 1-15\n"
)


@pytest.fixture
def settings(tmp_path) -> LikelihoodSettings:
    (tmp_path / "a.fasta").write_text("".join(f">{name}\n{row}\n" for name, row in ROWS.items()))
    (tmp_path / "a.nwk").write_text("((a:0.1,b:0.2):0.05,c:0.15,d:0.3);\n")
    (tmp_path / "stretched.nwk").write_text("((a:0.3,b:0.6):0.15,c:0.45,d:0.9);\n")
    (tmp_path / "a.partitions").write_text(PARTITIONS)
    return LikelihoodSettings(
        str(tmp_path / "a.fasta"),
        str(tmp_path / "a.nwk"),
        "GY94{omega=0.3,kappa=2}+FQ",
        partitions=str(tmp_path / "a.partitions"),
        engine="reference",
    )


def test_the_sum_of_runs_of_every_part(settings, tmp_path):
    result = run_partitioned_likelihood(settings)
    alone = replace(settings, partitions=None)
    runs = [
        replace(alone, sites="16-30\\3, 17-30\\3", model="GTR{1,4,1,1,4}+F+G4{0.5}", datatype="dna"),
        replace(alone, sites="18-30\\3", model="HKY{3}+F", datatype="dna"),
        replace(alone, sites="1-15", datatype="codon", tree=str(tmp_path / "stretched.nwk")),
    ]
    expected = [run_likelihood(one).log_likelihood for one in runs]
    assert [p.log_likelihood for p in result.parts] == pytest.approx(expected, rel=1e-12)
    assert result.log_likelihood == pytest.approx(sum(expected), rel=1e-12)
    assert [p.datatype for p in result.parts] == ["dna", "dna", "codon"]
    assert result.length_unit == "nucleotide site; a codon is three"
    assert result.parts[2].tree_length == pytest.approx(3 * 0.8)


def test_record(settings):
    for kind in ("linked", "proportional", "unlinked"):
        result = run_partitioned_likelihood(replace(settings, gradient=True, linkage=kind))
        record = result.to_json()
        assert json.loads(json.dumps(record, allow_nan=False)) == record
        assert [p["name"] for p in record["parts"]] == ["first", "third", "coding"]
        assert record["gradient"]["parameters"].keys() == record["parameters"].keys()
        assert len(record["provenance"]["files"]) == 3 and len(record["provenance"]["engines"]) == 3


def test_fitted_models_and_trees_give_the_optimum_again(settings, tmp_path):
    out = tmp_path / "fitted.nwk"
    (tmp_path / "a.partitions").write_text("HKY+F+G4, one = 1-15\nHKY+F+G4, two = 16-30\n")
    free = replace(
        settings, model=None, optimize=True, out_tree=str(out), linkage="unlinked", link=("kappa",)
    )
    found = run_partitioned_likelihood(free)
    assert found.parameters.keys() >= {"kappa", "alpha{one}", "alpha{two}"}
    one, two = (run_partitioned_likelihood(replace(free, link=(), redo=True)).optimum, found.optimum)
    assert one.n_free == two.n_free + 1 and one.log_likelihood > two.log_likelihood - 1e-3
    found = run_partitioned_likelihood(replace(free, redo=True))
    trees = read_trees(out)
    for part, tree, columns in zip(found.parts, trees, ("1-15", "16-30")):
        path = tmp_path / f"{part.name}.nwk"
        path.write_text(part.tree)
        again = replace(
            settings, partitions=None, sites=columns, model=part.model, tree=str(path), datatype="dna"
        )
        assert run_likelihood(again).log_likelihood == pytest.approx(part.log_likelihood, abs=1e-6)
        assert tree.lengths[:-1].sum() == pytest.approx(part.tree_length)


def test_without_a_tree_that_of_the_largest_part(settings):
    result = run_partitioned_likelihood(replace(settings, tree=None))
    assert result.tree_origin.endswith("of part 'first'")


@pytest.mark.parametrize(
    "change, message",
    [
        ({"model": None}, "part 'coding' has no model"),
        ({"link": ("beta",)}, r"names 0 part\(s\) that could share 'beta'"),
        ({"link": ("kappa:third,fourth",)}, "no part 'fourth'"),
        ({"link": ("frequencies:first,third",)}, "not the same thing in parts 'first' and 'third'"),
        ({"sites": "1-9"}, "both choose columns"),
        ({"linkage": "free"}, "unknown value of 'linkage'"),
    ],
)
def test_what_does_not_go_together_is_refused(settings, change, message):
    with pytest.raises(InputError, match=message):
        run_partitioned_likelihood(replace(settings, **change))


def test_one_part_shares_nothing(settings):
    alone = replace(settings, partitions=None, datatype="dna", model="JC")
    with pytest.raises(InputError, match="--linkage and --link"):
        run_likelihood(replace(alone, linkage="proportional"))
    with pytest.raises(InputError, match="no model is given"):
        run_likelihood(replace(alone, model=None))


@pytest.mark.parametrize("linkage", ["linked", "proportional", "unlinked"])
def test_tables_fit_eighty_columns(settings, linkage):
    app = typer.Typer()
    app.command()(likelihood)
    options = ["--tree", settings.tree, "--engine", "reference", "--model", settings.model, "--gradient"]
    done = CliRunner().invoke(
        app, [settings.alignment, *options, "--partitions", settings.partitions, "--linkage", linkage]
    )
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert max(len(line) for line in lines if not line.startswith("model of ")) <= 80
    assert sum(line.startswith("model of first: GTR{") and line.endswith("}") for line in lines) == 1
    assert "3 parts, 20 characters" in done.stdout and f"branch lengths: {linkage}" in done.stdout
    assert ("Rates of parts" in done.stdout) == (linkage == "proportional")
    assert ("Branches of coding" in done.stdout) == (linkage == "unlinked")
