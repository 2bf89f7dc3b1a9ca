"""Every output of every command: none overwrites another, an input, or a file that was to be kept."""

from __future__ import annotations

import json
import os
import stat
from itertools import combinations

import pytest
import typer
from typer.testing import CliRunner

from phloem.analysis.outputs import check_outputs
from phloem.cli import COMMANDS, build_app
from phloem.errors import InputError

FASTA = ">a\nACGTACGT\n>b\nACGTACGA\n>c\nACTTACGA\n>d\nACTTAGGA\n"
DATES = "a\t2001\nb\t2003\nc\t2002\nd\t2005\n"
NEWICK = "(a:0.1,b:0.2,(c:0.15,d:0.3):0.1);\n"

# Options that name files to be written, and the command lines that write them.
OUTPUTS = {"out", "out_tree", "json", "picture", "prefix", "table", "report", "tables"}
LINES = {
    "concatenate": ["a.fa"],
    "distances": ["a.fa"],
    "upgma": ["a.fa"],
    "nj": ["a.fa"],
    "draw": ["t.nwk"],
    "likelihood": ["a.fa", "--tree", "t.nwk", "--model", "JC", "--engine", "reference"],
    "simulate": ["t.nwk", "--model", "JC", "--sites", "9"],
    "summarize": ["t.nwk", "--burn-in", "0"],
    "date": ["t.nwk", "--dates", "d.tsv", "--intervals", "0"],
    "temporal-signal": ["t.nwk", "--dates", "d.tsv", "--permutations", "0"],
    "ml": ["a.fa", "--model", "JC"],
    "concordance": ["t.nwk", "t.nwk"],
    "test-trees": ["a.fa", "t.nwk", "--model", "JC"],
    "mcmc": ["a.fa", "--start", "t.nwk", "--generations", "100", "--sample-every", "2"],
    "time": ["a.fa", "--dates", "d.tsv", "--generations", "100", "--sample-every", "2"],
}
WANTS_OUT = ("concatenate", "distances")  # not without --out
NAMES = {"picture": "x.svg", "draw": "x.svg"}  # that tell what is written; all others may be anything
PARSED = typer.main.get_command(build_app()).commands


def outputs_of(command: str) -> list[str]:
    found = PARSED[command].params
    return [p.name for p in found if p.name in OUTPUTS and not p.is_flag]


def written(command: str) -> list[str]:
    """Output options that one command line can have together."""
    return [name for name in outputs_of(command) if name not in ("prefix", "tables", "out_tree")] + (
        ["out_tree"] if command == "likelihood" else []
    )


def option(name: str) -> str:
    return "--" + name.replace("_", "-")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.fa").write_text(FASTA)
    (tmp_path / "t.nwk").write_text(NEWICK)
    (tmp_path / "d.tsv").write_text(DATES)
    return tmp_path


def called(command: str, *arguments: str):
    return CliRunner().invoke(build_app(), [command, *LINES[command], *arguments])


def refused(result, words: str) -> None:
    assert isinstance(result.exception, InputError), (result.exception, result.output)
    assert words in str(result.exception)


@pytest.mark.parametrize("command", ["mcmc", "time", "ml"])
def test_progress_replaces_no_other_file(command, folder):
    refused(called(command, "--prefix", "x", "--progress", "x.json"), "two outputs would be this file")
    refused(called(command, "--prefix", "x", "--progress", "a.fa"), "input")
    assert {file.name for file in folder.iterdir()} == {"a.fa", "t.nwk", "d.tsv"}


def test_progress_of_a_fit(folder):
    of_fit = ["--optimize", "--json", "x.json", "--out-tree", "x.tre"]
    for name, words in (("x.json", "two outputs"), ("x.tre", "two outputs"), ("t.nwk", "input")):
        refused(called("likelihood", *of_fit, "--progress", name), words)
    refused(called("likelihood", "--progress", "p.json"), "--progress is of a fit")
    assert called("likelihood", "--optimize", "--progress", "p.json").exit_code == 0
    told = json.loads((folder / "p.json").read_text())
    assert told["stage"] == "fit" and told["total"] is None and told["seconds_left"] is None
    assert told["log_likelihood"] < 0


def test_every_command_that_writes_is_looked_at():
    commands = typer.main.get_command(build_app()).commands
    assert COMMANDS["summarise"] == COMMANDS["summarize"]
    assert {name for name in commands if outputs_of(name)} - {"summarise"} == LINES.keys()
    for command in commands.values():
        for parameter in command.params:
            text = (getattr(parameter, "help", None) or "").lower()
            if parameter.name not in OUTPUTS and "write" in text:
                raise AssertionError(f"{command.name} --{parameter.name} may write a file")


PAIRS = [(c, a, b) for c in LINES for a, b in combinations(written(c), 2)]


