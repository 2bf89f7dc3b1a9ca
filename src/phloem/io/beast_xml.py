"""Alignment, sets of columns, taxa, dates and traits of BEAST 1 and BEAST 2 files; models, priors and moves
are not read.

BEAST 1: `<taxon id="a"><date value="1982" direction="forwards" units="years"/></taxon>`, and sequences that
name their taxon. BEAST 2: `<data>` with `<sequence taxon="a" value="ACGT"/>`, and a trait of a=1982,b=1990.
Traits: `<taxon id="a"><attr name="location">Fujian</attr></taxon>`; a trait of a=Fujian,b=Hunan.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from phloem.data.coding import guess_datatype
from phloem.errors import InputError, InputWarning, shown_file
from phloem.io.beast_elements import Element, parsed
from phloem.io.beast_sets import column_sets
from phloem.io.blocks_together import together
from phloem.io.character_rows import CharacterRow, CharacterRows, character_matrix, check_names
from phloem.io.date_text import UNKNOWN, DateRange, parse_date
from phloem.io.source_text import SourceText

_BEAST = re.compile(r"\s*(?:<\?xml[^>]*\?>|<!--.*?-->|\s)*<beast\b", re.DOTALL)
_DATATYPES = {"nucleotide": "dna", "aminoacid": "protein", "amino acid": "protein", "binary": "binary"}
_READ = {"taxa", "alignment", "data", "sequence", "patterns", "mergePatterns", "trait"}
_TRAITS = ("trait", "traitSet")
_DATES = ("date", "date-forward", "date-backward", "age")
_PER_YEAR = {"year": 1.0, "month": 12.0, "day": 365.25}  # how many of a unit are a year
_FORMATS = re.compile(r"y+([-/])M+(?:\1d+)?")
_SHOWN = 12


def is_beast(text: str) -> bool:
    """Whether a text is a BEAST file."""
    return _BEAST.match(text) is not None


def read_beast_characters(source: SourceText, block: str | None = None) -> CharacterRows:
    """The alignment of a BEAST file. block: its id where there are several, or "all": side by side, each one
    a part of its id, or one for each set of its columns, taxa that one lacks missing.

    Raises InputError with line for damaged XML, no or several alignments, sequences of unequal lengths.
    """
    root = parsed(source)
    found = _alignments(root, source)
    if not found:
        raise source.error("the file has no sequences", 0, hint="Give the alignment as FASTA or NEXUS.")
    chosen = _chosen(source, found, block)
    _tell_unread(root, source)
    names = [_id(one, found) for one in chosen]
    guess, sets = len(chosen) > 1, column_sets(root, source)
    read = [
        replace(_characters(source, one, guess), charsets=sets.get(name, {}))
        for one, name in zip(chosen, names)
    ]
    return together(read, names) if guess else read[0]


def read_beast_blocks(source: SourceText) -> dict[str, CharacterRows]:
    """The alignments of a BEAST file by their ids, or numbers. Raises InputError as read_beast_characters."""
    found = _alignments(parsed(source), source)
    return {_id(one, found): _characters(source, one, guess=True) for one in found}


def _alignments(root: Element, source: SourceText) -> list[Element]:
    """Those with sequences; InputError where two have one id."""
    found = [one for one in root.every("alignment", "data") if any(one.every("sequence"))]
    ids = [_id(one, found) for one in found]
    for k, name in enumerate(ids):
        if name in ids[:k]:
            told = f"two alignments are called '{name}'"
            raise source.error(told, found[k].offset, hint="Give each an id of its own.")
    return found


def _id(alignment: Element, found: Sequence[Element]) -> str:
    return alignment.attributes.get("id") or str(found.index(alignment) + 1)


def _chosen(source: SourceText, found: Sequence[Element], block: str | None) -> Sequence[Element]:
    """The alignments to read; InputError where there are several and nothing chooses."""
    names = [_id(one, found) for one in found]
    shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
    if block is None and len(found) > 1:
        raise source.error(
            f"the file has {len(found)} alignments",
            found[1].offset,
            hint=f"Choose one by --block: {shown}; or all as parts: --block all --partitions declared.",
        )
    if block is None or block.lower() == "all":
        return found
    if block not in names:
        raise source.error(f"no alignment is called '{block}'", 0, hint=f"Choose all, or one of {shown}.")
    return [found[names.index(block)]]


def _characters(source: SourceText, alignment: Element, guess: bool = False) -> CharacterRows:
    """guess: the data type where the file says none."""
    rows = [_row(sequence, source) for sequence in alignment.every("sequence")]
    check_names(source, rows, "Give each taxon one sequence.")
    matrix, sets = character_matrix(source, rows)
    kind = _DATATYPES.get(alignment.attributes.get("dataType", "").lower())
    if kind is None and guess:
        kind = guess_datatype(matrix)
    return CharacterRows(source, rows, matrix, sets, datatype=kind, format_name="BEAST XML")


def _row(sequence: Element, source: SourceText) -> CharacterRow:
    taxon = sequence.attributes.get("taxon")
    if taxon is None:
        inside = next(sequence.every("taxon"), None)
        taxon = None if inside is None else inside.attributes.get("idref") or inside.attributes.get("id")
    if not taxon:
        raise source.error("this sequence names no taxon", sequence.offset, hint='Add taxon="name".')
    row = CharacterRow(taxon.removeprefix("@"), sequence.offset)
    text = sequence.attributes.get("value") or sequence.text
    for piece in text.split():
        after = row.starts[-1] + len(row.pieces[-1]) if row.starts else sequence.offset
        row.add(piece, max(source.text.find(piece, after), sequence.offset))
    if not row.pieces:
        raise source.error(f"'{taxon}' has no characters", sequence.offset, taxon=taxon, hint="Add them.")
    return row


def read_beast_dates(source: SourceText) -> tuple[dict[str, tuple[int, DateRange]], bool]:
    """The line and date of every dated taxon, and whether they are ages: years before present, negative.

    Units of days and months become years of 365.25 days and of 12 months.
    """
    root = parsed(source)
    found: dict[str, tuple[int, DateRange]] = {}
    backwards: set[bool] = set()
    for taxon in root.every("taxon"):
        date, name = next(taxon.every("date"), None), taxon.attributes.get("id")
        if date is not None and name:
            back = date.attributes.get("direction", "forwards").lower().startswith("back")
            _add(found, name, date, date.attributes.get("value", ""), back, source)
            backwards.add(back)
    for trait in root.every("trait"):
        kind = trait.attributes.get("traitname", "").lower()
        if kind in _DATES:
            back = kind in ("date-backward", "age")
            for name, text in _pairs(trait, source):
                _add(found, name, trait, text, back, source)
            backwards.add(back)
    if not found:
        raise source.error("the file has no dates", 0, hint="Give a table of dates.")
    if len(backwards) > 1:
        raise source.error("some dates count forwards and others backwards", 0, hint="Give a table of dates.")
    _tell_unread(root, source)
    return found, backwards.pop()


def read_beast_traits(source: SourceText) -> dict[str, dict[str, tuple[int, str]]]:
    """Of every trait of taxa that is no date, by its name: the line and text of every taxon that has it."""
    root = parsed(source)
    found: dict[str, dict[str, tuple[int, str]]] = {}
    for taxon in root.every("taxon"):
        name = taxon.attributes.get("id")
        for one in taxon.every("attr"):
            if name and one.attributes.get("name"):
                found.setdefault(one.attributes["name"], {})[name] = one.line, one.text.strip()
    for trait in root.every(*_TRAITS):
        kind = trait.attributes.get("traitname", "")
        if kind and kind.lower() not in _DATES:
            own = {name: (trait.line, text) for name, text in _pairs(trait, source)}
            found.setdefault(kind, {}).update(own)
    if not found:
        raise source.error("the file has no traits of taxa", 0, hint="Give a table of taxa and their states.")
    return found


def _pairs(trait: Element, source: SourceText) -> Iterator[tuple[str, str]]:
    """name=value of a trait of BEAST 2, a date or another."""
    format_of = trait.attributes.get("dateFormat")
    if format_of and not _FORMATS.fullmatch(format_of):
        hint = "Give a table of dates, as in 2020-03-01."
        raise source.error(f"dates written as {format_of[:40]} are not read", trait.offset, hint=hint)
    what = "date" if trait.attributes.get("traitname", "").lower() in _DATES else "state"
    for piece in (trait.attributes.get("value") or trait.text).split(","):
        name, equals, text = piece.strip().rpartition("=")
        if equals:
            yield name.strip(), text.strip()
        elif piece.strip():
            raise source.error(
                f"'{piece.strip()[:60]}' is not name={what}", trait.offset, hint="Correct the trait."
            )


def _add(
    found: dict[str, tuple[int, DateRange]],
    name: str,
    at: Element,
    text: str,
    back: bool,
    source: SourceText,
) -> None:
    unit = at.attributes.get("units", "year").lower().rstrip("s")
    per_year = _PER_YEAR.get(unit)
    if per_year is None:
        raise source.error(f"dates in {unit[:40]} are not read", at.offset, taxon=name, hint="Give years.")
    try:
        date = parse_date(text, name)
    except InputError as error:
        raise source.error(error.message, at.offset, taxon=name, hint=error.hint) from None
    for key in ("precision", "uncertainty"):
        if float_of(at.attributes.get(key)):
            told = f"{_place(source, at.line)}: the {key} of a date is not read: '{name}' counts as exact"
            warnings.warn(told, InputWarning, stacklevel=5)
    if date != UNKNOWN and not date.calendar:
        low, high = date.lower / per_year, date.upper / per_year
        date = DateRange(-high, -low) if back else DateRange(low, high)
    found[name] = at.line, date


def float_of(text: str | None) -> float:
    """The number that an attribute writes, 0 where it writes none."""
    try:
        return float(text or 0)
    except ValueError:
        return 0.0


def _tell_unread(root: Element, source: SourceText) -> None:
    """A warning that lists what else the file says."""
    top = next((one for one in root.children if one.name == "beast"), root)
    other = np.unique([one.name for one in top.children if one.name not in _READ]).tolist()
    if other:
        more = f" and {len(other) - _SHOWN} more" if len(other) > _SHOWN else ""
        listed = f"{', '.join(name[:40] for name in other[:_SHOWN])}{more}"
        file = shown_file(source.file or "the file")
        read = "alignment, sets of columns, taxa, dates and traits"
        told = f"{file}: of a BEAST file, {read} are read; not {listed}"
        warnings.warn(told, InputWarning, stacklevel=1)  # from one place, so that it is told once a file


def _place(source: SourceText, line: int) -> str:
    return f"{shown_file(source.file)}:{line}" if source.file else f"line {line}"
