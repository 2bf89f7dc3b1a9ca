"""Lexical rules of NEXUS: nested [comments], 'quoted' words, commands that end in a semicolon.

Nothing here walks a text character by character: flat stretches are matched by one compiled pattern, so
that a TREES block or a matrix of many megabytes costs a few passes of the regular-expression engine.

Rules (Maddison, Swofford, Maddison 1997, Syst. Biol. 46:590), and where real files differ from them:
a quote opens a quoted word only at the start of a word, so that an apostrophe inside a name is harmless;
'' inside quotes is one quote; double quotes delimit too; underscores stay underscores, as in MrBayes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from phloem.errors import InputError
from phloem.io.source_text import SourceText

PUNCTUATION = "(){},;:="

# A quote after one of these (or at the start of the text) opens a quoted word.
_INSIDE_WORD = r"""(?<=[^\s(){},;:=\[\]'"])"""
_FLAT = re.compile(
    r"""(?:[^;\['"]++|\[[^\[\]]*+\]|""" + _INSIDE_WORD + r"""['"]|'[^']*+'|"[^"]*+")*+""", re.DOTALL
)
_SPACE = re.compile(r"(?:\s++|\[[^\[\]]*+\])*+")
_QUOTED = re.compile(r"""'((?:[^']++|'')*+)'|"([^"]*+)\"""")
_BRACKETS = re.compile(r"[\[\]]")
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
    return Token(plain.group(), position, plain.end())


def _unquote(match: re.Match[str]) -> str:
    single = match.group(1)
    return match.group(2) if single is None else single.replace("''", "'")


def quote_name(name: str) -> str:
    """A taxon name as a NEXUS word, quoted where it must be."""
    return "'" + name.replace("'", "''") + "'" if _NEEDS_QUOTES.search(name) else name
