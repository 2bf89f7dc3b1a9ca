"""Every command reads alignments by the same options, declared once."""

from __future__ import annotations

import inspect
from dataclasses import fields
from importlib import import_module

import pytest
import typer
from typer.testing import CliRunner

from phloem.analysis.reading import DataOptions
from phloem.cli import COMMANDS, build_app
from phloem.cli.data_options import takes_data

OF_PARTITIONS = {"partitions", "part", "partition_name", "unassigned_sites"}
READERS = ("likelihood", "ml", "plan", "mcmc", "distances", "upgma", "nj")


def declared(command: str) -> dict[str, tuple]:
    """Parameter → (type, names, help) of a command."""
    module, function = COMMANDS[command].split(":")
    parameters = inspect.signature(getattr(import_module(module), function)).parameters
    return {
        name: (p.annotation, getattr(p.default, "param_decls", None), getattr(p.default, "help", None))
        for name, p in parameters.items()
    }


@pytest.mark.parametrize("command", READERS)
def test_every_command_has_the_same_data_options(command):
    found, first = declared(command), declared("likelihood")
    names = {field.name for field in fields(DataOptions)} - OF_PARTITIONS
    assert names <= set(found)
    assert {name: found[name] for name in names - {"alignment"}} == {
        name: first[name] for name in names - {"alignment"}
    }
    assert next(iter(found)) == "alignment"


def test_the_options_reach_the_command():
    app = typer.Typer()
    got = []

    @app.command()
    @takes_data(partitions=True)
    def probe(data: dict, extra: int = typer.Option(3)) -> None:
        got.append((DataOptions(**data), extra))

    line = "a.fa --sites 1-9 --extra 4 --ambiguity missing --partitions p --partition-name q"
    done = CliRunner().invoke(
        app, line.split() + ["--unassigned-sites", "drop", "--datatype", "codon", "--part", "JC, a = 1-9"]
    )
    assert done.exit_code == 0, done.output
    expected = DataOptions(
        "a.fa", sites="1-9", ambiguity="missing", partitions="p", partition_name="q",
        unassigned_sites="drop", datatype="codon", part=("JC, a = 1-9",),
    )  # fmt: skip
    assert got == [(expected, 4)]


def test_a_word_for_ambiguity_that_there_is_not():
    for command in ("nj", "likelihood"):
        done = CliRunner().invoke(build_app(), [command, "a.fa", "-m", "JC", "--ambiguity", "average"])
        assert done.exit_code == 2 and "'partial', 'missing'" in done.output
