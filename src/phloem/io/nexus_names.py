"""Names by which the blocks of a NEXUS file refer to each other and to taxa: titles, links, labels, sets.

A block may have a TITLE, and LINK says which TAXA or CHARACTERS block it is about (Maddison and Maddison's
Mesquite; not in the standard of 1997). Names are equal if they differ in case only, or by a blank for an
underscore, as the standard has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from phloem.io.nexus import Block, Command, Token, warn_of_line
from phloem.tree.match import folded


def title(block: Block) -> str | None:
    """What TITLE calls a block."""
    command = block.command("title")
    words = command.tokens() if command is not None else []
    return words[0].text if words else None


def link(block: Block, kind: str) -> Token | None:
    """The title that LINK names for blocks of a kind ("taxa", "characters")."""
    for command in (c for c in block.commands if c.name == "link"):
        words = command.tokens()
        for word, equals, value in zip(words, words[1:], words[2:]):
            if word.is_word(kind) and equals.text == "=":
                return value
    return None


def linked_block(block: Block, kind: str, candidates: Sequence[Block]) -> Block | None:
    """The block of a kind that LINK names, or the only one, or None where there is none.

    Raises InputError for a title that no block has, and without LINK where there are several.
    """
    wanted = link(block, kind)
    if wanted is None:
        if len(candidates) > 1:
            raise block.error(
                f"the file has {len(candidates)} {kind.upper()} blocks, and this block does not say which "
                "one it is about",
                hint=f"Add 'link {kind} = TITLE;' to the block.",
            )
        return candidates[0] if candidates else None
    found = [one for one in candidates if folded(title(one) or "") == folded(wanted.text)]
    if not found and len(candidates) == 1 and title(candidates[0]) is None:
        return candidates[0]
    if not candidates:
        return None
    if len(found) != 1:
        told = "no" if not found else "more than one"
        raise block.source.error(
            f"{told} {kind.upper()} block has the title '{wanted.text[:60]}'",
            wanted.start,
            hint=f"Correct LINK, or the TITLE of the {kind.upper()} block.",
        )
    return found[0]


def taxa_block(blocks: Sequence[Block], block: Block) -> Block | None:
    """The TAXA block that a block's numbers and names of taxa are of."""
    taxa = [one for one in blocks if one.name == "taxa"]
    labels = {tuple(folded(name) for name in taxon_labels(one)) for one in taxa}
    if link(block, "taxa") is None and len(labels) == 1:
        return taxa[0]  # copies of one block
    return linked_block(block, "taxa", taxa)


def taxon_labels(block: Block | None) -> list[str]:
    """TAXLABELS of a TAXA block (or one with NEWTAXA), in order; [] without.

    Raises InputError for a number of them that is not NTAX, and for a name that is there twice.
    """
    command = None if block is None else block.command("taxlabels")
    if block is None or command is None:
        return []
    words = command.tokens()
    first: dict[str, Token] = {}
    for word in words:
        other = first.setdefault(word.text, word)
        if other is not word:
            line = block.source.locate(other.start)[0]
            raise block.source.error(
                f"the taxon '{word.text}' is there twice in TAXLABELS, first in line {line}",
                word.start,
                taxon=word.text,
                hint="Rename one of them.",
            )
    announced = read_dimension(block, "ntax")
    if announced is not None and announced != len(words):
        raise command.error(
            f"TAXLABELS names {len(words)} taxa, NTAX is {announced}",
            hint="Correct NTAX or TAXLABELS; quote names that contain blanks.",
        )
    return [word.text for word in words]


def read_dimension(block: Block, name: str) -> int | None:
    """NTAX or NCHAR of a block; InputError when it is no positive number, and for a word without a value,
    as there is where the ';' is missing and the next command would be no more obeyed."""
    command = block.command("dimensions")
    if command is None:
        return None
    tokens = command.tokens()
    for before, token, equals in zip((None, *tokens), tokens, (*tokens[1:], None)):
        around = {side.text for side in (before, equals) if side is not None}
        if "=" not in around | {token.text} and not token.is_word("newtaxa"):
            raise block.source.error(
                f"DIMENSIONS has no option '{token.text[:40]}'",
                token.start,
                hint="Check DIMENSIONS for a missing '=' or ';'.",
            )
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


_CHANGES = ("exclude", "delete", "exset")  # what would leave out characters or taxa
_READ = (
    "charset",
    "taxset",
    "partition",
    "title",
    "log",
    "quit",
    "set",
    "",
)  # of MRBAYES: read, or of no weight


def warn_of_commands(blocks: Iterable[Block], quiet: bool = False) -> None:
    """A warning for commands that reading an alignment does not obey: those that leave out sites or taxa, and
    the analysis that a MRBAYES block describes. quiet: not of that block, which the caller obeys."""
    holders = [name for name in SET_HOLDERS if not (quiet and name == "mrbayes")]
    for block in (one for one in blocks if one.name in holders):
        for command in block.commands:
            name, _, members = command.arguments.partition("=")
            obeyed = command.name == "exset" and ("*" not in name or not members.strip())
            if command.name in _CHANGES and not obeyed:
                told = f"{command.name.upper()} in block '{block.name}' is not obeyed: all is read"
                warn_of_line(block.source, command.line, f"{told} (--sites chooses sites)")
        others = [c.name.upper()[:20] for c in block.commands if c.name not in (*_READ, *_CHANGES)]
        if block.name == "mrbayes" and others:
            names = ", ".join(dict.fromkeys(others))
            warn_of_line(block.source, block.line, f"in block 'mrbayes' are not obeyed: {names[:200]}")


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