@pytest.mark.parametrize(("command", "a", "b"), PAIRS)
def test_two_outputs_are_two_files(command, a, b, folder):
    one = NAMES.get(a, NAMES.get(b, "s1"))
    os.symlink(one, folder / "link")
    ways = {one: one, f"./{one}": one, f"{folder}/{one}": one, one.upper().replace("SVG", "svg"): one}
    ways |= {} if {"picture"} & {a, b} else {"link": one}
    for first, second in ways.items():
        names = {a: first, b: second} if a != "picture" else {a: second, b: first}
        extra = ["--out", "o"] if command in WANTS_OUT and "out" not in (a, b) else []
        given = [word for name in (a, b) for word in (option(name), names[name])]
        refused(called(command, *given, *extra, "--redo"), "two outputs would be this file")
    assert {file.name for file in folder.iterdir()} == {"a.fa", "t.nwk", "d.tsv", "link"}


@pytest.mark.parametrize(("command", "name"), [(c, n) for c in LINES for n in written(c)])
@pytest.mark.parametrize("kind", ["itself", "symbolic link", "hard link", "link to its folder"])
def test_no_output_is_an_input(command, name, kind, folder):
    for source in [word for word in LINES[command] if word in ("a.fa", "t.nwk", "d.tsv")]:
        text = (folder / source).read_text()
        target = f"{source}.svg" if name == "picture" or command == "draw" else f"link-{source}"
        if kind == "symbolic link":
            os.symlink(source, target)
        elif kind == "hard link":
            os.link(source, target)
        elif target.endswith(".svg"):
            continue  # the input's own name is no picture's
        elif kind == "link to its folder":
            if not os.path.lexists("here"):
                os.symlink(folder, "here")
            target = f"here/{source}"
        else:
            target = source
        extra = ["--out", "o"] if command in WANTS_OUT and name != "out" else []
        refused(called(command, option(name), target, *extra, "--redo"), "this file is an input")
        assert (folder / source).read_text() == text


def test_the_files_of_a_sampler_are_no_inputs(folder):
    for name, words in (("x.con.tre", NEWICK), ("x.json", FASTA)):
        (folder / name).write_text(words)
    start = ["--start", "x.con.tre", "--prefix", "x", "--redo"]
    refused(called("mcmc", *start), "this file is an input")
    line = ["mcmc", "x.json", "--prefix", "x", "--redo", *LINES["mcmc"][1:]]
    refused(CliRunner().invoke(build_app(), line), "this file is an input")
    assert (folder / "x.con.tre").read_text() == NEWICK and (folder / "x.json").read_text() == FASTA


PLACES = [
    ("no/x.svg", "its folder does not exist"),
    ("dir.svg", "this is a folder"),
    ("n" * 300 + ".svg", "too long"),
]


@pytest.mark.parametrize(("command", "name"), [(c, n) for c in LINES for n in outputs_of(c)])
@pytest.mark.parametrize(("place", "words"), PLACES)
def test_places_are_looked_at_before_anything_is_computed(command, name, place, words, folder, monkeypatch):
    folders = {f"dir.svg{end}" for end in ("", ".json", ".tests.json", ".cf.json", ".parts")}
    for own in folders:
        (folder / own).mkdir()
    arguments = [option(name), place]
    if command == "simulate" and name == "out_tree":
        monkeypatch.setitem(LINES, "simulate", ["--tips", "4", "--model", "JC", "--sites", "9"])
    if command in WANTS_OUT and name != "out":
        arguments += ["--out", "o"]
    if name == "prefix":
        arguments.append("--redo")
    refused(called(command, *arguments), words)
    assert {file.name for file in folder.iterdir()} == {"a.fa", "t.nwk", "d.tsv"} | folders


def test_one_result_on_standard_output(folder):
    refused(called("distances", "--out", "-", "--json", "-"), "two outputs would go to standard output")
    refused(called("simulate", "--json", "-"), "two outputs would go to standard output")
    refused(called("likelihood", "--optimize", "--out-tree", "-"), "called '-'")
    shown = called("simulate", "--out", "-")
    assert shown.exit_code == 0 and shown.stdout.startswith(">a\n")
    assert called("summarize", "--out", "-").stdout.startswith("(")
    assert {file.name for file in folder.iterdir()} == {"a.fa", "t.nwk", "d.tsv"}


def test_names_that_differ_by_more_are_two_files(tmp_path, monkeypatch):
    """And the null device swallows everything."""
    monkeypatch.chdir(tmp_path)
    check_outputs(["é", "e", "x.a", "x.b", os.devnull, os.devnull], ["a.fa"], False)
    with pytest.raises(InputError, match="two outputs"):
        check_outputs(["\u00e9", "e\u0301"], [], False)  # one name on a Mac
    (tmp_path / "x.a").write_text("")
    with pytest.raises(InputError, match="exists already"):
        check_outputs(["x.a"], [], False)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
