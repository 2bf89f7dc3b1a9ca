from __future__ import annotations

import json

import pytest
import typer
from typer.testing import CliRunner

from phloem.cli.likelihood import likelihood
from phloem.errors import InputError

FASTA = (
    ">alpha_taxon_with_a_rather_long_name_indeed\nACGTACGTAAGGTT\n>b\nACGTACGAAAGGTA\n>c\nACTTACGAAAGCTA\n"
)
NEWICK = "(alpha_taxon_with_a_rather_long_name_indeed:0.1,b:0.2,c:0.15);\n"


@pytest.fixture
def run(tmp_path):
    (tmp_path / "a.fasta").write_text(FASTA)
    (tmp_path / "a.nwk").write_text(NEWICK)
    app = typer.Typer()
    app.command()(likelihood)
    files = [str(tmp_path / "a.fasta"), "--tree", str(tmp_path / "a.nwk"), "--engine", "reference"]
    return lambda *options: CliRunner().invoke(app, [*files, *options])


def test_json_alone_on_standard_output(run):
    record = json.loads(run("--model", "K80{2}", "--gradient", "--json", "-").stdout)
    assert {"log_likelihood", "gradient", "settings", "provenance"} <= set(record)
    assert record["gradient"]["parameters"].keys() == {"kappa"}
    assert record["settings"]["gradient"] is True


def test_tables_fit_eighty_columns(run):
    result = run("--model", "GTR{1.2,4.0,0.7,0.9,5.0}+F+I{0.1}+G4{0.5}", "--gradient")
    assert result.exit_code == 0, result.output
    assert "log-likelihood: -" in result.stdout and "kappa" not in result.stdout
    lines = result.stdout.splitlines()
    assert max(len(line) for line in lines if not line.startswith("model: ")) <= 80
    assert sum(line.startswith("model: GTR{") and line.endswith("}") for line in lines) == 1  # to copy


def test_files_are_kept_unless_redo(run, tmp_path):
    target = tmp_path / "out.json"
    assert run("--model", "JC", "--json", str(target)).exit_code == 0
    kept = target.read_text()
    assert isinstance(run("--model", "K80{9}", "--json", str(target)).exception, InputError)
    assert target.read_text() == kept
    assert run("--model", "K80{9}", "--json", str(target), "--redo").exit_code == 0
    assert target.read_text() != kept


def test_optimise_prints_the_fitted_model(run):
    result = run("--model", "K80", "--optimize")
    assert "fitted 4 numbers" in result.stdout and "K80{" in result.stdout
    assert "has no value" in str(run("--model", "K80").exception)


def test_how_the_characters_were_read_is_printed(run):
    output = run("--model", "HKY{2}+F", "--gradient").stdout
    assert "dna (guessed), 4 states, ambiguous characters: partial (0 found)" in output
    assert "derivatives by z" in output
    assert "derivatives by z" not in run("--model", "K80{2}", "--gradient").stdout
