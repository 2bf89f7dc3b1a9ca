"""No two modules need each other to be loaded."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src" / "phloem"


def modules(source: Path) -> dict[str, Path]:
    """Name → file of every module under a package's folder."""
    found = {}
    for path in source.rglob("*.py"):
        parts = (source.name, *path.relative_to(source).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def loaded(tree: ast.Module) -> Iterator[str]:
    """Names that a module imports when it is loaded: not inside functions, not for type checkers alone."""
    pending: list[ast.AST] = list(tree.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            pending += node.orelse
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            pending += ast.iter_child_nodes(node)


def import_graph(source: Path) -> dict[str, set[str]]:
    known = modules(source)
    return {
        name: {other for other in loaded(ast.parse(path.read_text())) if other in known and other != name}
        for name, path in known.items()
    }


def first_cycle(graph: Mapping[str, set[str]]) -> list[str]:
    """The modules of a circle of imports, in order; empty where there is none."""
    done: set[str] = set()
    for start in sorted(graph):
        path: list[str] = []
        open_: list[tuple[str, Iterator[str]]] = [(start, iter(sorted(graph[start])))]
        while open_:
            name, others = open_[-1]
            if name not in path:
                path.append(name)
            for other in others:
                if other in path:
                    return path[path.index(other) :]
                if other not in done:
                    open_.append((other, iter(sorted(graph[other]))))
                    break
            else:
                done.add(name)
                path.pop()
                open_.pop()
    return []


def test_no_module_needs_itself():
    graph = import_graph(SOURCE)
    assert len(graph) > 100 and sum(map(len, graph.values())) > 500  # the graph was read
    assert first_cycle(graph) == []


def test_a_circle_is_seen(tmp_path):
    package = tmp_path / "phloem"
    (package / "io").mkdir(parents=True)
    (package / "io" / "a.py").write_text("from phloem.io import b\n")
    (package / "io" / "b.py").write_text("if True:\n    from phloem.io.c import x\n")
    (package / "io" / "c.py").write_text("class K:\n    from phloem.io import a\n")
    assert first_cycle(import_graph(package)) == ["phloem.io.a", "phloem.io.b", "phloem.io.c"]
    (package / "io" / "c.py").write_text("def f():\n    from phloem.io import a\n")
    assert first_cycle(import_graph(package)) == []
    (package / "io" / "c.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from phloem.io import a\n"
    )
    assert first_cycle(import_graph(package)) == []
