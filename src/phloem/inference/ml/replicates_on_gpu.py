"""Searches of many resampled alignments abreast on one GPU, which one of them would leave mostly idle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from phloem.errors import DeviceError
from phloem.hardware.gpu_device import find_device
from phloem.inference.ml.lockstep import Ask, Lockstep
from phloem.inference.ml.place import Device, Place
from phloem.pruning.gpu.cost import fits_on_cpu
from phloem.pruning.gpu.directed import GpuMessages
from phloem.pruning.gpu.directed_engine import DirectedEngine
from phloem.pruning.gpu.directed_memory import sizes_of
from phloem.pruning.gpu.evaluator import free_bytes
from phloem.pruning.interface import Problem

T = TypeVar("T")
_MOST = 128  # seats
_SHARE = 0.5  # of the memory that is free


class Abreast:
    """groups: the problems of every set of branch lengths, as they are before anything is resampled: none of
    a search may have more patterns. at_once: searches at a time at most, apart from what memory allows.
    DeviceError where one has no room. What a search finds does not depend on how many there are."""

    def __init__(self, groups: Sequence[Sequence[Problem]], at_once: int) -> None:
        one, device = [sizes_of(group) for group in groups], find_device()
        each = sum(sizes.bytes for sizes in one)
        free = _SHARE * free_bytes(device) - sum(sizes.room for sizes in one)
        if free < each:
            raise DeviceError("the GPU has no memory for a replicate", hint="Say --device cpu.")
        self.seats = max(1, min(at_once, _MOST, int(free // each)))
        self._engines = [DirectedEngine(sizes_of(group, self.seats), device) for group in groups]
        # Layouts of few numbers take longer than the numbers.
        self._fits: Device = "cpu" if all(map(fits_on_cpu, groups)) else "gpu"

    def run(
        self, works: Sequence[Callable[[Place], T]], told: Callable[[int], None] | None = None
    ) -> list[T]:
        """What works return that search at the place which they are given, in their order."""

        def seated(work: Callable[[Place], T]) -> Callable[[int, Ask], T]:
            return lambda seat, ask: work(self._place(seat, ask))

        return Lockstep[T](self.seats, self._answered).run([seated(work) for work in works], told)

    def _place(self, seat: int, ask: Ask) -> Place:
        given = 0

        def messages(problems: Sequence[Problem], radius: int) -> GpuMessages:
            """Of the sets of a search, one after the other."""
            nonlocal given
            k, given = given % len(self._engines), given + 1
            return GpuMessages(problems, radius, (self._engines[k], seat, lambda *what: ask(k, *what)))

        return Place(self._fits, messages)

    def _answered(self, engine: int, kind: str, questions: list[Any]) -> Sequence[Any]:
        return getattr(self._engines[engine], kind)(questions)
