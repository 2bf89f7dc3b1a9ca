"""Alignments as text: FASTA, PHYLIP, and which of them a file is."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from phloem.data.alignment import Alignment
from phloem.data.alphabet import Alphabet, columns_of
from phloem.data.codons import triplet_states
from phloem.data.doublets import pair_states
from phloem.errors import InputError
from phloem.io.character_rows import CharacterRow, CharacterRows, character_matrix, check_names, n_cells
from phloem.io.cut_names import tell_cut_names
from phloem.io.nexus import warn_of_line
from phloem.io.source_text import SourceText

Format = Literal["fasta", "phylip", "nexus"]
_ENDINGS: dict[str, Format] = {".phy": "phylip", ".phylip": "phylip", ".nex": "nexus", ".nexus": "nexus"}


def format_of(path: str) -> Format:
    """That a file to be written has by its ending."""
    return _ENDINGS.get(os.path.splitext(path)[1].lower(), "fasta")


# FASTA: '>name description' and the sequence below it, wrapped or not.


_FASTA_HEADER = re.compile(r"^>(.*)$", re.MULTILINE)
_COMMENT = re.compile(r"^;.*$", re.MULTILINE)


def is_fasta(text: str) -> bool:
    """Whether a text starts as a FASTA file does."""
    return text.lstrip()[:1] in (">", ";")


def read_fasta(source: SourceText) -> CharacterRows:
    """Read an aligned FASTA file. A name is the header's first word, as in IQ-TREE and RAxML-NG.

    Lines that start with ';' are comments. Raises InputError for text before the first header, headers
    without a name, repeated names, unequal lengths.
    """
    text = _COMMENT.sub(lambda match: " " * len(match.group()), source.text)
    headers = list(_FASTA_HEADER.finditer(text))
    start = len(text) - len(text.lstrip())
    if not headers or headers[0].start() > start:
        raise source.error("expected a header", start, hint="Start each sequence with a line '>name'.")
    ends = [header.start() for header in headers[1:]] + [len(text)]
    rows = [_row(source, text, header, end) for header, end in zip(headers, ends)]
    check_names(source, rows, "Rename one; a name is the header's first word, the rest does not count.")
    tell_cut_names((header.group(1) for header in headers), source.file)
    matrix, sets = character_matrix(source, rows)
    return CharacterRows(source, rows, matrix, sets, format_name="FASTA")


def _row(source: SourceText, text: str, header: re.Match[str], end: int) -> CharacterRow:
    words = header.group(1).split(None, 1)
    if not words:
        raise source.error("the header has no name", header.start(), hint="Write the name after '>'.")
    row = CharacterRow(words[0], header.start(1))
    row.add(text[header.end() : end], header.end())
    return row


def format_fasta(alignment: Alignment, width: int | None = None) -> str:
    """An alignment as FASTA, each sequence on one line or wrapped at `width` columns."""
    records = []
    for taxon, text in zip(alignment.taxa, sequence_texts(alignment)):
        if len(taxon.split()) != 1 or taxon != taxon.strip():
            raise InputError(
                "a FASTA name is one word", taxon=taxon, hint="Rename the taxon, or write NEXUS."
            )
        step = width or max(len(text), 1)
        lines = [text[start : start + step] for start in range(0, len(text), step)]
        records.append("\n".join([f">{taxon}", *lines]))
    return "\n".join(records) + "\n"


# PHYLIP: a line with the numbers of taxa and sites, then names and characters.
#
# Four layouts are in use: names of exactly ten columns (strict) or up to the first blank (relaxed), and taxa
# one after the other (sequential) or in blocks (interleaved). A file does not say which it is: all are tried,
# one in which every taxon has exactly the announced number of characters fits, and those that fit must agree.

PhylipLayout = Literal["sequential", "interleaved", "strict-sequential", "strict-interleaved"]


_HEADER = re.compile(r"\s*(\d{1,12})[ \t]+(\d{1,12})\b([^\n]*)")
_LINE = re.compile(r"[^\n]*\S[^\n]*")
_STRICT_WIDTH = 10


@dataclass(frozen=True)
class _Line:
    text: str
    start: int

    def name_and_rest(self, strict: bool) -> tuple[str, int]:
        """The name, and how many columns it takes."""
        if strict:
            return self.text[:_STRICT_WIDTH].strip(), min(_STRICT_WIDTH, len(self.text))
        indent = len(self.text) - len(self.text.lstrip())
        name = self.text.split(None, 1)[0]
        return name, indent + len(name)


def is_phylip(text: str) -> bool:
    """Whether a text starts as a PHYLIP file does."""
    return _HEADER.match(text) is not None


def read_phylip(source: SourceText, layout: PhylipLayout | None = None) -> CharacterRows:
    """Read a PHYLIP file in any of its four layouts.

    layout: which one; None takes the one that fits. PAML's header options I and S say it too.
    Raises InputError for a header that is none, for a file that fits two layouts and reads differently in
    them, and, where no layout fits, for what is wrong in the likeliest one.
    """
    header = _HEADER.match(source.text)
    if header is None:
        raise source.error("expected the numbers of taxa and sites", 0, hint="Write them in the first line.")
    n_taxa, n_sites = int(header.group(1)), int(header.group(2))
    allowed = _allowed_layouts(source, header, layout)
    lines = [_Line(match.group(), match.start()) for match in _LINE.finditer(source.text, header.end())]
    if not n_taxa or not n_sites or len(lines) < n_taxa:
        raise source.error(
            f"the header announces {n_taxa} taxa of {n_sites} characters, {len(lines)} lines follow",
            header.start(1),
            hint="Correct the header, or complete the file.",
        )
    likeliest = None
    fitting: dict[PhylipLayout, CharacterRows] = {}
    for name in allowed:
        read, strict = _LAYOUTS[name]
        if fitting and len(lines) == n_taxa:
            break  # with one line a taxon, layouts that fit agree
        try:
            fitting[name] = _checked(source, read(source, lines, n_taxa, n_sites, strict), n_sites)
        except InputError as error:
            if likeliest is None or (name == "interleaved" and len(lines) % n_taxa == 0):
                likeliest = error
    if fitting:
        return _only_reading(source, header, fitting)
    assert likeliest is not None
    raise likeliest


def _allowed_layouts(
    source: SourceText, header: re.Match[str], layout: PhylipLayout | None
) -> Sequence[PhylipLayout]:
    """What the user or the header's options leave of the four layouts."""
    options = header.group(3).upper().split()
    letters = {word[0] if word in ("INTERLEAVED", "SEQUENTIAL") else word for word in options}
    if letters - {"I", "S"}:
        raise source.error(
            f"the header goes on with '{header.group(3).strip()[:40]}'",
            header.start(3),
            hint="Of PAML's options only I (interleaved) and S (sequential) are read; for others, such as G, "
            "delete them with their lines, and give genes by --partitions.",
        )
    if layout is not None:
        return [layout]
    wanted = {"I": "interleaved", "S": "sequential"}
    return [name for name in _LAYOUTS if not letters or any(wanted[x] in name for x in letters)]


