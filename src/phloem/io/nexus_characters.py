"""DATA and CHARACTERS blocks to characters, and an alignment back to a NEXUS file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from phloem.data.alignment import Alignment
from phloem.data.coding import FIRST_SET
from phloem.errors import InputError
from phloem.io.alignment_text import sequence_texts
from phloem.io.character_rows import CharacterRow, CharacterRows, character_matrix, check_names
from phloem.io.nexus import Block, Command, Token, find_block, quote_name, read_blocks, read_charsets
from phloem.io.nexus_matrix import read_rows
from phloem.io.source_text import SourceText

_DATATYPES = {
    "dna": "dna", "rna": "rna", "nucleotide": "dna", "protein": "protein", "standard": "standard",
    "restriction": "binary", "binary": "binary", "symbol": "standard",
}  # fmt: skip
_NOT_READ = {
    "transpose": "Write one row for each taxon, and no TRANSPOSE.",
    "tokens": "Write one symbol for each state, and no TOKENS.",
    "nolabels": "Write every taxon's name in its row, and no NOLABELS.",
}
_FLAGS = ("interleave", "respectcase", "labels", *_NOT_READ)


@dataclass(frozen=True)
class NexusFormat:
    """What FORMAT says; datatype None where it says nothing.

    parts: for MIXED, the (datatype, columns as text) of each part, else empty.
    """

    datatype: str | None = None
    parts: tuple[tuple[str, str], ...] = ()
    missing: str = "?"
    gap: str = "-"
    matchchar: str | None = None
    interleave: bool = False
    symbols: str | None = None
    equate: dict[str, str] = field(default_factory=dict)
    respectcase: bool = False


def read_format(block: Block) -> NexusFormat:
    """The FORMAT command of a block, or the defaults; InputError for what cannot be read."""
    command = block.command("format")
    if command is None:
        return NexusFormat()
    words, parts = _settings(command)
    for option, hint in _NOT_READ.items():
        if words.get(option, "no") != "no":
            raise command.error(f"FORMAT {option.upper()} cannot be read", hint=hint)
    datatype = words.get("datatype")
    if datatype is not None and datatype != "mixed" and datatype not in _DATATYPES:
        hint = f"Use one of {', '.join(_DATATYPES)} or mixed(…)."
        raise command.error(f"there is no datatype '{datatype}'", hint=hint)
    return NexusFormat(
        datatype=None if datatype is None else _DATATYPES.get(datatype, datatype),
        parts=tuple(parts),
        missing=_one_character(command, words, "missing", "?"),
        gap=_one_character(command, words, "gap", "-"),
        matchchar=_one_character(command, words, "matchchar", "") or None,
        interleave=words.get("interleave", "no") != "no",
        symbols=expand_symbols(command, words["symbols"]) if "symbols" in words else None,
        equate=_equates(command, words.get("equate", "")),
        respectcase=words.get("respectcase", "no") != "no",
    )


def read_dimension(block: Block, name: str) -> int | None:
    """NTAX or NCHAR of a block; InputError when it is no positive number."""
    command = block.command("dimensions")
    if command is None:
        return None
    tokens = command.tokens()
    for token, equals, value in zip(tokens, tokens[1:], tokens[2:]):
        if token.is_word(name) and equals.text == "=":
            if not value.text.isascii() or not value.text.isdigit() or not 0 < len(value.text) <= 12:
                raise block.source.error(
                    f"{name.upper()} is no number: '{value.text[:20]}'",
                    value.start,
                    hint="Write a whole number.",
                )
            return int(value.text)
    return None


def expand_symbols(command: Command, text: str) -> str:
    """SYMBOLS without blanks, and with ranges such as 0~3 spelled out."""
    text = "".join(text.split())
    expanded, position = "", 0
    while position < len(text):
        if text[position + 1 : position + 2] == "~" and position + 2 < len(text):
            first, last = ord(text[position]), ord(text[position + 2])
            if not first <= last <= 255:
                raise command.error(f"the symbols '{text[:40]}' are no range", hint="Write as in 0~5.")
            expanded += "".join(chr(code) for code in range(first, last + 1))
            position += 3
        else:
            expanded += text[position]
            position += 1
    return expanded


def _settings(command: Command) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """FORMAT's options as lower-case name → value ("yes" without one), and the parts of MIXED."""
    tokens, index = command.tokens(), 0
    words: dict[str, str] = {}
    parts: list[tuple[str, str]] = []
    while index < len(tokens):
        name = tokens[index].text.lower()
        if index + 2 < len(tokens) and tokens[index + 1].text == "=":
            value = tokens[index + 2].text
            index += 3
            if name == "datatype" and value.lower() == "mixed":
                parts, index = _mixed_parts(command, tokens, index)
        else:
            value, index = "yes", index + 1
            if name not in _FLAGS and name not in ("statesformat", "items"):
                raise command.error(
                    f"FORMAT has no option '{name[:40]}'", hint="Check FORMAT for a missing '='."
                )
        words[name] = value if name in ("symbols", "equate", "missing", "gap", "matchchar") else value.lower()
    return words, parts


