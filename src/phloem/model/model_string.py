"""Splitting a model string into its pieces: NAME{values}+NAME{values}…, and MIX{…,…} into its components."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from phloem.errors import ModelError

_SEPARATORS = re.compile(r"[,;/]")


@dataclass(frozen=True)
class Piece:
    """NAME, its 1-based column, the values given by position and those given by name, each (column, text).

    fused: stands behind * and not +. inside: (column, text) between the braces of MIX.
    """

    name: str
    column: int
    positional: tuple[tuple[int, str], ...] = ()
    named: tuple[tuple[int, str, str], ...] = ()
    fused: bool = False
    inside: tuple[int, str] | None = None

    @property
    def has_values(self) -> bool:
        return bool(self.positional or self.named)


@dataclass(frozen=True)
class ComponentText:
    """One component of MIX{…}: its pieces, and the rate and weight written behind it, each (column, text)."""

    pieces: list[Piece]
    rate: tuple[int, str] | None
    weight: tuple[int, str] | None


def split_model(text: str, first_column: int = 1) -> list[Piece]:
    """The pieces of a model string. Values are separated by commas, semicolons or slashes (RAxML-NG)."""
    depth = 0
    for i, c in enumerate(text):
        depth += (c == "{") - (c == "}")
        if depth < 0:
            raise _unbalanced(c, text, first_column + i)
    if depth:
        raise ModelError(
            f"'{{' is never closed in model '{text}'",
            column=first_column + _never_closed(text),
            hint="Add '}'.",
        )
    starts = [0, *(i + 1 for i, c in _outside(text) if c in "+*")]
    ends = [start - 1 for start in starts[1:]] + [len(text)]
    return [_piece(text, start, end, first_column) for start, end in zip(starts, ends)]


def split_components(piece: Piece) -> list[ComponentText]:
    """MIX{model:rate:weight,…} → its components; rates and weights may be left out."""
    if piece.inside is None:
        raise ModelError(
            "MIX needs its components in braces", column=piece.column, hint="For example MIX{JC,HKY{3}+FO}."
        )
    first, text = piece.inside
    commas = [i for i, c in _outside(text) if c == ","]
    result = []
    for start, end in zip([0, *(i + 1 for i in commas)], [*commas, len(text)]):
        part, column = text[start:end], first + start
        colons = [i for i, c in _outside(part) if c == ":"]
        if len(colons) not in (0, 2):
            raise ModelError(
                f"cannot read '{part.strip()}' in MIX",
                column=column,
                hint="Write model, or model:rate:weight, as in MIX{JC:1:0.3,K80{3}:2:0.7}.",
            )
        if not colons:
            result.append(ComponentText(split_model(part, column), None, None))
            continue
        a, b = colons
        rate, weight = (column + a + 1, part[a + 1 : b].strip()), (column + b + 1, part[b + 1 :].strip())
        result.append(ComponentText(split_model(part[:a], column), rate, weight))
    return result


def _outside(text: str) -> Iterator[tuple[int, str]]:
    """The characters that are in no braces, with their places."""
    depth = 0
    for i, c in enumerate(text):
        depth += (c == "{") - (c == "}")
        if depth == 0:
            yield i, c


def _never_closed(text: str) -> int:
    """The place of the last brace that opens and is not closed."""
    opened: list[int] = []
    for i, c in enumerate(text):
        if c == "{":
            opened.append(i)
        elif c == "}":
            opened.pop()
    return opened[-1]


def _unbalanced(character: str, text: str, column: int) -> ModelError:
    return ModelError(
        f"unbalanced '{character}' in model '{text}'", column=column, hint="Write values as NAME{1,2,3}."
    )


def _piece(text: str, start: int, end: int, first_column: int) -> Piece:
    body, fused = text[start:end], start > 0 and text[start - 1] == "*"
    column = first_column + start + len(body) - len(body.lstrip())
    match = re.fullmatch(r"\s*([^\s{}=,;/:]+)\s*(?:\{(.*)\})?\s*", body, re.DOTALL)
    if match is None:
        raise ModelError(
            f"cannot read '{body.strip()}' in model '{text}'",
            column=column,
            hint="A model is NAME{values}+NAME{values}…, for example HKY{3.5}+F+G4{0.5}.",
        )
    name, inside = match.group(1), match.group(2)
    if inside is None or not inside.strip():
        return Piece(name, column, fused=fused)
    at = first_column + start + match.start(2)
    if name.upper() == "MIX":
        return Piece(name, column, fused=fused, inside=(at, inside))
    for i, c in enumerate(inside):
        if c in "{}":
            raise _unbalanced(c, text, at + i)
    positional, named = _values(inside, at)
    return Piece(name, column, positional, named, fused)


def _values(inside: str, column: int):
    positional, named = [], []
    for part in _SEPARATORS.split(inside):
        at = column + len(part) - len(part.lstrip())
        key, equals, value = part.partition("=")
        if equals:
            named.append((at, key.strip(), value.strip()))
        else:
            positional.append((at, part.strip()))
        column += len(part) + 1
    return tuple(positional), tuple(named)


def number(text: str, column: int) -> float:
    try:
        return float(text)
    except ValueError:
        raise ModelError(
            f"'{text}' is not a number", column=column, hint="Write numbers such as 0.5 or 1e-3."
        ) from None


def unknown_name(what: str, name: str, allowed, column: int) -> ModelError:
    """A ModelError that suggests the nearest allowed name and lists them all."""
    names = sorted(set(allowed), key=str.upper)
    upper = {n.upper(): n for n in names}
    near = get_close_matches(name.upper(), list(upper), 1, 0.5)
    guess = f"Did you mean '{upper[near[0]]}'? " if near else ""
    return ModelError(f"unknown {what} '{name}'", column=column, hint=f"{guess}Known: {', '.join(names)}.")
