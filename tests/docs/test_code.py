"""Every command and every block of Python of the pages that a user follows runs.

Commands run in this process, in a folder of small files (stand_ins.py), page by page and in order, with few
generations and replicates; `phloem time` up to its first generation, since every kind of analysis compiles
for half a minute. What is not run has a reason in NOT_RUN: a line that is neither fails. The slow tests run
the sampler of dated trees too, and the README and the tutorials as they are written.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from docs.pages import ROOT, SHELL, TO_FOLLOW, Block, blocks_of, name_of, steps_of
from docs.stand_ins import make_folder, prepare_for
from phloem.cli import build_app
from phloem.cli.time_report import introduce_dated

NOT_RUN = {
    r"pip install ": "tests/docs/test_installed.py installs wheel and sdist",
    r"make (demo|test)$": "they make an environment; `.ci/run` does",
    r"phloem page": "tests/unit/web and tests/browser start it",
    r"phloem --install-completion": "it writes into the home folder; tests/docs/test_site.py has the rest",
    r"mpiexec |srun |#SBATCH |module load": "tests/unit/cli/test_processes.py starts several processes",
    r"phloem (mcmc|likelihood) .*--devices (0,1|all)": "it needs two GPUs",
    r"phloem time .*--stones-from": "tests/unit/cli/test_stones_from.py runs what it needs before",
    r"phloem bayes-factors strict ucln": "tests/statistical/time/test_marginal_likelihood.py compares such",
}
ON_GPUS = "phloem.clustering.gpu"  # blocks of Python that are for them
# No dependencies: such blocks run where these are.
NEED = ("torch", "jax", "numpyro", "blackjax", "pyro", "arviz_plots")
# Options behind those of the page, which take their place: as little work as shows that the line is right.
SMALL = {
    "mcmc": "--generations 200 --sample-every 10 --check-every 100",
    "time": "--generations 400 --sample-every 10 --check-every 200",
    "ml": "--patience 0 --radius 1",
    "test-trees": "--replicates 1000",
    "simulate": "--sites 90",
}
SMALL_WITH = {
    "--tips": "--tips 12",
    "--stepping-stone": "--stepping-stone 4 --generations 1000",
    "--bootstrap": "--bootstrap 2",
    # Searches that try from elsewhere, and begin again where few tries led back: of lines that speak of them.
    "--patience": "--patience 1",
    "--starts": "--starts 2 --patience 1",
    "differences": "--patience 10",  # the engine, which has none
    "--mcmc": "--pilot 0.2",
    "--pilot": "--pilot 0.2",
    "--most-classes": "--most-classes 2",
}
OTHERS = {"mkdir", "cp", "mv", "ls", "cat", "head", "gunzip"}  # programs that every shell has
APP = build_app()
PHLOEM = typer.main.get_command(APP)
COMMANDS = PHLOEM.commands


def small(words: list[str]) -> list[str]:
    """A command of phloem with less to do, which may replace files."""
    command = words[1] if len(words) > 1 else ""
    no_patience = {"--fast", "MF"} & set(words)  # one sets it, the other has no search
    extra = ["--radius", "1"] if no_patience else SMALL.get(command, "").split()
    extra = [] if "--fixed-tree" in words else extra  # nor has this
    for option, instead in SMALL_WITH.items():
        extra += instead.split() if option in words else []
    chosen = re.search("--model (auto|MF)", " ".join(words))
    if command == "ml" and chosen and "--model-set" not in words:
        extra += ["--model-set", "JC,HKY", "--rate-set", "E,G4"]
    known = {name for one in getattr(COMMANDS.get(command), "params", ()) for name in one.opts}
    extra += ["--redo"] if "--redo" in known and "--redo" not in words else []
    return [*words, *extra]


def reason_not_to_run(line: str) -> str | None:
    return next((why for form, why in NOT_RUN.items() if re.match(form, line)), None)


class Begun(Exception):
    """Instead of an analysis whose inputs and model are read and told."""


def tell_and_stop(*told) -> None:
    introduce_dated(*told)
    raise Begun


def run_line(line: str, folder: Path) -> str | None:
    """What is wrong with a line of a page, or nothing."""
    for words in steps_of(line):
        if reason_not_to_run(" ".join(words)):
            continue
        if words[0] in OTHERS:
            subprocess.run(words, cwd=folder, check=True, capture_output=True)
        elif words[0] != "phloem":
            return f"{words[0]} is not run, and NOT_RUN has no reason why"
        elif {"|", ">", "<", ";"} & set(words):
            return "a pipe: give it a reason in NOT_RUN, or write it without"
        else:
            done = CliRunner().invoke(APP, small(words)[1:])
            if done.exit_code and not isinstance(done.exception, Begun):
                return f"{done.exception!r} {done.output[-300:]}"
            if words[1] == "examples":  # cut down again
                shutil.copytree(folder / "examples", folder, dirs_exist_ok=True)
    return None


def run_block(block: Block, folder: Path, names: dict) -> list[str]:
    """What is wrong with a block, each with its line; names: of the page's blocks of Python so far."""
    if block.language == "python":
        try:
            if runs_here(block):
                exec(compile(block.text, f"line {block.line}", "exec"), names)
        except Exception as error:
            return [f"block at line {block.line}: {error!r}"]
        return []
    if block.language not in SHELL:
        return []
    tried = ((line, run_line(line, folder)) for line in block.commands())
    return [f"line {block.line} ff., {line}: {wrong}" for line, wrong in tried if wrong]


