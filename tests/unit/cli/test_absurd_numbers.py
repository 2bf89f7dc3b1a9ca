"""Numbers that nobody can mean: every numeric option of every command refuses them, or does what it says."""

from __future__ import annotations

import inspect
from importlib import import_module

import pytest
from typer.testing import CliRunner

from phloem.cli import COMMANDS, build_app
from phloem.errors import InputError, PhloemError

FASTA = ">a\nACGTACGTA\n>b\nACGTACGAA\n>c\nACTTACGAC\n>d\nACTTAGGAC\n"
NEWICK = "(a:0.1,b:0.2,(c:0.15,d:0.3)0.9:0.1);\n"
MCMC = [
    "a.fa",
    "--prior-only",
    "--generations",
    "100",
    "--sample-every",
    "2",
    "--check-every",
    "50",
    "--redo",
]
LINES = {
    "distances": ["a.fa", "--out", "-"],
    "upgma": ["a.fa"],
    "nj": ["a.fa"],
    "draw": ["t.nwk"],
    "likelihood": ["a.fa", "--tree", "t.nwk", "--model", "JC", "--engine", "reference"],
    "simulate": ["--tips", "4", "--model", "JC", "--sites", "9", "--out", "s.fa", "--redo"],
    "summarise": ["t.nwk", "--burn-in", "0"],
    "plan": ["a.fa", "--model", "JC", "--engine", "reference"],
    "mcmc": MCMC,
    "date": ["t.nwk", "--dates", "d.tsv", "--intervals", "0"],
    "temporal-signal": ["t.nwk", "--dates", "d.tsv", "--permutations", "9"],
}
WITH = {  # what an option needs beside it
    ("draw", "height"): ["--out", "x.svg", "--redo"],
    ("draw", "font_size"): ["--out", "x.svg", "--redo"],
    ("simulate", "mean_length"): ["--tree", "uniform"],
    ("simulate", "states"): ["--model", "MK"],
    ("plan", "--bootstrap"): ["--method", "nj"],
}
VALUES = {
    "int": ["-1", "0", "99999999", "99999999999999", "9" * 30],
    "float": ["nan", "inf", "-inf", "-1", "0", "1e-320", "1e12", "1e308"],
}
TAKES_LONG = {"generations", "sample_every", "check_every", "--sites", "tips"}  # and may


def numeric_options() -> list[tuple[str, str, str]]:
    """(command, option, kind), by what the commands' defaults and annotations say."""
    found = []
    for command in LINES:
        module, function = COMMANDS[command].split(":")
        for p in inspect.signature(getattr(import_module(module), function)).parameters.values():
            annotation = str(getattr(p.annotation, "__name__", p.annotation))
            kind = next((kind for kind in VALUES if kind in annotation.replace("| None", "").split()), None)
            if kind is not None:
                found.append((command, p.default.param_decls[0] if p.default.param_decls else p.name, kind))
    return found


def test_there_are_such_options():
    found = {(command, name) for command, name, _ in numeric_options()}
    assert {("mcmc", "runs"), ("draw", "width"), ("nj", "--bootstrap"), ("simulate", "--sites")} <= found
    assert len(found) >= 50


@pytest.mark.parametrize(("command", "option", "kind"), numeric_options())
def test_no_number_ends_in_a_traceback(command, option, kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.fa").write_text(FASTA)
    (tmp_path / "t.nwk").write_text(NEWICK)
    (tmp_path / "d.tsv").write_text("a\t2001\nb\t2003\nc\t2002\nd\t2005\n")
    for value in VALUES[kind]:
        if option in TAKES_LONG and value == "99999999":
            continue
        name = option if option.startswith("--") else "--" + option.replace("_", "-")
        line = [command, *LINES[command], *WITH.get((command, option), []), name, value]
        told = CliRunner().invoke(build_app(), line)
        assert told.exception is None or isinstance(told.exception, (PhloemError, SystemExit)), (line, told)
        if isinstance(told.exception, SystemExit):
            assert told.exit_code == 2 and name in told.output, (line, told.output)


DIGITS = "9" * 6000  # more than int() takes
WORDS = [
    ["--model", f"JC+G{DIGITS}"],
    ["--model", f"JC+R{DIGITS}"],
    ["--model", "JC+G\u0663"],
    ["--model", "²²²²²²"],
    ["--model", f"K80{{{DIGITS}}}"],
    ["--sites", f"1-{DIGITS}"],
    ["--sites", "1-²"],
    ["--partitions", "raxml.txt"],
    ["--partitions", "mrbayes.nex"],
    ["--partitions", "codon.nex"],
]


@pytest.mark.parametrize("words", WORDS, ids=lambda words: words[1][:20])
@pytest.mark.parametrize("number", ["²", DIGITS])
def test_numbers_in_words_are_the_users_errors_in_few_words(words, number, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.fa").write_text(FASTA)
    (tmp_path / "t.nwk").write_text(NEWICK)
    sets = "#NEXUS\nbegin mrbayes; charset a=1-9; partition p = {}: a; set partition={}; end;\n"
    (tmp_path / "raxml.txt").write_text(f"DNA, g1 = 1-{number}\n")
    (tmp_path / "mrbayes.nex").write_text(sets.format(number, number))
    (tmp_path / "codon.nex").write_text(f"CODON{number}, g1 = 1-9\n")
    line = ["likelihood", "a.fa", "--tree", "t.nwk", "--engine", "reference", *words]
    told = CliRunner().invoke(build_app(), line if "--model" in words else [*line, "--model", "JC"])
    assert isinstance(told.exception, PhloemError), told
    assert len(str(told.exception).split("hint:")[0]) < 300, told.exception


OF_TIPS = ["simulate", "--model", "JC", "--out", "s.fa"]
ABSURD = [
    ([*OF_TIPS, "--tips", "9", "--sites", "999999999999999"], "999,999,999,999,999 sites"),
    ([*OF_TIPS, "--tips", "99999999999", "--sites", "9"], "99,999,999,999 tips"),
    (["nj", "a.fa", "--bootstrap", "99999999999999"], "99,999,999,999,999 replicates"),
    (["nj", "a.fa", "--bootstrap", "99999999"], "99,999,999 replicates"),
    (["upgma", "a.fa", "--bootstrap", "1000001"], "1,000,001 replicates"),
    (["mcmc", "a.fa", "--runs", "99999999"], "99,999,999 runs"),
    (["mcmc", "a.fa", "--chains", "999999999"], "999,999,999 chains"),
    (["mcmc", "a.fa", "--generations", "99999999999999"], "samples"),
    (["mcmc", "a.fa", "--generations", "9" * 18, "--sample-every", "9" * 16, "--burn-in", "0"], "years"),
    (["likelihood", "a.fa", "--model", "JC", "--threads", "99999999"], "99,999,999"),
]


@pytest.mark.parametrize(("line", "words"), ABSURD, ids=[words for _, words in ABSURD])
def test_absurd_counts_are_refused_with_the_forecast(line, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.fa").write_text(FASTA)
    told = CliRunner().invoke(build_app(), line)
    assert isinstance(told.exception, InputError) and words in str(told.exception), told
    assert told.exception.hint and [file.name for file in tmp_path.iterdir()] == ["a.fa"]
