"""All directed messages of trees that change, on a GPU, of one tree or of many at once.

What pruning/cpu/directed_messages.py does with one thread and one branch after the other is here a launch:
all messages, level after level; the scores of all regrafts; second looks and quartets, one a program. Branch
lengths are fitted all at once, each as if the others stood still and part of the way, less where its slope
turned (an under-relaxed Jacobi iteration); a step that loses is taken back by halves.

An engine has seats, a tree with data and models of its own each. A question is of one seat; those of one
kind, of any seats, are one launch, and no answer depends on what else is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from phloem.errors import NumericalError
from phloem.hardware.gpu_device import memory_errors
from phloem.model.record import SiteModel
from phloem.pruning.cpu.directed_insertions import Looks
from phloem.pruning.cpu.directed_quartets import Resolutions
from phloem.pruning.gpu.directed_memory import DirectedArrays, Seated, Sizes
from phloem.pruning.gpu.directed_tables import Laid
from phloem.pruning.gpu.kernels.directed import directed_messages, sums_of_rows, tree_likelihood
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
_WHOLE, _HALVES = 1, 2  # kernels/directed.directed_messages


@dataclass(frozen=True, eq=False)
class Lengths:
    """The log-likelihood of a tree with these lengths (branches,), by place in its order."""

    tree: Laid
    lengths: np.ndarray


@dataclass(frozen=True, eq=False)
class Sweep:
    """Lengths of the tree at hand to be fitted, rows Laid.branches; the answer: all of them, and its
    log-likelihood."""

    tree: Laid
    rows: np.ndarray


@dataclass(frozen=True, eq=False)
class Walks:
    """directed_tables.walk_tables of the tree at hand; the answer are scores of the steps."""

    tree: Laid
    walks: np.ndarray
    steps: np.ndarray
    radius: int


@dataclass(frozen=True, eq=False)
class Stars:
    """directed_tables.look_table, and the (n, 3) lengths that are begun from; the answer are Looks."""

    tree: Laid
    looks: np.ndarray
    begun: np.ndarray
    sites: bool


@dataclass(frozen=True, eq=False)
class Quartets:
    """Laid.quartets, (3 n, 16), and the (3 n, 5) lengths that are begun from."""

    tree: Laid
    rows: np.ndarray
    begun: np.ndarray


class DirectedEngine:
    """sizes: of the seats, which are empty. Same numbers, same answers on one device."""

    def __init__(self, sizes: Sizes, device: torch.device) -> None:
        self.sizes = sizes
        with memory_errors():
            self._on = DirectedArrays(sizes, device)
        n = sizes.seats
        self._seated: list[Seated | None] = [None] * n
        self._trees: list[Laid | None] = [None] * n
        self._halves = np.zeros(n, bool)  # whether those of the tree are there
        self._values = np.zeros(n)
        self._state = np.zeros((n, 3, sizes.branches))  # lengths, dampings, last steps (fit_branches)
        self._jobs: tuple[tuple[int, ...], torch.Tensor] = (), torch.empty(0)

    # What a seat has.

    def seat(self, k: int, problems: Sequence[Problem]) -> Seated:
        """Put data there; whatever was there is gone."""
        own = Seated(problems, self.sizes)
        self._seated[k], self._trees[k] = own, None
        self._on.seat(k, own)
        return own

    def set_models(self, k: int, models: Sequence[SiteModel], rates: Sequence[float]) -> None:
        """Of every part of a seat; messages are not up to date then."""
        self._on.set_models(k, self._own(k), models, rates)

    def set_weights(self, k: int, weights: np.ndarray) -> None:
        """(P,) of the real patterns of a seat."""
        own = self._own(k)
        own.weights[own.real] = weights
        self._on.put_weights(k, own)

    def sites(self, k: int) -> np.ndarray:
        """(P,) log-likelihoods of the real patterns, of the last Lengths or Sweep of a seat."""
        return self._conditional(k, self._on.sites[k].cpu().numpy().copy())

    def _conditional(self, k: int, sites: np.ndarray) -> np.ndarray:
        own = self._own(k)
        return own.unseen.conditional(sites)[..., own.real]

    def _own(self, k: int) -> Seated:
        own = self._seated[k]
        assert own is not None
        return own

    # What is asked of it.

    def lengths(self, asked: Sequence[Lengths]) -> list[float]:
        """Makes all messages."""
        for one in asked:
            k = one.tree.seat
            if self._trees[k] is not one.tree:
                self._trees[k] = one.tree
                self._on.put_tree(k, one.tree.tasks(), one.tree.end())
                self._state[k, 1], self._state[k, 2] = _SHARE, 0.0
            self._state[k, 0] = one.lengths
        return self._evaluate(np.array([one.tree.seat for one in asked])).tolist()

    def sweep(self, asked: Sequence[Sweep]) -> list[tuple[np.ndarray, float]]:
        """Needs the messages, and leaves them up to date. A log-likelihood is not lower then, but for
        rounding."""
        seats = np.array([one.tree.seat for one in asked])
        tables = {k: one.rows for k, one in zip(seats.tolist(), asked)}
        active, rows = seats[[len(one.rows) > 0 for one in asked]], None
        for _ in range(_FITS):
            if not len(active):
                break
            rows = self._rows_of([tables[k] for k in active.tolist()]) if rows is None else rows
            before, value = self._state[active, 0].copy(), self._values[active]
            self._fit(active, rows)
            going = self._not_worse(active, before, value) - value >= _ENOUGH
            active, rows = active[going], rows if going.all() else None
        return [(self._state[k, 0].copy(), float(self._values[k])) for k in seats.tolist()]

    def _not_worse(self, seats: np.ndarray, before: np.ndarray, value: np.ndarray) -> np.ndarray:
        """The log-likelihoods after a step, or half of it, or a quarter …, none in the end."""
        self._evaluate(seats)
        least = value - _ROUNDING * np.abs(value)
        for _ in range(_HALVINGS):
            losing = self._values[seats] < least
            if not losing.any():
                return self._values[seats]
            self._state[seats[losing], 0] = 0.5 * (self._state[seats[losing], 0] + before[losing])
            self._state[seats[losing], 1:] *= 0.5
            self._evaluate(seats[losing])
        losing = self._values[seats] < least
        if losing.any():
            self._state[seats[losing], 0] = before[losing]
            self._evaluate(seats[losing])
        return self._values[seats]

    def scores(self, asked: Sequence[Walks]) -> list[np.ndarray]:
        """Needs the messages; makes those to the middles of branches."""
        self._fill_halves(np.array([one.tree.seat for one in asked]))
        firsts = np.cumsum([0] + [len(one.steps) for one in asked])
        moved = [one.walks + [first, first, 0, 0] for one, first in zip(asked, firsts.tolist())]
        walks, steps = np.concatenate(moved), np.concatenate([one.steps for one in asked])
        radius, scores = max(one.radius for one in asked), np.zeros(len(steps))
        most, first = max(1, _SCORE_BYTES // (8 * self.sizes.tiles)), 0
        while first < len(walks):  # as many walks as have room for their scores, at least one
            behind = int(np.searchsorted(walks[:, 1], walks[first, 0] + most, "right"))
            some = walks[first : max(behind, first + 1)]
            begin, end = int(some[0, 0]), int(some[-1, 1])
            scores[begin:end] = self._scores(some - [begin, begin, 0, 0], steps[begin:end], radius)
            first += len(some)
        shares = [self._own(one.tree.seat).unseen.constant for one in asked]
        return [own + share for own, share in zip(np.split(scores, firsts[1:-1]), shares)]

    def _scores(self, walks: np.ndarray, steps: np.ndarray, radius: int) -> np.ndarray:
        n, on = self.sizes, self._on
        programs = min(on.n_processors * (32 // n.tile_warps), len(walks) * n.tiles)
        f64, i32, rows = torch.float64, torch.int32, len(steps)
        room = (programs, radius + 1, n.categories, n.tile, n.width)
        rooms = torch.empty(room, dtype=f64, device=on.device)
        powers = torch.empty((programs, radius + 1, 2, n.tile), dtype=i32, device=on.device)
        scores = torch.empty((rows, n.tiles), dtype=f64, device=on.device)
        regraft_scores[(programs,)](
            on.put(walks.astype(np.int32)), len(walks), n.tiles, on.put(steps), n.branches,
            torch.zeros(1, dtype=i32, device=on.device), on.messages, on.halves, on.exponents,
            on.matrices[0], on.matrices[1], on.models, on.start, on.weights, on.invariant, rooms, powers,
            scores, n.patterns, radius + 1, n.categories, **n.of_tiles,
        )  # fmt: skip
        sums = torch.empty(rows, dtype=f64, device=on.device)
        sums_of_rows[(-(-rows // 128),)](scores, rows, n.tiles, sums, TILE=128, num_warps=4)
        return sums.cpu().numpy()

    def stars(self, asked: Sequence[Stars]) -> list[Looks]:
        """Needs the messages."""
        on, n = self._on, self.sizes
        width, counts = max(one.looks.shape[1] for one in asked), [len(one.looks) for one in asked]
        ends = np.cumsum([0, *counts])
        looks, begun = np.zeros((ends[-1], width), np.int32), np.zeros((ends[-1], 4))
        for one, first, end in zip(asked, ends[:-1], ends[1:]):
            looks[first:end, : one.looks.shape[1]], begun[first:end, 1:] = one.looks, one.begun
        sites = any(one.sites for one in asked)
        out = on.put(begun)
        by_site = torch.empty((ends[-1] if sites else 1, n.patterns), dtype=torch.float64, device=on.device)
        programs, columns, powers, growths = self._rooms(len(looks), 7, n.span)
        fit_stars[(programs,)](
            on.put(looks), len(looks), width, n.branches, on.codes, on.state_sets, on.messages, on.exponents,
            on.matrices[0], on.models, on.right, on.left, on.into, on.values, on.start, on.weights,
            on.invariant, columns, powers, growths, n.models, out, by_site, int(sites), _LOOK_STEPS,
            n.patterns, n.categories, **n.of_spans,
        )  # fmt: skip
        found, answers = out.cpu().numpy(), []
        for one, first, end in zip(asked, ends[:-1], ends[1:]):
            k, own = one.tree.seat, found[first:end]
            own[:, 0] += self._own(k).unseen.constant
            logs = by_site[first:end].cpu().numpy() if one.sites else np.zeros((0, n.patterns))
            answers.append(Looks(own, self._conditional(k, logs)))
        return answers

    def quartets(self, asked: Sequence[Quartets]) -> list[Resolutions]:
        """Needs the messages."""
        on, n = self._on, self.sizes
        rows = np.concatenate([one.rows for one in asked])
        begun = np.zeros((len(rows), 6))
        begun[:, 1:] = np.concatenate([one.begun for one in asked])
        sites = torch.empty((len(rows), n.patterns), dtype=torch.float64, device=on.device)
        out = on.put(begun)
        programs, columns, powers, growths = self._rooms(len(rows), 10, 0)
        fit_quartets[(programs,)](
            on.put(rows), len(rows), on.codes, on.state_sets, on.messages, on.exponents, on.models, on.right,
            on.left, on.into, on.values, on.start, on.weights, on.invariant, columns, powers, growths,
            n.models, out, sites, _ROUNDS, _QUARTET_STEPS, n.patterns, n.categories, **n.of_spans,
        )  # fmt: skip
        ends = np.cumsum([len(one.rows) for one in asked])[:-1]
        each = zip(asked, np.split(out.cpu().numpy(), ends), np.split(sites.cpu().numpy(), ends))
        return [self._resolutions(one.tree.seat, own, logs) for one, own, logs in each]

    def _resolutions(self, k: int, own: np.ndarray, logs: np.ndarray) -> Resolutions:
        values, own = own[:, 0].reshape(-1, 3).copy(), own.reshape(-1, 3, 6)
        by_site = self._conditional(k, logs.reshape(-1, 3, self.sizes.patterns))
        if self._own(k).unseen:
            values = by_site @ self._own(k).weights[self._own(k).real]
        return Resolutions(values, own[:, :, 1:].copy(), by_site)

    # Launches.

    def _rooms(
        self, n: int, columns: int, lanes: int
    ) -> tuple[int, torch.Tensor, torch.Tensor, torch.Tensor]:
        """Programs for n pieces of work, and what they work in: columns of all patterns and one of so many
        lanes, powers, growths."""
        size = self.sizes
        programs, room = self._on.rooms(n, 4)
        own = columns * size.column + size.categories * lanes * size.width
        growth = size.models * size.categories * size.width
        ends = np.cumsum([programs * own, programs * growth])
        return programs, room[: ends[0]], room[ends[1] :].view(torch.int32), room[ends[0] : ends[1]]

    def _evaluate(self, seats: np.ndarray) -> np.ndarray:
        """All messages of some seats under their lengths, and the log-likelihoods."""
        n, on = self.sizes, self._on
        self._halves[seats] = False
        self._write_matrices(seats, 1.0, on.matrices[0])
        where = on.put(seats.astype(np.int32))
        self._run(where, _WHOLE)
        tree_likelihood[(n.tiles, len(seats))](
            where, on.ends, on.models, on.codes, on.state_sets, on.messages, on.exponents, on.start,
            on.weights, on.invariant, on.sites, on.sums, n.patterns, n.categories, **n.of_tiles,
        )  # fmt: skip
        sums = on.sums.cpu().numpy()
        for k in seats.tolist():
            own, value = self._own(k), float(sums[k].sum())
            if own.unseen:
                value = own.unseen.put(value, on.sites[k].cpu().numpy())
                on.put_weights(k, own)
            if np.isnan(value):
                raise NumericalError("the log-likelihood is not a number")
            self._values[k] = value
        return self._values[seats]

    def _fill_halves(self, seats: np.ndarray) -> None:
        """The messages to the middle of their branches, of all half-edges."""
        seats = seats[~self._halves[seats]]
        if len(seats):
            self._write_matrices(seats, 0.5, self._on.matrices[1])
            self._run(self._on.put(seats.astype(np.int32)), _HALVES)
            self._halves[seats] = True

    def _write_matrices(self, seats: np.ndarray, share: float, matrices: torch.Tensor) -> None:
        n, on, block = self.sizes, self._on, max(16, self.sizes.block)
        if self._jobs[0] != tuple(seats.tolist()):
            self._jobs = tuple(seats.tolist()), on.put(self._list_jobs(seats))
        jobs = self._jobs[1]
        times = on.put(share * self._state[seats, 0]).view(-1, 1).expand(-1, n.categories).contiguous()
        transition_matrices[(len(jobs), n.categories, 1)](
            jobs, times, on.process, n.categories, on.values, on.eigen[0], on.eigen[1], n.width, matrices,
            on.counters, 0, n.categories,
            WIDTH=n.width, BLOCK=block, CHUNKS=1, DTYPE=on.kind, num_warps=1 if block == 16 else 4,
        )  # fmt: skip

    def _list_jobs(self, seats: np.ndarray) -> np.ndarray:
        """(n, 4) of transition.py: of every seat, part and branch."""
        n = self.sizes
        rank, part, branch = np.meshgrid(np.arange(len(seats)), np.arange(n.models), np.arange(n.branches),
                                         indexing="ij")  # fmt: skip
        model = seats[rank] * n.models + part
        jobs = [rank * n.branches + branch, model * n.branches + branch, model, 0 * model]
        return np.stack([column.ravel() for column in jobs], 1)

    def _run(self, seats: torch.Tensor, what: int) -> None:
        n, on = self.sizes, self._on
        on.counters.zero_()
        programs = min(on.n_processors * (32 // n.tile_warps), len(seats) * n.edges * n.tiles)
        directed_messages[(programs,)](
            seats, len(seats), on.tasks, n.edges, n.tiles, n.seats * n.edges, n.branches, what, on.counters,
            on.models, on.codes, on.state_sets, on.messages, on.halves, on.exponents, on.matrices[0],
            on.matrices[1], n.patterns, n.categories, **n.of_tiles,
        )  # fmt: skip

    def _rows_of(self, tables: Sequence[np.ndarray]) -> torch.Tensor:
        """Branches to be fitted, of a table of every seat."""
        rows, rank = np.concatenate(tables), np.arange(len(tables), dtype=np.int32)
        rows[:, 4] += self.sizes.branches * np.repeat(rank, [len(one) for one in tables])
        return self._on.put(rows)

    def _fit(self, seats: np.ndarray, rows: torch.Tensor) -> None:
        """One step of some lengths."""
        n, on = self.sizes, self._on
        state = on.put(self._state[seats].transpose(1, 0, 2))
        programs, columns, _, growths = self._rooms(len(rows), 1, 0)
        fit_branches[(programs,)](
            rows, len(rows), on.codes, on.state_sets, on.messages, on.exponents, on.models, on.into,
            on.left, on.values, on.weights, on.invariant, columns, growths, n.models, state[0], state[1],
            state[2], _STEPS, n.patterns, n.categories, **n.of_spans,
        )  # fmt: skip
        self._state[seats] = state.cpu().numpy().transpose(1, 0, 2)
