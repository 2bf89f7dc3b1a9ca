"""Distance matrices as files: which layout, what precision, read and written."""

from __future__ import annotations

import io
import math
import os
import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Literal, TextIO

import numpy as np

from phloem.data.distance_matrix import DistanceMatrix, DistanceTriangle, entries_in_square, new_entries
from phloem.errors import STANDARD_INPUT, InputError, InputWarning, shown_file
from phloem.io.distance_mega import distances_of_mega, is_mega
from phloem.io.distance_nexus import distances_of_nexus, has_distances
from phloem.io.distance_pairs import distances_of_pairs, is_pairs
from phloem.io.distance_phylip import (
    READINGS,
    PhylipText,
    Reading,
    announced_taxa,
    names_may_hold_numbers,
    phylip_text,
)
from phloem.io.distance_rows import (
    Form,
    LayoutError,
    Progress,
    RowSpans,
    fill_triangle,
    parse_rows,
    read_bytes,
    refuse_thousands,
    release,
)
from phloem.io.distance_table import LAYOUT, is_number, is_table, table_rows, table_taxa
from phloem.io.input_file import first_bytes, map_input, unpacked_name
from phloem.io.output_file import replaced_file, replaced_text, write_file
from phloem.io.source_text import decode, read_source

_FIRST = 1 << 16  # bytes looked at; eight times as many where two lines are longer
_HEAD = 1 << 20  # of a NEXUS file, in which blocks are looked for
_TABLES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_BLANKS = " \t\v\f"  # of ASCII; others may be a name
_NUMPY = b"\x93NUMPY"
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
_PERCENTS = (50, 100)
_NO_NAMES = "A matrix without names can be a .npy file."
Kind = Literal["npy", "phylip", "table", "pairs", "nexus", "mega", "other"]
_READ_WHOLE = {
    "nexus": ("NEXUS", distances_of_nexus),
    "mega": ("MEGA", distances_of_mega),
    "pairs": ("pairs", distances_of_pairs),
}


def file_kind(path: str) -> Kind:
    """What an input is: a PHYLIP matrix starts with the number of taxa alone, a table with names, a list of
    pairs with two names and a number or their headings, NEXUS with its own, and has a block of distances and
    none of characters; MEGA's say that they hold distances.

    InputError for numbers in the first line, of which an alignment has two at most.
    """
    if path.endswith(".npy") or first_bytes(path, len(_NUMPY)) == _NUMPY:
        return "npy"
    first, second = _first_lines(path)
    if first.lstrip()[:6].lower() == "#nexus":
        return "nexus" if has_distances(first_bytes(path, _HEAD).decode("utf-8", "replace")) else "other"
    if first.lstrip()[:5].lower() == "#mega":
        return "mega" if is_mega(first_bytes(path, _HEAD).decode("utf-8", "replace")) else "other"
    if is_pairs(decode(first_bytes(path, _FIRST), path)):
        return "pairs"
    if announced_taxa(first, path) is not None:
        return "phylip"
    if path.lower().endswith(_TABLES):
        return "table"
    numbers = re.split(r"[\s,;]+", first.strip())
    if len(numbers) > 2 and all(is_number(cell) for cell in numbers):
        raise InputError("numbers without names", file=path, hint=f"{LAYOUT} {_NO_NAMES}")
    return "table" if is_table(first, second) else "other"


def is_distance_matrix(path: str | os.PathLike[str]) -> bool:
    """True if the file is .npy, or starts as a distance matrix does."""
    return file_kind(str(path)) != "other"


def taxa_of_matrix(path: str) -> int:
    """Taxa of a distance matrix as a file (is_distance_matrix says whether it is one).

    Raises InputError for an input that cannot be read or whose header is none.
    """
    kind = file_kind(path)
    if kind == "npy":
        return len(_square_array(path))
    if kind in _READ_WHOLE:
        return len(_READ_WHOLE[kind][1](path)[1].taxa)
    first, second = _first_lines(path)
    n = announced_taxa(first, path)
    return table_taxa(first, second) if n is None else n


