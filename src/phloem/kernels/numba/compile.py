"""The one door to Numba: every compiled function of phloem goes through `compiled`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba.core import event

_functions: list[Any] = []


def compiled(function: Callable | None = None, **options: Any) -> Any:
    """Compile on first use, cached on disk, without the GIL; options as in numba.njit (such as fastmath)."""
    if function is None:
        return lambda f: compiled(f, **options)
    settings: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"} | options
    dispatcher = numba.njit(**settings)(function)
    _functions.append(dispatcher)
    return dispatcher


def compiled_function_count() -> int:
    """How many functions were declared so far."""
    return len(_functions)


def compiled_specialisation_count() -> int:
    """How many specialisations this process has loaded or compiled; a test holds it small."""
    return sum(len(dispatcher.overloads) for dispatcher in _functions)


class _FirstCompilation(event.Listener):
    """Calls back once, when something has to be compiled and was not found in the cache."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def on_start(self, event: Any) -> None:
        if self.callback is not None:
            callback, self.callback = self.callback, None
            callback()

    def on_end(self, event: Any) -> None:
        """Nothing to say at the end."""


def announce_compilation(callback: Callable[[], None]) -> None:
    """Call callback once if this process has to compile, so that a program can say why it takes seconds."""
    event.register("numba:compile", _FirstCompilation(callback))
