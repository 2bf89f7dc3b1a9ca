"""`--progress FILE`: how far a sampler, a search or a fit is, as JSON for whoever watches from elsewhere."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from phloem.analysis.json_record import plain
from phloem.analysis.outputs import check_outputs
from phloem.io.output_file import write_file

if TYPE_CHECKING:
    from phloem.inference.mcmc.sampler import Progress
    from phloem.inference.ml.search_state import Doing

SECONDS = 1.0  # between two versions of the file


class ProgressFile:
    """Writes what it is told, once a second at most, so that a reader never sees half a file.

    path: None writes nothing. It is replaced without being asked, but is none of the inputs and none of the
    other files that the command writes (InputError).
    """

    def __init__(self, path: str | None, inputs: Sequence[str]) -> None:
        self._path, self._inputs, self._next = path, inputs, 0.0
        self._stage, self._since, self._steps = "", 0.0, 0

    def check(self, others: Callable[[], Iterable[str]]) -> None:
        """Before anything is written. others: names of the command's files, of which there are sensibly many
        only when its settings were looked at."""
        if self._path is not None:
            check_outputs([self._path, *others()], self._inputs, redo=True)

    def tell(self, now: Progress) -> None:
        """Of a sampler. NaN becomes null."""
        record = asdict(now) | {"convergence": None if now.diagnosis is None else asdict(now.diagnosis)}
        del record["diagnosis"]
        self._write(record)

    def teller(self, show: Callable[[str], None]) -> Callable[[Doing, float], None]:
        """Tells the file, and a line of the terminal."""

        def told(doing: Doing, log_likelihood: float) -> None:
            left = self.tell_step(doing, log_likelihood)
            end = "" if left is None else f", {doing.left} {in_words(left)} left"
            show(f"{doing}: log-likelihood {log_likelihood:.4f}{end}")

        return told

    def tell_step(self, doing: Doing, log_likelihood: float) -> float | None:
        """Of a search or a fit: steps a second since its stage began, where they are alike, and how long the
        others take if all take as long, which is returned. A new stage is written at once."""
        now, begins = time.monotonic(), doing.stage != self._stage
        if begins:
            self._stage, self._since, self._steps = doing.stage, now, 0
        else:
            self._steps += 1
        passed, alike = now - self._since, doing.left is not None or doing.total is None
        speed = self._steps / passed if alike and self._steps and passed > 0 else None
        left = (doing.total - doing.done) / speed if speed and doing.total is not None else None
        told = doing._asdict() | {"step": str(doing), "left": None if left is None else doing.left}
        numbers = {"log_likelihood": log_likelihood, "speed": speed, "seconds_left": left}
        self._write(told | numbers, at_once=begins)
        return left

    def tell_fit(self, evaluation: int, log_likelihood: float) -> None:
        """Of a fit, which ends when nobody knows."""
        from phloem.inference.ml.search_state import Doing

        self.tell_step(Doing("fit", evaluation, None, f"evaluation {evaluation}"), log_likelihood)

    def _write(self, record: dict[str, Any], at_once: bool = False) -> None:
        if self._path is None or (time.monotonic() < self._next and not at_once):
            return
        write_file(self._path, json.dumps(plain(record), allow_nan=False) + "\n")
        self._next = time.monotonic() + SECONDS


def in_words(seconds: float) -> str:
    """About so long."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
