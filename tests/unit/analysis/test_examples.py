"""The example data go wherever phloem goes."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from phloem import __version__
from phloem.analysis.examples import EXAMPLES, write_examples
from phloem.errors import InputError

ROOT = Path(__file__).resolve().parents[3]


def test_they_are_written_once(tmp_path):
    written = write_examples(str(tmp_path))
    assert (
        {Path(name).name for name in written} == set(EXAMPLES) == {file.name for file in tmp_path.iterdir()}
    )
    for name in EXAMPLES:
        assert (tmp_path / name).read_bytes() == (ROOT / "examples" / name).read_bytes()
    (tmp_path / "primates.nex").write_text("mine")
    (tmp_path / "carnivores.nwk").unlink()
    with pytest.raises(InputError, match="exists already"):
        write_examples(str(tmp_path))
    assert (tmp_path / "primates.nex").read_text() == "mine" and not (tmp_path / "carnivores.nwk").exists()
    write_examples(str(tmp_path), redo=True)
    assert (tmp_path / "primates.nex").read_text() != "mine"


def test_a_folder_that_is_not_there_is_made(tmp_path):
    write_examples(str(tmp_path / "new" / "one"))
    assert (tmp_path / "new" / "one" / "primates.nex").is_file()
    with pytest.raises(InputError, match="no folder can be made"):
        write_examples(str(tmp_path / "new" / "one" / "primates.nex"))


def test_the_repositorys_own_are_never_written_over():
    with pytest.raises(InputError):
        write_examples(str(ROOT / "examples"), redo=True)


def test_the_wheel_carries_examples_and_the_pages_files(tmp_path):
    pytest.importorskip("hatchling")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    inside = set(zipfile.ZipFile(wheel).namelist())
    assert {f"phloem/example_data/{name}" for name in EXAMPLES} <= inside
    static = ROOT / "src" / "phloem" / "web" / "static"
    own = {
        f"phloem/web/static/{path.relative_to(static).as_posix()}"
        for path in static.rglob("*")
        if path.is_file()
    }
    assert len(own) > 15 and own <= inside


def test_what_to_cite_is_this_version():
    text = (ROOT / "CITATION.cff").read_text()
    assert re.search(rf"^version: {re.escape(__version__)}$", text, re.MULTILINE)
    assert text.startswith("cff-version: 1.2.0\n") and "\nauthors:\n" in text and "\ntitle:" in text
