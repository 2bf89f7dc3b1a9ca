"""What is compiled, on disk: when it may be used again, and by whom it was written."""

from __future__ import annotations

import hashlib
import re
import time
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import IndexDataCacheFile

_PACKAGE = Path(__file__).parents[1]
_HERE, _BEGAN, _late = _PACKAGE, time.time(), set[Path]()
_DOOR = Path(__file__).with_name("numba_compile.py")
_IMPORT = re.compile(r"^from phloem\.?([\w.]*) import (\([^)]*\)|[^\n]*)", re.MULTILINE)


def cache_on_disk(dispatcher: Any, suffix: str) -> None:
    """Keep what is compiled in files of its own, stamped with every file of phloem that is imported.

    Numba looks at a function's own file only, yet compiled code holds the functions and constants of other
    files that it called: after an upgrade, or an edit, it would go on running the old ones. The stamp stands
    in the version too, which Numba reads first: an index of other sources may name records of modules that
    are gone, and must not be unpickled. Where a file is newer than this process, which may run what it was
    before an upgrade, nothing is kept: it would lie there under the stamp of the new one.
    """
    digest = _sources_digest(Path(dispatcher.py_func.__code__.co_filename))
    if _late:
        return
    dispatcher.enable_caching()
    cache = dispatcher._cache
    cache._cache_file = _Files(cache.cache_path, cache._impl.filename_base + suffix, digest)


class _Files(IndexDataCacheFile):
    """Numba's index and files of one function, for processes that compile at the same time. Numba numbers the
    files: two processes that have just compiled a function, each for types of its own, take the same number,
    and what is loaded for the types of one may be the code of the other. Here a name says what the file is
    of, and the index tells of files that are there. Of two that write the index at once one entry may be
    lost, and is compiled again."""

    def __init__(self, folder: str, base: str, digest: str):
        super().__init__(folder, base, digest)
        self._version = f"{numba.__version__} {digest}"

    def _load_index(self) -> dict[Any, str]:
        """Types of arguments may name records that their own files no longer have, which a function need not
        import: what it was compiled for then is of no use."""
        try:
            return super()._load_index()
        except (AttributeError, ImportError):
            return {}

    def save(self, key: Any, data: Any) -> None:
        known, stamp = self._load_index(), self._source_stamp[:12]
        name = self._data_name_pattern.replace("{number:d}", f"{stamp}-{_digest_of(self._dump(key))}")
        self._save_data(name, data)
        self._save_index({**self._load_index(), key: name})
        if not known:
            self._remove_others(stamp)

    def _remove_others(self, stamp: str) -> None:
        """Files of sources of before, and those that Numba numbered."""
        before, after = map(re.escape, self._data_name_pattern.split("{number:d}"))
        own = re.compile(rf"{before}(?!{stamp}-)([0-9a-f]{{12}}-[0-9a-f]{{24}}|\d+){after}")
        for file in Path(self._cache_path).iterdir():
            if own.fullmatch(file.name):
                file.unlink(missing_ok=True)


def _digest_of(words: bytes) -> str:
    return hashlib.sha256(words).hexdigest()[:24]


@cache
def _sources_digest(file: Path) -> str:
    """SHA-256 over a file, what compiles it, which it may know nothing of, and all files of phloem that these
    import, directly or not."""
    waiting, found = [file, _DOOR], {}
    while waiting:
        file = waiting.pop()
        if file not in found and file.is_file():
            found[file], imported = _read(file)
            waiting += imported
    return hashlib.sha256(b"".join(found[name] for name in sorted(found))).hexdigest()


@cache
def _read(file: Path) -> tuple[bytes, list[Path]]:
    """A file's bytes and the files of phloem it may import; of a folder that it imports, all files."""
    text, imported = file.read_bytes(), []
    if file.stat().st_mtime > _BEGAN and _HERE in file.parents:
        _late.add(file)
    for module, names in _IMPORT.findall(text.decode()):
        folder = _PACKAGE.joinpath(*module.split(".")) if module else _PACKAGE
        imported.append(folder.with_suffix(".py"))
        for name in re.findall(r"\w+", names):
            imported += [folder / f"{name}.py", *sorted((folder / name).glob("*.py"))]
    return text, imported
