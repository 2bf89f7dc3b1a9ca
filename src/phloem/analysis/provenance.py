"""Where a result comes from: program, machine, files and choices, so that it can be repeated."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

from phloem import __version__
from phloem.hardware.machine import detect_hardware
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
        "files": {os.fspath(file): {"sha256": sha256(file)} for file in files},
    }


def _engine(selection: Selection) -> dict[str, Any]:
    return {
        "name": selection.engine,
        "threads": selection.threads,
        "precision": selection.precision,
        "scaling": "exact powers of two, per column and rate category, where needed",
        "reason": selection.reason,
    }


def sha256(file: str | os.PathLike[str]) -> str:
    """Hexadecimal digest of a file's bytes."""
    with open(file, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
