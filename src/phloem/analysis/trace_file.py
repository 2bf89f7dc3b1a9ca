"""One file of a sampler's trace: a row of names, then a row a sample.

Fields have tabs between them, as phloem, MrBayes, BEAST and RevBayes write them, or commas, semicolons or
blanks, as RevBayes does where its monitors are told so, and tables that went through another program.
"""

from __future__ import annotations

import re
import warnings
from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from phloem.errors import InputError, InputWarning
from phloem.inference.mcmc.stones import NO_POSTERIOR
from phloem.io.input_file import first_bytes, input_stream
from phloem.io.tree_table import tree_table
from phloem.io.trees import HEAD

_TAB, _BLANKS = b"\t", None
_OTHERS = (b",", b";", _BLANKS)
_DECIMAL_COMMA = re.compile(rb"[-+]?\d+,\d+([eE][-+]?\d+)?")
_OF_MRBAYES = re.compile(r"(.+?)(?:\.run\d+)?\.[pt]", re.DOTALL)
_ID = re.compile(rb"\[ID: \d+\]")
_NO_COMMAS = "; decimal commas are not read: write points"
_SHOWN = 40  # characters of a text that is no number


class Columns(NamedTuple):
    """names: of the columns besides the generation. generations: (n,). table: (n, k), NaN where a text is no
    number. words: name → the first such text and its line."""

    names: tuple[str, ...]
    generations: np.ndarray
    table: np.ndarray
    words: Mapping[str, tuple[bytes, int]]


def is_trace(file: str) -> bool:
    """Whether a file begins as a trace does: comments, names, no tree; where no tabs are between the names,
    also a row of as many fields that begins with a number."""
    head = first_bytes(file, HEAD)
    text = head.decode("utf-8", "replace")
    if tree_table(text, file) is not None or text.lstrip()[:6].upper() == "#NEXUS":
        return False
    first = next(_rows(head), b"")
    if _TAB in first:
        return b"(" not in first.split(_TAB)[0]
    return _separator(head) != _TAB


def refuse_powers(file: str) -> None:
    """InputError for a trace or trees of stepping stones or path sampling, which no burn-in makes samples of
    a posterior: of phloem by their first lines, of MrBayes by PREFIX.ss beside them, of BEAST and RevBayes by
    their columns."""
    head = first_bytes(file, HEAD)
    hint = "Run the same command without --stepping-stone; phloem bayes-factors reads PREFIX.ss.json."
    if NO_POSTERIOR.encode() not in head:
        hint = "Name samples of a posterior; the program that made these says what they add up to."
        if not (_of_mrbayes_stones(file, head) or _names_powers(head)):
            return
    raise InputError(
        "these samples are of power posteriors, at every stepping stone of another, and of no posterior",
        file=file,
        hint=hint,
    )


def _of_mrbayes_stones(file: str, head: bytes) -> bool:
    """Whether MrBayes' statistics of stepping stones, which stand beside them, have these samples' ID."""
    named, own = _OF_MRBAYES.fullmatch(file), _ID.search(head)
    if named is None or own is None or not Path(statistics := f"{named[1]}.ss").is_file():
        return False
    found = first_bytes(statistics, HEAD)
    return b"Steppingstone Sampling" in found and own[0] in found


def _names_powers(head: bytes) -> bool:
    """Whether columns are those of BEAST's path likelihood (x.delta, x.theta) or of RevBayes' powers."""
    first = next(_rows(head), b"")
    names = set(_fields(first, _separator(head)))
    of_beast = {name.removesuffix(b".theta") + b".delta" for name in names if name.endswith(b".theta")}
    return bool(of_beast & names) or {b"power", b"likelihood"} <= names


def _rows(head: bytes) -> Iterator[bytes]:
    """Lines that are no comments."""
    return (line for line in head.splitlines() if line.strip() and line[:1] not in b"[#")


def _separator(head: bytes) -> bytes | None:
    """What stands between fields: tabs, unless the first row has none and another separator divides it and
    the row below into as many fields, the lower of which begin with a number."""
    rows = _rows(head)
    first, second = next(rows, b""), next(rows, b"")
    if _TAB in first or b"(" in first:
        return _TAB
    for separator in _OTHERS:
        names, values = _fields(first, separator), _fields(second, separator)
        if len(names) == len(values) > 1 and _is_number(values[0]) and not _is_number(names[0]):
            return separator
    return _TAB


