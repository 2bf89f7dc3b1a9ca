"""The site's parts that are not prose: the Python reference, notebooks, completion."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

import phloem
from docs.pages import ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
NAMED = re.compile(r"^::: (\S+)$", re.M)


def missing_from(text: str) -> list[str]:
    """Public names that a reference leaves out."""
    told = set(NAMED.findall(text))
    return [n for n, room in phloem._PUBLIC.items() if f"{room}.{n}" not in told]


def test_the_reference_has_every_public_name():
    text = (ROOT / "docs" / "api.md").read_text()
    assert missing_from(text) == []
    assert missing_from(text.replace("::: phloem.tree.tree.Tree\n", "")) == ["Tree"]  # the control


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_is_small_and_has_run(path):
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    kinds = [output["output_type"] for cell in cells for output in cell["outputs"]]
    assert "display_data" in kinds and "error" not in kinds
    assert path.stat().st_size < 300_000
    assert not re.search(r"/(?:tmp|home|work|root)/", path.read_text())


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_runs(path, tmp_path, monkeypatch):
    pytest.importorskip("arviz_plots")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    names: dict = {"__name__": "__notebook__"}
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)


def completed(**settings: str) -> str:
    command = [sys.executable, "-c", "import sys; sys.argv = ['phloem']; from phloem.cli import main; main()"]
    done = subprocess.run(command, env=os.environ | settings, capture_output=True, text=True)
    return done.stdout


def test_commands_and_options_are_completed():
    words = {"_PHLOEM_COMPLETE": "complete_bash", "COMP_WORDS": "phloem bay", "COMP_CWORD": "1"}
    assert completed(**words).split() == ["bayes-factors"]
    words |= {"COMP_WORDS": "phloem mcmc --gen", "COMP_CWORD": "2"}
    assert completed(**words).split() == ["--generations", "--genetic-code"]
    assert completed(**(words | {"COMP_WORDS": "phloem mcmc --nothing"})).split() == []


@pytest.mark.parametrize(
    ("shell", "text"),
    [("bash", "complete -o default"), ("zsh", "#compdef phloem"), ("fish", "complete --command")],
)
def test_the_script_of_a_shell_is_printed(shell, text):
    settings = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    code = "import sys; sys.argv = ['phloem', '--show-completion', sys.argv[1]]\n"
    code += "from phloem.cli import main; main()"
    command = [sys.executable, "-c", code, shell]
    done = subprocess.run(command, env=os.environ | settings, capture_output=True, text=True)
    assert text in done.stdout and "_PHLOEM_COMPLETE" in done.stdout
