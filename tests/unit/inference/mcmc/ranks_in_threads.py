"""Processes that are threads of this one, for tests: the talk of hardware/ranks.py without a launcher."""

from __future__ import annotations

import copy
import queue
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from phloem.hardware.ranks import Ranks


class Meeting:
    """What the threads share."""

    def __init__(self, size: int) -> None:
        self.barrier, self.said = threading.Barrier(size), [None] * size
        self.groups: dict[tuple[int, ...], Meeting] = {}
        self.lock = threading.Lock()
        self.box: dict[tuple[int, int], queue.Queue] = {
            (a, b): queue.Queue() for a in range(size) for b in range(size)
        }


class ThreadTalk:
    def __init__(self, meeting: Meeting, number: int) -> None:
        self.meeting, self.number = meeting, number

    def meet(self) -> None:
        pass

    def gather(self, what: Any) -> list[Any] | None:
        found = self._all(what)
        return found if self.number == 0 else None

    def broadcast(self, what: Any) -> Any:
        return self._all(what)[0]

    def scatter(self, parts: Any) -> Any:
        return self._all(parts)[0][self.number]

    def _all(self, what: Any) -> list[Any]:
        self.meeting.said[self.number] = what
        self.meeting.barrier.wait(60)
        found = copy.deepcopy(self.meeting.said)  # before anyone says the next thing
        self.meeting.barrier.wait(60)
        return found

    def shared(self, message) -> np.ndarray:
        return np.stack(self._all(message))

    def group(self, groups) -> ThreadTalk:
        own = next(tuple(one) for one in groups if self.number in one)
        with self.meeting.lock:
            meeting = self.meeting.groups.setdefault(own, Meeting(len(own)))
        return ThreadTalk(meeting, own.index(self.number))

    def exchange(self, message, partner: int):
        self.meeting.box[self.number, partner].put(message.copy())
        return self.meeting.box[partner, self.number].get(timeout=60)


def on_ranks(size: int, work):
    """What work(ranks) returns on rank 0 of so many."""
    if size == 1:
        return work(Ranks())
    meeting = Meeting(size)
    all_ranks = [Ranks(n, size, (n, size), ThreadTalk(meeting, n)) for n in range(size)]
    with ThreadPoolExecutor(size) as pool:
        try:
            results = [one.result() for one in [pool.submit(work, rank) for rank in all_ranks]]
            return results[0]
        finally:
            for one in (meeting, *meeting.groups.values()):
                one.barrier.abort()


def led(size: int, work):
    """What work(ranks) returns on the first rank of so many, which the others assist."""

    def each(here: Ranks):
        if here.number:
            return here.assist()
        result = work(here)
        here.dismiss()
        return result

    return on_ranks(size, each)
