"""`--progress FILE`: how far a sampler is, as JSON for whoever watches it from another process."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict

from phloem.analysis.json_record import plain
from phloem.analysis.outputs import check_outputs
from phloem.inference.mcmc.sampler import Progress
from phloem.io.output_file import write_file

SECONDS = 1.0  # between two versions of the file


class ProgressFile:
    """Writes what a sampler tells, once a second at most, so that a reader never sees half a file.

    path: None writes nothing. It is replaced without being asked, but is none of the inputs and none of the
    other files that the sampler writes (InputError).
    """

    def __init__(self, path: str | None, inputs: Sequence[str]) -> None:
        self._path, self._inputs, self._next = path, inputs, 0.0

    def check(self, others: Callable[[], Iterable[str]]) -> None:
        """Before anything is written. others: names of the sampler's files, of which there are sensibly many
        only when its settings were looked at."""
        if self._path is not None:
            check_outputs([self._path, *others()], self._inputs, redo=True)

    def tell(self, now: Progress) -> None:
        """NaN becomes null."""
        if self._path is None or time.monotonic() < self._next:
            return
        record = {name: plain(value) for name, value in asdict(now).items() if name != "diagnosis"}
        found = None if now.diagnosis is None else asdict(now.diagnosis)
        record["convergence"] = found and {name: plain(value) for name, value in found.items()}
        write_file(self._path, json.dumps(record, allow_nan=False) + "\n")
        self._next = time.monotonic() + SECONDS
