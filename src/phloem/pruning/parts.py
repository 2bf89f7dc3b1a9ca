"""The parts of an alignment on one tree, each with its own model and lengths: what evaluates them, here or in
several processes."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from phloem.errors import NumericalError
from phloem.hardware.ranks import Ranks
from phloem.model.record import SiteModel
from phloem.pruning.grid import Engine, OnRanks, fastest
from phloem.pruning.interface import EngineGradient, Evaluator, Problem
from phloem.pruning.select import Selection, select_engine, select_parts

if TYPE_CHECKING:
    from phloem.pruning.cpu.part_cells import PartCells
    from phloem.pruning.gpu.part_cells import GpuPartCells


class PartsEvaluator:
    """Evaluates all parts on one topology. Parts on a CPU are the cells of one forest, evaluated in one
    compiled call in which threads take cells; very large ones, and what cells do not know (single precision,
    complex eigensystems), have an evaluator of their own. Which one it is does not depend on the threads.
    Parts of one layout on a GPU share launches; those that do not fit into its memory beside the others have
    an evaluator of their own.

    Lengths are effective, (2T-1,) by node of the binary tree for every part; models one a part. cells,
    together: the parts that are cells on a CPU, and that share launches on a GPU; None: which suit, or fit,
    at the first evaluation.
    """

    def __init__(
        self,
        problems: Sequence[Problem],
        selections: Sequence[Selection],
        cells: Sequence[int] | None = None,
        together: Sequence[int] | None = None,
    ) -> None:
        self._problems = tuple(problems)
        self.selections, self._given, self._given_on_gpu = list(selections), cells, together
        self._evaluators: dict[int, Evaluator] = {}
        self._on_its_own = [False] * len(problems)  # in the last evaluation
        self._cells: PartCells | None = None
        self._gpu_cells: GpuPartCells | None = None
        self._known: tuple[SiteModel, ...] = ()

    @property
    def cells(self) -> tuple[int, ...]:
        """The parts that are cells on a CPU, as of the first evaluation."""
        return () if self._cells is None else self._cells.parts

    @property
    def together(self) -> tuple[int, ...]:
        """The parts that share launches on a GPU, as of the first evaluation."""
        return () if self._gpu_cells is None else self._gpu_cells.parts

    def log_likelihoods(self, lengths: Sequence[np.ndarray], models: Sequence[SiteModel]) -> np.ndarray:
        """(L,) of every part."""
        values = np.zeros(len(models))
        for cells in self._cells_of(models):
            values[list(cells.parts)] = cells.log_likelihoods(lengths, models)
        for i in self._alone():
            values[i] = self._evaluator(i).log_likelihood(lengths[i], models[i])
        return values

    def gradients(
        self, lengths: Sequence[np.ndarray], models: Sequence[SiteModel], parameters: bool
    ) -> list[EngineGradient]:
        """Of every part; parameters: also by the models' numbers."""
        found = dict[int, EngineGradient]()
        for cells in self._cells_of(models):
            found |= dict(zip(cells.parts, cells.gradients(lengths, models, parameters)))
        for i in self._alone():
            found[i] = self._evaluator(i).gradient(lengths[i], models[i], parameters)
        return [found[i] for i in range(len(models))]

    def site_log_likelihoods(self, part: int) -> np.ndarray:
        """(P,) of every pattern of a part, of the last evaluation."""
        if self._on_its_own[part]:
            return self._evaluator(part).site_log_likelihoods()
        (cells,) = (c for c in (self._cells, self._gpu_cells) if c is not None and part in c.parts)
        return cells.site_log_likelihoods(part)

    def _cells_of(self, models: Sequence[SiteModel]) -> list[PartCells | GpuPartCells]:
        """What evaluates parts together, made at the first evaluation."""
        on_cpu, on_gpu = self._cells_on_cpu(models), self._cells_on_gpu(models)
        self._on_its_own = [
            not (on_gpu is not None and i in on_gpu.parts) and alone
            for i, alone in enumerate(self._on_its_own)
        ]
        return [cells for cells in (on_cpu, on_gpu) if cells is not None]

    def _cells_on_gpu(self, models: Sequence[SiteModel]) -> GpuPartCells | None:
        parts = self._given_on_gpu
        if parts is None:
            parts = [i for i, selection in enumerate(self.selections) if selection.engine == "gpu"]
        if parts and self._gpu_cells is None:
            from phloem.pruning.gpu.part_cells import GpuPartCells  # PyTorch: only where it is used

            self._gpu_cells = GpuPartCells(self._problems, models, parts)
        return self._gpu_cells

    def _cells_on_cpu(self, models: Sequence[SiteModel]) -> PartCells | None:
        """The forest of the parts whose models it can have."""
        if all(selection.engine != "cpu" for selection in self.selections):
            self._on_its_own = [True] * len(models)
            return None
        from phloem.pruning.cpu.part_cells import PartCells, suits_a_cell  # Numba: only where it is used

        if self._cells is None:
            parts = self._given
            if parts is None:
                suit = map(suits_a_cell, self._problems, models)
                on_cpu = [selection.engine == "cpu" for selection in self.selections]
                parts = [i for i, (here, suits) in enumerate(zip(on_cpu, suit)) if here and suits]
                parts = parts if len(parts) > 1 else []
            if parts:
                self._cells = PartCells(self._problems, models, parts, self.selections[parts[0]].threads)
        if len(self._known) == len(models) and all(map(operator.is_, self._known, models)):
            return self._cells
        self._known, known = tuple(models), () if self._cells is None else self._cells.parts
        self._on_its_own = [
            i not in known or not suits_a_cell(problem, model)
            for i, (problem, model) in enumerate(zip(self._problems, models))
        ]
        return self._cells

    def _alone(self) -> list[int]:
        return [i for i, alone in enumerate(self._on_its_own) if alone]

    def _evaluator(self, part: int) -> Evaluator:
        if part not in self._evaluators:
            self._evaluators[part] = self.selections[part].make(self._problems[part])
        return self._evaluators[part]


