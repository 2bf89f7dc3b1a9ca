"""The documentation: its links lead somewhere, and its command lines are those of the program."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from docs.pages import EVERY_PAGE, ROOT, SHELL, blocks_of, name_of
from phloem.cli import build_app


def command_lines(text: str) -> list[list[str]]:
    """The words of every `phloem …` line in blocks of code; lines that end in a backslash go on."""
    found = []
    for block in blocks_of(text):
        for line in block.commands() if block.language in SHELL else []:
            for part in re.split(r"&&|[|;]\s", line):
                if part.strip().startswith("phloem "):
                    found.append(shlex.split(part, comments=True))
    return found


def mistakes(words: list[str]) -> list[str]:
    """What a command line has that its command does not know."""
    commands = typer.main.get_command(build_app()).commands
    if len(words) < 2 or words[1] in ("--version", "--help", "--install-completion", "--show-completion"):
        return []
    if words[1] not in commands:
        return [f"there is no command {words[1]}"]
    known = {
        name
        for parameter in commands[words[1]].params
        for name in (*parameter.opts, *parameter.secondary_opts)
    }
    given = [word.partition("=")[0] for word in words[2:] if re.match(r"--?[A-Za-z]", word)]
    return [f"{words[1]} has no option {name}" for name in given if name not in known | {"--help", "-h"}]


@pytest.mark.parametrize("page", EVERY_PAGE, ids=name_of)
def test_command_lines_are_those_of_the_program(page):
    wrong = [
        (" ".join(words), found) for words in command_lines(page.read_text()) if (found := mistakes(words))
    ]
    assert wrong == []


def test_a_wrong_command_line_is_seen():
    text = "```\nphloem nj a.fasta \\\n  --distances k80 # no\nx && phloem no-such y\n"
    text += "phloem nj --distance k80\n```\n"
    assert [len(mistakes(words)) for words in command_lines(text)] == [1, 1, 0]
    assert sum(len(command_lines(page.read_text())) for page in EVERY_PAGE) > 60


def built(folder: Path, out: Path) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(out)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_the_site_is_built_and_every_link_leads_somewhere(tmp_path):
    pytest.importorskip("mkdocs")
    done = built(ROOT, tmp_path / "site")
    assert done.returncode == 0, done.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 30
    loaded = re.compile(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=\"https?://")
    assert [page.name for page in pages if loaded.search(page.read_text())] == []  # it can be read offline
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    (tmp_path / "docs" / "page.md").write_text("[nowhere](no-such-page.md)\n")  # the control
    assert built(tmp_path, tmp_path / "again").returncode != 0


def rows_without_a_section(text: str) -> list[str]:
    """Rows of the first table that do not lead to a section of their own page."""
    table = text.partition("## At a glance\n")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")]
    return [row for row in rows[1:] if not re.match(r"\| \[[^]]+\]\(#[\w-]+\)", row)]


def test_figures_are_found_at_a_glance():
    """The current figures are a page that can be read; how they came about is in docs/experiments.md."""
    text = (ROOT / "docs" / "performance.md").read_text()
    assert text.count("\n| [") > 20
    assert rows_without_a_section(text) == []
    assert len(text.splitlines()) <= 500
    control = text.replace("| [genes](#partitions-and-genes)", "| genes")
    assert len(rows_without_a_section(control)) == 1
