"""The FORMAT command of a DATA or CHARACTERS block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from phloem.errors import InputError
from phloem.io.nexus import Block, Command, Token

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
            elif value == "(" and not tokens[index - 1].quoted:
                value, index = _bracketed(command, tokens, index)
        else:
            value, index = "yes", index + 1
            if name not in _FLAGS and name not in ("statesformat", "items"):
                raise command.error(
                    f"FORMAT has no option '{name[:40]}'", hint="Check FORMAT for a missing '=' or ';'."
                )
        words[name] = value if name in ("symbols", "equate", "missing", "gap", "matchchar") else value.lower()
    return words, parts


def _bracketed(command: Command, tokens: Sequence[Token], index: int) -> tuple[str, int]:
    """A value in brackets, as in ITEMS=(MEAN VARIANCE), and the index after its ')'."""
    closing = next((i for i in range(index, len(tokens)) if tokens[i].text == ")"), None)
    if closing is None:
        raise command.error("a bracket in FORMAT never closes", hint="Close it with ')'.")
    return " ".join(token.text for token in tokens[index:closing]), closing + 1


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
