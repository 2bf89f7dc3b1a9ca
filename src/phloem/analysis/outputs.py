"""The files that a command writes: checked against each other and its inputs before anything is computed."""

from __future__ import annotations

import json
import os
import shlex
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from phloem.errors import InputError
from phloem.io.output_file import locked, replaced_file, write_file

__all__ = ["STDOUT", "alone", "check_outputs", "json_text", "replaced_file", "write_file", "write_json"]

STDOUT = "-"  # stands for standard output where a file is named


def check_outputs(
    files: Iterable[str | None],
    inputs: Iterable[str | None],
    redo: bool,
    printable: Iterable[str | None] = (),
) -> None:
    """InputError unless every output is a file of its own that can be written and whose loss was asked for.

    No output may be another output or an input: neither by name, nor by links, nor where a disk does not
    tell capitals from small letters. An existing file is replaced only with redo. printable: outputs that
    may be STDOUT, one of them at most. None is no file.
    """
    named = [name for name in files if name is not None]
    if STDOUT in named:
        raise InputError(f"an output is called '{STDOUT}'", hint="Give it a file name.")
    others = [name for name in printable if name is not None]
    if others.count(STDOUT) > 1:
        raise InputError("two outputs would go to standard output", hint="Name a file for one of them.")
    read = [name for name in inputs if name is not None]
    written: list[str] = []
    for name in (*named, *(name for name in others if name != STDOUT)):
        if any(_same_output(name, other) for other in written):
            raise InputError("two outputs would be this file", file=name, hint="Give each a name of its own.")
        if any(_same_file(name, other) for other in read):
            raise InputError("this file is an input", file=name, hint="Choose another name for the output.")
        _check_place(name, redo)
        written.append(name)


@contextmanager
def alone(prefix: str, inputs: Iterable[str | None]) -> Iterator[None]:
    """Keeps other processes off the files of this prefix, as they would replace each other's. InputError
    where one is at work, and where no file can be written."""
    lock = f"{prefix}.lock"
    check_outputs([lock], inputs, redo=True)
    with locked(lock, f"--prefix {prefix}"):
        yield


def _same_output(a: str, b: str) -> bool:
    """Whether two outputs would be one file, perhaps on another disk; the null device swallows several."""
    return not a == b == os.devnull and (_same_file(a, b) or _plain(a) == _plain(b))


def _same_file(a: str, b: str) -> bool:
    """The same by name, through symbolic links, or as two names (hard links) of one file."""
    try:
        return os.path.samefile(a, b)
    except (OSError, ValueError):  # one does not exist
        return os.path.realpath(a) == os.path.realpath(b)


def _plain(name: str) -> tuple[str, str]:
    """Folder and name, as a disk sees them that knows no capitals and one form of every accent."""
    folder, own = os.path.split(os.path.realpath(name))
    return folder, unicodedata.normalize("NFC", own).casefold()


def _check_place(name: str, redo: bool) -> None:
    """InputError unless a file of this name can be written, and none is lost unless redo."""
    try:
        os.stat(name)
        exists = True
    except (FileNotFoundError, NotADirectoryError):
        exists = False
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"no file can have this name: {why}", file=name, hint="Choose another.") from None
    if os.path.isdir(name or os.curdir):
        raise InputError("this is a folder, not a file", file=name, hint="Name a file inside it.")
    if exists and not os.path.isfile(name):
        return  # a pipe or a device, which keeps nothing
    if exists and not redo:
        raise InputError("this file exists already", file=name, hint="Add --redo to replace it.")
    folder = os.path.dirname(os.path.realpath(name))
    if not os.path.isdir(folder):
        hint = f"Make the folder first: mkdir -p {shlex.quote(folder)}"
        raise InputError("its folder does not exist", file=name, hint=hint)
    if not os.access(folder, os.W_OK) or (exists and not os.access(name, os.W_OK)):
        raise InputError("this file cannot be written", file=name, hint="Choose another place.")


def write_json(record: dict[str, object], name: str | None) -> None:
    """A record as JSON to a file; None and STDOUT write none."""
    if name is not None and name != STDOUT:
        write_file(name, json_text(record))


def json_text(record: dict[str, object]) -> str:
    """The same as text; NaN and infinity are an error, they have no place in JSON."""
    return json.dumps(record, indent=1, allow_nan=False, default=str) + "\n"
