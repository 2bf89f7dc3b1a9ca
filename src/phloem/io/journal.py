"""What is done of a work of many pieces, a line of JSON a piece, from which a killed work goes on."""

from __future__ import annotations

import json
import os
import time
from glob import escape, glob
from pathlib import Path
from typing import Any

from phloem.errors import InputError
from phloem.io.output_file import appended_text, write_file


class Journal:
    """A line a piece that is done, behind one that says of which work.

    identity: of data and settings: another work's file is refused, or gone where replace says so. rank: of
    the process that writes; each has a file of its own, and all are read. seconds: pieces that are done
    within so many are written together; a kill loses as much.
    """

    def __init__(
        self, path: str, identity: str, replace: bool = False, rank: int = 0, seconds: float = 0.0
    ) -> None:
        self._first, self._identity, self._replace, self._seconds = path, identity, replace, seconds
        self._path = f"{path}.{rank}" if rank else path
        self._waiting: list[dict[str, Any]] = []
        self._last = time.monotonic()

    def of(self, rank: int) -> Journal:
        """The same work, by another process."""
        return Journal(self._first, self._identity, self._replace, rank, self._seconds)

    def read(self) -> list[dict[str, Any]]:
        """What all processes have done; InputError for files of another work."""
        found: list[dict[str, Any]] = []
        for path in self._all():
            head, *lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines() or [""]
            if head == self._identity:
                found += [record for record in map(_parsed, lines) if record is not None]
            elif self._replace:
                os.unlink(path)
            else:
                raise of_another_analysis(path)
        return found

    def add(self, record: dict[str, Any]) -> None:
        self._waiting.append(record)
        if time.monotonic() - self._last < self._seconds:
            return
        if not os.path.exists(self._path):
            write_file(self._path, self._identity + "\n")
        with appended_text(self._path, "what was done before is kept") as stream:
            # A line that a kill cut short stays alone.
            stream.write("".join("\n" + json.dumps(one) + "\n" for one in self._waiting))
        self._waiting, self._last = [], time.monotonic()

    def remove(self) -> None:
        """That of every process."""
        for path in self._all():
            os.unlink(path)

    def _all(self) -> list[str]:
        others = [path for path in glob(f"{escape(self._first)}.*") if path.rsplit(".", 1)[1].isdigit()]
        return [*([self._first] if os.path.exists(self._first) else []), *sorted(others)]


def of_another_analysis(path: str) -> InputError:
    """Why a checkpoint is not gone on from."""
    hint = "Give another --prefix, or --redo to begin anew."
    return InputError("this checkpoint is of another analysis", file=path, hint=hint)


def _parsed(line: str) -> dict[str, Any] | None:
    """None of a line that a kill cut short, and of an empty one."""
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None
