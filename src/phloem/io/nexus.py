"""NEXUS files as blocks of commands; what a block means is left to its reader.

    source = read_source(path)
    for block in read_blocks(source):
        for command in block.commands:
            command.name          # lower case: "matrix", "tree", "translate", …
            command.arguments     # raw text after the name, before the ';' (comments and quotes still in it)
            command.start         # offset of `arguments` in source.text, for source.error(message, offset)

A block that this program has no reader for keeps its `text` verbatim, so that writing gives it back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from phloem.errors import InputError
from phloem.io.nexus_tokens import Token, find_semicolon, skip_space, tokens
from phloem.io.source_text import SourceText, decode

_NAME = re.compile(r"[^\s\[;=(),'\"]+")


@dataclass(frozen=True)
class Command:
    """One command: source.text[start:end] are its arguments, `begin` is where its name stands."""

    name: str
    source: SourceText
    begin: int
    start: int
    end: int

    @property
    def arguments(self) -> str:
        return self.source.text[self.start : self.end]

    @property
    def line(self) -> int:
        return self.source.locate(self.begin)[0]

    def tokens(self, punctuation: str = "(){},;:=") -> list[Token]:
        """The words and punctuation of the arguments, comments left out."""
        return list(tokens(self.source, self.start, self.end, punctuation))

    def error(self, message: str, hint: str | None = None) -> InputError:
        """An error that points at this command."""
        return self.source.error(message, self.begin, hint=hint)


@dataclass(frozen=True)
class Block:
    """A block: its lower-case name, its commands in order, and its text from BEGIN to END;."""

    name: str
    source: SourceText
    begin: int
    end: int
    commands: tuple[Command, ...]

    @property
    def line(self) -> int:
        return self.source.locate(self.begin)[0]

    @property
    def text(self) -> str:
        return self.source.text[self.begin : self.end]

    def command(self, name: str) -> Command | None:
        """The first command of that (lower-case) name."""
        return next((command for command in self.commands if command.name == name), None)

    def error(self, message: str, hint: str | None = None) -> InputError:
        """An error that points at the block's first line."""
        return self.source.error(message, self.begin, hint=hint)


def is_nexus(text: str) -> bool:
    """Whether a text starts as a NEXUS file does."""
    return text.lstrip()[:6].lower() == "#nexus"


def read_blocks(text: str | SourceText, file: str | None = None) -> list[Block]:
    """Split a NEXUS text into its blocks.

    A TREES block may lack its END, as in the output of a run that is still going; any other block may not.
    Raises InputError with line and column for a missing #NEXUS, comments, quotes, commands or blocks that
    do not end, and for text between blocks.
    """
    source = (
        text
        if isinstance(text, SourceText)
        else SourceText(decode(text.encode(errors="replace"), file), file)
    )
    if not is_nexus(source.text):
        raise source.error("this is not a NEXUS file", 0, hint="Start the file with '#NEXUS'.")
    position = skip_space(source, len(source.text) - len(source.text.lstrip()) + 6)
    blocks = []
    while position < len(source.text):
        block = _read_block(source, position)
        blocks.append(block)
        position = skip_space(source, block.end)
    if not blocks:
        raise source.error(
            "the file has no block", len(source.text), hint="Add a block, as in 'begin data; … end;'."
        )
    return blocks


def find_block(blocks: Iterable[Block], *names: str) -> Block | None:
    """The first block with one of the (lower-case) names."""
    return next((block for block in blocks if block.name in names), None)


def _read_block(source: SourceText, begin: int) -> Block:
    opening = _read_command(source, begin)
    if opening is None or opening.name != "begin":
        raise source.error(
            "expected 'begin NAME;'", begin, hint="Put every command into a block, or check for a stray END;."
        )
    name = opening.arguments.split("[")[0].strip().strip("'").lower()
    if not name:
        raise source.error("the block has no name", begin, hint="Write 'begin data;' or another name.")
    commands: list[Command] = []
    position = skip_space(source, opening.end + 1)
    while position < len(source.text):
        command = _read_command(source, position)
        if command is None:
            raise source.error("this command never ends", position, hint="End it with ';'.")
        if command.name in ("end", "endblock"):
            return Block(name, source, begin, command.end + 1, tuple(commands))
        if command.name == "begin":
            raise source.error(
                f"block '{name}' has no END before the next block",
                position,
                hint="Add 'end;' before this line.",
            )
        commands.append(command)
        position = skip_space(source, command.end + 1)
    if name != "trees":
        raise source.error(f"block '{name}' never ends", begin, hint="Add 'end;' after its last command.")
    return Block(name, source, begin, len(source.text), tuple(commands))


def _read_command(source: SourceText, begin: int) -> Command | None:
    """The command at an offset; None when no semicolon ends it. An empty command has the name ''."""
    match = _NAME.match(source.text, begin)
    start = match.end() if match else begin
    end = find_semicolon(source, start)
    return None if end < 0 else Command(match.group().lower() if match else "", source, begin, start, end)
