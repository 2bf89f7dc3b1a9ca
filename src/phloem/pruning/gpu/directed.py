"""What a search over trees asks of directed messages, answered by a seat of an engine on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from phloem.hardware.gpu_device import find_device
from phloem.model.record import SiteModel
from phloem.pruning.cpu.directed_insertions import Looks
from phloem.pruning.cpu.directed_lengths import FIT
from phloem.pruning.cpu.directed_messages import Regrafts
from phloem.pruning.cpu.directed_quartets import Resolutions
from phloem.pruning.cpu.directed_regrafts import OUT, PRUNED
from phloem.pruning.cpu.directed_sets import DirectedSets
from phloem.pruning.gpu.directed_engine import DirectedEngine, Lengths, Quartets, Stars, Sweep, Walks
from phloem.pruning.gpu.directed_memory import require_search
from phloem.pruning.gpu.directed_tables import Laid, laid, listed_steps, look_table, walk_tables
from phloem.pruning.interface import Problem

Ask = Callable[[str, Any], Any]  # the engine's method, and the question


class GpuMessages:
    """pruning/cpu/directed_messages.DirectedMessages on a GPU, of one alignment or of several that share
    branch lengths: the same questions and answers, up to rounding, apart from sweeps, which fit all lengths
    at once.

    problems: left and right are not read. radius: the farthest regraft that will be asked for. seat: of which
    engine it is a seat, its number there, and who asks that engine; an engine of its own without. Same
    numbers, same answers on one device, at any seat. DeviceError as directed_memory.require_search.
    """

    def __init__(
        self,
        problems: Sequence[Problem],
        radius: int,
        seat: tuple[DirectedEngine, int, Ask] | None = None,
    ) -> None:
        if seat is None:
            engine = DirectedEngine(require_search([problems])[0], find_device())
            seat = engine, 0, lambda kind, question: getattr(engine, kind)([question])[0]
        self.radius, (self._engine, self._seat, self._ask) = radius, seat
        self._own = self._engine.seat(self._seat, problems)
        self._tree: Laid | None = None
        self._lengths = np.zeros(0)  # that the messages are of, by branch

    @property
    def n_patterns(self) -> int:
        return sum(len(one.pattern_weights) for one in self._own.problems)

    @property
    def n_sites(self) -> float:
        """Characters, by the weights of the patterns."""
        return float(self._own.weights[self._own.real].sum())

    def set_models(self, models: Sequence[SiteModel], rates: Sequence[float]) -> None:
        """Take the numbers of every part's model over, and what its branch lengths are multiplied by;
        messages are not up to date then."""
        self._engine.set_models(self._seat, models, rates)
        self._lengths = np.zeros(0)

    def set_weights(self, weights: np.ndarray) -> None:
        """(P,) how often every pattern counts from now on."""
        self._engine.set_weights(self._seat, weights)

    def fill(self, back: np.ndarray, lengths: np.ndarray, order: np.ndarray) -> float:
        """All messages of a tree; its log-likelihood."""
        tree = self._laid(back, order)
        self._lengths = lengths[tree.order]
        return self._ask("lengths", Lengths(tree, self._lengths))

    fill_half = fill

    def sites(self) -> np.ndarray:
        """(P,) log-likelihoods of the patterns, of the last fill or sweep."""
        return self._engine.sites(self._seat)

    def sweep(
        self, back: np.ndarray, lengths: np.ndarray, order: np.ndarray, todo: np.ndarray | None = None
    ) -> float:
        """Fit lengths together, in place, all or those of half-edges of order where todo says FIT; the
        log-likelihood then, which is not lower but for rounding. Needs the messages, and leaves them up to
        date."""
        tree, every = self._known(back), np.arange(len(order))
        rows = tree.branches(every if todo is None else every[todo[order] == FIT])
        self._lengths, value = self._ask("sweep", Sweep(tree, rows))
        lengths[order] = lengths[back[order]] = self._lengths
        return value

    def regrafts(
        self,
        back: np.ndarray,
        lengths: np.ndarray,
        order: np.ndarray,
        pruned: np.ndarray,
        radius: int,
        slack: float = np.inf,
    ) -> Regrafts:
        """Regrafts of these subtrees within radius, all scored, whatever the slack."""
        assert radius <= self.radius
        if not np.array_equal(lengths[self._laid(back, order).order], self._lengths):
            self.fill(back, lengths, order)
        steps, tree = listed_steps(pruned, back, radius), self._known(back)
        scores = np.zeros(0)
        if len(steps):
            scores = self._ask("scores", Walks(tree, *walk_tables(steps, tree), radius))
        return Regrafts(steps[:, PRUNED], steps[:, OUT], scores, steps)

    def fitted(
        self, rows: np.ndarray, found: Regrafts, back: np.ndarray, lengths: np.ndarray, sites: bool = False
    ) -> Looks:
        """Some rows of regrafts with the three lengths around fitted, as the CPU's. Needs the messages."""
        tree = self._known(back)
        if not len(rows):
            return Looks(np.zeros((0, 4)), np.zeros((0, self.n_patterns)))
        half, own = 0.5 * lengths[found.steps[rows, OUT]], lengths[found.steps[rows, PRUNED]]
        begun = np.stack([half, half, own], 1)
        return self._ask("stars", Stars(tree, look_table(rows, found.steps, tree), begun, sites))

    def resolutions(self, back: np.ndarray, lengths: np.ndarray, branches: np.ndarray) -> Resolutions:
        """The three resolutions of inner branches, as the CPU's. Needs the messages."""
        tree, n = self._known(back), len(branches)
        if not n:
            return Resolutions(np.zeros((0, 3)), np.zeros((0, 3, 5)), np.zeros((0, 3, self.n_patterns)))
        begun = np.stack([lengths[h] for h in (*tree.corners(branches), branches)], 1)
        return self._ask("quartets", Quartets(tree, tree.quartets(branches), np.repeat(begun, 3, axis=0)))

    def _laid(self, back: np.ndarray, order: np.ndarray) -> Laid:
        """Tables of this topology, new where it is not the last one's."""
        if self._tree is None or not np.array_equal(self._tree.back, back):
            self._tree, self._lengths = laid(order, back, self._seat), np.zeros(0)
        return self._tree

    def _known(self, back: np.ndarray) -> Laid:
        assert self._tree is not None and np.array_equal(self._tree.back, back)
        return self._tree


class GpuSets(DirectedSets):
    """DirectedSets whose messages are on a GPU, a set an engine."""

    def regrafts(
        self,
        back: np.ndarray,
        lengths: np.ndarray,
        order: np.ndarray,
        pruned: np.ndarray,
        radius: int,
        slack: float = np.inf,
    ) -> Regrafts:
        each = [one.regrafts(back, own, order, pruned, radius) for one, own in self._each(lengths)]
        return each[0]._replace(scores=np.sum([one.scores for one in each], axis=0))
