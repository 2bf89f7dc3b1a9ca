"""A changed callee in another file must not leave stale compiled code behind, nor another process its own."""

from __future__ import annotations

import threading
import time

import pytest
from numba.core.caching import IndexDataCacheFile

from phloem.hardware import numba_cache as kept
from phloem.hardware import numba_compile
from phloem.hardware.numba_compile import compiled
from unit.hardware.other_process import told_elsewhere


def digest(monkeypatch, folder, **files) -> str:
    monkeypatch.setattr(kept, "_PACKAGE", folder)
    for name, text in files.items():
        path = folder / "cpu" / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    kept._sources_digest.cache_clear()
    kept._read.cache_clear()
    found = kept._sources_digest(folder / "cpu" / "run.py")
    kept._sources_digest.cache_clear()
    kept._read.cache_clear()
    return found


def test_nothing_is_kept_of_a_process_older_than_its_sources(monkeypatch, tmp_path):
    """It may have loaded what a file was before an upgrade, which its stamp would not tell."""
    monkeypatch.setattr(kept, "_late", set())
    monkeypatch.setattr(kept, "_HERE", tmp_path)
    digest(monkeypatch, tmp_path, run="x = 1\n")
    assert {path.name for path in kept._late} == {"run.py"}
    enabled = []
    function = compiled(lambda x: x)
    monkeypatch.setattr(function, "enable_caching", lambda: enabled.append(function))
    kept.cache_on_disk(function, "")
    assert enabled == []
    monkeypatch.setattr(kept, "_late", set())
    monkeypatch.setattr(kept, "_BEGAN", kept._BEGAN + 1e9)
    digest(monkeypatch, tmp_path, run="x = 1\n")
    assert kept._late == set()


def test_the_stamp_follows_imports(monkeypatch, tmp_path):
    run = "from phloem.cpu.middle import (\n    step,\n)\n"
    middle, deep = "from phloem.cpu import deep\n", "x = 1\n"
    first = digest(monkeypatch, tmp_path, run=run, middle=middle, deep=deep, other="y = 1\n")
    assert digest(monkeypatch, tmp_path, other="y = 2\n") == first
    assert digest(monkeypatch, tmp_path, deep="x = 2\n") != first
    assert digest(monkeypatch, tmp_path, deep=deep) == first


def test_the_stamp_follows_what_compiles(monkeypatch, tmp_path):
    """Also of a file that imports none of it: what is kept is in the form of the compiler of its day."""
    door = tmp_path / "door.py"
    door.write_text("x = 1\n")
    monkeypatch.setattr(kept, "_DOOR", door)
    first = digest(monkeypatch, tmp_path, run="x = 1\n")
    door.write_text("x = 2\n")
    assert digest(monkeypatch, tmp_path) != first
    door.write_text("x = 1\n")
    assert digest(monkeypatch, tmp_path) == first


@pytest.mark.parametrize("kind", [kept._Files, IndexDataCacheFile])
def test_processes_that_compile_at_the_same_time_keep_their_code_apart(kind, tmp_path, monkeypatch):
    """Two that found no index each save what they compiled for types of their own. The control: Numba's."""
    first, second = kind(str(tmp_path), "some", "0" * 64), kind(str(tmp_path), "some", "0" * 64)
    save_data = kind._save_data

    def late(files, name, data):
        if files is first:  # the other one has read the index before, and saves now
            (tmp_path / "some.nbi").unlink(missing_ok=True)
            second.save("types of the second", "its code")
        save_data(files, name, data)

    monkeypatch.setattr(kind, "_save_data", late)
    first.save("types of the first", "code")
    assert (second.load("types of the second") == "its code") is (kind is kept._Files)
    assert first.load("types of the first") in ("code", None)


def test_files_of_sources_of_before_are_removed(tmp_path):
    old, new = (kept._Files(str(tmp_path), "some", digit * 64) for digit in "01")
    beside = kept._Files(str(tmp_path), "some.inside", "0" * 64)
    for one in (old, beside):
        one.save("types", "code")
    (tmp_path / "some.1.nbc").write_bytes(b"numbered")
    new.save("types", "new code")
    assert len(list(tmp_path.glob("some.*.nbc"))) == 2
    assert (old.load("types"), new.load("types"), beside.load("types")) == (None, "new code", "code")


class Record:
    """What code was compiled for."""


def test_an_index_that_names_a_record_that_is_gone_is_empty(tmp_path, monkeypatch):
    """As after an upgrade that renames one, of a function whose own file does not import it."""
    before = kept._Files(str(tmp_path), "some", "0" * 64)
    before.save(Record, "code")
    assert before.load(Record) == "code"
    monkeypatch.delitem(globals(), "Record")
    after = kept._Files(str(tmp_path), "some", "0" * 64)
    with pytest.raises(AttributeError):  # the control: Numba's
        IndexDataCacheFile._load_index(after)
    assert after.load("types") is None
    after.save("types", "new code")
    assert after.load("types") == "new code"


def test_of_two_threads_that_call_a_function_first_none_compiles_what_lies_on_disk(monkeypatch):
    asked, began = [], threading.Event()

    class Kept:
        def load_overload(self, signature, target):
            asked.append(signature)

        def save_overload(self, signature, data):
            pass

    def slow(dispatcher, suffix):
        began.set()
        time.sleep(0.1)
        dispatcher._cache = Kept()

    monkeypatch.setattr(numba_compile, "cache_on_disk", slow)
    function = compiled(lambda x: x + 1)
    other = threading.Thread(target=function, args=(1,))
    other.start()
    began.wait()
    assert function(1) == 2  # compiled without a look, while the other one looked for the place
    other.join()
    assert len(asked) == 1


LINKED = """
from phloem.hardware.numba_compile import compiled

def link(number, rest):
    @compiled(cache=False)
    def density(kind):
        return 1.0 * number if kind == number else rest(kind)
    return density

chain = compiled(lambda kind: -100.0, cache=False)
for number in reversed(range(4)):
    chain = link(number, chain)

@compiled
def first(kind):
    return chain(kind)

@compiled
def second(kind):
    return chain(kind)

@compiled
def calls_first(kind):
    return first(kind)

@compiled
def calls_both(kind):
    return first(kind) + second(kind)
"""
COUNTED = "import itertools; FunctionIdentity._unique_ids = itertools.count({})"


@pytest.mark.parametrize("counted", [False, True])
def test_code_from_the_cache_and_code_just_compiled_keep_their_names_apart(counted, tmp_path):
    """Functions made by one function have one name, and Numba's number. The control: numbers as Numba counts
    them, in a process that has compiled two more functions than the one whose code is in the cache."""
    (tmp_path / "linked.py").write_text(LINKED)

    def told(function, first):
        count = COUNTED.format(first) if counted else ""
        lines = ["import linked", "from numba.core.bytecode import FunctionIdentity", count]
        code = "\n".join([*lines, f"print(*(linked.{function}(kind) for kind in range(4)))"])
        return [float(word) for word in told_elsewhere(tmp_path, code).split()]

    assert told("calls_first", 1) == [0, 1, 2, 3]
    assert (told("calls_both", 3) == [0, 2, 4, 6]) is not counted