# Several processes: each has whole parts. The first asks, and has parts as the others have.


def parts_evaluator(
    problems: Sequence[Problem], engine: Engine | OnRanks, threads: int | None = None
) -> PartsEvaluator | PartsAmongRanks:
    """Of all parts, here or on several processes. Errors as select_engine."""
    on = engine if isinstance(engine, OnRanks) else OnRanks(engine, Ranks())
    if threads is None and on.ranks.size > 1:
        threads = on.ranks.cores
    alone = PartsEvaluator(problems, select_parts(on.engine, problems, threads))
    return alone if on.ranks.size == 1 else PartsAmongRanks(problems, alone, on.ranks)


_HELD: dict[tuple[int, int], PartsEvaluator] = {}  # by the number of the parts, and of the process
_NUMBERS = count()


class PartsAmongRanks:
    """As PartsEvaluator, of parts that ranks share where that is faster, as the first evaluation finds out.
    What a part comes to depends neither on who has it nor on which others it has."""

    def __init__(self, problems: Sequence[Problem], alone: PartsEvaluator, ranks: Ranks) -> None:
        self._problems, self._alone, self._ranks = tuple(problems), alone, ranks
        self.selections, self._number = alone.selections, next(_NUMBERS)
        self._shares: list[list[int]] = []

    def log_likelihoods(self, lengths: Sequence[np.ndarray], models: Sequence[SiteModel]) -> np.ndarray:
        """(L,) of every part."""
        return np.array(self._asked("log_likelihoods", lengths, models))

    def gradients(
        self, lengths: Sequence[np.ndarray], models: Sequence[SiteModel], parameters: bool
    ) -> list[EngineGradient]:
        """Of every part."""
        return self._asked("gradients", lengths, models, parameters)

    def site_log_likelihoods(self, part: int) -> np.ndarray:
        """(P,) of every pattern of a part, of the last evaluation."""
        if len(self._shares) == 1:
            return self._alone.site_log_likelihoods(part)
        owner = next(k for k, own in enumerate(self._shares) if part in own)
        told = self._number, owner, self._shares[owner].index(part)
        return self._ranks.together(_sites_of_part, *told)[owner]

    def _asked(self, method: str, lengths, models, *more: Any) -> list[Any]:
        if not self._shares:
            self._deal(lengths, models)
        if len(self._shares) == 1:
            return list(getattr(self._alone, method)(lengths, models, *more))
        given = [([lengths[i] for i in own], [models[i] for i in own], *more) for own in self._shares]
        given += [()] * (self._ranks.size - len(given))
        found = self._ranks.together(_ask_parts, self._number, method, given=given)
        by_part = dict[int, Any]()
        for own, answers in zip(self._shares, found):
            if isinstance(answers, NumericalError):
                raise answers
            by_part |= dict(zip(own, answers))
        return [by_part[i] for i in range(len(self._problems))]

    def _deal(self, lengths, models) -> None:
        """Decide who has what."""
        self._alone.log_likelihoods(lengths, models)  # compiled now, and which parts are cells is known
        seconds, message = self._measured(lengths, models)
        work = [p.tip_codes.size * p.state_sets.shape[1] ** 2 * p.n_categories for p in self._problems]
        self._shares = useful_deal(work, min(self._ranks.size, len(work)), seconds, message)
        busy, idle = len(self._shares), self._ranks.size - len(self._shares)
        who = f"{busy} share the parts" if busy > 1 else "the first has all parts"
        text = f"{self._ranks.size} processes, {self._ranks.how}; {who}"
        why = "messages would take longer than more of them save"
        why = "there are no more parts" if busy == len(work) else why
        text += f", {idle} idle: {why}" if idle else ""
        self.selections = [replace(one, reason=f"{one.reason}; {text}") for one in self.selections]
        if busy > 1:
            parts = [
                (
                    [self._problems[i] for i in own],
                    [(self.selections[i].engine, self.selections[i].threads) for i in own],
                    [k for k, i in enumerate(own) if i in self._alone.cells],
                    [k for k, i in enumerate(own) if i in self._alone.together],
                )
                for own in self._shares
            ]
            parts += [([], [], [], [])] * idle
            self._ranks.together(_open_parts, self._number, parts=parts)

    def _measured(self, lengths, models) -> tuple[float, float]:
        """Seconds of an evaluation by this process, and of what all would have to be told for one."""
        seconds = fastest(lambda: self._alone.log_likelihoods(lengths, models))
        given = [(lengths, models)] * self._ranks.size
        return seconds, fastest(lambda: self._ranks.together(_hear, given=given))


