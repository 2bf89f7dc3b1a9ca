"""Settings as Python callers give them: paths, NumPy's numbers and lists become what their fields say."""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Mapping
from dataclasses import fields
from functools import lru_cache
from inspect import get_annotations
from numbers import Real
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import numpy as np

from phloem.errors import InputError

_WRONG = object()  # a value that its field cannot take
_WORDS = {
    str: "a text",
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    tuple: "several values",
    Mapping: "a dictionary",
    NoneType: "None",
}


def settle_fields(settings: object) -> None:
    """Give the fields of a frozen dataclass the types that their annotations name.

    A path becomes a text, a number of NumPy one of Python, a list a tuple, a text alone a tuple of it:
    records and checkpoints are written from these fields, long after they were given. InputError for a value
    of another type, and for a word that is none of those to choose from.
    """
    for name, kind in _kinds(type(settings)):  # type: ignore[arg-type]
        value = getattr(settings, name)
        settled = _settled(value, kind)
        if settled is _WRONG:
            raise _refusal(name, value, kind)
        if settled is not value:
            object.__setattr__(settings, name, settled)


@lru_cache
def _kinds(record: type) -> list[tuple[str, Any]]:
    """The fields and their types, but for those whose types are known to type checkers only."""
    found = []
    for field in fields(record):
        owner = next(base for base in record.__mro__ if field.name in get_annotations(base))
        try:
            kind = eval(str(field.type), vars(sys.modules[owner.__module__]))
        except NameError:
            continue
        found.append((field.name, kind))
    return found


def _settled(value: Any, kind: Any) -> Any:
    """The value as this type, or _WRONG."""
    origin, within = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return next((found for one in within if (found := _settled(value, one)) is not _WRONG), _WRONG)
    if origin is Literal:
        return next((word for word in within if type(word) is not bool and word == value), _WRONG)
    if origin is tuple:
        return _tuple(value, within)
    wanted = origin or kind
    if not isinstance(wanted, type) or getattr(wanted, "_is_protocol", False):
        return value
    return _plain(value, wanted)


def _plain(value: Any, wanted: type) -> Any:
    if wanted is str:
        text = os.fspath(value) if isinstance(value, os.PathLike) else value
        return _WRONG if not isinstance(text, str) else text if type(text) is str else str(text)
    if wanted in (int, float) and isinstance(value, bool | np.bool_):
        return _WRONG
    if wanted is bool:
        return bool(value) if isinstance(value, bool | np.bool_) else _WRONG
    if wanted is int:
        try:
            return operator.index(value)
        except TypeError:
            return _WRONG
    if wanted is float:
        return value if type(value) in (int, float) else float(value) if isinstance(value, Real) else _WRONG
    return value if isinstance(value, wanted) else _WRONG


def _tuple(value: Any, within: tuple[Any, ...]) -> Any:
    if isinstance(value, str) and within == (str, ...):
        return (str(value),)
    if not isinstance(value, list | tuple | np.ndarray):
        return _WRONG
    kinds = within[:1] * len(value) if within[-1] is ... else within
    if len(kinds) != len(value):
        return _WRONG
    settled = [_settled(one, kind) for one, kind in zip(value, kinds)]
    if any(one is _WRONG for one in settled):
        return _WRONG
    same = type(value) is tuple and all(one is given for one, given in zip(settled, value))
    return value if same else tuple(settled)


def _refusal(name: str, value: Any, kind: Any) -> InputError:
    options = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    choices = [word for one in options if get_origin(one) is Literal for word in get_args(one)]
    if choices and isinstance(value, str):
        listed = f"Choose one of {', '.join(map(str, choices))}."
        return InputError(f"unknown value of '{name}': '{value}'", hint=listed)
    words = " or ".join(dict.fromkeys(_in_words(one) for one in options))
    if isinstance(value, str | Real | NoneType | list | tuple):
        return InputError(f"'{name}' must be {words}, not {value!r:.60}")
    hint = "Files are read later: give their names." if str in options else None
    return InputError(f"'{name}' must be {words}, not of type {type(value).__name__}", hint=hint)


def _in_words(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(map(str, get_args(kind)))
    wanted, within = get_origin(kind) or kind, get_args(kind)
    if wanted is tuple and within[-1] is not ...:
        return f"{len(within)} values"
    return _WORDS.get(wanted, getattr(wanted, "__name__", str(wanted)))
