"""Imports go one way (docs/architecture.md), and heavy libraries stay in their rooms."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "phloem"

# Room → rooms it may import besides itself and errors.
ALLOWED = {
    "data": set(),
    "tree": set(),
    "model": set(),
    "hardware": set(),
    "io": {"data", "tree", "hardware"},
    "pruning": {"model", "hardware"},
    "clustering": {"data", "tree", "model", "hardware"},
    "dating": {"data", "tree", "hardware"},
    "differences": {"data", "tree", "hardware"},
    "density": {"data", "tree", "model", "hardware"},
    "likelihood": {"density", "pruning", "data", "tree", "model"},
    "interop": {"likelihood"},
    "summary": {"tree", "data"},
    "inference": {
        "density",
        "summary",
        "likelihood",
        "clustering",
        "dating",
        "differences",
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
        "dating",
        "pruning",
        "hardware",
        "io",
        "data",
        "tree",
        "model",
    },
    "cli": {"analysis", "plot", "web"},
    "web": {"analysis", "plot"},
}

# Library → where it may be imported.
_CPU = (
    "pruning/cpu/",
    "clustering/cpu/",
    "io/cpu/",
    "dating/cpu/",
    "differences/cpu/",
    "density/terms/compiled/",
    "inference/mcmc/compiled/",
    "hardware/numba_answers",
    "hardware/numba_cache",
    "hardware/numba_compile",
    "hardware/numba_records",
)
_GPU = (
    "pruning/gpu/",
    "clustering/gpu/",
    "hardware/gpu_device",
    "hardware/torch_ranks",
    "hardware/triton_compile",
)
CONFINED = {
    "numba": _CPU,
    "llvmlite": _CPU,
    "torch": (*_GPU, "interop/"),
    "triton": _GPU,
    "mpi4py": ("hardware/ranks",),
    "jax": ("interop/",),
    "matplotlib": ("plot/",),
    "typer": ("cli/",),
}


@cache
def imported_modules(path: Path) -> tuple[str, ...]:
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names.append(node.module)
            if node.module == "phloem":
                names += [f"phloem.{alias.name}" for alias in node.names]
    return tuple(names)


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


# A reference is the specification, not a part of what users run. These modules may import one, and why.
REFERENCE_USERS = {
    "pruning/select.py": "--engine reference",
    "likelihood/tree_likelihood.py": "ancestral states and site likelihoods, which have no fast form",
    "inference/mcmc/guard.py": "the sampler's watchdog",
    "inference/time/sampler.py": "the same, of ancestors that are sampled",
    "clustering/gpu/nj.py": "the last four clusters of a joining: a matrix of 4 × 4",
}


def reference_users(source: Path = SOURCE) -> set[str]:
    """Modules outside a reference folder that import one."""
    found = set()
    for path in source.rglob("*.py"):
        inside = "reference" in path.relative_to(source).parts
        if not inside and any(".reference" in name for name in imported_modules(path)):
            found.add(path.relative_to(source).as_posix())
    return found


def test_production_imports_no_reference():
    assert reference_users() - set(REFERENCE_USERS) == set()
    assert set(REFERENCE_USERS) - reference_users() == set()


def test_a_use_of_a_reference_is_seen(tmp_path):
    for name in ("inference", "pruning/reference"):
        bad = tmp_path / name / "bad.py"
        bad.parent.mkdir(parents=True)
        bad.write_text("def f():\n    from phloem.pruning.reference.evaluator import ReferenceEvaluator\n")
    assert reference_users(tmp_path) == {"inference/bad.py"}


def test_a_wrong_import_is_seen(tmp_path):
    (tmp_path / "data").mkdir()
    bad = tmp_path / "data" / "bad.py"
    bad.write_text("import numba\nfrom phloem.tree.tree import Tree\nfrom phloem import io\n")
    assert len(violations(bad, tmp_path)) == 3