def _only_reading(
    source: SourceText, header: re.Match[str], fitting: Mapping[PhylipLayout, CharacterRows]
) -> CharacterRows:
    """The one reading there is; InputError where layouts disagree about names or characters.

    Names stand at the beginning of their lines where any does: what is indented goes on.
    """
    flush = {
        name: rows for name, rows in fitting.items() if not any(_indented(source, row) for row in rows.rows)
    }
    (first, found), *others = (flush or fitting).items()
    for name, other in others:
        if other.taxa != found.taxa or not np.array_equal(other.matrix, found.matrix):
            taxon = next((a for a, b in zip(other.taxa, found.taxa) if a != b), found.taxa[0])
            raise source.error(
                f"the file fits two layouts, {first} and {name}, and reads differently in them",
                header.start(1),
                taxon=taxon,
                hint=f"Say which it is: --phylip-layout {first}, or {name}.",
            )
    return found


def _indented(source: SourceText, row: CharacterRow) -> bool:
    line_start = source.text.rfind("\n", 0, row.name_start) + 1
    return source.text[line_start : line_start + 1].isspace()


def _checked(source: SourceText, rows: list[CharacterRow], n_sites: int) -> CharacterRows:
    matrix, sets = character_matrix(source, rows, n_sites=n_sites)
    check_names(source, rows, "Rename one of them.")
    return CharacterRows(source, rows, matrix, sets, format_name="PHYLIP")


