"""The door to Numba: caches follow every imported kernel file, and compiled functions stay few."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from llvmlite.binding import parse_bitcode
from numba.core import types
from numba.core.caching import IndexDataCacheFile
from numba.core.errors import LoweringError, TypingError

from phloem.hardware import numba_answers
from phloem.hardware import numba_cache as kept
from phloem.hardware import numba_compile as door
from phloem.pruning.cpu import schedule
from unit.hardware.other_process import told_elsewhere

FOLDER = Path(door.__file__).parents[1] / "pruning" / "cpu"


def test_every_imported_kernel_file_is_part_of_the_stamp():
    _, imported = kept._read(FOLDER / "passes.py")
    names = {path.name for path in imported if path.is_file()}
    text = (FOLDER / "passes.py").read_text()
    expected = {
        line.split()[1].rpartition(".")[2] + ".py"
        for line in text.splitlines()
        if line.startswith("from phloem.pruning.cpu.")
    }
    assert expected <= names and len(expected) > 4


def test_an_index_of_other_sources_is_not_unpickled(tmp_path):
    """It may name a record of a module that an upgrade took away."""
    lost = tmp_path / "lost.py"
    lost.write_text("from typing import NamedTuple\n\n\nclass Record(NamedTuple):\n    x: int\n")
    sys.path.insert(0, str(tmp_path))
    try:
        index = pickle.dumps(("old sources", {__import__("lost").Record(1): "code"}))
    finally:
        sys.path.remove(str(tmp_path))
        del sys.modules["lost"]
    lost.unlink()
    dispatcher = door.compiled(schedule.next_task.py_func)
    kept.cache_on_disk(dispatcher, ".inside")
    own = dispatcher._cache._cache_file
    assert own._index_name.endswith(".inside.nbi")
    cache = IndexDataCacheFile(str(tmp_path), "some", own._source_stamp)
    (tmp_path / "some.nbi").write_bytes(pickle.dumps(numba.__version__) + index)
    with pytest.raises(ModuleNotFoundError):
        cache._load_index()  # as Numba would
    cache._version = own._version
    assert cache._load_index() == {}


def test_a_gradient_needs_few_compiled_entries():
    """What a warm start has to load: a specialisation more for every run is tens of milliseconds."""
    script = (
        "import numpy as np; rng = np.random.default_rng(1)\n"
        "from oracle.small_problems import random_model, random_problem\n"
        "from phloem.pruning.cpu.evaluator import CpuEvaluator\n"
        "from phloem.hardware.numba_compile import compiled_specialisation_count\n"
        "problem, model = random_problem(rng, 5, 4), random_model(rng, 4)\n"
        "CpuEvaluator(problem).gradient(np.full(9, 0.1), model); CpuEvaluator(problem).gradient(\n"
        "    np.full(9, 0.1), model, True); print(compiled_specialisation_count())\n"
    )
    for _ in range(2):  # the second process finds everything in the cache
        run = subprocess.run(
            [sys.executable, "-c", script], cwd=Path(__file__).parents[2], capture_output=True, check=True
        )
    assert int(run.stdout) <= 9  # sums of tasks are one of them: it spares every call 30 µs


def test_a_number_that_is_written_out_compiles_nothing_again():
    @door.uncounted
    def twice(x, pair):
        return x + x + pair[1]

    @door.compiled(cache=False)
    def several(x):
        return twice(x, (x, x)) + twice(3, (x, 0)) + twice(-1, (0, 1)) + twice(0.5, (x, x))

    assert several(10) == 30 + 6 - 1 + 11.0
    assert len(twice.inside.overloads) == 2  # of integers, and of real numbers


def test_compiled_callers_and_python_have_forms_of_their_own():
    """A form that only compiled code calls lacks what takes Python's arguments apart."""

    @door.compiled(cache=False)
    def twice(x):
        return 2 * x

    @door.compiled(cache=False)
    def four_times(x):
        return twice(twice(x))

    assert four_times(3) == 12
    inside = next(iter(twice.inside.overloads.values()))
    engine = inside.library.codegen._engine
    assert not twice.overloads and not engine.is_symbol_defined(inside.fndesc.llvm_cpython_wrapper_name)
    assert twice(3) == 6
    own = next(iter(twice.overloads.values()))
    assert engine.is_symbol_defined(own.fndesc.llvm_cpython_wrapper_name)