def _mixed_parts(command: Command, tokens: Sequence[Token], index: int) -> tuple[list[tuple[str, str]], int]:
    """The parts of MIXED(type:columns, …), and the index after its ')'."""
    hint = "Write as in datatype=mixed(standard:1-166,dna:167-3246)."
    closing = next((i for i in range(index, len(tokens)) if tokens[i].text == ")"), None)
    if closing is None or tokens[index].text != "(":
        raise command.error("MIXED has no parts", hint=hint)
    parts: list[tuple[str, str]] = []
    for position in range(index + 1, closing):
        text = tokens[position].text
        if position + 1 < closing and tokens[position + 1].text == ":":
            if text.lower() not in _DATATYPES:
                raise command.error(f"there is no datatype '{text}'", hint=hint)
            parts.append((_DATATYPES[text.lower()], ""))
        elif parts and text != ":":
            parts[-1] = (parts[-1][0], f"{parts[-1][1]} {text}".strip())
        elif text != ":":
            raise command.error("MIXED starts without a datatype", hint=hint)
    if not parts or not all(columns.strip(", ") for _, columns in parts):
        raise command.error("a part of MIXED has no columns", hint=hint)
    return [(kind, columns.strip(", ")) for kind, columns in parts], closing + 1


def _one_character(command: Command, words: dict[str, str], name: str, default: str) -> str:
    value = words.get(name, default)
    if len(value) > 1 or (value and (ord(value) > 255 or value in "{}()[];'\"")):
        raise command.error(
            f"{name.upper()} must be one character, not '{value[:20]}'", hint=f"Write {name}=?."
        )
    return value


def _equates(command: Command, text: str) -> dict[str, str]:
    """EQUATE="R={AG} x=0" as character → the characters it stands for."""
    pairs: dict[str, str] = {}
    compact = "".join(text.split())
    position = 0
    while position < len(compact):
        key, equals, value = compact[position], compact[position + 1 : position + 2], compact[position + 2 :]
        closing = {"{": "}", "(": ")"}.get(value[:1])
        length = 1 if closing is None else value.find(closing) + 1
        if equals != "=" or not value or not length or ord(key) > 255:
            raise _bad_equate(command, compact)
        pairs[key] = value[:length].strip("{}()").replace(",", "")
        position += 2 + length
        if not pairs[key]:
            raise _bad_equate(command, compact)
    return pairs


def _bad_equate(command: Command, text: str) -> InputError:
    return command.error(f"EQUATE cannot be read: '{text[:40]}'", hint='Write as in equate="R={AG} x=0".')


_WRITTEN_DATATYPES = {"codon": "dna", "binary": "standard", "custom": "standard"}


def read_nexus_characters(source: SourceText) -> CharacterRows:
    """The characters of a NEXUS file's DATA or CHARACTERS block.

    Afterwards gaps are '-', missing data '?', matching and equated characters what they stand for.
    """
    blocks = read_blocks(source)
    block = find_block(blocks, "data", "characters")
    if block is None:
        found = ", ".join(block.name for block in blocks)
        raise source.error(
            f"there is no DATA or CHARACTERS block, only {found}", 0, hint="Name the data file."
        )
    command = block.command("matrix")
    if command is None:
        raise block.error(f"block '{block.name}' has no MATRIX", hint="Add 'matrix' and the characters.")
    dropped = block.command("eliminate")
    if dropped is not None:
        raise dropped.error("ELIMINATE cannot be read", hint="Delete it, and choose the sites by --sites.")
    form = read_format(block)
    n_taxa, n_sites = _n_taxa(blocks, block), read_dimension(block, "nchar")
    rows = read_rows(command, form.interleave, n_taxa, n_sites)
    if not rows:
        raise command.error("the matrix is empty", hint="Write one row for each taxon.")
    check_names(source, rows, "Rename one of them.")
    matrix, sets = character_matrix(source, rows, True, n_sites)
    if n_taxa is not None and len(rows) != n_taxa:
        raise command.error(
            f"the matrix has {len(rows)} taxa, NTAX is {n_taxa}", hint="Correct NTAX or the matrix."
        )
    matrix, sets = _plain_characters(source, rows, matrix, sets, form)
    return CharacterRows(
        source,
        rows,
        matrix,
        sets,
        with_sets=True,
        charsets=read_charsets(blocks),
        datatype=form.datatype,
        symbols=form.symbols,
        format_name="NEXUS",
        parts=form.parts,
    )


