"""The threads of one evaluator."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np


class Team:
    """A number of threads, of which the caller is one. They share the tasks of a pass over the tree."""

    def __init__(self, threads: int | None) -> None:
        self.threads = max(1, threads or 1)
        self._others = ThreadPoolExecutor(self.threads - 1, "phloem") if self.threads > 1 else None

    def run(self, work: Callable[[np.ndarray, int], None], n_tasks: int) -> None:
        """Call work(counter, thread) in every thread; together they take the tasks from the counter."""
        counter = np.zeros(1, np.int64)
        if self._others is None:
            return work(counter, 0)
        others: list[Future] = []
        try:
            for thread in range(1, min(self.threads, n_tasks)):
                others.append(self._others.submit(work, counter, thread))
            work(counter, 0)
        finally:  # even if that failed, nobody writes on once this has returned
            for other in others:
                other.result()
