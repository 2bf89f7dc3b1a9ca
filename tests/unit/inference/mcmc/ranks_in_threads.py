"""Processes that are threads of this one, for tests: the talk of hardware/ranks.py without a launcher."""

from __future__ import annotations

import copy
import queue
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from phloem.hardware.ranks import Ranks

# Seconds that one waits for the others, who may compile meanwhile: against tests that never end. Where one
# fails, those who wait are told at once.
PATIENCE = 900


class Meeting:
    """What the threads share."""

    def __init__(self, size: int) -> None:
        self.barrier, self.said = threading.Barrier(size), [None] * size
        self.over = False
        self.groups: dict[tuple[int, ...], Meeting] = {}
        self.lock = threading.Lock()
        self.box: dict[tuple[int, int], queue.Queue] = {
            (a, b): queue.Queue() for a in range(size) for b in range(size)
        }

    def end(self) -> None:
        """Nobody waits any longer, nor will."""
        with self.lock:
            self.over = True
            groups = list(self.groups.values())
        self.barrier.abort()
        for box in self.box.values():
            box.put(None)
        for group in groups:
            group.end()

    def group(self, own: tuple[int, ...]) -> Meeting:
        """Of some of the threads."""
        with self.lock:
            meeting = self.groups.setdefault(own, Meeting(len(own)))
            if self.over:
                meeting.end()
        return meeting


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
        self.meeting.barrier.wait(PATIENCE)
        found = copy.deepcopy(self.meeting.said)  # before anyone says the next thing
        self.meeting.barrier.wait(PATIENCE)
        return found

    def shared(self, message) -> np.ndarray:
        return np.stack(self._all(message))

    def group(self, groups) -> ThreadTalk:
        own = next(tuple(one) for one in groups if self.number in one)
        return ThreadTalk(self.meeting.group(own), own.index(self.number))

    def exchange(self, message, partner: int):
        self.meeting.box[self.number, partner].put(message.copy())
        message = self.meeting.box[partner, self.number].get(timeout=PATIENCE)
        if message is None:
            raise threading.BrokenBarrierError
        return message


def on_ranks(size: int, work):
    """What work(ranks) returns on rank 0 of so many; where some fail, what the first of them raised."""
    if size == 1:
        return work(Ranks())
    meeting, failed = Meeting(size), []
    all_ranks = [Ranks(n, size, (n, size), ThreadTalk(meeting, n)) for n in range(size)]

    def each(rank: Ranks):
        try:
            return work(rank)
        except BaseException as error:
            failed.append(error)
            meeting.end()

    with ThreadPoolExecutor(size) as pool:
        results = list(pool.map(each, all_ranks))
    if failed:
        raise failed[0]
    return results[0]


def led(size: int, work):
    """What work(ranks) returns on the first rank of so many, which the others assist."""

    def each(here: Ranks):
        if here.number:
            return here.assist()
        result = work(here)
        here.dismiss()
        return result

    return on_ranks(size, each)
