"""A function has at most nine parameters: what travels together is a record with named fields.

Triton's kernels take pointers and sizes one by one, and a command's parameters are its options; both are
exempt. OVER lists the compiled functions that are still longer; it may only get shorter.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src" / "phloem"
MOST = 9

# file: function → how many parameters it may have until it gets a record.
OVER: dict[str, int] = {
    "clustering/cpu/linkage_rounds.py: _pair_with_pairs": 10,
    "pruning/cpu/directed.py: joined": 10,
    "pruning/cpu/directed_insertions.py: write_ends": 10,
    "pruning/cpu/directed_insertions.py: fit_insertions": 10,
}


@cache  # two tests ask for it, and reading all sources takes seconds
def long_signatures(source: Path) -> dict[str, int]:
    """ "file: function" → number of parameters, of every function that has more than MOST."""
    found = {}
    for path in sorted(source.rglob("*.py")):
        name = path.relative_to(source).as_posix()
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef) or _is_exempt(name, node):
                continue
            a = node.args
            parameters = [one.arg for one in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
            count = len([one for one in parameters if one not in ("self", "cls")])
            if count > MOST:
                found[f"{name}: {node.name}"] = count
    return found


def _is_exempt(file: str, node: ast.FunctionDef) -> bool:
    decorators = [ast.unparse(one) for one in node.decorator_list]
    is_kernel = "gpu" in file and any(one.startswith("triton.jit") for one in decorators)
    is_command = (file.startswith("cli/") and node.name == Path(file).stem) or "_takes_input" in decorators
    return is_kernel or is_command


def test_no_function_gets_a_long_signature():
    too_long = {name: n for name, n in long_signatures(SOURCE).items() if n > OVER.get(name, MOST)}
    assert too_long == {}


def test_what_got_shorter_leaves_the_list():
    found = long_signatures(SOURCE)
    assert {name: n for name, n in OVER.items() if found.get(name, 0) < n} == {}


def test_long_signatures_are_seen(tmp_path):
    (tmp_path / "gpu").mkdir()
    (tmp_path / "cli").mkdir()
    names = ", ".join(f"x{i}" for i in range(10))
    plain = f"def f({names}):\n    pass\n"
    (tmp_path / "a.py").write_text(f"class A:\n    def nine(self, {names[4:]}):\n        pass\n{plain}")
    (tmp_path / "gpu" / "b.py").write_text(f"@triton.jit\n{plain}def g(a, *, {names}):\n    pass\n")
    (tmp_path / "cli" / "run.py").write_text(f"{plain}def run({names}):\n    pass\n")
    assert long_signatures(tmp_path) == {"a.py: f": 10, "cli/run.py: f": 10, "gpu/b.py: g": 11}
