"""A wheel and an sdist, installed in an empty environment far from the repository, give the known answers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from docs.pages import ROOT

PYTHON_NAMES = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "MYPYPATH")


def run(command: list[str], folder: Path) -> str:
    """What a command prints, in a folder and without anything of this environment."""
    clean = {name: value for name, value in os.environ.items() if name not in PYTHON_NAMES}
    done = subprocess.run(command, cwd=folder, env=clean, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-1500:]}\n{done.stderr[-1500:]}"
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(("target", "ending"), [("wheel", ".whl"), ("sdist", ".tar.gz")])
def test_what_is_shipped_works_without_the_repository(target, ending, tmp_path):
    source = tmp_path / "source"  # what is built beside the sources would be found by others
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(".venv", ".git", "__pycache__", "site"))
    run([sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(tmp_path / "dist")], source)
    (package,) = (tmp_path / "dist").glob(f"*{ending}")
    shutil.rmtree(source)
    empty = tmp_path / "empty"
    empty.mkdir()
    run([sys.executable, "-m", "venv", str(tmp_path / "env")], empty)
    python, phloem = (str(tmp_path / "env" / "bin" / name) for name in ("python", "phloem"))
    run([python, "-m", "pip", "install", "--quiet", str(package)], empty)
    where = run([python, "-c", "import phloem; print(phloem.__file__)"], empty)
    assert Path(where.strip()).is_relative_to(tmp_path / "env")
    told = run([phloem, "doctor"], empty)
    assert told.count("right") >= 2 and told.rstrip().endswith("healthy")  # every engine, to IQ-TREE's digits
    run([phloem, "examples", "."], empty)
    run([phloem, "nj", "primates.nex", "--out", "nj.nwk"], empty)
    assert "Gorilla" in (empty / "nj.nwk").read_text()
    short = ["--generations", "1000", "--sample-every", "50", "--prefix", "short"]
    assert "Majority-rule consensus" in run([phloem, "mcmc", "primates.nex", *short], empty)
