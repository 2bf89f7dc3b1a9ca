"""The tests' runner makes the commands once (tests/conftest.py), and anew where a test has others."""

from __future__ import annotations

from importlib import import_module

import typer
import typer.testing
from typer.testing import CliRunner

from phloem.cli import COMMANDS, build_app


def test_they_are_made_once():
    one, other = (typer.testing._get_command(build_app()) for _ in range(2))
    assert one is other and set(one.commands) == set(COMMANDS)


def test_a_command_that_is_replaced_is_the_one_that_runs(monkeypatch):
    """Negative control: the kept one would find no alignment."""
    module, function = COMMANDS["nj"].split(":")
    before = CliRunner().invoke(build_app(), ["nj"])
    monkeypatch.setattr(import_module(module), function, lambda: typer.echo("another"))
    found = CliRunner().invoke(build_app(), ["nj"])
    assert before.exit_code != 0 and (found.exit_code, found.output) == (0, "another\n")
    monkeypatch.undo()
    assert CliRunner().invoke(build_app(), ["nj"]).exit_code == before.exit_code