def test_only_what_python_calls_becomes_machine_code():
    """Parts are optimised and made code where they come together, once: not for every function on the way."""

    @door.compiled(cache=False)
    def leaf(x):
        return x + 1

    @door.compiled(cache=False)
    def branch(x):
        return leaf(x) + leaf(x + 1)

    @door.compiled(cache=False)
    def root(x):
        return branch(x) * 2

    assert root(3) == 18
    part = next(iter(branch.inside.overloads.values()))
    engine = part.library.codegen._engine
    assert not engine.is_symbol_defined(part.fndesc.llvm_func_name)
    beyond = next(iter(leaf.inside.overloads.values()))
    names = [part.fndesc.llvm_func_name, beyond.fndesc.llvm_func_name]
    pieces = [parse_bitcode(code) for code in part.library.pieces.values()]
    there = [{f.name for f in piece.functions if not f.is_declaration} for piece in pieces]
    assert names[0] in there[0] and [names[1] in own for own in there].count(True) == 1
    assert names[1] not in there[0]
    own = next(iter(root.overloads.values()))
    assert engine.is_symbol_defined(own.fndesc.llvm_func_name)


def test_parts_of_another_process_are_found_on_disk(tmp_path):
    """A second caller, in a process of its own, compiles itself only; an error is raised as from anew."""
    (tmp_path / "parts.py").write_text(
        "from phloem.hardware.numba_compile import compiled\n"
        "@compiled\ndef inner(x):\n    if x > 9:\n        raise ValueError('too large')\n    return x + 1\n"
        "@compiled\ndef one(x):\n    return inner(x)\n"
        "@compiled\ndef two(x):\n    return 2 * inner(x)\n"
    )
    script = (
        "import sys, parts; f = getattr(parts, sys.argv[1]); print(f(3))\n"
        "print(sum(parts.inner.inside.stats.cache_hits.values()))\n"
        "try:\n    f(10)\nexcept ValueError as error:\n    print(error)\n"
    )
    found = []
    for name in ("one", "two", "two"):
        found.append(told_elsewhere(tmp_path, script, name).split("\n")[:3])
    assert found == [["4", "0", "too large"], ["8", "1", "too large"], ["8", "0", "too large"]]


def test_a_caller_by_address_is_compiled_without_what_it_calls():
    """Another type than was said does not compile; an address that nobody wrote is an error."""
    doubles = door.ByAddress(types.int64[::1], types.boolean)
    call = doubles.call

    @door.compiled(cache=False)
    def sum_of(x, positive):
        return float(x.sum()) if positive else -float(x.sum())

    @door.compiled(cache=False)
    def through(address, x):
        return call(address, (x, True)) + 2 * call(address, (x, False))

    numbers = np.arange(4)
    assert through(doubles.address(sum_of), numbers) == -6.0
    assert not sum_of.inside.overloads and len(sum_of.pointed.overloads) == 1
    with pytest.raises(RuntimeError, match="nothing is at this address"):
        through(0, numbers)
    with pytest.raises(LoweringError, match="by its address wants"):
        through(doubles.address(sum_of), np.arange(4.0)[::2].reshape(2, 1))


def test_what_depends_on_types_alone_is_asked_once(monkeypatch):
    """And a failure again, as what is unknown may be made known."""
    asked, ask = [], numba_answers._ask
    monkeypatch.setattr(numba_answers, "_ask", lambda *given: asked.append(given[2]) or ask(*given))
    monkeypatch.setattr(numba_answers, "_answers", {})

    def sums(x):
        return x + x + (x + x)

    assert door.compiled(sums, cache=False)(2.5) == 10.0
    assert asked.count((types.float64, types.float64)) == 1
    for _ in range(2):
        with pytest.raises(TypingError):
            door.compiled(lambda x: x + "a", cache=False)(2.5)
    assert len([args for args in asked if types.unicode_type in map(types.unliteral, args)]) >= 2


def test_parts_hold_all_that_they_call(tmp_path):
    """A part from the cache and one just compiled are linked where Python calls."""
    (tmp_path / "nested.py").write_text(NESTED)
    script = "import nested; print(nested.{}(3.0))"
    for name, expected in (("first", "9.0"), ("both", "21.0"), ("both", "21.0")):
        assert told_elsewhere(tmp_path, script.format(name)).strip() == expected


NESTED = """
from phloem.hardware.numba_compile import compiled

@compiled
def deep(x):
    return x * x

@compiled
def above(x):
    return deep(x)

@compiled
def beside(x):
    return deep(x) + x

@compiled
def first(x):
    return above(x)

@compiled
def both(x):
    return above(x) + beside(x)
"""
