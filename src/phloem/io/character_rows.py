"""Named rows of characters as a file gives them, and the way back from a site to line and column."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from phloem.data.coding import FIRST_SET
from phloem.errors import InputError
from phloem.io.source_text import SourceText
from phloem.tree.match import folded

_CELL = re.compile(r"\S")
_CELL_OR_SET = re.compile(r"\{[^{}()]*\}|\([^{}()]*\)|\S")
_SET_OPENING = re.compile(r"[{(]")


@dataclass
class CharacterRow:
    """One taxon: where its name stands, and its pieces of text with the offsets where they start."""

    taxon: str
    name_start: int
    pieces: list[str] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)

    def add(self, piece: str, start: int) -> None:
        self.pieces.append(piece)
        self.starts.append(start)


@dataclass(frozen=True)
class CharacterRows:
    """A file's characters: (T, L) values as in `alignment_from_matrix`, and the rows they came from.

    with_sets: whether {AC} and (AC) stand for one site. charsets: named column sets, as text.
    datatype: what the file says it is, if it does; symbols: the states it lists. parts: data type and columns
    (as text) of each part where the file says that it is mixed; part_names: theirs, if they have any.
    """

    source: SourceText
    rows: Sequence[CharacterRow]
    matrix: np.ndarray
    sets: Mapping[int, str] = field(default_factory=dict)
    with_sets: bool = False
    charsets: Mapping[str, str] = field(default_factory=dict)
    datatype: str | None = None
    symbols: str | None = None
    format_name: str = "FASTA"
    parts: tuple[tuple[str, str], ...] = ()
    part_names: tuple[str, ...] = ()

    @property
    def n_sites(self) -> int:
        return self.matrix.shape[1]

    @property
    def taxa(self) -> tuple[str, ...]:
        return tuple(row.taxon for row in self.rows)

    def locate(self, taxon: str, column: int) -> int:
        """The offset in the source of a taxon's character in a 0-based column."""
        row = next(row for row in self.rows if row.taxon == taxon)
        cell = _CELL_OR_SET if self.with_sets else _CELL
        for piece, start in zip(row.pieces, row.starts):
            for match in cell.finditer(piece):
                if column == 0:
                    return start + match.start()
                column -= 1
        return row.name_start

    def placed(self, error: InputError) -> InputError:
        """The same error with file, line and column, where it names a taxon."""
        if error.taxon not in self.taxa or error.taxon is None:
            return InputError(error.message, file=self.source.file, site=error.site, hint=error.hint)
        site = error.site
        row = next(row for row in self.rows if row.taxon == error.taxon)
        offset = row.name_start if site is None else self.locate(error.taxon, site - 1)
        return self.source.error(error.message, offset, taxon=error.taxon, site=site, hint=error.hint)


def side_by_side(
    parts: Sequence[CharacterRows],
) -> tuple[dict[str, str], np.ndarray, dict[int, str]]:
    """Taxa of all parts, by what spellings of a name share in NEXUS, in the order they are met; their matrix,
    missing where a part lacks one; and its sets."""
    taxa: dict[str, str] = {}
    for taxon in (taxon for part in parts for taxon in part.taxa):
        taxa.setdefault(folded(taxon), taxon)
    place, sets, columns = {name: i for i, name in enumerate(taxa)}, dict[int, str](), []
    for part in parts:
        block = np.full((len(taxa), part.n_sites), ord("?"), np.uint16)
        shift = np.where(part.matrix >= FIRST_SET, len(sets), 0)
        block[[place[folded(taxon)] for taxon in part.taxa]] = part.matrix + shift
        sets |= {value + len(sets): members for value, members in part.sets.items()}
        columns.append(block)
    return taxa, np.hstack(columns), sets


def check_names(source: SourceText, rows: Sequence[CharacterRow], hint: str) -> None:
    """InputError at the second row that has the name of an earlier one."""
    first: dict[str, CharacterRow] = {}
    for row in rows:
        if row.taxon in first:
            line, _ = source.locate(first[row.taxon].name_start)
            message = f"the taxon '{row.taxon}' is there twice, first in line {line}"
            raise source.error(message, row.name_start, taxon=row.taxon, hint=hint)
        first[row.taxon] = row


