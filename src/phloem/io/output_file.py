"""How every file of a result is written: beside its target, to the disk, then renamed over it.

So a name holds the former file or the whole new one, whatever happens in between (a full disk, a kill, an
error); and an error says which file it was, why, and what is left.
"""

from __future__ import annotations

import errno
import gzip
import os
import platform
import secrets
import stat
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from io import TextIOWrapper
from pathlib import Path
from typing import BinaryIO, TextIO, cast

from phloem.errors import InputError

_NAME_BYTES = 100  # of the target's name in that of the file beside it: file systems allow 255
PARTIAL = ".part"  # ends the name of what is being written

# Error number → what happened, and the remedy.
_FULL = "Free some space, or choose another place."
_REASONS = {
    errno.ENOSPC: ("the disk is full", _FULL),
    errno.EDQUOT: ("the disk quota is used up", _FULL),
    errno.EFBIG: ("the file would be larger than is allowed here", "Raise the limit (ulimit -f)."),
    errno.EROFS: ("the file system is read-only", "Choose another place."),
    errno.EACCES: ("writing is not permitted", "Choose another place, or change the permissions."),
    errno.EPERM: ("writing is not permitted", "Choose another place, or change the permissions."),
    errno.EISDIR: ("this is a folder, not a file", "Name a file inside it."),
    errno.ENOENT: ("its folder does not exist", "Make the folder first."),
    errno.ENOTDIR: ("its folder is a file", "Choose another place."),
    errno.ENAMETOOLONG: ("the name is too long", "Choose a shorter one."),
    errno.EIO: ("the disk reports an error", "Check the disk."),
    errno.EPIPE: ("whoever reads it has gone", "Check the program at the other end."),
}


class OutputError(InputError):
    """A file that cannot be written; says which, why, and what is left."""


@contextmanager
def explained(path: str | os.PathLike[str], kept: str) -> Iterator[None]:
    """An OSError inside becomes an OutputError on this path. kept: what is left there, a clause or ''."""
    try:
        yield
    except OSError as error:
        what, remedy = _REASONS.get(error.errno or 0, (error.strerror or str(error), "Check the disk."))
        left = f"; {kept}" if kept else ""
        raise OutputError(
            f"the file cannot be written: {what}{left}", file=os.fspath(path), hint=remedy
        ) from None


@contextmanager
def replaced_file(path: str | os.PathLike[str], kept: str | None = None) -> Iterator[BinaryIO]:
    """A stream whose bytes become the file when the block ends without an error.

    A link is followed, permissions of a former file are kept. Pipes and devices are written to directly.
    kept: as of explained; None says what became of a former file. Raises OutputError.
    """
    target = Path(os.path.realpath(path))
    if os.path.exists(target) and not stat.S_ISREG(target.stat().st_mode):
        with explained(path, kept or ""), open(target, "wb") as stream:
            yield stream
        return
    left = "the former file is kept" if os.path.exists(target) else "nothing is left of it"
    with explained(path, left if kept is None else kept):
        beside = target.with_name(f"{_begin(target)}{secrets.token_hex(4)}{PARTIAL}")
        try:
            with open(beside, "xb") as stream:
                if target.exists():
                    os.chmod(beside, stat.S_IMODE(target.stat().st_mode))
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(beside, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(beside)
            raise


@contextmanager
def replaced_text(
    path: str | os.PathLike[str], packed: bool = False, kept: str | None = None
) -> Iterator[TextIO]:
    """The same for text, which is written as UTF-8. packed: compressed by gzip, quickly."""
    with replaced_file(path, kept) as stream, _packer(stream) if packed else nullcontext(stream) as binary:
        text = TextIOWrapper(binary, "utf-8", newline="")
        yield text
        text.detach()


def _packer(stream: BinaryIO) -> BinaryIO:
    return cast(BinaryIO, gzip.GzipFile("", "wb", 1, stream, 0))


@contextmanager
def appended_text(path: str | os.PathLike[str], kept: str) -> Iterator[TextIO]:
    """A stream that adds text at the end of a file, which may be cut short. Raises OutputError."""
    with explained(path, kept), open(path, "a", encoding="utf-8", newline="") as stream:
        yield stream


def write_file(path: str | os.PathLike[str], content: bytes | str, kept: str | None = None) -> None:
    """The same for content in memory; text is written as UTF-8, half characters of file names as escapes."""
    data = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    with replaced_file(path, kept) as stream:
        stream.write(data)


@contextmanager
def locked(path: str | os.PathLike[str], what: str) -> Iterator[None]:
    """Keeps all other processes out that ask for the same lock file, and removes it at the end.

    The lock belongs to the process: a kill frees it, and a file that is left over locks nobody out. Raises
    InputError that tells who has it. what: is locked, for that message. Where the disk knows no locks (some
    network file systems), a warning says so.
    """
    stream = _lock(Path(path), what)
    try:
        yield
    finally:
        with suppress(OSError):
            os.unlink(path)
        stream.close()


def _lock(path: Path, what: str) -> TextIO:
    while True:
        with explained(path, ""):
            stream = open(path, "a+", encoding="utf-8")  # noqa: SIM115
        try:
            import fcntl

            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            stream.seek(0)
            holder = stream.read(200).strip() or "another process"
            stream.close()
            raise InputError(
                f"{what} is in use by {holder}",
                file=str(path),
                hint="Wait for its end, or choose another name.",
            ) from None
        except (ImportError, OSError) as error:
            warnings.warn(f"{path}: no locks here ({error}): start no second process on it", stacklevel=2)
        with suppress(OSError):
            if os.path.samestat(os.fstat(stream.fileno()), os.stat(path)):  # else it was removed meanwhile
                break
        stream.close()
    with explained(path, ""):
        stream.truncate(0)
        stream.write(f"process {os.getpid()} on {platform.node() or 'this machine'}\n")
        stream.flush()
    return stream


def remove_partial(paths: Iterable[str | os.PathLike[str]]) -> None:
    """Remove what killed processes left beside targets; only for one who knows that no other writes them."""
    targets = [Path(os.path.realpath(path)) for path in paths]
    for folder in {target.parent for target in targets}:
        begins = tuple(_begin(target) for target in targets if target.parent == folder)
        for other in folder.iterdir():
            if other.name.startswith(begins) and other.name.endswith(PARTIAL):
                other.unlink(missing_ok=True)


def _begin(target: Path) -> str:
    """How the name of what is written beside a target begins."""
    return os.fsdecode(os.fsencode(target.name)[:_NAME_BYTES]) + "."