def runs_here(block: Block) -> bool:
    """Whether the machine and the environment have what a block of Python is about."""
    imported = set(re.findall(r"^\s*(?:import|from) (\w+)", block.text, re.M))
    return ON_GPUS not in block.text and all(find_spec(name) for name in imported & set(NEED))


def follow(page: Path, folder: Path) -> list[str]:
    """What is wrong with a page."""
    prepare_for(name_of(page), folder)
    names: dict = {"__name__": "__page__"}
    return [line for block in blocks_of(page.read_text()) for line in run_block(block, folder, names)]


@pytest.fixture(scope="module")
def stand_ins(tmp_path_factory):
    return make_folder(tmp_path_factory.mktemp("reader"))


@pytest.fixture
def folder(stand_ins, tmp_path, monkeypatch):
    """A fresh copy of the small files, where the test is."""
    place = tmp_path / "reader"
    shutil.copytree(stand_ins, place)
    monkeypatch.chdir(place)
    return place


@pytest.mark.parametrize("page", TO_FOLLOW, ids=name_of)
def test_what_a_page_says_runs(page, folder, monkeypatch):
    monkeypatch.setattr("phloem.cli.time_report.introduce_dated", tell_and_stop)
    assert not (wrong := follow(page, folder)), "\n".join(wrong)


DATED = [page for page in TO_FOLLOW if "\nphloem time " in page.read_text()]


@pytest.mark.slow
@pytest.mark.parametrize("page", DATED, ids=name_of)
def test_dated_trees_are_sampled_as_a_page_says(page, folder):
    assert not (wrong := follow(page, folder)), "\n".join(wrong)


WITH_OTHERS = ROOT / "docs" / "tutorials" / "samplers.md"  # test_samplers.py
AS_WRITTEN = [page for page in TO_FOLLOW if page.parent.name == "tutorials" and page != WITH_OTHERS]


@pytest.mark.slow
@pytest.mark.parametrize("page", AS_WRITTEN, ids=name_of)
def test_a_tutorial_runs_as_it_is_written(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_page(blocks_of(page.read_text()), tmp_path)


@pytest.mark.slow
def test_the_readme_runs_as_it_is_written(folder):
    shutil.copytree(ROOT / "examples", folder / "examples", dirs_exist_ok=True)
    for name in ("primates.nex", "primates.partitions"):  # which `phloem examples` writes
        (folder / name).unlink()
    run_page(blocks_of((ROOT / "README.md").read_text()), folder)


def run_page(blocks: list[Block], folder: Path) -> dict:
    """Run blocks as they are written, those of the shell in a shell; what Python has defined in the end."""
    names: dict = {"__name__": "__page__"}
    for block in blocks:
        if block.language in SHELL:
            lines = [line for line in block.commands() if not reason_not_to_run(" ".join(steps_of(line)[-1]))]
            script = f'phloem() {{ {sys.executable} -m phloem "$@"; }}\n' + "\n".join(lines)
            done = subprocess.run(["bash", "-ec", script], cwd=folder, capture_output=True, text=True)
            assert done.returncode == 0, f"line {block.line}\n{done.stderr[-2000:]}"
        else:
            assert run_block(block, folder, names) == []
    return names


BROKEN = r"""```
phloem nj alignment.fasta --distance k81x
phloem nj alignment.fasta && phloem nj no-such.fasta
phloom nj alignment.fasta
phloem nj alignment.fasta | wc
phloem time viruses.fasta --dates dates.tsv --clock none
```
```python
import phloem
x = phloem.read_alinment('alignment.fasta')
```
1. in a list:
   ```
   phloem nj none.fasta
   ```
```bash
# a comment
phloem nj \
  alignment.fasta   # and another
pip install x
```
```text
phloem no-such
```
"""


def test_broken_blocks_are_seen(folder):
    assert [len(run_block(block, folder, {})) for block in blocks_of(BROKEN)] == [5, 1, 1, 0, 0]


def test_every_reason_is_of_a_line_that_is_there():
    blocks = [block for page in TO_FOLLOW for block in blocks_of(page.read_text()) if block.language in SHELL]
    lines = [" ".join(words) for b in blocks for line in b.commands() for words in steps_of(line)]
    assert len(lines) > 60
    assert [form for form in NOT_RUN if not any(re.match(form, line) for line in lines)] == []
