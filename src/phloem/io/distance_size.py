"""How many taxa a distance matrix file has, from its first line or header alone."""

from __future__ import annotations

import csv

import numpy as np

from phloem.errors import InputError
from phloem.io.distance_rows import read_bytes

FIRST_LINE = 1 << 26  # bytes: the names of a table of millions of taxa


def taxa_of_matrix(path: str) -> int:
    """Taxa of a PHYLIP, CSV, TSV or .npy distance matrix (is_distance_matrix says whether it is one).

    Raises InputError for a file that cannot be read or whose header is none.
    """
    if path.endswith(".npy"):
        try:
            return len(np.load(path, mmap_mode="r", allow_pickle=False))
        except FileNotFoundError:
            raise InputError("there is no such file", file=path, hint="Check the path.") from None
        except (ValueError, OSError, EOFError, TypeError) as problem:
            raise InputError(
                f"not a NumPy array ({problem})", file=path, hint="Save it with numpy.save."
            ) from None
    first = bytes(read_bytes(path)[:FIRST_LINE]).lstrip(b"\n ").split(b"\n", 1)[0].decode("utf-8", "replace")
    words = first.split()
    if words and words[0].isdigit():
        return int(words[0])
    separator = "\t" if "\t" in first else ","
    return len(next(csv.reader([first], delimiter=separator))) - 1
