"""The memory of directed messages, and what a search over trees asks of them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import llvmlite.binding as llvm
import numpy as np

from phloem.model.record import SiteModel
from phloem.pruning.cpu.cell_memory import aligned
from phloem.pruning.cpu.directed import (
    Columns,
    Messages,
    Numbers,
    Shape,
    fill_messages,
    log_likelihood_at,
    write_matrices,
)
from phloem.pruning.cpu.directed_insertions import Desk, Looks, Star, fit_insertions
from phloem.pruning.cpu.directed_lengths import Room, sweep
from phloem.pruning.cpu.directed_quartets import Quartet, Resolutions, fit_resolutions
from phloem.pruning.cpu.directed_regrafts import OUT, PRUNED, Walk, list_steps, score_steps

# Two registers of float64: the products of a matrix then wait for each other half as often as with one.
LANES = (0,) * (16 if llvm.get_host_cpu_features().get("avx512f") else 8)
_SHARES = 8  # of the blocks of patterns: sums do not depend on the number of threads


class Regrafts(NamedTuple):
    """pruned: the half-edge beyond which the moved subtree lies; out: a half-edge of the branch it would go
    to; scores: log-likelihoods there, lengths as they are. steps: the rows that fit_insertions reads."""

    pruned: np.ndarray
    out: np.ndarray
    scores: np.ndarray
    steps: np.ndarray


class _Thread(NamedTuple):
    """half: as Messages.half."""

    desk: Desk
    half: np.ndarray


class DirectedMessages:
    """All directed messages of one alignment on trees that change (directed.py).

    tip_codes (T, P), state_sets (codes, S), weights (P,): as a Problem's. The model has n_categories, one set
    of branch lengths, real eigensystems, and is reversible. back, lengths: half_edges.HalfEdges, int64 and
    float64; order: half_edges.preorder. radius: the farthest regraft that will be asked for. threads share
    the scores of regrafts and second looks, and change no number.
    """

    def __init__(
        self,
        tip_codes: np.ndarray,
        state_sets: np.ndarray,
        weights: np.ndarray,
        n_categories: int,
        radius: int,
        threads: int = 1,
    ) -> None:
        n, (tips, patterns), states = len(LANES), tip_codes.shape, state_sets.shape[1]
        blocks, padded = -(-patterns // n), -(-states // 4) * 4
        self.shape = Shape(LANES, tips, blocks, n_categories, padded)
        self.n_patterns, self._states = patterns, states
        allowed = np.ones((tips, blocks * n, padded))
        allowed[:, :, states:] = 0.0
        allowed[:, :patterns, :states] = state_sets[tip_codes]
        self._constant = allowed[:, :, :states].all(0)
        by_block = allowed.reshape(tips, blocks, n, padded).transpose(1, 0, 3, 2)
        filled = np.zeros(blocks * n)
        filled[:patterns] = weights
        tips_by_block = aligned(allowed.size)
        tips_by_block[:] = by_block.ravel()
        self._columns = Columns(tips_by_block, filled, np.zeros(blocks * n), np.ones(blocks * n))
        edges, size = 4 * tips - 6, n_categories * padded
        square = size * padded
        values, powers = aligned(blocks * edges * size * n), aligned(blocks * edges * n)
        matrices = aligned(edges * square), aligned(edges * square)
        self._threads = [_thread_of(self.shape, radius) for _ in range(threads)]
        self._messages = Messages(values, self._threads[0].half, powers, *matrices)
        self._numbers = Numbers(*(np.zeros(k) for k in (square, square, size, size, square)))
        self._sites = np.zeros(blocks * n)
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def set_model(self, model: SiteModel) -> None:
        """Take the numbers of a model over; messages are not up to date then."""
        shape, states = self.shape, self._states
        c, p = shape.categories, shape.states
        right, left, into = (np.zeros((c, p, p)) for _ in range(3))
        values, start = np.zeros((c, p)), np.zeros((c, p))
        for k in range(c):
            process = model.processes[model.process[k]]
            eigen = process.real_eigen
            assert eigen is not None
            right[k, :states, :states], left[k, :states, :states] = eigen.right, eigen.left
            values[k, :states] = eigen.values * model.rates[k]
            start[k, :states] = model.weights[k] * process.root_frequencies
            into[k] = right[k].T * start[k]
        for own, new in zip(self._numbers, (right, left, values, start, into)):
            own[:] = new.ravel()
        share = model.invariant * (self._constant @ model.invariant_frequencies)
        share[self.n_patterns :] = 0.0
        self._columns.invariant[:] = share
        self._columns.varies[:] = share == 0

    def fill(self, back: np.ndarray, lengths: np.ndarray, order: np.ndarray) -> float:
        """All messages of a tree; its log-likelihood."""
        shape, room = self.shape, self._threads[0].desk.room
        write_matrices(back, lengths, self._numbers, shape, self._messages)
        fill_messages(order, back, self._columns, self._messages, room.first, shape)
        return self._value(back, int(order[0]))

    def sweep(self, back: np.ndarray, lengths: np.ndarray, order: np.ndarray) -> float:
        """Fit every length once, in place; the log-likelihood then. Needs all messages, and leaves those
        towards tip 0 up to date, which is enough for another sweep."""
        room, root = self._threads[0].desk.room, int(order[0])
        sweep(root, back, lengths, self._columns, self._numbers, self._messages, room, self.shape)
        return self._value(back, root)

    def _value(self, back: np.ndarray, root: int) -> float:
        """The log-likelihood at the branch of a half-edge whose message is up to date, as the other end's."""
        room = self._threads[0].desk.room.first
        h = back[root]
        return log_likelihood_at(
            h, back, self._columns, self._numbers, self._messages, room, self.shape, self._sites
        )

    def sites(self) -> np.ndarray:
        """(P,) log-likelihoods of the patterns, of the last fill or sweep."""
        return self._sites[: self.n_patterns].copy()

    def regrafts(
        self, back: np.ndarray, lengths: np.ndarray, order: np.ndarray, pruned: np.ndarray, radius: int
    ) -> Regrafts:
        """Every regraft of these subtrees within radius, scored. Fills all messages."""
        write_matrices(back, lengths, self._numbers, self.shape, self._messages)
        stack = np.zeros((2 * radius + 4, 4), np.int64)
        count = list_steps(pruned, back, self.shape.tips, radius, np.zeros((0, 7), np.int64), stack)
        steps, scores = np.zeros((count, 7), np.int64), np.zeros((_SHARES, count))
        list_steps(pruned, back, self.shape.tips, radius, steps, stack)
        ends = np.linspace(0, self.shape.blocks, _SHARES + 1).astype(int).tolist()

        def work(share: int, thread: _Thread) -> None:
            messages = self._messages._replace(half=thread.half)
            score_steps(
                steps, order, (ends[share], ends[share + 1]), back, self._columns, self._numbers, messages,
                thread.desk.walk, self.shape, scores[share],
            )  # fmt: skip

        self._share_out(work, _SHARES)
        return Regrafts(steps[:, PRUNED], steps[:, OUT], scores.sum(0), steps)

    def set_weights(self, weights: np.ndarray) -> None:
        """(P,) how often every pattern counts from now on: a resampled alignment is other weights."""
        self._columns.weights[: self.n_patterns] = weights

    def resolutions(self, back: np.ndarray, lengths: np.ndarray, branches: np.ndarray) -> Resolutions:
        """The three resolutions of inner branches, named by a half-edge each, with the five lengths around
        fitted; sites (n, 3, P). Needs all messages."""
        n, padded = len(branches), self.shape.blocks * len(self.shape.lanes)
        found = Resolutions(np.zeros((n, 3)), np.zeros((n, 3, 5)), np.zeros((n, 3, padded)))

        def work(share: int, thread: _Thread) -> None:
            own = np.arange(share, n, len(self._threads))
            part = Resolutions(*(np.ascontiguousarray(x[own]) for x in found))
            fit_resolutions(
                branches[own], back, lengths, self._columns, self._numbers, self._messages,
                _quartet_of(self.shape, thread.desk.room), self.shape, part,
            )  # fmt: skip
            for whole, mine in zip(found, part):
                whole[own] = mine

        self._share_out(work, len(self._threads))
        return found._replace(sites=found.sites[:, :, : self.n_patterns])

    def fitted(
        self, rows: np.ndarray, found: Regrafts, back: np.ndarray, lengths: np.ndarray, sites: bool = False
    ) -> Looks:
        """Some rows of regrafts with the three lengths around fitted: on the side that the subtree came from,
        beyond, and its own. With sites (n, P) if asked for."""
        padded = self.shape.blocks * len(self.shape.lanes)
        result = Looks(np.zeros((len(rows), 4)), np.zeros((len(rows) if sites else 0, padded)))

        def work(share: int, thread: _Thread) -> None:
            own = slice(share, None, len(self._threads))
            part = Looks(*(np.ascontiguousarray(x[own]) for x in result))
            fit_insertions(
                np.ascontiguousarray(rows[own]), found.steps, back, lengths, self._columns, self._numbers,
                self._messages, thread.desk, self.shape, part,
            )  # fmt: skip
            for whole, mine in zip(result, part):
                whole[own] = mine

        self._share_out(work, len(self._threads))
        return result._replace(sites=result.sites[:, : self.n_patterns])

    def _share_out(self, work: Callable[[int, _Thread], None], n_shares: int) -> None:
        """work(share, thread) of every share, each thread every n-th."""
        n = len(self._threads)

        def run(k: int) -> None:
            for share in range(k, n_shares, n):
                work(share, self._threads[k])

        if self._pool is None:
            run(0)
        else:
            list(self._pool.map(run, range(n)))


def _thread_of(shape: Shape, radius: int) -> _Thread:
    n, size = len(shape.lanes), shape.categories * shape.states
    column, edges = size * n, 4 * shape.tips - 6
    a, b, c, d, e = (aligned(column) for _ in range(5))
    theta, stack = aligned(shape.blocks * column), np.zeros(4 * shape.tips, np.int64)
    room = Room(a, b, theta, np.zeros(3 * size), stack)
    walk = Walk(aligned((radius + 1) * column), np.zeros((radius + 1) * n), c, d, e)
    ends, sent = aligned(3 * shape.blocks * column), aligned(3 * shape.blocks * column)
    star = Star(
        ends, sent, np.zeros(shape.blocks * n), np.zeros(3), np.zeros(radius + 1, np.int64), np.zeros(0)
    )
    return _Thread(Desk(room, walk, star), aligned(edges * column))


def _quartet_of(shape: Shape, room: Room) -> Quartet:
    n, size = len(shape.lanes), shape.categories * shape.states
    span = shape.blocks * size * n
    return Quartet(
        room, aligned(4 * span), aligned(4 * span), aligned(span), np.zeros(shape.blocks * n), np.zeros(5),
        np.zeros(size * shape.states),
    )  # fmt: skip
