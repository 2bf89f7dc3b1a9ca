"""Named sets of columns and of taxa: CHARSET and TAXSET, in SETS, ASSUMPTIONS, PAUP and MRBAYES blocks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from phloem.io.nexus import Block, Command
from phloem.io.nexus_tokens import Token

SET_HOLDERS = ("sets", "assumptions", "paup", "mrbayes", "data", "characters")
_BLANKS_AROUND_RANGE = re.compile(r"\s*([-\\])\s*")


@dataclass(frozen=True)
class NamedSet:
    """A CHARSET or TAXSET: its name, the words of its definition, and the command they stand in."""

    name: str
    words: tuple[Token, ...]
    command: Command

    @property
    def columns(self) -> str:
        """The definition of a CHARSET as text for `parse_sites`."""
        words = ("'" + word.text + "'" if word.quoted else word.text for word in self.words)
        return _BLANKS_AROUND_RANGE.sub(r"\1", " ".join(words))


def read_charsets(blocks: Sequence[Block]) -> dict[str, str]:
    """Name → columns as text for `parse_sites`, for every CHARSET."""
    return {name: found.columns for name, found in named_sets(blocks, "charset").items()}


def read_taxsets(blocks: Sequence[Block]) -> dict[str, tuple[str, ...]]:
    """Name → the words of its definition (names, numbers or ranges of taxa), for every TAXSET."""
    found = named_sets(blocks, "taxset")
    return {name: tuple(word.text for word in taxset.words) for name, taxset in found.items()}


def named_sets(blocks: Sequence[Block], kind: str) -> dict[str, NamedSet]:
    """Name → definition, for every "charset" or "taxset".

    Raises InputError for one without a name, and for two of one name (in any case) that differ.
    """
    found: dict[str, NamedSet] = {}
    first: dict[str, NamedSet] = {}
    for command in (c for block in blocks if block.name in SET_HOLDERS for c in block.commands):
        if command.name != kind:
            continue
        tokens = command.tokens(punctuation="=")
        equals = next((i for i, token in enumerate(tokens) if token.text == "="), None)
        names = [token for token in tokens[: equals or 0] if token.text != "*"]
        if not names or equals is None:
            raise command.error(f"{kind.upper()} has no name or no '='", hint=f"Write '{kind} name = 1-10;'.")
        one = NamedSet(names[0].text.lstrip("*"), tuple(tokens[equals + 1 :]), command)
        other = first.setdefault(one.name.lower(), one)
        if other.columns.lower() != one.columns.lower():
            raise command.error(
                f"the {kind} '{one.name}' is there twice, first in line {other.command.line}",
                hint="Rename one of them.",
            )
        if other is one:
            found[one.name] = one
    return found
