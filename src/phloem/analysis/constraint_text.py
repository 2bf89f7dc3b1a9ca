"""Constraints of trees as they are written: "name: taxa", "name negative: taxa", "name partial: taxa | …"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from phloem.analysis.pieces import taxon_of
from phloem.errors import InputError

HARD, NEGATIVE, PARTIAL = "hard", "negative", "partial"
_HINT = "Write 'name: taxon, …', 'name negative: taxon, …' or 'name partial: taxon, … | taxon, …'."


class NamedConstraint(NamedTuple):
    """kind: all trees have the group (HARD), none has it (NEGATIVE), or all part two sets of taxa, of which
    others may be on either side (PARTIAL). sets: one of taxa, or two of a partial one."""

    name: str
    kind: str
    sets: tuple[tuple[str, ...], ...]


def parse_constraint(text: str, taxa: Sequence[str]) -> NamedConstraint:
    """taxa: of the data, which names find as in NEXUS. InputError for what is no constraint, and for unknown
    taxa."""
    head, colon, named = text.partition(":")
    words = head.split()
    of_kind = len(words) > 1 and words[-1].lower() in (HARD, NEGATIVE, PARTIAL)
    kind = words.pop().lower() if of_kind else HARD
    # A name of a taxon may have a '|': blanks about it tell the one that parts the sets.
    parts = re.split(r"\s\|\s", named) if kind == PARTIAL else [named]
    parts = named.split("|") if kind == PARTIAL and len(parts) == 1 else parts
    sets = [[name.strip() for name in part.split(",")] for part in parts]
    if not colon or not all(all(own) for own in sets) or len(sets) != 1 + (kind == PARTIAL):
        raise InputError(f"'{text}' is no constraint", hint=_HINT)
    chosen = tuple(tuple(dict.fromkeys(taxon_of(name, taxa) for name in own)) for own in sets)
    return NamedConstraint(" ".join(words), kind, chosen)