def _n_taxa(blocks: Sequence[Block], block: Block) -> int | None:
    n_taxa = read_dimension(block, "ntax")
    taxa = find_block(blocks, "taxa")
    return read_dimension(taxa, "ntax") if n_taxa is None and taxa is not None else n_taxa


def _plain_characters(
    source: SourceText,
    rows: Sequence[CharacterRow],
    matrix: np.ndarray,
    sets: dict[int, str],
    form: NexusFormat,
) -> tuple[np.ndarray, dict[int, str]]:
    """Replace MATCHCHAR by the first row's characters, GAP by '-', MISSING by '?', EQUATE by its meaning."""
    if form.matchchar is not None:
        matches = matrix == ord(form.matchchar)
        if matches[0].any():
            site = int(matches[0].argmax()) + 1
            row = rows[0]
            message = f"the first taxon has the MATCHCHAR '{form.matchchar}'"
            raise source.error(
                message, row.name_start, taxon=row.taxon, site=site, hint="Write its characters."
            )
        matrix = np.where(matches, matrix[0], matrix)
    table = np.arange(FIRST_SET + len(sets) + len(form.equate), dtype=np.uint16)
    sets = dict(sets)
    for key, meaning in form.equate.items():
        if len(meaning) == 1:
            table[_values(key, form)] = ord(meaning) if ord(meaning) < 256 else ord(key)
        else:
            value = FIRST_SET + len(sets)
            sets[value] = meaning
            table[_values(key, form)] = value
    table[ord(form.gap or "-")] = ord("-")
    table[_values(form.missing or "?", form)] = ord("?")
    if (table[:256] == np.arange(256)).all():
        return matrix, sets
    return table[matrix], sets


def _values(character: str, form: NexusFormat) -> list[int]:
    """A character's value, and that of its other case unless FORMAT says RESPECTCASE or equates it too."""
    cases = {
        character,
        *(c for c in (character.lower(), character.upper()) if len(c) == 1 and c not in form.equate),
    }
    return [ord(case) for case in ({character} if form.respectcase else cases) if ord(case) < 256]


def format_nexus(alignment: Alignment, foreign: Sequence[Block] = ()) -> str:
    """An alignment as a NEXUS DATA block; `foreign` blocks follow it verbatim.

    Missing data become gaps; codons are written as nucleotides, binary data as standard with symbols 01.
    """
    kind = alignment.alphabet.kind
    if any(not taxon for taxon in alignment.taxa):
        raise InputError("a taxon has no name", hint="Name every taxon.")
    texts = sequence_texts(alignment, with_sets=True)
    n_sites = alignment.n_sites * (3 if kind == "codon" else 1)
    symbols = ""
    if kind in ("standard", "binary", "custom"):
        symbols = f' symbols="{"".join(alignment.alphabet.states)}"'
        symbols += " respectcase" if alignment.alphabet.case_sensitive else ""
    names = [quote_name(taxon) for taxon in alignment.taxa]
    width = max(len(name) for name in names) + 2
    lines = [
        "#NEXUS",
        "begin data;",
        f"  dimensions ntax={alignment.n_taxa} nchar={n_sites};",
        f"  format datatype={_WRITTEN_DATATYPES.get(kind, kind)} missing=? gap=-{symbols};",
        "  matrix",
        *(f"    {name.ljust(width)}{text}" for name, text in zip(names, texts)),
        "  ;",
        "end;",
        *(block.text for block in foreign),
    ]
    return "\n".join(lines) + "\n"
