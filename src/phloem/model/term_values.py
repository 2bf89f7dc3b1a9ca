"""Values in braces given to the parameters of a term."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from phloem.errors import ModelError
from phloem.model.model_string import Piece, number, unknown_name
from phloem.model.parameter import Parameter
from phloem.model.substitution import Term

_MOST_LISTED = 20  # names in a hint


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
