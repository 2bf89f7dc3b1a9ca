"""Where a result comes from: program, machine, files and choices, so that it can be repeated."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

from phloem import __version__
from phloem.errors import shown_file
from phloem.hardware.machine import detect_hardware
from phloem.io.input_file import input_digest
from phloem.pruning.select import Selection


def provenance(files: Iterable[str | os.PathLike[str]], selection: Selection | None = None) -> dict[str, Any]:
    """Version, platform, engine with its reason if one ran, and the SHA-256 of every input file.

    No random number was drawn unless the caller adds a seed.
    """
    engine = {} if selection is None else {"engine": _engine(selection)}
    return engine | {
        "program": "phloem",
        "version": __version__,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "platform": platform.platform(),
        "processor": detect_hardware().cpu,
        "python": platform.python_version(),
        "libraries": {name: metadata.version(name) for name in ("numpy", "scipy", "numba")},
        "files": {shown_file(os.fspath(file)): {"sha256": input_digest(file)} for file in files},
    }


def _engine(selection: Selection) -> dict[str, Any]:
    return {
        "name": selection.engine,
        "threads": selection.threads,
        "precision": selection.precision,
        "scaling": "exact powers of two, per column and rate category, where needed",
        "reason": selection.reason,
    }
