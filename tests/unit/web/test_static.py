"""What the browser runs: plain modules of our own, which never read text as markup and load nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import phloem.web

STATIC = Path(phloem.web.__file__).parent / "static"
SINKS = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|createContextual|srcdoc"
    r"|https?://(?!www\.w3\.org/2000/svg)|\bstyle=|\son\w+=\"|javascript:"
)
FILES = sorted(path for path in STATIC.rglob("*") if path.is_file())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(STATIC).as_posix())
def test_no_script_makes_markup_or_looks_elsewhere(path):
    text = path.read_text()
    assert SINKS.findall(text) == []
    assert len(text.splitlines()) <= 400


@pytest.mark.parametrize(
    "planted",
    [
        "place.innerHTML = name",
        "eval(x)",
        "fetch('https://cdn.example/x.js')",
        '<a onclick="x()">',
        '<p style="x">',
    ],
)
def test_what_could_is_seen(planted):
    assert SINKS.search(planted)


def test_every_import_is_a_file():
    found = 0
    for path in FILES:
        for name in re.findall(r'^import .*? from "(.*?)";', path.read_text(), re.MULTILINE):
            found += 1
            assert (path.parent / name).resolve() in FILES, f"{path.name} imports {name}"
    assert found > 30
