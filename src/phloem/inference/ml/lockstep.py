"""Several searches abreast: each waits with its question until the others have come to theirs.

A search is plain code in a thread of its own. Only one runs at a time; what they ask is collected, and
questions of one kind are answered together, which is what a GPU is good at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from queue import SimpleQueue
from threading import Thread
from typing import Any, Generic, NamedTuple, TypeVar

T = TypeVar("T")
Ask = Callable[[int, str, Any], Any]  # who is asked, what, and the question; the answer
Answered = Callable[[int, str, list[Any]], Sequence[Any]]  # the answers to questions of one kind
Work = Callable[[int, Ask], T]  # of a seat, and who is asked there


class _Abandoned(BaseException):
    """Another search has failed, or the program is to end."""


class _Said(NamedTuple):
    """kind: who is asked and what; None: the work has ended with this, or with this error."""

    seat: int
    kind: tuple[int, str] | None
    what: Any
    error: BaseException | None = None


class Lockstep(Generic[T]):
    """seats: searches at a time. answered: is called by the thread that calls run, and by no other."""

    def __init__(self, seats: int, answered: Answered) -> None:
        self._answered, self._said = answered, SimpleQueue[_Said]()
        self._inboxes = [SimpleQueue[Any]() for _ in range(seats)]

    def run(self, works: Sequence[Work[T]], told: Callable[[int], None] | None = None) -> list[T]:
        """What they return, in their order; whatever one raises. told: called with how many have ended."""
        ended: dict[int, T] = {}
        numbers: dict[int, int] = {}  # of the works at seats
        threads: dict[int, Thread] = {}
        waiting: dict[int, _Said] = {}
        free, begun = list(range(len(self._inboxes)))[::-1], 0
        try:
            while len(ended) < len(works):
                came = self._answer(waiting)
                while free and begun < len(works):
                    seat = free.pop()
                    numbers[seat], work = begun, works[begun]
                    threads[seat] = Thread(target=self._work, args=(seat, work), daemon=True)
                    threads[seat].start()
                    came.append(self._said.get())
                    begun += 1
                waiting = {said.seat: said for said in came if said.kind is not None}
                for said in came:
                    if said.error is not None:
                        raise said.error
                    if said.kind is None:
                        ended[numbers[said.seat]] = said.what
                        threads.pop(said.seat).join()
                        free.append(said.seat)
                        if told is not None:
                            told(len(ended))
        finally:
            for seat, thread in threads.items():
                self._inboxes[seat].put(_Abandoned())
                thread.join()
        return [ended[k] for k in range(len(works))]

    def _answer(self, waiting: dict[int, _Said]) -> list[_Said]:
        """Answer all who wait; what they say next."""
        came = []
        for kind in sorted({said.kind for said in waiting.values() if said.kind is not None}):
            some = [said for _, said in sorted(waiting.items()) if said.kind == kind]
            answers = self._answered(*kind, [said.what for said in some])
            for said, answer in zip(some, answers):
                self._inboxes[said.seat].put(answer)
                came.append(self._said.get())
        return came

    def _work(self, seat: int, work: Work[T]) -> None:
        def ask(whom: int, what: str, question: Any) -> Any:
            self._said.put(_Said(seat, (whom, what), question))
            answer = self._inboxes[seat].get()
            if isinstance(answer, _Abandoned):
                raise answer
            return answer

        try:
            said = _Said(seat, None, work(seat, ask))
        except BaseException as error:
            said = _Said(seat, None, None, error)
        self._said.put(said)
