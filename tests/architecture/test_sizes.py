"""Files under 400 lines, functions under 60 (kernels 90): past that a file wants splitting by meaning."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "phloem"


def long_functions(text: str, limit: int) -> list[str]:
    nodes = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)]
    return [f"{n.name}: {n.end_lineno - n.lineno + 1}" for n in nodes if n.end_lineno - n.lineno + 1 > limit]


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: p.relative_to(SOURCE).as_posix())
def test_files_and_functions_are_small(path):
    text = path.read_text()
    limit = 90 if {"cpu", "gpu", "compiled"} & set(path.parts) else 60
    assert len(text.splitlines()) <= 400
    assert long_functions(text, limit) == []


def test_a_long_function_is_seen():
    text = "def f():\n" + "    x = 1\n" * 61
    assert long_functions(text, 60) == ["f: 62"]
