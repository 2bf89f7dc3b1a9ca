"""Telling the user that the first run compiles."""

from __future__ import annotations

from collections.abc import Callable

from phloem.engine.select import Selection


def on_first_compilation(selection: Selection, callback: Callable[[], None]) -> None:
    """Call callback once if this process has to compile, which takes seconds after an installation."""
    if selection.engine == "cpu":
        from phloem.kernels.numba.compile import announce_compilation

        announce_compilation(callback)
