"""Splitting a model string into its pieces: NAME{values}+NAME{values}…"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches

from phloem.errors import ModelError

_SEPARATORS = re.compile(r"[,;/]")


@dataclass(frozen=True)
class Piece:
    """NAME, its 1-based column, the values given by position and those given by name, each (column, text)."""

    name: str
    column: int
    positional: tuple[tuple[int, str], ...] = ()
    named: tuple[tuple[int, str, str], ...] = ()

    @property
    def has_values(self) -> bool:
        return bool(self.positional or self.named)


def split_model(text: str) -> list[Piece]:
    """The pieces of a model string. Values are separated by commas, semicolons or slashes (RAxML-NG)."""
    pieces, start, depth = [], 0, 0
    for i, c in enumerate(text + "+"):
        depth += (c == "{") - (c == "}")
        if depth not in (0, 1):
            raise ModelError(
                f"unbalanced '{c}' in model '{text}'", column=i + 1, hint="Write values as NAME{1,2,3}."
            )
        if c == "+" and (depth == 0 or i == len(text)):
            if depth:
                raise ModelError(
                    f"'{{' is never closed in model '{text}'", column=text.rindex("{") + 1, hint="Add '}'."
                )
            pieces.append(_piece(text, start, i))
            start = i + 1
    return pieces


def _piece(text: str, start: int, end: int) -> Piece:
    body = text[start:end]
    column = start + 1 + len(body) - len(body.lstrip())
    match = re.fullmatch(r"\s*([^\s{}=,;/]+)\s*(?:\{(.*)\})?\s*", body, re.DOTALL)
    if match is None:
        raise ModelError(
            f"cannot read '{body.strip()}' in model '{text}'",
            column=column,
            hint="A model is NAME{values}+NAME{values}…, for example HKY{3.5}+F+G4{0.5}.",
        )
    name, inside = match.group(1), match.group(2)
    if inside is None or not inside.strip():
        return Piece(name, column)
    return Piece(name, column, *_values(inside, start + match.start(2) + 1))


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
