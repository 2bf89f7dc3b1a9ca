"""The folder that the page works in: which files it may see, and how new ones come into it."""

from __future__ import annotations

import itertools
import os
import re
import stat
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from phloem.analysis.outputs import replaced_file, write_file
from phloem.errors import InputError

MOST_LISTED = 500
_ENDINGS = {
    "alignment": (
        "fasta", "fas", "fa", "fna", "faa", "ffn", "fst", "fsa", "afa", "mfa", "msa", "phy", "phylip", "nex",
        "nexus", "nxs", "aln", "xml",
    ),
    "tree": ("tre", "tree", "trees", "nwk", "newick", "treefile", "t"),
    "table": ("tsv", "csv", "txt", "dist", "npy", "mat"),
    "partitions": ("partitions", "partition", "parts", "part", "charsets", "best_scheme"),
}  # fmt: skip
_NAME = re.compile(r"[^\x00-\x1f\x7f/\\:]{1,200}")
MISSING, REFUSED, TOO_LARGE, TAKEN = 404, 403, 413, 409


class FolderError(Exception):
    """A file that is not given out or not taken. status: of HTTP."""

    def __init__(self, status: int, message: str, hint: str) -> None:
        super().__init__(message)
        self.status, self.message, self.hint = status, message, hint


@dataclass(frozen=True)
class Listed:
    """A file as the page lists it. kind: by its name's ending; its content tells when it is read."""

    name: str
    kind: str
    size: int
    modified: float


@dataclass(frozen=True)
class Folder:
    """root: a real path. most_upload: bytes of one file."""

    root: Path
    most_upload: int

    def path(self, name: str) -> Path:
        """The file of a name relative to the folder, which exists and lies inside it.

        Neither '..' nor links lead out; hidden files, devices and pipes are none.
        """
        parts = name.split("/")
        if not name or any(not _NAME.fullmatch(p) or p.startswith(".") for p in parts):
            raise FolderError(REFUSED, "this name leads out of the folder", "Choose a file of the list.")
        real = Path(os.path.realpath(self.root.joinpath(*parts)))
        if not real.is_relative_to(self.root):
            raise FolderError(REFUSED, "this file lies outside the folder", "Copy it into the folder.")
        try:
            found = real.stat()
        except OSError:
            raise FolderError(MISSING, f"there is no file '{name}'", "Look at the list again.") from None
        if not stat.S_ISREG(found.st_mode):
            raise FolderError(REFUSED, f"'{name}' is no file", "Choose a file of the list.")
        return real

    def has(self, name: str) -> bool:
        """Whether `path` gives it."""
        try:
            self.path(name)
        except FolderError:
            return False
        return True

    def listed(self) -> list[Listed]:
        """Files that look like data, the newest first."""
        kinds = {ending: kind for kind, endings in _ENDINGS.items() for ending in endings}
        found = []
        for entry in os.scandir(self.root):
            ending = entry.name.lower().removesuffix(".gz").rpartition(".")[2]
            if entry.name.startswith(".") or ending not in kinds or not entry.is_file():
                continue
            about = entry.stat()
            found.append(Listed(entry.name, kinds[ending], about.st_size, about.st_mtime))
        return sorted(found, key=lambda one: -one.modified)[:MOST_LISTED]

    async def store(self, name: str, chunks: AsyncIterator[bytes], length: int | None, redo: bool) -> None:
        """Write a new file; half of one is never there. length: as announced, None if it is not."""
        if not _NAME.fullmatch(name) or name.startswith((".", "-")):
            raise FolderError(REFUSED, "no file can have this name here", "Rename it: letters, digits, dots.")
        target = self.root / name
        if os.path.lexists(target) and not redo:
            raise FolderError(TAKEN, f"'{name}' exists already", "Replace it, or rename the new file.")
        if target.is_symlink() or target.is_dir():
            raise FolderError(REFUSED, f"'{name}' is a link or a folder", "Rename the new file.")
        if length is not None and length > self.most_upload:
            raise self._too_large()
        received = 0
        try:
            with replaced_file(target) as stream:
                async for chunk in chunks:
                    received += len(chunk)
                    if received > self.most_upload:
                        raise self._too_large()
                    stream.write(chunk)
        except InputError as error:
            raise FolderError(REFUSED, error.message, error.hint or "Choose another folder.") from None

    def keep(self, name: str, text: str) -> str:
        """Write a small file that was made here; one that says the same is kept, and one that does not too:
        ours then gets a number. Its name."""
        stem, _, ending = name.rpartition(".")
        for number in itertools.count(1):
            tried = name if number == 1 else f"{stem}-{number}.{ending}"
            target = self.root / tried
            if not os.path.lexists(target):
                write_file(target, text)
                return tried
            if self.has(tried) and target.is_file() and target.read_text(encoding="utf-8") == text:
                return tried
        raise AssertionError

    def _too_large(self) -> FolderError:
        most = f"{self.most_upload / 2**20:,.0f} MiB"
        hint = "Copy it into the folder by other means, or start `phloem page --most-upload` with more."
        return FolderError(TOO_LARGE, f"the file is larger than {most}", hint)