def _fields(line: bytes, separator: bytes | None) -> list[bytes]:
    """Of a line, without the quotes that tables of other programs have around texts."""
    fields = line.rstrip(b"\r\n\t ").split(separator)
    return fields if separator == _TAB else [field.strip().strip(b'"') for field in fields]


def read_columns(file: str) -> Columns | None:
    """A trace; its last line is left out where it is not whole. None without a row of names.

    Errors: InputError for a row of more or fewer fields than names, for a first row of numbers above which
    no comment names them, and for generations that are no numbers.
    """
    names: tuple[str, ...] = ()
    rows, words, comment = array("d"), dict[str, tuple[bytes, int]](), b""
    separator = _separator(first_bytes(file, HEAD))
    with input_stream(file) as stream:
        for number, line in enumerate(stream, 1):
            if not line.strip() or line[:1] in b"[#":
                comment = line if not names else comment
                continue
            if not line.endswith(b"\n") and names:
                break  # not whole yet
            fields = _fields(line, separator)
            if not names:
                of_numbers = len(fields) > 1 and all(map(_is_number, fields))
                names = _names_of(_named_above(comment, fields, file, number) if of_numbers else fields, file)
                if not of_numbers:
                    continue
            if len(fields) != len(names):
                raise InputError(
                    f"this row has {len(fields)} columns of {len(names)}",
                    file=file,
                    line=number,
                    hint="Take it off, or name another file.",
                )
            try:
                rows.extend([float(field) for field in fields])
            except ValueError:
                rows.extend(_numbers(fields, names, number, words))
    if len(names) < 2:
        return None
    table = np.array(rows).reshape(-1, len(names))
    if not names[0] and len(names) > 2:  # numbers of rows, which R and pandas put before a table
        names, table = names[1:], table[:, 1:]
    if names[0] in words:
        raise InputError(
            f"{_quoted(words[names[0]])} is no generation: the first column, '{names[0]}', is taken for that",
            file=file,
            line=words[names[0]][1],
            hint="Put a column of whole numbers that rise first.",
        )
    return Columns(names[1:], table[:, 0].copy(), table[:, 1:], words)


def _named_above(comment: bytes, fields: Sequence[bytes], file: str, line: int) -> list[bytes]:
    """Names in the comment above the first row of numbers, as PhyloBayes has them. InputError without."""
    named = _fields(comment.lstrip(b"#"), _TAB)
    if len(named) == len(fields) and not any(map(_is_number, named)):
        return named
    raise InputError(
        "this trace begins with numbers, and nothing names its columns",
        file=file,
        line=line,
        hint="Put a row of names above them, as in 'state', a tab, 'likelihood'.",
    )


def _names_of(fields: Sequence[bytes], file: str) -> tuple[str, ...]:
    """Those of a trace's columns; the second of two of one name is told from the first by its number."""
    read = [field.decode("utf-8", "replace").strip() for field in fields]
    names: dict[str, None] = {}
    for name in read:
        own, n = name, 1
        while own in names:
            n += 1
            own = f"{name} ({n})"
        names[own] = None
    twice = [own for own, name in zip(names, read) if own != name]
    if twice:
        told = f"{file}: columns of one name are numbered: {', '.join(twice[:6])}"
        warnings.warn(told, InputWarning, stacklevel=4)
    return tuple(names)


def _numbers(
    fields: Sequence[bytes], names: Sequence[str], line: int, words: dict[str, tuple[bytes, int]]
) -> list[float]:
    """Of a row in which some are none, which are noted."""
    found = []
    for name, field in zip(names, fields):
        own = _is_number(field)
        if not own:
            words.setdefault(name, (field, line))
        found.append(float(field) if own else np.nan)
    return found


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def told_of_words(names: Sequence[str], words: Mapping[str, tuple[bytes, int]]) -> str:
    """Columns that hold no finite number, each with the word that stands there first, if any does."""
    shown = [
        f"{name} ({_quoted(words[name])}, line {words[name][1]})" if name in words else name
        for name in names[:6]
    ]
    rest = f" and {len(names) - 6:,} more" if len(names) > 6 else ""
    commas = any(_DECIMAL_COMMA.fullmatch(words[name][0].strip()) for name in names if name in words)
    return f"{', '.join(shown)}{rest}{_NO_COMMAS if commas else ''}"


def _quoted(word: tuple[bytes, int]) -> str:
    text = word[0].decode("utf-8", "replace").strip()
    return f"'{text[:_SHOWN]}{'…' if len(text) > _SHOWN else ''}'"
