"""Distance matrices as files: which layout, what precision, read and written."""

from __future__ import annotations

import csv
import os
import re
from codecs import BOM_UTF8
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal, TextIO

import numpy as np

from phloem.data.distance_matrix import DistanceMatrix, DistanceTriangle, entries_in_square, new_entries
from phloem.errors import InputError
from phloem.io.distance_rows import (
    MAPPED_LINES,
    NAME_BYTES,
    Form,
    Progress,
    RowSpans,
    decoded,
    fill_triangle,
    parse_rows,
    phylip_rows,
    read_bytes,
    read_start,
    release,
    text_lines,
)
from phloem.io.output_file import replaced_file, replaced_text, write_file

# Distance matrices from PHYLIP, CSV, TSV and .npy files, and back; what a file's first lines say of it.


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
    """Read a square, lower or upper triangular PHYLIP matrix, a CSV or TSV table with names, or a .npy array.

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
    read: Callable[[int, int, np.ndarray], None]
    form: Form
    settings: dict[str, object] = {}
    if source.endswith(".npy"):
        mapped = _square_array(source)
        taxa, settings["names"] = _array_names(source, names, len(mapped))
        layout, form = "npy", "square"
        read, data = (lambda first, last, out: np.copyto(out, mapped[first:last], "same_kind")), mapped
    else:
        if names is not None:
            raise InputError(
                "a file of names is for .npy, and this matrix has names",
                file=source,
                hint="Leave out --names.",
            )
        data = read_bytes(source)
        table = file_kind(source) == "table"
        rows = table_rows(data, source) if table else phylip_rows(data, source)
        taxa, form, layout = rows.taxa, rows.form, "table" if table else f"PHYLIP, {rows.form}"
        read = partial(parse_rows, data, rows, source)
    _check_names(taxa, str(names or source))
    entries = allocate(len(taxa), precision_of(precision, len(taxa)))

    def step(done: int, total: int) -> None:
        release(data)
        if progress is not None:
            progress(done, total)

    fill_triangle(read, form, entries, taxa, tolerance, source, step)
    settings |= {"format": layout, "precision": str(entries.dtype), "symmetry_tolerance": tolerance}
    return DistanceTriangle(tuple(taxa), entries, source, settings)


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


def _array_names(source: str, names: str | os.PathLike[str] | None, n: int) -> tuple[list[str], str]:
    """Names of the rows, and where they come from: the file named, NAME.names beside NAME.npy, or counted."""
    beside = Path(source).with_suffix(".names")
    file = str(names) if names is not None else (str(beside) if beside.exists() else None)
    if file is None:
        return [f"taxon_{k + 1}" for k in range(n)], f"taxon_1 … taxon_{n}"
    text = bytes(read_bytes(file)).decode("utf-8", "replace")
    taxa = [line.strip() for line in text.splitlines() if line.strip()]
    if len(taxa) != n:
        raise InputError(
            f"{len(taxa)} names for {n} rows", file=file, hint="Give one name a line, one for each row."
        )
    return taxa, file


def _check_names(taxa: list[str], source: str) -> None:
    """InputError for an empty name, and for one that occurs twice."""
    seen: dict[str, int] = {}
    for row, name in enumerate(taxa, 1):
        if not name:
            raise InputError(f"row {row} has no name", file=source, hint="Name every row and column.")
        if (first := seen.setdefault(name, row)) != row:
            raise InputError(
                f"the name '{name}' occurs twice, in rows {first} and {row}",
                file=source,
                taxon=name,
                hint="Rename one of the two.",
            )


# Distance matrices in tables: CSV, TSV, or cells between semicolons, with names in a row and a column.


_QUOTED = re.compile(rb'"(?:[^"]|"")*"')
LAYOUT = "The first row is an empty cell and the names, each further row a name and its distances."


def is_table(first: str, second: str) -> bool:
    """Whether a file's first two lines are the names of a table and a row of it.

    An alignment's "3 4" and its sequences of digits are none.
    """
    names, row = cells_of(first), cells_of(second)
    if len(names) < 2 or all(is_number(cell) for cell in names):
        return False
    return len(row) - len(names) in (0, 1) and all(is_number(cell) for cell in row[1:])


def table_rows(text: np.ndarray, source: str) -> RowSpans:
    """Rows of a table whose first row and first column are the names."""
    starts, stops, numbers = text_lines(text)
    if len(starts) < 2:
        raise InputError("a table needs a row of names and a row a taxon", file=source, hint="Add the names.")
    header = decoded(bytes(text[starts[0] : stops[0]]), source, int(numbers[0]))
    separator = _separator(header)
    taxa = _names(_cells(header, separator, source, int(numbers[0])), len(starts) - 1, source)
    begins = np.empty(len(taxa), np.int64)
    for i, (a, b, line) in enumerate(zip(starts[1:].tolist(), stops[1:].tolist(), numbers[1:].tolist())):
        if i % MAPPED_LINES == 0:
            release(text)
        head = bytes(text[a : min(b, a + NAME_BYTES)])
        cell = _QUOTED.match(head) if head.startswith(b'"') else None
        raw = cell.group() if cell is not None else head.split(separator.encode(), 1)[0]
        if (name := _cells(decoded(raw, source, line), separator, source, line)[0]) != taxa[i]:
            raise InputError(
                f"row {i + 1} is '{name}', column {i + 1} is '{taxa[i]}'",
                file=source,
                line=line,
                taxon=name,
                hint="Rows and columns must have the same names in the same order.",
            )
        begins[i] = a + len(raw)
    return RowSpans(taxa, begins, stops[1:], numbers[1:], "square")


def _names(cells: list[str], rows: int, source: str) -> list[str]:
    """The names in the first row; R's write.table leaves out the cell before them.

    In a symmetric matrix without names the first row and the first column agree as well, so that a number in
    the corner is an error, not a heading.
    """
    if is_number(cells[0]) and len(cells) - 1 == rows:
        raise InputError(
            f"the table begins with the number {cells[0]}, not with names",
            file=source,
            hint=f"{LAYOUT} A matrix without names can be a .npy file.",
        )
    if len(cells) - rows not in (0, 1):
        raise InputError(
            f"{len(cells) - 1} names in the first row, {rows} rows below it", file=source, hint=LAYOUT
        )
    return cells[len(cells) - rows :]


def cells_of(line: str) -> list[str]:
    """The cells of a line, however they are separated; none where its quotes are wrong."""
    try:
        return next(csv.reader([line], delimiter=_separator(line)), [])
    except csv.Error:
        return []


def _separator(header: str) -> str:
    """Tab, comma or semicolon, whichever there is most of."""
    return max("\t,;", key=header.count)


def is_number(cell: str) -> bool:
    """Whether a cell is no name."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _cells(text: str, separator: str, source: str, line: int) -> list[str]:
    """The cells of a line, quotes resolved."""
    try:
        cells = next(csv.reader([text.replace("\r", " ")], delimiter=separator), [])
    except csv.Error as problem:
        raise InputError(
            f"not a row of a table ({problem})", file=source, line=line, hint="Check quotes and separators."
        ) from None
    return [cell.strip() for cell in cells] or [""]
