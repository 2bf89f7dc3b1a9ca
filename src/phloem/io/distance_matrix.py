"""Distance matrices from PHYLIP, CSV, TSV and .npy files, and back."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np

from phloem.data.distance_matrix import DistanceMatrix
from phloem.errors import InputError
from phloem.io.distance_rows import fill_matrix, phylip_rows, read_bytes, table_rows
from phloem.kernels.numba import distance_text

Precision = Literal["auto", "float32", "float64"]
Progress = Callable[[int, int], None]
LARGE = 4096  # taxa; "auto" keeps larger matrices in float32
TOLERANCE = 1e-5  # of max(1, distance): how far d(i, j) and d(j, i) may lie apart


def read_distance_matrix(
    path: str | os.PathLike[str],
    *,
    names: str | os.PathLike[str] | None = None,
    precision: Precision = "auto",
    tolerance: float = TOLERANCE,
    progress: Progress | None = None,
) -> DistanceMatrix:
    """Read a square, lower or upper triangular PHYLIP matrix, a CSV or TSV table with names, or a .npy array.

    names: a file with one name a line, for .npy (without it the taxa are called taxon_1 …).
    precision: of the matrix; "auto" is float64 up to 4,096 taxa, float32 beyond.
    tolerance: d(i, j) and d(j, i) may differ by tolerance × max(1, distance) and become their mean.
    progress(rows read, rows) is called often.
    Raises InputError for anything that is no distance matrix, naming line, column and taxa.
    """
    source = str(path)
    if source.endswith(".npy"):
        taxa, values, form = *_from_npy(source, names, precision), "npy"
    else:
        text = read_bytes(source)
        rows = table_rows(text, source) if _is_table(source, text) else phylip_rows(text, source)
        taxa, form = rows.taxa, rows.form
        _check_names(taxa, source)
        values = np.empty((len(taxa), len(taxa)), _dtype(precision, len(taxa)))
        fill_matrix(text, rows, values, source, progress)
    _check_values(values, taxa, tolerance, source)
    settings = {"format": form, "precision": str(values.dtype), "symmetry_tolerance": tolerance}
    return DistanceMatrix(tuple(taxa), values, source, settings)


def is_distance_matrix(path: str | os.PathLike[str]) -> bool:
    """True if the file starts as a distance matrix does: .npy, a table, or a PHYLIP count of taxa alone."""
    if str(path).endswith((".npy", ".csv", ".tsv")):
        return True
    first = bytes(read_bytes(str(path))[: 1 << 16]).lstrip().split(b"\n", 1)[0]
    words = first.split()
    return (len(words) == 1 and words[0].isdigit()) or first.startswith((b",", b"\t"))


def write_distance_matrix(matrix: DistanceMatrix, path: str | os.PathLike[str], digits: int = 9) -> None:
    """Write by the name's ending: .npy (with NAME.names beside it), .csv, .tsv, else square PHYLIP."""
    target = Path(path)
    if target.suffix == ".npy":
        np.save(target, matrix.values)
        target.with_suffix(".names").write_text("".join(f"{name}\n" for name in matrix.taxa))
        return
    separator = {".csv": ",", ".tsv": "\t"}.get(target.suffix)
    with target.open("w", encoding="utf-8") as out:
        if separator is None:
            _refuse_blanks(matrix.taxa)
            out.write(f"{matrix.n_taxa}\n")
        else:
            out.write(separator.join(["", *(_quoted(name, separator) for name in matrix.taxa)]) + "\n")
        for name, row in zip(matrix.taxa, matrix.values):
            label = name if separator is None else _quoted(name, separator)
            numbers = (separator or " ").join([f"%.{digits}g" % x for x in row.tolist()])
            out.write(f"{label}{separator or '  '}{numbers}\n")


def _refuse_blanks(taxa: tuple[str, ...]) -> None:
    for name in taxa:
        if any(c.isspace() for c in name) or not name:
            raise InputError(
                f"the name '{name}' has a blank and PHYLIP separates by blanks",
                taxon=name,
                hint="Write .csv or .tsv, or rename the taxon.",
            )


def _quoted(name: str, separator: str) -> str:
    return '"' + name.replace('"', '""') + '"' if separator in name or '"' in name else name


def _dtype(precision: Precision, n: int) -> str:
    return ("float64" if n <= LARGE else "float32") if precision == "auto" else precision


def _is_table(source: str, text: np.ndarray) -> bool:
    first = bytes(text[: 1 << 16]).split(b"\n", 1)[0]
    return source.endswith((".csv", ".tsv")) or b"," in first or (b"\t" in first and len(first.split()) > 1)


def _from_npy(source: str, names, precision: Precision) -> tuple[list[str], np.ndarray]:
    try:
        array = np.load(source, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise InputError("there is no such file", file=source, hint="Check the path.") from None
    except (ValueError, OSError, EOFError) as problem:
        raise InputError(
            f"not a NumPy array ({problem})", file=source, hint="Save it with numpy.save."
        ) from None
    if array.ndim != 2 or array.shape[0] != array.shape[1] or array.dtype.kind not in "fiu" or not len(array):
        raise InputError(
            f"an array of shape {array.shape} and type {array.dtype} is no distance matrix",
            file=source,
            hint="Save a square array of numbers.",
        )
    beside = Path(source).with_suffix(".names")
    file = str(names) if names is not None else (str(beside) if beside.exists() else None)
    taxa = [f"taxon_{k + 1}" for k in range(len(array))]
    if file is not None:
        taxa = [
            line.strip()
            for line in bytes(read_bytes(file)).decode("utf-8", "replace").splitlines()
            if line.strip()
        ]
        if len(taxa) != len(array):
            raise InputError(
                f"{len(taxa)} names for {len(array)} rows",
                file=file,
                hint="Give one name a line, one for each row.",
            )
    _check_names(taxa, file or source)
    return taxa, np.array(array, _dtype(precision, len(array)), order="C")


def _check_names(taxa: list[str], source: str) -> None:
    if len(set(taxa)) == len(taxa):
        return
    seen: set[str] = set()
    for name in taxa:
        if name in seen:
            raise InputError(
                f"the name '{name}' occurs twice", file=source, taxon=name, hint="Rename one of the two."
            )
        seen.add(name)


def _check_values(values: np.ndarray, taxa: list[str], tolerance: float, source: str) -> None:
    """Symmetric within tolerance, zero diagonal, finite, non-negative; becomes symmetric to the bit."""
    where = np.zeros(2, np.int64)
    for start in range(0, len(values), 512):
        stop = min(start + 512, len(values))
        wrong = distance_text.check_rows(values, start, stop, tolerance, where)
        if wrong:
            i, j = where.tolist()
            cell = f"between '{taxa[i]}' (row {i + 1}) and '{taxa[j]}' (column {j + 1})"
            message, hint = {
                1: (f"the distance {cell} is not finite", "Give every distance a number."),
                2: (f"the distance {cell} is negative", "Distances are zero or more."),
                3: (
                    f"the distance of '{taxa[i]}' to itself (row {i + 1}) is {values[i, i]:g}",
                    "It must be 0.",
                ),
                4: (
                    f"the distance {cell} is {values[i, j]:g}, and {values[j, i]:g} the other way round",
                    f"Make the matrix symmetric; up to {tolerance:g} may differ.",
                ),
            }[wrong]
            raise InputError(message, file=source, taxon=taxa[i], hint=hint)
