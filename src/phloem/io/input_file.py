"""The bytes of an input: a file, standard input (`-`) or a pipe, compressed by gzip, xz or bzip2 or not.

What can be read only once (standard input, `<(command)`) is read once, into a temporary file that every later
look goes to, the checksum's included. A named pipe is read anew by each reader: the writer may be another.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma
import os
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import IO, BinaryIO, cast

import numpy as np

from phloem.errors import STANDARD_INPUT, InputError
from phloem.hardware.machine import available_bytes

FilePath = str | os.PathLike[str]

_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"\xfd7zXZ\x00": "xz",
    **{b"BZh%d1A" % level: "bzip2" for level in range(1, 10)},
}  # how packed bytes begin
_PACKED_ENDINGS = (".gz", ".xz", ".bz2")
_BROKEN = (gzip.BadGzipFile, lzma.LZMAError, EOFError, zlib.error)
_BUFFER = 1 << 16
_PIECE = 1 << 22  # bytes copied or unpacked at a time
_UNCHECKED = 1 << 26  # bytes for which nobody asks how much memory is left
_LARGE = "Check that it is what it should be; else take a machine with more memory."


@dataclass(frozen=True)
class _Kept:
    """What came through a stream; source: what it was read from, held lest another gets its identity."""

    copy: IO[bytes]
    source: object


_kept: dict[object, _Kept] = {}


def read_input(path: FilePath) -> bytes | bytearray:
    """All bytes of an input, unpacked where they are gzip, xz or bzip2.

    Raises InputError for what is missing, no file, unreadable, damaged, or larger than free memory.
    """
    file = os.fspath(path)
    with _explained(file), _opened(_stored(file, anew=True)) as opened:
        packed = _packed_by(opened)
        if packed is not None:
            return _unpacked(opened, file, packed)
        _require_room(os.fstat(opened.fileno()).st_size, file)
        return opened.read()


def map_input(path: FilePath) -> np.ndarray:
    """(bytes,) uint8: the same, without reading what is not touched. InputErrors as read_input."""
    file = os.fspath(path)
    with _explained(file):
        _refuse_named_pipe(file)
        stored = _stored(file)
        with _opened(stored) as opened:
            packed = _packed_by(opened)
        if packed is not None or os.path.getsize(stored) == 0:
            data = np.frombuffer(read_input(file), np.uint8)
            data.flags.writeable = False  # as mapped ones are: kernels are compiled for that
            return data
        return np.memmap(stored, np.uint8, "r")


def first_bytes(path: FilePath, size: int) -> bytes:
    """At most the first `size` bytes of an input, unpacked. InputErrors as read_input."""
    with input_stream(path) as stream:
        return stream.read(size)


@contextmanager
def input_stream(path: FilePath) -> Iterator[BinaryIO]:
    """A stream of the bytes of an input, unpacked, for what is too large to be held. InputErrors as
    read_input."""
    file = os.fspath(path)
    with _explained(file):
        _refuse_named_pipe(file)
        with _opened(_stored(file)) as opened:
            packed = _packed_by(opened)
            try:
                yield opened if packed is None else _unpacker(opened, packed)
            except (OSError, *_BROKEN) as error:
                if packed is None or getattr(error, "errno", None) is not None:
                    raise
                raise _damaged(error, file, packed) from None


def unpacked_name(path: FilePath) -> str:
    """The name that an input has without its folder, and without an ending that says how it is packed."""
    name = Path(path).name  # of a folder too, whose name may end in a slash
    ending = next((ending for ending in _PACKED_ENDINGS if name.lower().endswith(ending)), "")
    return name[: len(name) - len(ending)]


def input_size(path: FilePath) -> int:
    """Bytes of an input as it is stored."""
    file = os.fspath(path)
    with _explained(file):
        return os.path.getsize(_stored(file))


def input_digest(path: FilePath) -> str:
    """SHA-256, hexadecimal, of the bytes of an input as it is stored; of a stream, of what was read of it."""
    file = os.fspath(path)
    with _explained(file), _opened(_stored(file)) as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _stored(file: str, anew: bool = False) -> str:
    """The file where the bytes of an input are: itself, or the copy of a stream, made now if it was not.

    anew: read a named pipe again.
    """
    if file == STANDARD_INPUT:
        source = getattr(sys.stdin, "buffer", None)
        if source is None or source.closed:
            raise InputError("it is closed", file=file, hint="Send the data to it, or name a file.")
        if file not in _kept or _kept[file].source is not source:
            _keep(file, _Kept(_copied(source), source))
        return f"/dev/fd/{_kept[file].copy.fileno()}"
    found = os.stat(file)
    if stat.S_ISREG(found.st_mode):
        return file
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(file)
    if stat.S_ISBLK(found.st_mode):
        raise InputError("this is a device, not a file", file=file, hint="Name a file.")
    named = not _is_descriptor(file)
    key = os.path.abspath(file) if named else (found.st_dev, found.st_ino)
    if key not in _kept or (named and anew):
        with open(file, "rb") as opened:
            _keep(key, _Kept(_copied(opened), file))
    return f"/dev/fd/{_kept[key].copy.fileno()}"


def _keep(key: object, found: _Kept) -> None:
    """Put it in the place of what had the same key."""
    if key in _kept:
        _kept[key].copy.close()
    _kept[key] = found


def _is_descriptor(file: str) -> bool:
    """Whether a name stands for what this process has open, as that of `<(command)` does."""
    return file == "/dev/stdin" or file.startswith(("/dev/fd/", "/proc/self/fd/"))


def _copied(source: BinaryIO) -> IO[bytes]:
    """A temporary file, which has no name and goes with the process, with all that a stream gives."""
    copy = tempfile.TemporaryFile()  # noqa: SIM115 - it stays open as long as it may be asked for
    try:
        while piece := source.read(_PIECE):
            copy.write(piece)
        copy.flush()
    except BaseException:
        copy.close()
        raise
    return copy


def _opened(stored: str) -> BufferedReader:
    opened = open(stored, "rb")  # noqa: SIM115 - the callers close it
    opened.seek(0)  # where /dev/fd shares the position
    return opened


def _refuse_named_pipe(file: str) -> None:
    if file != STANDARD_INPUT and stat.S_ISFIFO(os.stat(file).st_mode) and not _is_descriptor(file):
        raise InputError(
            "not a regular file, and this one is read more than once",
            file=file,
            hint=f"Send it to standard input, as in: phloem … - < {file}",
        )


def _packed_by(opened: BufferedReader) -> str | None:
    """By which program the bytes are packed; the stream stands at their beginning then."""
    beginning = opened.read(6)
    opened.seek(0)
    return next((name for magic, name in _MAGIC.items() if beginning.startswith(magic)), None)


def _unpacker(opened: BinaryIO, packed: str) -> BinaryIO:
    """The unpacked bytes; the caller closes what they come from."""
    if packed == "xz":
        return cast(BinaryIO, BufferedReader(cast(RawIOBase, lzma.LZMAFile(opened)), _BUFFER))
    if packed == "bzip2":
        return cast(BinaryIO, bz2.BZ2File(opened))
    return cast(BinaryIO, gzip.GzipFile(fileobj=opened))


def _unpacked(opened: BinaryIO, file: str, by: str) -> bytearray:
    """What packed data hold, as long as there is memory for it."""
    text, checked = bytearray(), _UNCHECKED
    try:
        with _unpacker(opened, by) as packed:
            while piece := packed.read(_PIECE):
                text += piece
                if len(text) > checked:
                    _require_room(len(text), file)
                    checked = 2 * len(text)
    except (OSError, *_BROKEN) as error:
        raise _damaged(error, file, by) from None
    return text


def _damaged(error: Exception, file: str, by: str | None) -> InputError:
    return InputError(
        f"the {by} data are damaged: {error}", file=file, hint="Copy or compress the file again."
    )


def _require_room(size: int, file: str) -> None:
    """InputError where that many bytes, and what is made of them, do not fit into the memory that is left."""
    left = available_bytes() if size > _UNCHECKED else None
    if left is not None and size > left:
        raise InputError(
            f"it holds more than {size / 1e9:.1f} GB, and {left / 1e9:.1f} GB of memory are left",
            file=file,
            hint=_LARGE,
        )


@contextmanager
def _explained(file: str) -> Iterator[None]:
    """What keeps an input from being read, as InputError."""
    try:
        yield
    except FileNotFoundError:
        raise InputError(
            "there is no such file", file=file, hint="Check the path and its spelling."
        ) from None
    except IsADirectoryError:
        raise InputError("this is a folder, not a file", file=file, hint="Name a file inside it.") from None
    except MemoryError:
        raise InputError("it does not fit into the memory that is left", file=file, hint=_LARGE) from None
    except (OSError, ValueError) as error:
        raise InputError(f"it cannot be read: {error}", file=file, hint="Check its permissions.") from None
