"""Where a search has its messages, and where it fits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from phloem.errors import InputError
from phloem.hardware.limits import require_memory
from phloem.pruning.cpu.directed_messages import DirectedMessages
from phloem.pruning.cpu.directed_sets import DirectedSets
from phloem.pruning.cpu.directed_storage import bytes_of
from phloem.pruning.interface import Problem
from phloem.pruning.tree_messages import TreeMessages

Device = Literal["cpu", "gpu"]


def require_searchable(taxa: Sequence[str], source: str | None, groups: Sequence[Sequence[Problem]]) -> None:
    """InputError for too few taxa, or messages that do not fit into memory. groups: the problems of every set
    of lengths."""
    if len(taxa) < 3:
        raise InputError("a tree search wants three taxa at least", file=source, hint="Add taxa.")
    patterns = sum(len(one.pattern_weights) for group in groups for one in group)
    require_memory(
        f"the messages of {len(taxa):,} taxa and {patterns:,} patterns",
        sum(map(bytes_of, groups)),
        "Use a simpler model, fewer taxa, or a machine with more.",
        source,
    )


class Place(NamedTuple):
    """device: of the messages and of fits. seat: makes the messages of parts that share lengths, on a GPU,
    where several searches share engines (replicates_on_gpu.py); device is of the fits alone then."""

    device: Device = "cpu"
    seat: Callable[[Sequence[Problem], int], TreeMessages] | None = None

    def messages(
        self, problems: Sequence[Problem], radius: int, threads: int, n_sets: int = 1
    ) -> TreeMessages:
        """Of parts that share branch lengths, or of one part with n_sets of them, on the CPU."""
        if self.seat is not None:
            return self.seat(problems, radius)
        if self.device == "gpu":
            from phloem.pruning.gpu.directed import GpuMessages

            return GpuMessages(problems, radius)
        return DirectedMessages(problems, radius, threads, n_sets)

    def of_sets(self, sets: Sequence[Any]) -> TreeMessages:
        """One, or the sum of several."""
        if len(sets) == 1:
            return sets[0]
        if self != ON_CPU:
            from phloem.pruning.gpu.directed import GpuSets

            return GpuSets(sets)
        return DirectedSets(sets)

    def require_room(
        self, taxa: Sequence[str], source: str | None, groups: Sequence[Sequence[Problem]]
    ) -> None:
        """As require_searchable; a GPU's messages look for room themselves."""
        if self == ON_CPU:
            require_searchable(taxa, source, groups)


ON_CPU = Place()