def character_matrix(
    source: SourceText, rows: Sequence[CharacterRow], with_sets: bool = False, n_sites: int | None = None
) -> tuple[np.ndarray, dict[int, str]]:
    """The (T, L) matrix of character values, and the sets that values from 256 on stand for.

    Raises InputError at the row whose length differs from n_sites (or from the first row's), for characters
    beyond Latin-1 and for sets that do not end.
    """
    sets: dict[str, int] = {}
    coded = [_row_values(source, row, sets if with_sets else None) for row in rows]
    width = len(coded[0]) if n_sites is None else n_sites
    for row, values in zip(rows, coded):
        if len(values) != width:
            announced = f"NCHAR is {width}" if with_sets else f"the header announces {width}"
            told = announced if n_sites is not None else f"'{rows[0].taxon}' has {width}"
            raise source.error(
                f"'{row.taxon}' has {len(values)} characters, {told}",
                row.name_start,
                taxon=row.taxon,
                hint="Align the sequences to one length, or correct the number of characters.",
            )
    return np.stack(coded), {value: members for members, value in sets.items()}


def check_sets(source: SourceText, row: CharacterRow) -> None:
    """InputError at a '{' or '(' of a row that is never closed."""
    cells = _CELL_OR_SET.findall("".join(row.pieces))
    opening = next((site for site, cell in enumerate(cells) if cell in ("{", "(")), None)
    if opening is not None:
        cell = cells[opening]
        message, hint = f"the set that opens with '{cell}' never ends", "Write a set as in {AC} or (AC)."
        raise source.error(message, _offset_of(row, cell), taxon=row.taxon, site=opening + 1, hint=hint)


def n_cells(text: str, with_sets: bool) -> int:
    """How many sites a piece of text without comments holds."""
    if with_sets and ("{" in text or "(" in text):
        return sum(1 for _ in _CELL_OR_SET.finditer(text))
    return len("".join(text.split()))


def cell_end(text: str, n: int) -> int | None:
    """Where the n-th site of a text with sets ends; None where there are fewer."""
    ends = (match.end() for match in _CELL_OR_SET.finditer(text))
    return next(islice(ends, n - 1, None), None) if n > 0 else 0


def _row_values(source: SourceText, row: CharacterRow, sets: dict[str, int] | None) -> np.ndarray:
    text = "".join("".join(row.pieces).split())
    if sets is not None and _SET_OPENING.search(text):
        return _values_with_sets(source, row, text, sets)
    try:
        return np.frombuffer(text.encode("latin-1"), np.uint8)
    except UnicodeEncodeError as error:
        raise _foreign_character(source, row, text[error.start]) from None


def _values_with_sets(source: SourceText, row: CharacterRow, text: str, sets: dict[str, int]) -> np.ndarray:
    check_sets(source, row)
    cells = _CELL_OR_SET.findall(text)
    values = np.empty(len(cells), np.uint16)
    for site, cell in enumerate(cells):
        if len(cell) > 1:
            members = cell[1:-1].replace(",", "")
            values[site] = sets.setdefault(members, FIRST_SET + len(sets))
        elif ord(cell) > 255:
            raise _foreign_character(source, row, cell)
        else:
            values[site] = ord(cell)
        if len(sets) > 60_000:
            raise source.error(
                "more than 60,000 different sets of states", row.name_start, hint="Check the matrix."
            )
    return values


def _offset_of(row: CharacterRow, character: str) -> int:
    """Where a character stands last in a row."""
    for piece, start in zip(reversed(row.pieces), reversed(row.starts)):
        if character in piece:
            return start + piece.rindex(character)
    return row.name_start


def _foreign_character(source: SourceText, row: CharacterRow, character: str) -> InputError:
    return source.error(
        f"unknown character '{character}'",
        _offset_of(row, character),
        taxon=row.taxon,
        hint="Sequences are plain ASCII text; look for a dash or space that a text editor replaced.",
    )
