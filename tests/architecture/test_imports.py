"""Imports go one way (docs/architecture.md), and heavy libraries stay in their rooms."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "phloem"

# Room → rooms it may import besides itself and errors.
ALLOWED = {
    "data": set(),
    "tree": set(),
    "model": set(),
    "hardware": set(),
    "io": {"data", "tree", "hardware", "clustering"},
    "pruning": {"model", "hardware"},
    "clustering": {"data", "tree", "model", "hardware"},
    "density": {"data", "tree", "model", "hardware"},
    "likelihood": {"density", "pruning", "data", "tree", "model"},
    "interop": {"likelihood"},
    "summary": {"tree", "data"},
    "inference": {
        "density",
        "summary",
        "likelihood",
        "clustering",
        "pruning",
        "hardware",
        "io",
        "data",
        "tree",
        "model",
    },
    "plot": {"tree", "summary"},
    "analysis": {
        "plot",
        "summary",
        "inference",
        "density",
        "likelihood",
        "clustering",
        "pruning",
        "hardware",
        "io",
        "data",
        "tree",
        "model",
    },
    "cli": {"analysis", "plot"},
    "web": {"analysis", "plot"},
}

# Library → where it may be imported.
_CPU = (
    "pruning/cpu/",
    "clustering/cpu/",
    "io/cpu/",
    "density/terms/compiled/",
    "inference/mcmc/compiled/",
    "hardware/numba_compile",
)
_GPU = ("pruning/gpu/", "clustering/gpu/", "hardware/gpu_device", "hardware/triton_compile")
CONFINED = {
    "numba": _CPU,
    "llvmlite": _CPU,
    "torch": (*_GPU, "interop/"),
    "triton": _GPU,
    "jax": ("interop/",),
    "matplotlib": ("plot/",),
    "typer": ("cli/",),
}


def imported_modules(path: Path) -> list[str]:
    names = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names.append(node.module)
            if node.module == "phloem":
                names += [f"phloem.{alias.name}" for alias in node.names]
    return names


def violations(path: Path, source: Path = SOURCE) -> list[str]:
    relative = path.relative_to(source).as_posix()
    room = relative.split("/")[0]
    found = []
    for name in imported_modules(path):
        parts = name.split(".")
        if parts[0] in CONFINED and not relative.startswith(CONFINED[parts[0]]):
            found.append(f"{relative} imports {name}")
        if parts[0] != "phloem" or len(parts) == 1 or room.endswith(".py"):
            continue
        if parts[1] not in {room, "errors", "__version__"} | ALLOWED[room]:
            found.append(f"{relative} imports {name}")
    return found


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: p.relative_to(SOURCE).as_posix())
def test_imports_go_one_way(path):
    assert violations(path) == []


# A reference is the specification, not a part of what users run: these rooms call none but through the
# engine that carries its name, except the sampler's guard.
WITHOUT_REFERENCE = ("inference", "analysis", "cli", "web", "density")
GUARD = "inference/mcmc/guard.py"


def references(path: Path, source: Path = SOURCE) -> list[str]:
    relative = path.relative_to(source).as_posix()
    if not relative.startswith(WITHOUT_REFERENCE) or relative == GUARD:
        return []
    return [name for name in imported_modules(path) if name.startswith("phloem.pruning.reference")]


def test_of_the_sampler_only_its_guard_calls_the_reference(tmp_path):
    assert [path for path in sorted(SOURCE.rglob("*.py")) if references(path)] == []
    assert any(name.startswith("phloem.pruning.reference") for name in imported_modules(SOURCE / GUARD))
    bad = tmp_path / "inference" / "bad.py"
    bad.parent.mkdir()
    bad.write_text("from phloem.pruning.reference.evaluator import ReferenceEvaluator\n")
    assert len(references(bad, tmp_path)) == 1


def test_a_wrong_import_is_seen(tmp_path):
    (tmp_path / "data").mkdir()
    bad = tmp_path / "data" / "bad.py"
    bad.write_text("import numba\nfrom phloem.tree.tree import Tree\nfrom phloem import io\n")
    assert len(violations(bad, tmp_path)) == 3
