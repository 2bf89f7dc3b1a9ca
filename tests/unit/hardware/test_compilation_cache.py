"""A changed callee in another file must not leave stale compiled code behind."""

from __future__ import annotations

from phloem.hardware import numba_compile as compilation


def digest(monkeypatch, folder, **files) -> str:
    monkeypatch.setattr(compilation, "_PACKAGE", folder)
    for name, text in files.items():
        path = folder / "cpu" / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    compilation._sources_digest.cache_clear()
    compilation._read.cache_clear()
    found = compilation._sources_digest(folder / "cpu" / "run.py")
    compilation._sources_digest.cache_clear()
    compilation._read.cache_clear()
    return found


def test_the_stamp_follows_imports(monkeypatch, tmp_path):
    run = "from phloem.cpu.middle import (\n    step,\n)\n"
    middle, deep = "from phloem.cpu import deep\n", "x = 1\n"
    first = digest(monkeypatch, tmp_path, run=run, middle=middle, deep=deep, other="y = 1\n")
    assert digest(monkeypatch, tmp_path, other="y = 2\n") == first
    assert digest(monkeypatch, tmp_path, deep="x = 2\n") != first
    assert digest(monkeypatch, tmp_path, deep=deep) == first
