"""A text file in memory that knows where each character stands, for errors with line and column."""

from __future__ import annotations

import os
import re
import warnings
from dataclasses import dataclass

from phloem.errors import InputError, InputWarning, shown_file
from phloem.io.input_file import read_input

_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_MOST_CONTROL = 0.05  # of the bytes of a text
_UTF32 = (b"\xff\xfe\0\0", b"\0\0\xfe\xff")
_WIDE = (b"\xff\xfe", b"\xfe\xff", *_UTF32)
_ARCHIVE = b"PK\x03\x04"
_LOOKED_AT, _MOSTLY = 4096, 0.9  # bytes at the beginning; zeros among every second one, of UTF-16


@dataclass(frozen=True)
class SourceText:
    """Text with `\\n` line ends, and the file it came from."""

    text: str
    file: str | None = None

    def locate(self, offset: int) -> tuple[int, int]:
        """Line and column, both 1-based, of the character at an offset."""
        line = self.text.count("\n", 0, offset) + 1
        return line, offset - self.text.rfind("\n", 0, offset)

    def error(
        self,
        message: str,
        offset: int,
        *,
        taxon: str | None = None,
        site: int | None = None,
        hint: str | None = None,
    ) -> InputError:
        """An InputError (to be raised by the caller) that points at an offset."""
        line, column = self.locate(min(offset, len(self.text)))
        return InputError(
            message, file=self.file, line=line, column=column, taxon=taxon, site=site, hint=hint
        )


def read_source(path: str | os.PathLike[str]) -> SourceText:
    """Read a text file, compressed or not (told by content), as UTF-8 or else Latin-1.

    "-" is standard input. Raises InputError for a missing, unreadable, empty, damaged or binary file.
    """
    return SourceText(decode(read_input(path), os.fspath(path)), os.fspath(path))


def decode(data: bytes | bytearray, file: str | None = None) -> str:
    """Bytes to text with `\\n` line ends; binary or empty input is an InputError."""
    if data.startswith(_WIDE):
        raise _wide_text(data, file)
    data = data.removeprefix(b"\xef\xbb\xbf")
    if not data.strip():
        raise InputError(
            "the file is empty", file=file, hint="Check how it was written, or name another file."
        )
    _look_for_garbage(data, file)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text


def _look_for_garbage(data: bytes | bytearray, file: str | None) -> None:
    """InputError for bytes that are no text; a warning for single control characters, as in names."""
    garbage = _CONTROL.search(data)
    if garbage is None:
        return
    binary = b"\0" in data or len(_CONTROL.findall(data)) > _MOST_CONTROL * len(data)
    start = data.index(b"\0") if b"\0" in data else garbage.start()
    if b"\0" in data:
        _refuse_known(data, file)
    byte, line = f"0x{data[start]:02x}", data.count(b"\n", 0, start) + 1
    column = start - data.rfind(b"\n", 0, start)
    if binary:
        raise InputError(
            f"the file is binary, not text (byte {byte})",
            file=file,
            line=line,
            column=column,
            hint="Give a plain-text FASTA, PHYLIP, NEXUS or Newick file (gzip, xz, bzip2 are fine).",
        )
    where = "" if file is None else f"{shown_file(file)}, "
    told = f"{where}line {line}: a control character ({byte}) stands in column {column}"
    warnings.warn(told, InputWarning, stacklevel=4)


def _refuse_known(data: bytes | bytearray, file: str | None) -> None:
    """InputError that names what some binary inputs are: an archive, text of two bytes a character."""
    if data.startswith(_ARCHIVE):
        raise InputError("this is a zip archive", file=file, hint="Unpack it, and give the file in it.")
    beginning = bytes(data[:_LOOKED_AT])
    if any(part and part.count(0) > _MOSTLY * len(part) for part in (beginning[::2], beginning[1::2])):
        raise _wide_text(data, file)


def _wide_text(data: bytes | bytearray, file: str | None) -> InputError:
    """The error for text of two or four bytes a character."""
    beginning = bytes(data[:_LOOKED_AT])
    four = data.startswith(_UTF32) or beginning.count(0) > len(beginning) / 2
    told = f"the file is UTF-{32 if four else 16} text"
    return InputError(told, file=file, line=1, hint="Save it as UTF-8 or plain ASCII.")
