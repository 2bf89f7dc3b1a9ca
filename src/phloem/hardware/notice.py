"""Saying, before it happens, that kernels are compiled. Nothing here loads a compiler."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Literal

NOTICES = {
    "cpu": "compiling: the first run after an installation takes up to a minute",
    "gpu": "compiling for this GPU: up to half a minute, once; later runs find it done",
}

_log = logging.getLogger("phloem")
_waiting: dict[str, Callable[[str], None]] = dict.fromkeys(NOTICES, _log.info)


def on_first_compilation(callback: Callable[[str], None]) -> None:
    """Call callback with a sentence before kernels are compiled that the compiler's cache on disk lacks.

    Once for those of the CPU and once for those of the GPU; a later callback takes the place of an earlier
    one. Where there never was any, the sentence is logged (logger "phloem", level INFO).
    """
    _waiting.update(dict.fromkeys(NOTICES, callback))


def compilation_begins(target: Literal["cpu", "gpu"]) -> None:
    """For the compilers' rooms: this process is about to compile."""
    callback = _waiting.pop(target, None)
    if callback is not None:
        callback(NOTICES[target])
