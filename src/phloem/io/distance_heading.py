"""What the first lines of a file say: whether it is a distance matrix, of what kind and of how many taxa."""

from __future__ import annotations

import os
import re
from codecs import BOM_UTF8
from typing import Literal

import numpy as np

from phloem.errors import InputError
from phloem.io.distance_rows import read_bytes, read_start
from phloem.io.distance_table import LAYOUT, cells_of, is_number, is_table

_FIRST = 1 << 16  # bytes looked at; eight times as many where two lines are longer
_TABLES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")


def file_kind(path: str) -> Literal["phylip", "table", "other"]:
    """What a text file is: a PHYLIP matrix starts with the number of taxa alone, a table with names.

    InputError for numbers in the first line, of which an alignment has two at most.
    """
    if path.lower().endswith(_TABLES):
        return "table"
    first, second = _first_lines(path)
    words = first.split()
    if len(words) == 1 and words[0].isdigit():
        return "phylip"
    numbers = re.split(r"[\s,;]+", first.strip())
    if len(numbers) > 2 and all(is_number(cell) for cell in numbers):
        raise InputError(
            "numbers without names", file=path, hint=f"{LAYOUT} A matrix without names can be a .npy file."
        )
    return "table" if is_table(first, second) else "other"


def is_distance_matrix(path: str | os.PathLike[str]) -> bool:
    """True if the file is .npy, or starts as a distance matrix does."""
    return str(path).endswith(".npy") or file_kind(str(path)) != "other"


def taxa_of_matrix(path: str) -> int:
    """Taxa of a PHYLIP, CSV, TSV or .npy distance matrix (is_distance_matrix says whether it is one).

    Raises InputError for a file that cannot be read or whose header is none.
    """
    if path.endswith(".npy"):
        try:
            return len(mapped_array(path))
        except TypeError as problem:  # a single number
            raise _not_an_array(path, problem) from None
    first, second = _first_lines(path)
    words = first.split()
    if len(words) == 1 and words[0].isdigit():
        return int(words[0])
    return len(cells_of(second or first)) - 1


def mapped_array(path: str) -> np.ndarray:
    """The array of a .npy file, without reading what is not touched; InputError where there is none."""
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise InputError("there is no such file", file=path, hint="Check the path.") from None
    except (ValueError, OSError, EOFError) as problem:
        raise _not_an_array(path, problem) from None


def _not_an_array(path: str, problem: Exception) -> InputError:
    """NumPy's own words for files of other kinds speak of pickles."""
    known = bytes(read_bytes(path)[:6]) == b"\x93NUMPY"
    message = f"not a NumPy array{f' ({problem})' if known else ''}"
    return InputError(message, file=path, hint="Save it with numpy.save.")


def _first_lines(path: str) -> tuple[str, str]:
    """The first two lines that are not blank."""
    size = _FIRST
    while True:
        start = read_start(path, size)
        lines = [line for line in start.split(b"\n") if line.strip()]
        if len(lines) > 2 or len(start) + len(BOM_UTF8) < size:
            first, second = (line.decode("utf-8", "replace") for line in [*lines, b"", b""][:2])
            return first, second
        size *= 8
