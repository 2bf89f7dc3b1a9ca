"""Files are written in one place (io/output_file.py), so that none is ever half there."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "phloem"

# What may write by itself, and why.
ALLOWED = {
    "io/output_file.py": "the place",
    "inference/mcmc/checkpoint.py": "appends samples: what a save cut short leaves is not read",
    "pruning/calibration.py": "a cache, which may be lost",
    "cli/streams.py": "the null device, in place of a closed stream",
    "analysis/doctor.py": "a folder of its own that it removes",
}
WRITERS = {"write_text", "write_bytes", "tofile", "savefig"}
OF_NUMPY = {"save", "savez", "savez_compressed", "savetxt"}


def writes(text: str) -> list[int]:
    """Lines that open a file for writing or hand a name to something that does."""
    lines = []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        called = getattr(node.func, "attr", getattr(node.func, "id", ""))
        modes = [*node.args[:2], *(k.value for k in node.keywords if k.arg == "mode")]
        opened = called == "open" and any(
            isinstance(sub, ast.Constant) and isinstance(sub.value, str) and set(sub.value) & set("wax+")
            for mode in modes[-1:]
            for sub in ast.walk(mode)
        )
        to_stream = any(
            isinstance(a, ast.Name) and a.id in ("stream", "out", "buffer") for a in node.args[:1]
        )
        of_numpy = called in OF_NUMPY and ast.unparse(node.func).startswith("np.")
        if opened or ((called in WRITERS or of_numpy) and not to_stream):
            lines.append(node.lineno)
    return lines


def test_files_are_written_in_one_place():
    found = {
        str(path.relative_to(SOURCE)): lines
        for path in sorted(SOURCE.rglob("*.py"))
        if (lines := writes(path.read_text()))
    }
    assert found.keys() <= ALLOWED.keys(), {file: found[file] for file in found.keys() - ALLOWED.keys()}


@pytest.mark.parametrize(
    "planted",
    [
        "open(path, 'w')",
        "open(path, mode='ab')",
        "Path(x).open('w')",
        "gzip.open(path, 'wt' if a else 'at')",
        "Path(x).write_text('a')",
        "np.save(path, values)",
        "figure.savefig(path)",
    ],
)
def test_other_ways_are_noticed(planted):
    assert writes(planted) == [1]
    assert writes("open(path)") == writes("open(path, 'rb')") == writes("np.save(stream, values)") == []