def useful_deal(work: Sequence[float], most: int, seconds: float, message: float) -> list[list[int]]:
    """The parts of each of some ranks, as many as take least time: the largest part first, to whoever has
    least to do. seconds: of all work on one; message: of asking several."""
    found = []
    for size in range(1, most + 1):
        shares: list[list[int]] = [[] for _ in range(size)]
        done = [0.0] * size
        for i in sorted(range(len(work)), key=lambda i: -work[i]):
            k = done.index(min(done))
            shares[k].append(i)
            done[k] += work[i]
        found.append((max(done) / sum(work) * seconds + (size > 1) * message, size, shares))
    return [sorted(own) for own in min(found)[2]]


def _hear(ranks: Ranks, given=None) -> None:
    ranks.scatter(given)


def _open_parts(ranks: Ranks, number: int, parts=None) -> None:
    problems, engines, *which = ranks.scatter(parts)
    selections = [select_engine(e, problem, n) for (e, n), problem in zip(engines, problems)]
    _HELD[number, ranks.number] = PartsEvaluator(problems, selections, *which)


def _ask_parts(ranks: Ranks, number: int, method: str, given=None) -> list[Any] | None:
    own, found = ranks.scatter(given), list[Any]()
    try:
        found = list(getattr(_HELD[number, ranks.number], method)(*own)) if own else []
    except NumericalError as error:
        return ranks.gather(error)
    return ranks.gather(found)


def _sites_of_part(ranks: Ranks, number: int, owner: int, part: int) -> list[Any] | None:
    here = ranks.number == owner
    return ranks.gather(_HELD[number, ranks.number].site_log_likelihoods(part) if here else None)