def mapped_array(path: str) -> np.ndarray:
    """The array of a .npy file, without reading what is not touched; InputError where there is none."""
    data = map_input(path)
    if bytes(data[: len(_NUMPY)]) != _NUMPY:
        raise InputError("not a NumPy array", file=path, hint="Save it with numpy.save.")
    try:
        stream = io.BytesIO(bytes(data[:_FIRST]))
        read_header = _HEADERS[np.lib.format.read_magic(stream)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy's, of headers that Python 2 wrote
            shape, fortran, dtype = read_header(stream)
        whole = math.prod(shape) * dtype.itemsize
        if min((0, *shape)) < 0 or dtype.hasobject or len(data) - stream.tell() < whole:
            raise ValueError(f"an array of shape {shape} and type {dtype} does not fit into it")
        return np.ndarray(shape, dtype, data, stream.tell(), order="F" if fortran else "C")
    except Exception as problem:  # the header is Python code to NumPy: its parser's errors are of every kind
        raise InputError(
            f"not a NumPy array ({str(problem)[:80]})", file=path, hint="Save it with numpy.save."
        ) from None


def _first_lines(path: str) -> tuple[str, str]:
    """The first two lines that are not blank."""
    size = _FIRST
    while True:
        start = first_bytes(path, size)
        lines = [line for line in decode(start, path).split("\n") if line.strip(_BLANKS)]
        if len(lines) > 2 or len(start) < size:
            return lines[0], lines[1] if len(lines) > 1 else ""
        size *= 8


Precision = Literal["auto", "float32", "float64"]
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
    """Read a square, lower or upper triangular PHYLIP matrix, a CSV or TSV table with names, a list of pairs,
    the DISTANCES block of a NEXUS file, MEGA's distances, or a .npy array.

    names: a file with one name a line, for .npy (without it the taxa are called taxon_1 …).
    precision: of the matrix; "auto" is float64 up to 4,096 taxa, float32 beyond.
    tolerance: d(i, j) and d(j, i) may differ by tolerance × max(1, distance) and become their mean.
    progress(rows read, rows) is called often.
    Raises InputError for anything that is no distance matrix, naming line, column and taxa.
    """
    return _read(str(path), names, precision, tolerance, progress, entries_in_square).matrix()


def read_distance_triangle(
    path: str | os.PathLike[str],
    *,
    names: str | os.PathLike[str] | None = None,
    precision: Precision = "auto",
    tolerance: float = TOLERANCE,
    progress: Progress | None = None,
) -> DistanceTriangle:
    """The same, every pair once: half the memory, however the file is laid out."""
    return _read(str(path), names, precision, tolerance, progress, new_entries)


def _read(
    source: str,
    names: str | os.PathLike[str] | None,
    precision: Precision,
    tolerance: float,
    progress: Progress | None,
    allocate: Callable[[int, str], np.ndarray],
) -> DistanceTriangle:
    """allocate(n, type): memory for the entries of n taxa."""
    kind = file_kind(source)
    settings: dict[str, object] = {}

    def filled(
        taxa: list[str], form: Form, read: Callable[[int, int, np.ndarray], None], data: np.ndarray
    ) -> np.ndarray:
        entries = allocate(len(taxa), precision_of(precision, len(taxa)))

        def step(done: int, total: int) -> None:
            release(data)
            if progress is not None:
                progress(done, total)

        fill_triangle(read, form, entries, taxa, tolerance, source, step)
        return entries

    if kind == "npy":
        mapped = _square_array(source)
        taxa, settings["names"] = _array_names(source, names, len(mapped))
        _check_names(taxa, str(names or source))
        layout = "npy"
        entries = filled(
            taxa, "square", lambda first, last, out: np.copyto(out, mapped[first:last], "same_kind"), mapped
        )
    else:
        if names is not None:
            raise InputError(
                "a file of names is for .npy, and this matrix has names",
                file=source,
                hint="Leave out --names.",
            )
        name, read_whole = _READ_WHOLE.get(kind, ("", None))
        data, spans = read_whole(source) if read_whole else (read_bytes(source), None)

        def fill(rows: RowSpans) -> np.ndarray:
            _check_names(rows.taxa, source, rows.lines)
            if rows.decimal_comma:
                refuse_thousands(data, rows, source)
            return filled(rows.taxa, rows.form, partial(parse_rows, data, rows, source), data)

        if spans is not None:
            taxa, entries, layout = spans.taxa, fill(spans), f"{name}, {spans.form}"
        else:
            taxa, entries, layout = (_table if kind == "table" else _phylip)(data, source, fill)
    if kind == "pairs" or layout.split(", ")[-1] in ("lower", "upper"):
        _warn_of_percents(entries, source)
    settings |= {"format": layout, "precision": str(entries.dtype), "symmetry_tolerance": tolerance}
    return DistanceTriangle(tuple(taxa), entries, source, settings)


def _warn_of_percents(entries: np.ndarray, source: str) -> None:
    """A warning where distances, given without those that are zero, look like identities in percent."""
    if len(entries) > 1 and entries.min() >= _PERCENTS[0] and entries.max() <= _PERCENTS[1]:
        told = (
            f"all distances lie between {entries.min():g} and {entries.max():g}, as identities in percent do"
        )
        hint = "of these, make distances first (100 - s)"
        warnings.warn(f"{shown_file(source)}: {told}; {hint}", InputWarning, stacklevel=4)


def _table(
    data: np.ndarray, source: str, fill: Callable[[RowSpans], np.ndarray]
) -> tuple[list[str], np.ndarray, str]:
    """Taxa, entries and layout of a table."""
    rows = table_rows(data, source)
    form = "" if rows.form == "square" else f", {rows.form}"
    return rows.taxa, fill(rows), f"table{form}{', decimal commas' * rows.decimal_comma}"


def _phylip(
    data: np.ndarray, source: str, fill: Callable[[RowSpans], np.ndarray]
) -> tuple[list[str], np.ndarray, str]:
    """The same of a PHYLIP matrix, in the first reading that fits.

    InputError of the reading that came farthest where none does, and where two do.
    """
    phylip, failed = phylip_text(data, source), []
    for reading in READINGS:
        came_to = 0
        try:
            rows = phylip.rows(reading)
            came_to = 1
            entries = fill(rows)
        except LayoutError as error:
            failed.append((came_to * (error.line or 0), error))
            continue
        if not reading.ten_columns and names_may_hold_numbers(rows.taxa):
            _refuse_ten_columns(phylip, reading, fill)
        return rows.taxa, entries, f"PHYLIP, {rows.form}{reading.text()}"
    raise max(failed, key=itemgetter(0))[1]


def _refuse_ten_columns(phylip: PhylipText, reading: Reading, fill: Callable[[RowSpans], np.ndarray]) -> None:
    """InputError where names of ten columns with numbers right behind them fit as well."""
    try:
        rows = phylip.rows(replace(reading, ten_columns=True))
        fill(rows)
    except InputError:
        return
    raise InputError(
        f"the first name may be of ten columns, '{rows.taxa[0]}', with a number right behind it, or longer",
        file=phylip.source,
        line=int(rows.lines[0]),
        hint="Put a blank behind every name.",
    )


def write_distance_matrix(matrix: DistanceMatrix, path: str | os.PathLike[str], digits: int = 9) -> None:
    """Write by the name's ending: .npy (with NAME.names beside it), .csv, .tsv, else square PHYLIP; .gz after
    it compresses text."""
    target = Path(path)
    if target.suffix == ".npy":
        with replaced_file(target) as stream:
            np.save(stream, matrix.values)
        write_file(target.with_suffix(".names"), "".join(f"{name}\n" for name in matrix.taxa))
        return
    packed = target.suffix == ".gz"
    separator = {".csv": ",", ".tsv": "\t"}.get(target.with_suffix("").suffix if packed else target.suffix)
    if separator is None:
        _refuse_blanks(matrix.taxa)
    with replaced_text(target, packed) as out:
        write_rows(matrix, out, separator, digits)


def write_rows(matrix: DistanceMatrix, out: TextIO, separator: str | None, digits: int) -> None:
    """Write the matrix as a table with names, or as square PHYLIP without a separator."""
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


def precision_of(precision: Precision, n: int) -> Literal["float32", "float64"]:
    """What "auto" is for n taxa: float64 up to 4,096, float32 beyond."""
    return ("float64" if n <= LARGE else "float32") if precision == "auto" else precision


def _square_array(source: str) -> np.ndarray:
    array = mapped_array(source)
    if array.ndim != 2 or array.shape[0] != array.shape[1] or array.dtype.kind not in "fiu" or not len(array):
        raise InputError(
            f"an array of shape {array.shape} and type {array.dtype} is no distance matrix",
            file=source,
            hint="Save a square array of numbers.",
        )
    return array


def names_beside(source: str) -> str | None:
    """NAME.names beside NAME.npy, where there is one: the names of its rows."""
    beside = Path(source).with_name(unpacked_name(source)).with_suffix(".names")
    return str(beside) if source != STANDARD_INPUT and beside.exists() else None


def _array_names(source: str, names: str | os.PathLike[str] | None, n: int) -> tuple[list[str], str]:
    """Names of the rows, and where they come from: the file named, NAME.names beside NAME.npy, or counted."""
    file = str(names) if names is not None else names_beside(source)
    if file is None:
        return [f"taxon_{k + 1}" for k in range(n)], f"taxon_1 … taxon_{n}"
    taxa = [line.strip() for line in read_source(file).text.split("\n") if line.strip()]
    if len(taxa) != n:
        raise InputError(
            f"{len(taxa)} names for {n} rows", file=file, hint="Give one name a line, one for each row."
        )
    return taxa, file


def _check_names(taxa: list[str], source: str, lines: np.ndarray | None = None) -> None:
    """LayoutError for an empty name, and for one that occurs twice; lines: where the rows are."""
    seen: dict[str, int] = {}
    for row, name in enumerate(taxa, 1):
        line = None if lines is None else int(lines[row - 1])
        if not name:
            raise LayoutError(
                f"row {row:,} has no name", file=source, line=line, hint="Name every row and column."
            )
        if (first := seen.setdefault(name, row)) != row:
            raise LayoutError(
                f"the name '{name[:60]}' occurs twice, in rows {first:,} and {row:,}",
                file=source,
                line=line,
                taxon=name[:60],
                hint="Rename one of the two.",
            )