def _start_row(source: SourceText, line: _Line, strict: bool) -> CharacterRow:
    name, taken = line.name_and_rest(strict)
    if not name:
        raise source.error("the taxon has no name", line.start, hint="Write a name before the characters.")
    row = CharacterRow(name, line.start)
    row.add(line.text[taken:], line.start + taken)
    return row


def _sequential(
    source: SourceText, lines: list[_Line], n_taxa: int, n_sites: int, strict: bool
) -> list[CharacterRow]:
    rows: list[CharacterRow] = []
    missing = 0
    for line in lines:
        if missing <= 0:
            if len(rows) == n_taxa:
                _look_behind(source, [one for one in lines if one.start >= line.start], n_taxa, n_sites)
                return rows
            rows.append(_start_row(source, line, strict))
            missing = n_sites - n_cells(rows[-1].pieces[0], False)
        else:
            rows[-1].add(line.text, line.start)
            missing -= n_cells(line.text, False)
        if missing < 0:
            row = rows[-1]
            counted = n_sites - missing - n_cells(row.pieces[-1], False)
            before = f"{counted} or " if len(row.pieces) > 1 else ""
            raise source.error(
                f"'{row.taxon}' has {before}{n_sites - missing} characters, the header announces {n_sites}",
                row.name_start,
                taxon=row.taxon,
                hint="Correct the header or the sequence.",
            )
    if len(rows) < n_taxa:
        raise source.error(f"there are {len(rows)} taxa, not {n_taxa}", 0, hint="Correct the header.")
    return rows


def _look_behind(source: SourceText, lines: list[_Line], n_taxa: int, n_sites: int) -> None:
    """What stands behind the last taxon: InputError for another alignment or a tree, as in PAML's files, and
    for another taxon; a warning for notes."""
    line = lines[0]
    for one in lines:
        is_tree = one.text.lstrip().startswith("(")
        if is_tree or _HEADER.fullmatch(one.text.rstrip()):
            what = "a tree" if is_tree else "another alignment"
            hint = "Put it into a file of its own: one alignment a file is read, unlike PAML's."
            raise source.error(f"{what} follows the {n_taxa} taxa", one.start, hint=hint)
    found = 0
    for one in lines:  # the characters of a taxon whose name is the first word
        found += n_cells(one.text, False) - (len(one.text.split()[0]) if one is line else 0)
        if found >= n_sites:
            break
    if found == n_sites:
        raise source.error(f"there are more than {n_taxa} taxa", line.start, hint="Correct the header.")
    warn_of_line(source, source.locate(line.start)[0], "what follows the alignment is not read")


def _interleaved(
    source: SourceText, lines: list[_Line], n_taxa: int, n_sites: int, strict: bool
) -> list[CharacterRow]:
    if len(lines) % n_taxa:
        raise source.error(
            f"{len(lines)} lines are no blocks of {n_taxa} taxa", 0, hint="Give every block one line a taxon."
        )
    rows = [_start_row(source, line, strict) for line in lines[:n_taxa]]
    names = {row.taxon: row for row in rows}
    for number, line in enumerate(lines[n_taxa:]):
        row = rows[number % n_taxa]
        name, taken = line.name_and_rest(strict)
        # Some programs repeat the name in every block.
        skip = taken if names.get(name) is row and taken < len(line.text.rstrip()) else 0
        row.add(line.text[skip:], line.start + skip)
    return rows


_LAYOUTS: dict[PhylipLayout, tuple[Callable[..., list[CharacterRow]], bool]] = {
    "sequential": (_sequential, False),
    "interleaved": (_interleaved, False),
    "strict-sequential": (_sequential, True),
    "strict-interleaved": (_interleaved, True),
}


