"""What --redo removes: all that an analysis by chains, of either sampler, left under the prefix."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from phloem.analysis.former_files import former_files
from phloem.analysis.summarise import sampled_files
from phloem.cli import build_app
from phloem.errors import InputError

SHORT = [
    "x.fasta",
    "--model",
    "JC",
    "--generations",
    "2000",
    "--sample-every",
    "50",
    "--prefix",
    "x",
    "--redo",
]
KEPT = {"x.fasta", "x.notes", "x.ss.json", "xy.run1.t", "other.log"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("x.fasta").write_text(">a\nACGTA\n>b\nACGTC\n>c\nACCTC\n>d\nACCTG\n")
    for name in KEPT - {"x.fasta"}:
        Path(name).write_text("kept")
    return tmp_path


def done(sampler: str, *more: str) -> dict:
    found = CliRunner().invoke(build_app(), [sampler, *SHORT, *more])
    assert found.exit_code == 0, found.output
    return json.loads(Path("x.json").read_text())


def test_nothing_of_the_other_sampler_stays(folder):
    of_mcmc = done("mcmc", "--chains", "1", "--runs", "3", "--report", "--site-table")
    assert {"x.run3.t", "x.html", "x.sites", "x.con.tre"} <= set(of_mcmc["files"])
    of_time = done("time")
    there = {file.name for file in folder.iterdir()}
    assert there == KEPT | set(of_time["files"])
    assert sampled_files(["x"]) == (("x.run1.trees", "x.run2.trees"), ("x.run1.log", "x.run2.log"))
    again = done("mcmc", "--chains", "1")
    assert {file.name for file in folder.iterdir()} == KEPT | set(again["files"])


@pytest.mark.parametrize(("first", "second"), [("mcmc", "time"), ("time", "mcmc")])
def test_without_redo_the_other_command_is_named(folder, first, second):
    done(first)
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    refused = CliRunner().invoke(build_app(), [second, *SHORT[:-1]]).exception
    assert isinstance(refused, InputError) and re.search(
        "of another command|by the same command", str(refused)
    )
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    (folder / "x.json").unlink()  # as if the first were not finished
    refused = CliRunner().invoke(build_app(), [second, *SHORT[:-1]]).exception
    assert isinstance(refused, InputError) and "of another command" in str(refused)


def test_files_of_runs_that_left_no_record(folder):
    for name in ("run1.p", "run1.t", "run2.trees", "ckp.run3.samples", "run5.t"):
        Path(f"x.{name}").write_text("of an analysis that was killed")
    found = former_files("x", {"x.run1.p"})
    assert found == ["x.report.json", "x.run1.t", "x.run2.trees", "x.ckp.run3.samples"]
    five = {f"x.run{n}.p" for n in range(1, 5)}  # of the new one
    assert former_files("x", five) == [*found, "x.run5.t"]


def test_records_of_other_commands_and_names_elsewhere_remove_nothing(folder):
    outside = folder.parent / "x.outside"
    listed = {"x.notes": "", "other.log": "", "xy.run1.t": "", str(outside): "", "x.gone": ""}
    Path("x.json").write_text(json.dumps({"settings": {}, "files": listed}))  # as of phloem ml
    assert former_files("x", ()) == ["x.report.json"]
    Path("x.json").write_text(json.dumps({"settings": {"chains": {}}, "files": listed}))
    assert former_files("x", ()) == ["x.report.json", "x.notes"]
    assert former_files(str(folder / "x"), ()) == [str(folder / "x.report.json"), str(folder / "x.notes")]
