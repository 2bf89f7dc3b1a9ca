"""NEXUS files as blocks of commands; what a block means is left to its reader.

    source = read_source(path)
    for block in read_blocks(source):
        for command in block.commands:
            command.name          # lower case: "matrix", "tree", "translate", …
            command.arguments     # raw text after the name, before the ';' (comments and quotes still in it)
            command.start         # offset of `arguments` in source.text, for source.error(message, offset)

A block that this program has no reader for keeps its `text` verbatim, so that writing gives it back. Nothing
here walks a text character by character: flat stretches are matched by one compiled pattern, so that a TREES
block or a matrix of many megabytes costs a few passes of the regular-expression engine.

Rules (Maddison, Swofford, Maddison 1997, Syst. Biol. 46:590), and where real files differ from them:
comments nest; a quote opens a quoted word only at the start of a word, so that an apostrophe inside a name is
harmless; two single quotes inside quotes are one; double quotes delimit too; underscores stay underscores, as
in MrBayes.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from phloem.errors import InputError, InputWarning, shown_file
from phloem.io.source_text import SourceText, decode

PUNCTUATION = "(){},;:="

# A quote after one of these (or at the start of the text) opens a quoted word.
_INSIDE_WORD = r"""(?<=[^\s(){},;:=\[\]'"])"""
_FLAT = re.compile(
    r"""(?:[^;\['"]++|\[[^\[\]]*+\]|""" + _INSIDE_WORD + r"""['"]|'[^']*+'|"[^"]*+")*+""", re.DOTALL
)
_SPACE = re.compile(r"(?:\s++|\[[^\[\]]*+\])*+")
_QUOTED = re.compile(r"""'((?:[^']++|'')*+)'|"([^"]*+)\"""")
_LAST_END = re.compile(r"end(?:block)?\s*", re.IGNORECASE)
_SWALLOWED = re.compile(r"\n[ \t]*(end(?:block)?)\s*\Z", re.IGNORECASE)  # ends a command that has no ';'
_BRACKETS = re.compile(r"[\[\]]")
_BEGINNING = re.compile(
    r"\s*+(?:#nexus|(?=begin\s+(?:data|characters|mrbayes|taxa|sets)\s*;|(?:set|log|execute)\s[^;:]+;))",
    re.IGNORECASE,
)
# Commands that tell PAUP* or MrBayes what to do and change nothing about the data.
_STEERING = """
agree alltrees bandb bootstrap boot cd cleartrees condense contree cstatus default defaults deroot
describetrees dscores dset execute export factory filter gettrees help hsearch ingroup jackknife leave
link log lscores lset mcmc mcmcp nj nucpair outgroup permute plot prset pscores pset puzzle quit
randtrees reconstruct root roottrees rstatus savedist savetrees set showdist showmatrix showmodel
showtrees startvals sump sumt ss ssp time tonexus treedist tstatus unlink upgma
"""
STEERING = frozenset(_STEERING.split())
# Those that change what is read: between blocks only for a reader that obeys them.
_CHANGING = """
calibrate charset constraint ctype delete exclude include pairs partition report restore taxset
"""
CHANGING = frozenset(_CHANGING.split())
_NEEDS_QUOTES = re.compile(r"""[\s()\[\]{}/\\,;:=*'"`+<>]|^$""")


@dataclass(frozen=True)
class Token:
    """A word, or one punctuation character, at an offset of the text."""

    text: str
    start: int
    end: int
    quoted: bool = False

    def is_word(self, word: str) -> bool:
        """Whether this is that (lower-case) keyword, in any case and unquoted."""
        return not self.quoted and self.text.lower() == word


def end_of_comment(source: SourceText, start: int) -> int:
    """The offset after the comment, nested or not, whose `[` stands at `start`."""
    depth = 0
    for bracket in _BRACKETS.finditer(source.text, start):
        depth += 1 if bracket.group() == "[" else -1
        if depth == 0:
            return bracket.end()
    raise source.error("the comment that opens here never ends", start, hint="Close it with ']'.")


def skip_space(source: SourceText, position: int) -> int:
    """The offset of the first character that is neither white space nor inside a comment."""
    text = source.text
    while True:
        match = _SPACE.match(text, position)
        position = match.end() if match else position
        if position >= len(text) or text[position] != "[":
            return position
        position = end_of_comment(source, position)


def find_semicolon(source: SourceText, position: int) -> int:
    """The offset of the next semicolon outside comments and quotes; -1 when there is none."""
    text = source.text
    while True:
        match = _FLAT.match(text, position)
        position = match.end() if match else position
        if position >= len(text):
            return -1
        if text[position] == ";":
            return position
        if text[position] != "[":
            raise unterminated_quote(source, position)
        position = end_of_comment(source, position)


def unterminated_quote(source: SourceText, start: int) -> InputError:
    """The error for a quote that opens at `start` and never closes."""
    return source.error(
        "the quote that opens here never ends", start, hint="Close it, or double it if it is part of a name."
    )


def tokens(
    source: SourceText, start: int, end: int | None = None, punctuation: str = PUNCTUATION
) -> Iterator[Token]:
    """Words and punctuation of text[start:end], comments left out.

    Every character of `punctuation` is a token of its own; any other character that is not white space
    belongs to a word. Raises InputError for comments and quotes without an end.
    """
    text = source.text
    end = len(text) if end is None else end
    special = re.escape(punctuation)
    word = re.compile(rf"[^\s\[{special}]++")
    position = skip_space(source, start)
    while position < end:
        token = _token_at(source, position, end, punctuation, word)
        yield token
        position = skip_space(source, token.end)


def _token_at(source: SourceText, position: int, end: int, punctuation: str, word: re.Pattern[str]) -> Token:
    text = source.text
    if text[position] in "'\"":
        match = _QUOTED.match(text, position, end)
        if match is None:
            raise unterminated_quote(source, position)
        return Token(_unquote(match), position, match.end(), True)
    plain = word.match(text, position, end)
    if plain is None:
        return Token(text[position], position, position + 1)
    pieces, stop = plain.group(), plain.end()
    while text.startswith("[", stop) and stop < end:  # a comment inside a word does not end it
        after = stop
        while text.startswith("[", after):
            after = end_of_comment(source, after)
        more = None if text[after : after + 1] in ("'", '"') else word.match(text, after, end)
        if more is None:
            break
        pieces, stop = pieces + more.group(), more.end()
    return Token(pieces, position, stop)


def _unquote(match: re.Match[str]) -> str:
    single = match.group(1)
    return match.group(2) if single is None else single.replace("''", "'")


def quote_name(name: str) -> str:
    """A taxon name as a NEXUS word, quoted where it must be."""
    return "'" + name.replace("'", "''") + "'" if _NEEDS_QUOTES.search(name) else name


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
    """Whether a text starts as a NEXUS file does, or with a block, as MrBayes reads files of commands."""
    return _start(text) is not None


def _start(text: str) -> int | None:
    """Where blocks may begin."""
    found = _BEGINNING.match(text)
    return None if found is None else found.end()


def read_blocks(
    text: str | SourceText,
    file: str | None = None,
    enough: Callable[[Sequence[Block]], bool] | None = None,
    between: list[Command] | None = None,
) -> list[Block]:
    """Split a NEXUS text into its blocks.

    A TREES block may lack its END, as in the output of a run that is still going; as MrBayes has it, and with
    a warning, so may one with a matrix where the next block begins, and the last END of the file its ';'.
    Lines that begin with '#' and commands that steer a program may stand between blocks; a warning says that
    the commands are not obeyed. enough: whether the blocks so far are what is wanted; then damage behind them
    ends the reading with a warning. between: takes the commands between blocks, those that change what
    is read too, without a warning; a file of them alone has no block then.
    Raises InputError with line and column for a missing #NEXUS, comments, quotes, commands or blocks that
    do not end, and for other text between blocks.
    """
    source = (
        text
        if isinstance(text, SourceText)
        else SourceText(decode(text.encode(errors="replace"), file), file)
    )
    start = _start(source.text)
    if start is None:
        raise source.error("this is not a NEXUS file", 0, hint="Start the file with '#NEXUS'.")
    blocks: list[Block] = []
    try:
        position = _skip_between(source, start, between)
        while position < len(source.text):
            blocks.append(_read_block(source, position))
            position = _skip_between(source, blocks[-1].end, between)
    except InputError as error:
        if enough is None or not enough(blocks):
            raise
        warn_of_line(source, error.line, f"{error.message}; from here on the file is not read")
    if not blocks and not between:
        raise source.error(
            "the file has no block", len(source.text), hint="Add a block, as in 'begin data; … end;'."
        )
    return blocks


def warn_of_line(source: SourceText, line: int | None, message: str) -> None:
    """A warning about a line of a file that is read all the same."""
    file = "" if source.file is None else f"{shown_file(source.file)}, "
    warnings.warn(f"{file}line {line}: {message}", InputWarning, stacklevel=3)


def _skip_between(source: SourceText, position: int, between: list[Command] | None) -> int:
    """The offset of the next block, past comments, '#' lines and commands that steer a program, which between
    takes; None: a warning tells them."""
    text = source.text
    skipped: list[Command] = []
    while (position := skip_space(source, position)) < len(text):
        if text[position] == "#":
            end_of_line = text.find("\n", position)
            position = len(text) if end_of_line < 0 else end_of_line
            continue
        name = _NAME.match(text, position)
        command = _read_command(source, position) if name else None
        obeyed = between is not None and command is not None and command.name in CHANGING
        if command is None or not (obeyed or command.name in STEERING):
            break
        skipped.append(command)
        position = command.end + 1
    if between is not None:
        between += skipped
    elif skipped:
        names = ", ".join(dict.fromkeys(command.name.upper() for command in skipped))
        warn_of_line(source, skipped[0].line, f"commands between blocks are not obeyed: {names}")
    return position


def find_block(blocks: Iterable[Block], *names: str) -> Block | None:
    """The first block with one of the (lower-case) names."""
    return next((block for block in blocks if block.name in names), None)


def _read_block(source: SourceText, begin: int) -> Block:
    opening = _read_command(source, begin)
    if opening is None or opening.name != "begin":
        raise source.error(
            "expected 'begin NAME;'", begin, hint="Put every command into a block, or check for a stray END;."
        )
    words = opening.tokens()
    name = words[0].text.lower() if words else ""
    if not name:
        raise source.error("the block has no name", begin, hint="Write 'begin data;' or another name.")
    commands: list[Command] = []
    position = skip_space(source, opening.end + 1)
    while position < len(source.text):
        command = _read_command(source, position)
        if command is None and _LAST_END.fullmatch(source.text, position):
            warn_of_line(source, source.locate(position)[0], "the last END has no ';'")
            return Block(name, source, begin, len(source.text), tuple(commands))
        if command is None:
            raise source.error("this command never ends", position, hint="End it with ';'.")
        if command.name in ("end", "endblock"):
            return Block(name, source, begin, command.end + 1, tuple(commands))
        if command.name == "begin":
            _require_semicolon(source, commands)
        if command.name == "begin" and any(one.name == "matrix" for one in commands):
            warn_of_line(source, command.line, f"block '{name}' has no END before this next block")
            return Block(name, source, begin, position, tuple(commands))
        if command.name == "begin":
            raise source.error(
                f"block '{name}' has no END before the next block",
                position,
                hint="Add 'end;' before this line.",
            )
        commands.append(command)
        position = skip_space(source, command.end + 1)
    _require_semicolon(source, commands)
    if name != "trees":
        raise source.error(f"block '{name}' never ends", begin, hint="Add 'end;' after its last command.")
    return Block(name, source, begin, len(source.text), tuple(commands))


def _require_semicolon(source: SourceText, commands: Sequence[Command]) -> None:
    """InputError where a block lacks its END because that stands in the rows of the matrix."""
    last = commands[-1] if commands else None
    swallowed = _SWALLOWED.search(source.text, last.start, last.end) if last is not None else None
    if last is None or last.name != "matrix" or swallowed is None:
        return
    raise source.error(
        "the matrix has no ';' ahead of this END", swallowed.start(1), hint="Put a ';' behind its last row."
    )


def _read_command(source: SourceText, begin: int) -> Command | None:
    """The command at an offset; None when no semicolon ends it. An empty command has the name ''."""
    match = _NAME.match(source.text, begin)
    start = match.end() if match else begin
    end = find_semicolon(source, start)
    return None if end < 0 else Command(match.group().lower() if match else "", source, begin, start, end)