def format_phylip(alignment: Alignment, strict: bool = False) -> str:
    """An alignment as sequential PHYLIP, with relaxed names, or with names of ten columns."""
    texts = sequence_texts(alignment)
    for taxon in alignment.taxa:
        if strict and len(taxon) > _STRICT_WIDTH:
            raise InputError(
                f"the name has more than {_STRICT_WIDTH} letters",
                taxon=taxon,
                hint="Shorten it, or write relaxed PHYLIP.",
            )
        if len(taxon.split()) != 1 or taxon != taxon.strip():
            raise InputError(
                "a PHYLIP name is one word", taxon=taxon, hint="Rename the taxon, or write NEXUS."
            )
    width = _STRICT_WIDTH if strict else max(len(taxon) for taxon in alignment.taxa) + 2
    lines = [taxon.ljust(width) + text for taxon, text in zip(alignment.taxa, texts)]
    return "\n".join([f"{alignment.n_taxa} {len(texts[0])}", *lines]) + "\n"


# State codes back to characters, for the writers.


_MISSING = "-"
_RESERVED = set("()[]{}<>/\\,;:=*'\"`+~&")


def sequence_texts(alignment: Alignment, with_sets: bool = False) -> list[str]:
    """Each taxon's characters as text; missing data become '-'.

    with_sets: write a set that has no character of its own as {AC} (NEXUS); otherwise it is an InputError.
    """
    symbols = _symbols(alignment)
    wide = [code for code, symbol in enumerate(symbols) if len(symbol) != len(symbols[0])]
    if wide and not with_sets:
        _refuse_sets(alignment, symbols, wide)
    if wide:
        return ["".join([symbols[code] for code in row]) for row in alignment.codes.tolist()]
    width = len(symbols[0])
    table = np.array([symbol.encode("latin-1") for symbol in symbols], f"S{width}")
    return [table[row].tobytes().decode("latin-1") for row in alignment.codes]


def _refuse_sets(alignment: Alignment, symbols: list[str], wide: list[int]) -> None:
    """InputError at the first character that only a set can write."""
    written = np.isin(alignment.codes, wide)
    if written.any():
        row, site = divmod(int(written.argmax()), alignment.n_sites)
        raise InputError(
            f"the states {symbols[alignment.codes[row, site]]} have no single character",
            taxon=alignment.taxa[row],
            site=site + 1,
            hint="Write NEXUS, which has sets of states.",
        )


def _symbols(alignment: Alignment) -> list[str]:
    """The text of every code."""
    alphabet = alignment.alphabet
    width = columns_of(alphabet.kind)
    for state in alphabet.states:
        if len(state) != width or not state.isascii() or not state.isprintable() or _RESERVED & set(state):
            raise InputError(
                f"the state '{state}' has no place in a file", hint="Use one letter or digit each."
            )
    symbols = list(alphabet.states) + [_MISSING * width]
    partial = alignment.state_sets[alphabet.n_states + 1 :]
    return symbols + [_set_symbol(alphabet, allowed) for allowed in partial]


def _set_symbol(alphabet: Alphabet, allowed: np.ndarray) -> str:
    if alphabet.kind in ("codon", "doublet"):
        return _ambiguous_word(alphabet, allowed)
    states = tuple(np.flatnonzero(allowed).tolist())
    for character, members in alphabet.characters.items():
        if members == states:
            return character
    return "{" + "".join(alphabet.states[state] for state in states) + "}"


def _ambiguous_word(alphabet: Alphabet, allowed: np.ndarray) -> str:
    """The IUPAC letters that allow exactly these sense codons, or doublets."""
    masks = np.zeros(columns_of(alphabet.kind), int)
    for state in np.flatnonzero(allowed):
        masks |= [1 << "ACGT".index(letter) for letter in alphabet.states[state]]
    word = np.array([sum(int(mask) << 4 * k for k, mask in enumerate(masks[::-1]))])
    stands_for = pair_states(word) if alphabet.kind == "doublet" else triplet_states(word, alphabet)
    if not np.array_equal(stands_for[0], allowed):
        names = ", ".join(alphabet.states[state] for state in np.flatnonzero(allowed))
        hint = "Use single ones or missing data."
        raise InputError(f"no ambiguous {alphabet.kind} stands for {names}", hint=hint)
    letters: dict[tuple[int, ...], str] = {}
    for letter, members in alphabet.characters.items():
        letters.setdefault(members, letter)
    return "".join(letters[tuple(bit for bit in range(4) if mask >> bit & 1)] for mask in masks)
