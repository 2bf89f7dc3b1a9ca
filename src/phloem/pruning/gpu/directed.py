"""All directed messages of trees that change, on a GPU: what a search over trees asks of them.

What pruning/cpu/directed_messages.py does with one thread and one branch after the other is here a launch:
all messages, level after level; the scores of all regrafts; second looks and quartets, one a program. Branch
lengths are fitted all at once, each as if the others stood still and part of the way, less where its slope
turns (an under-relaxed Jacobi iteration); a step that loses is taken back by halves.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from phloem.errors import NumericalError
from phloem.hardware.gpu_device import find_device, memory_errors
from phloem.model.record import SiteModel
from phloem.pruning.cpu.directed_insertions import Looks
from phloem.pruning.cpu.directed_lengths import FIT
from phloem.pruning.cpu.directed_messages import Regrafts
from phloem.pruning.cpu.directed_quartets import Resolutions
from phloem.pruning.cpu.directed_regrafts import OUT, PRUNED
from phloem.pruning.gpu.directed_memory import DirectedArrays, require_search
from phloem.pruning.gpu.directed_tables import Laid, beside_all, laid, listed_steps, look_table, walk_tables
from phloem.pruning.gpu.kernels.directed import directed_messages, tree_likelihood
from phloem.pruning.gpu.kernels.directed_lengths import fit_branches
from phloem.pruning.gpu.kernels.directed_quartets import fit_quartets
from phloem.pruning.gpu.kernels.directed_scores import regraft_scores
from phloem.pruning.gpu.kernels.directed_stars import fit_stars
from phloem.pruning.gpu.kernels.transition import transition_matrices
from phloem.pruning.interface import Problem

_STEPS, _LOOK_STEPS, _QUARTET_STEPS = 6, 4, 6  # of Newton's, a length
_ROUNDS = 8  # of a quartet
_FITS = 8  # of all lengths at once, a sweep
_ENOUGH = 1e-3  # log units: one that gains less is the last of a sweep
_SHARE = 0.5  # of its way that a length goes at first
_HALVINGS = 6  # of a step that loses
_ROUNDING = 1e-13  # of a log-likelihood, relative
_SCORE_BYTES = 1 << 29  # of scores by tile, at a time


class GpuMessages:
    """pruning/cpu/directed_messages.DirectedMessages of one alignment on a GPU: the same questions and
    answers, up to rounding, apart from sweeps, which fit all lengths at once.

    problem: left and right are not read. radius: the farthest regraft that will be asked for. Same numbers,
    same answers on one device. DeviceError as directed_memory.require_search.
    """

    def __init__(self, problem: Problem, radius: int) -> None:
        self.radius, device = radius, find_device()
        self._sizes = sizes = require_search(problem)
        self._weights = np.array(problem.pattern_weights, np.float64)
        with memory_errors():
            self._on = DirectedArrays(problem, sizes, device)
        self._tree: Laid | None = None
        self._tasks: torch.Tensor | None = None
        self._lengths = np.zeros(0)  # that the messages are of, by branch
        self._value, self._has_halves = 0.0, False

    @property
    def n_sites(self) -> float:
        """Characters, by the weights of the patterns."""
        return float(self._weights.sum())

    def set_models(self, models: Sequence[SiteModel], rates: Sequence[float]) -> None:
        """Take the numbers of the model over; messages are not up to date then."""
        (model,), (rate,) = models, rates
        self._on.set_model(model, rate)
        self._lengths = np.zeros(0)

    def set_weights(self, weights: np.ndarray) -> None:
        """(P,) how often every pattern counts from now on."""
        self._weights = np.array(weights, np.float64)
        self._on.weights.copy_(torch.from_numpy(self._weights))

    def fill(self, back: np.ndarray, lengths: np.ndarray, order: np.ndarray) -> float:
        """All messages of a tree; its log-likelihood."""
        self._stand(back, lengths, order)
        return self._evaluate()

    fill_half = fill

    def sites(self) -> np.ndarray:
        """(P,) log-likelihoods of the patterns, of the last fill or sweep."""
        return self._on.sites.cpu().numpy()

    def sweep(
        self, back: np.ndarray, lengths: np.ndarray, order: np.ndarray, todo: np.ndarray | None = None
    ) -> float:
        """Fit lengths together, in place, all or those of half-edges of order where todo says FIT; the
        log-likelihood then, which is not lower but for rounding. Needs the messages, and leaves them up to
        date."""
        tree = self._laid(back, order)
        every = np.arange(len(order))
        rows = self._on.put(tree.branches(every if todo is None else every[todo[order] == FIT]))
        value = self._value
        for _ in range(_FITS if len(rows) else 0):
            before = self._on.lengths.clone()
            self._fit(rows)
            new = self._not_worse(before, value)
            gain, value = new - value, new
            if gain < _ENOUGH:
                break
        self._lengths = self._on.lengths.cpu().numpy()
        lengths[order] = lengths[back[order]] = self._lengths
        return value

    def _not_worse(self, before: torch.Tensor, value: float) -> float:
        """The log-likelihood after a step, or half of it, or a quarter …, none in the end."""
        on = self._on
        new = self._evaluate()
        for _ in range(_HALVINGS):
            if new >= value - _ROUNDING * abs(value):
                return new
            on.lengths.copy_(0.5 * (on.lengths + before))
            on.moved.mul_(0.5)
            on.dampings.mul_(0.5)
            new = self._evaluate()
        if new < value - _ROUNDING * abs(value):
            on.lengths.copy_(before)
            new = self._evaluate()
        return new

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
        self._current(back, lengths, order)
        self._fill_halves()
        steps = listed_steps(pruned, back, radius)
        scores = np.zeros(len(steps))
        if len(steps):
            walks, rows = walk_tables(steps, self._laid(back, order))
            most = max(1, _SCORE_BYTES // (8 * self._sizes.tiles))
            first = 0
            while first < len(walks):  # as many walks as have room for their scores, at least one
                behind = int(np.searchsorted(walks[:, 1], walks[first, 0] + most, "right"))
                some = walks[first : max(behind, first + 1)]
                begin, end = int(some[0, 0]), int(some[-1, 1])
                scores[begin:end] = self._scores(some - [begin, begin, 0, 0], rows[begin:end], radius)
                first += len(some)
        return Regrafts(steps[:, PRUNED], steps[:, OUT], scores, steps)

    def fitted(
        self, rows: np.ndarray, found: Regrafts, back: np.ndarray, lengths: np.ndarray, sites: bool = False
    ) -> Looks:
        """Some rows of regrafts with the three lengths around fitted, as the CPU's. Needs the messages."""
        tree, n = self._known(back), self._sizes
        result = np.zeros((len(rows), 4))
        own = lengths[found.steps[rows, OUT]]
        result[:, 1] = result[:, 2] = 0.5 * own
        result[:, 3] = lengths[found.steps[rows, PRUNED]]
        if not len(rows):
            return Looks(result, np.zeros((0, n.patterns)))
        on, looks = self._on, self._on.put(look_table(rows, found.steps, tree))
        out = on.put(result)
        by_site = torch.empty((len(rows) if sites else 1, n.patterns), dtype=torch.float64, device=on.device)
        programs, columns, powers, growths = self._rooms(len(rows), 7, n.span)
        fit_stars[(programs,)](
            looks, len(looks), looks.shape[1], on.codes, on.state_sets, on.messages, on.exponents,
            on.matrices[0], on.right, on.left, on.into, on.values, on.start, on.weights, on.invariant,
            columns, powers, growths, out, by_site, int(sites), _LOOK_STEPS, n.patterns, n.categories,
            **n.of_spans,
        )  # fmt: skip
        return Looks(out.cpu().numpy(), by_site.cpu().numpy()[: len(rows) if sites else 0])

    def resolutions(self, back: np.ndarray, lengths: np.ndarray, branches: np.ndarray) -> Resolutions:
        """The three resolutions of inner branches, as the CPU's. Needs the messages."""
        tree, n, on = self._known(back), self._sizes, self._on
        corners = [*beside_all(branches, tree.tips), *beside_all(back[branches], tree.tips)]
        begun = np.zeros((len(branches), 3, 6))
        begun[:, :, 1:] = np.stack([lengths[h] for h in (*corners, branches)], 1)[:, None]
        sites = torch.empty((3 * len(branches), n.patterns), dtype=torch.float64, device=on.device)
        out = on.put(begun.reshape(-1, 6))
        if len(branches):
            quartets = on.put(tree.quartets(branches))
            programs, columns, powers, growths = self._rooms(len(quartets), 10, 0)
            fit_quartets[(programs,)](
                quartets, len(quartets), on.codes, on.state_sets, on.messages, on.exponents, on.right,
                on.left, on.into, on.values, on.start, on.weights, on.invariant, columns, powers, growths,
                out, sites, _ROUNDS, _QUARTET_STEPS, n.patterns, n.categories,
                **n.of_spans,
            )  # fmt: skip
        values = out.cpu().numpy().reshape(-1, 3, 6)
        by_site = sites.cpu().numpy().reshape(-1, 3, n.patterns)
        return Resolutions(values[:, :, 0].copy(), values[:, :, 1:].copy(), by_site)

    def _rooms(
        self, n: int, columns: int, lanes: int
    ) -> tuple[int, torch.Tensor, torch.Tensor, torch.Tensor]:
        """Programs for n pieces of work, and what they work in: columns of all patterns and one of so many
        lanes, powers, growths."""
        size = self._sizes
        programs, room = self._on.rooms(n, 4)
        own, growth = (
            columns * size.column + size.categories * lanes * size.width,
            size.categories * size.width,
        )
        ends = np.cumsum([programs * own, programs * growth])
        return programs, room[: ends[0]], room[ends[1] :].view(torch.int32), room[ends[0] : ends[1]]

    def _laid(self, back: np.ndarray, order: np.ndarray) -> Laid:
        """Tables of this topology, new where it is not the last one's."""
        if self._tree is None or not np.array_equal(self._tree.back, back):
            self._tree = laid(order, back)
            self._tasks = self._on.put(self._tree.tasks())
            self._lengths = np.zeros(0)
            self._on.dampings.fill_(_SHARE)
            self._on.moved.zero_()
        return self._tree

    def _known(self, back: np.ndarray) -> Laid:
        assert self._tree is not None and np.array_equal(self._tree.back, back)
        return self._tree

    def _stand(self, back: np.ndarray, lengths: np.ndarray, order: np.ndarray) -> None:
        """Take a tree over; its messages are not made."""
        own = lengths[self._laid(back, order).order]
        self._on.lengths.copy_(torch.from_numpy(own))
        self._lengths = own

    def _current(self, back: np.ndarray, lengths: np.ndarray, order: np.ndarray) -> None:
        """Messages of this very tree, made unless they are there."""
        if not np.array_equal(lengths[self._laid(back, order).order], self._lengths):
            self.fill(back, lengths, order)

    def _evaluate(self) -> float:
        """All messages under the lengths on the device, and the log-likelihood."""
        n, on, tree = self._sizes, self._on, self._tree
        assert tree is not None
        self._has_halves = False
        self._write_matrices(n.branches)
        self._run(self._tasks)
        end = int(tree.order[0])
        a, b = tree.pairs[tree.back[end]].tolist()
        tree_likelihood[(n.tiles,)](
            a, b, end, on.codes, on.state_sets, on.messages, on.exponents, on.start, on.weights, on.invariant,
            on.sites, on.sums, n.patterns, n.categories,
            **n.of_tiles,
        )  # fmt: skip
        self._value = float(on.sums.sum())
        if np.isnan(self._value):
            raise NumericalError("the log-likelihood is not a number")
        return self._value

    def _write_matrices(self, n_jobs: int, first: int = 0) -> None:
        n, on, block = self._sizes, self._on, max(16, self._sizes.block)
        times = torch.cat([on.lengths, 0.5 * on.lengths])[:, None].expand(-1, n.categories).contiguous()
        transition_matrices[(n_jobs, n.categories, 1)](
            on.jobs[first:], times, on.process, n.categories, on.values, on.eigen[0], on.eigen[1], on.states,
            on.matrices, on.counters, 0, n.categories,
            WIDTH=n.width, BLOCK=block, CHUNKS=1, DTYPE=on.kind, num_warps=1 if block == 16 else 4,
        )  # fmt: skip

    def _run(self, tasks: torch.Tensor | None) -> None:
        n, on = self._sizes, self._on
        assert tasks is not None
        on.counters.zero_()
        programs = min(on.n_processors * (32 // n.tile_warps), len(tasks) * n.tiles)
        directed_messages[(programs,)](
            tasks, len(tasks), n.tiles, n.edges, on.counters, on.codes, on.state_sets, on.messages, on.halves,
            on.exponents, on.matrices[0], on.matrices[1], n.patterns, n.categories,
            **n.of_tiles,
        )  # fmt: skip

    def _fill_halves(self) -> None:
        """The messages to the middle of their branches, of all half-edges."""
        if not self._has_halves:
            self._write_matrices(self._sizes.branches, self._sizes.branches)
            assert self._tasks is not None
            tasks = self._tasks.clone()
            tasks[:, 4], tasks[:, 5:7] = 2, 0
            self._run(tasks)
            self._has_halves = True

    def _fit(self, rows: torch.Tensor) -> None:
        n, on = self._sizes, self._on
        programs, columns, _, growths = self._rooms(len(rows), 1, 0)
        fit_branches[(programs,)](
            rows, len(rows), on.codes, on.state_sets, on.messages, on.exponents, on.into, on.left, on.values,
            on.weights, on.invariant, columns, growths, on.lengths, on.dampings, on.moved, _STEPS, n.patterns,
            n.categories, **n.of_spans,
        )  # fmt: skip

    def _scores(self, walks: np.ndarray, steps: np.ndarray, radius: int) -> np.ndarray:
        n, on = self._sizes, self._on
        programs = min(on.n_processors * (32 // n.tile_warps), len(walks) * n.tiles)
        rooms = torch.empty((programs, radius + 1, n.categories, n.tile, n.width), dtype=torch.float64,
                            device=on.device)  # fmt: skip
        powers = torch.empty((programs, radius + 1, 2, n.tile), dtype=torch.int32, device=on.device)
        scores = torch.empty((len(steps), n.tiles), dtype=torch.float64, device=on.device)
        regraft_scores[(programs,)](
            on.put(walks.astype(np.int32)), len(walks), n.tiles, on.put(steps),
            torch.zeros(1, dtype=torch.int32, device=on.device), on.messages, on.halves, on.exponents,
            on.matrices[0], on.matrices[1], on.start, on.weights, on.invariant, rooms, powers, scores,
            n.patterns, radius + 1, n.categories, **n.of_tiles,
        )  # fmt: skip
        return scores.sum(1).cpu().numpy()
