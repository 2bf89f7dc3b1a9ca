"""Telling the user that the first run compiles."""

from __future__ import annotations

from collections.abc import Callable

from phloem.kernels.numba.compile import announce_compilation


def on_first_compilation(callback: Callable[[], None]) -> None:
    """Call callback once if this process has to compile, which takes seconds after an installation."""
    announce_compilation(callback)
