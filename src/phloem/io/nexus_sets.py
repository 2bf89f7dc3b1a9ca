"""Named sets of columns and of taxa: CHARSET and TAXSET, in SETS, ASSUMPTIONS, PAUP and MRBAYES blocks."""

from __future__ import annotations

import re
from collections.abc import Sequence

from phloem.io.nexus import Block
from phloem.io.nexus_tokens import Token

_HOLDERS = ("sets", "assumptions", "paup", "mrbayes", "data", "characters")
_BLANKS_AROUND_RANGE = re.compile(r"\s*([-\\])\s*")


def read_charsets(blocks: Sequence[Block]) -> dict[str, str]:
    """Name → columns as text for `parse_sites`, for every CHARSET."""
    return {name: _column_text(tokens) for name, tokens in _definitions(blocks, "charset")}


def read_taxsets(blocks: Sequence[Block]) -> dict[str, tuple[str, ...]]:
    """Name → the words of its definition (names, numbers or ranges of taxa), for every TAXSET."""
    found = _definitions(blocks, "taxset")
    return {name: tuple(token.text for token in tokens) for name, tokens in found}


def _definitions(blocks: Sequence[Block], kind: str) -> list[tuple[str, list[Token]]]:
    found = []
    for block in blocks:
        if block.name not in _HOLDERS:
            continue
        for command in block.commands:
            if command.name != kind:
                continue
            tokens = command.tokens(punctuation="=")
            equals = next((i for i, token in enumerate(tokens) if token.text == "="), None)
            names = [token for token in tokens[: equals or 0] if token.text != "*"]
            if not names or equals is None:
                raise command.error(
                    f"{kind.upper()} has no name or no '='", hint=f"Write '{kind} name = 1-10;'."
                )
            found.append((names[0].text.lstrip("*"), tokens[equals + 1 :]))
    return found


def _column_text(tokens: Sequence[Token]) -> str:
    words = ("'" + token.text + "'" if token.quoted else token.text for token in tokens)
    return _BLANKS_AROUND_RANGE.sub(r"\1", " ".join(words))
