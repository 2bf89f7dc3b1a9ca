"""What Numba works out again and again while it compiles, remembered.

Which form of + two float64 numbers have is found by asking a dozen templates, each of which looks its answer
up under all of the compiler's flags: a tenth of the time to compile phloem's chains went into some hundred
questions asked ten thousand times. An answer depends on the types alone.
"""

from __future__ import annotations

from typing import Any

from numba.core.types.functions import BaseFunction

_ask = BaseFunction.get_call_type
_answers: dict[int, tuple[Any, dict]] = {}


def _get_call_type(function: Any, context: Any, args: tuple, kws: dict) -> Any:
    """As BaseFunction.get_call_type, of which only the answers are kept, not the failures."""
    if kws:
        return _ask(function, context, args, kws)
    # by the object: the answer to a question is kept in it, too, for when code is generated
    _, known = _answers.setdefault(id(function), (function, {}))
    if args not in known:
        known[args] = _ask(function, context, args, kws)
    return known[args]


def remember_answers() -> None:
    """From now on, for whatever this process compiles."""
    BaseFunction.get_call_type = _get_call_type  # type: ignore[method-assign, assignment]
