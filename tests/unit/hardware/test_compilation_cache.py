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


def test_nothing_is_kept_of_a_process_older_than_its_sources(monkeypatch, tmp_path):
    """It may have loaded what a file was before an upgrade, which its stamp would not tell."""
    monkeypatch.setattr(compilation, "_late", set())
    monkeypatch.setattr(compilation, "_HERE", tmp_path)
    digest(monkeypatch, tmp_path, run="x = 1\n")
    assert {path.name for path in compilation._late} == {"run.py"}
    kept = []
    function = compilation.compiled(lambda x: x)
    monkeypatch.setattr(function, "enable_caching", lambda: kept.append(function))
    compilation._cache_on_disk(function, "")
    assert kept == []
    monkeypatch.setattr(compilation, "_late", set())
    monkeypatch.setattr(compilation, "_BEGAN", compilation._BEGAN + 1e9)
    digest(monkeypatch, tmp_path, run="x = 1\n")
    assert compilation._late == set()


def test_the_stamp_follows_imports(monkeypatch, tmp_path):
    run = "from phloem.cpu.middle import (\n    step,\n)\n"
    middle, deep = "from phloem.cpu import deep\n", "x = 1\n"
    first = digest(monkeypatch, tmp_path, run=run, middle=middle, deep=deep, other="y = 1\n")
    assert digest(monkeypatch, tmp_path, other="y = 2\n") == first
    assert digest(monkeypatch, tmp_path, deep="x = 2\n") != first
    assert digest(monkeypatch, tmp_path, deep=deep) == first
