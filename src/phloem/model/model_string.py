"""A model string split into pieces, NAME{values}+NAME{values}…, MIX{…} into components; values of each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

import numpy as np

from phloem.errors import ModelError
from phloem.model.record import Parameter
from phloem.model.substitution import Term

_MOST_LISTED = 20  # names in a hint
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


def with_piece_values(term: Term, piece: Piece | None) -> tuple[Parameter, ...]:
    """The parameters of a term with the values its piece of the model string gives them."""
    if piece is None or not piece.has_values:
        return term.parameters
    if not term.parameters:
        raise ModelError(f"'{piece.name}' takes no values", column=piece.column, hint="Remove the braces.")
    numbers = _named(term, piece) or _positional(term, piece)
    return tuple(_fixed(p, numbers, piece) for p in term.parameters)


def _positional(term: Term, piece: Piece) -> dict[str, float]:
    given = [number(text, column) for column, text in piece.positional]
    slots = term.slots
    if term.reference and len(given) == len(slots) + 1:
        if not given[-1] > 0:
            raise ModelError(
                f"the last rate of {piece.name} divides the others and must be above 0", column=piece.column
            )
        given = [g / given[-1] for g in given[:-1]]
    if given and len(given) != len(slots):
        raise ModelError(
            f"{piece.name} takes {len(slots)} value(s), got {len(given)}",
            column=piece.column,
            hint=f"Order: {piece.name}{{{_listed(slots)}}}; leave the braces out for free parameters.",
        )
    return dict(zip(slots, given))


def _listed(slots: Sequence[str]) -> str:
    return ",".join(slots if len(slots) <= _MOST_LISTED else (*slots[:3], "…", slots[-1]))


def _named(term: Term, piece: Piece) -> dict[str, float]:
    names = {e: e for p in term.parameters for e in (p.elements or (p.name,))}
    names |= {alias: p.name for p in term.parameters for alias in p.aliases}
    result: dict[str, float] = {}
    for column, given, text in piece.named:
        key = _in_any_case(given, names)
        if key is None:
            raise unknown_name(f"parameter of {piece.name}", given, names, column)
        if names[key] in result or piece.positional:
            raise ModelError(
                f"'{key}' of {piece.name} is given twice or mixed with values by position",
                column=column,
                hint="Give every value once, all by position or all by name.",
            )
        result[names[key]] = number(text, column)
    return result


def _in_any_case(given: str, names: Iterable[str]) -> str | None:
    """The parameter's name as it is spelled, or the only one that is the same but for case."""
    same = [name for name in names if name.lower() == given.lower()]
    return given if given in same else same[0] if len(same) == 1 else None


def _fixed(parameter: Parameter, numbers: dict[str, float], piece: Piece) -> Parameter:
    wanted = parameter.elements or (parameter.name,)
    given = [e for e in wanted if e in numbers]
    if not given:
        return parameter
    if len(given) < len(wanted):
        missing = ", ".join(e for e in wanted if e not in numbers)
        raise ModelError(
            f"'{parameter.name}' of {piece.name} lacks {missing}",
            column=piece.column,
            hint="Give all of its values or none.",
        )
    value = np.array([numbers[e] for e in wanted]) if parameter.elements else numbers[parameter.name]
    try:
        return replace(parameter, value=parameter.checked(value))
    except ModelError as error:
        raise ModelError(error.message, column=piece.column, hint=error.hint) from None
