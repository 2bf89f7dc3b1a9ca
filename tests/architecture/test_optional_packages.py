"""Tests of GPUs are skipped where PyTorch is not installed, as `make test` meets them on a fresh machine."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

GPU = Path(__file__).resolve().parents[1] / "gpu"


def imported_at_once(text: str) -> list[str]:
    """Optional packages that a module imports before it has asked whether they are there."""
    found = []
    for node in ast.parse(text).body:
        if "importorskip" in ast.unparse(node):
            break
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append(node.module or "")
    return [name for name in found if name.split(".")[0] in ("torch", "triton")]


@pytest.mark.parametrize("file", sorted(GPU.glob("test_*.py")), ids=lambda file: file.name)
def test_a_module_is_collected_without_them(file):
    assert imported_at_once(file.read_text()) == []


def test_an_import_at_once_is_seen():
    assert imported_at_once("import numpy\nimport torch\n") == ["torch"]
    assert imported_at_once("import pytest\npytest.importorskip('torch')\nimport torch\n") == []
