"""The memory of directed messages, and what a search over trees asks of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from phloem.model.record import SiteModel
from phloem.pruning.cpu.cell_memory import aligned
from phloem.pruning.cpu.directed import (
    MIDDLE,
    NOTHING,
    WHOLE,
    Columns,
    Messages,
    Numbers,
    fill_messages,
    log_likelihood_at,
    write_matrices,
)
from phloem.pruning.cpu.directed_ascertainment import Unseen
from phloem.pruning.cpu.directed_insertions import Looks, fit_insertions
from phloem.pruning.cpu.directed_lengths import FIT, sweep
from phloem.pruning.cpu.directed_quartets import Resolutions, fit_resolutions
from phloem.pruning.cpu.directed_regrafts import (
    BEFORE,
    GOES_ON,
    OUT,
    PRUNED,
    Share,
    ask,
    list_steps,
    score_steps,
)
from phloem.pruning.cpu.directed_storage import LANES, Thread, quartet_of, shape_of, thread_of
from phloem.pruning.interface import Problem

_SHARES = 16  # of the blocks of patterns, every 16th each: sums do not depend on the number of threads
# After so many shares, regrafts are out whose loss in them is already beyond this part of what they may lose.
_SCREENS = ((2, 2 / 3), (6, 1.0), (_SHARES, np.inf))


_NOWHERE = np.zeros(0, np.int64), np.zeros(0)


class Regrafts(NamedTuple):
    """pruned: the half-edge beyond which the moved subtree lies; out: a half-edge of the branch it would go
    to; scores: log-likelihoods there, lengths as they are. steps: the rows that fit_insertions reads."""

    pruned: np.ndarray
    out: np.ndarray
    scores: np.ndarray
    steps: np.ndarray


class DirectedMessages:
    """All directed messages on trees that change (directed.py), of one alignment or of several that share
    branch lengths.

    problems: their data; left and right are not read. The models have n_categories, one set of branch
    lengths, real eigensystems, and are reversible. back, lengths: half_edges.HalfEdges, int64 and float64,
    (4T-6, K) where n_sets, of the classes of one problem, is K > 1; order: half_edges.preorder. radius: the
    farthest regraft that will be asked for. threads share the scores of regrafts and second looks, and change
    no number. Patterns P are those of all problems, in order.
    """

    def __init__(self, problems: Sequence[Problem], radius: int, threads: int = 1, n_sets: int = 1) -> None:
        self.shape = shape = shape_of(problems)
        n, tips, padded = len(LANES), shape.tips, shape.states
        patterns = [len(one.pattern_weights) for one in problems]
        blocks = [-(-k // n) for k in patterns]
        firsts = np.concatenate([[0], np.cumsum(blocks)])[:-1] * n
        self._spans = [slice(first, first + k) for first, k in zip(firsts.tolist(), patterns)]
        self.n_patterns = sum(patterns)
        self._real: slice | np.ndarray = self._spans[0]
        if len(problems) > 1:
            self._real = np.concatenate([np.arange(span.start, span.stop) for span in self._spans])
        allowed = np.ones((tips, shape.blocks * n, padded))
        filled, self._constant, self._states = np.zeros(shape.blocks * n), [], []
        part = np.repeat(np.arange(len(problems)), blocks)
        for k, (one, span) in enumerate(zip(problems, self._spans)):
            states = one.state_sets.shape[1]
            allowed[:, np.repeat(part == k, n), states:] = 0.0
            allowed[:, span, :states] = one.state_sets[one.tip_codes]
            self._constant.append(allowed[:, span, :states].all(0))
            self._states.append(states)
            filled[span] = one.pattern_weights
        by_block = allowed.reshape(tips, shape.blocks, n, padded).transpose(1, 0, 3, 2)
        tips_by_block = aligned(allowed.size)
        tips_by_block[:] = by_block.ravel()
        lanes = shape.blocks * n
        self._columns = Columns(tips_by_block, filled, np.zeros(lanes), np.ones(lanes), part.astype(np.int64))
        pairs = [(span.start + np.flatnonzero(~one.ascertained), span.start + np.flatnonzero(one.ascertained))
                 for one, span in zip(problems, self._spans)]  # fmt: skip
        self._unseen = Unseen([pair for pair in pairs if len(pair[1])], filled)
        edges, size = 4 * tips - 6, shape.categories * padded
        square = size * padded * shape.parts
        values, powers = aligned(edges * size * lanes), aligned(edges * lanes)
        matrices = aligned(edges * square), aligned(edges * square)
        self.radius = radius
        self._threads = [thread_of(shape, radius, n_sets) for _ in range(threads)]
        self._messages = Messages(values, self._threads[0].half, powers, *matrices)
        size *= shape.parts
        right, left, into = (np.zeros(square) for _ in range(3))
        growth, start, own_sets = np.zeros(size), np.zeros(size), np.zeros(size, np.int64)
        self._numbers = Numbers(right, left, growth, start, into, own_sets)
        self._sites, self._blocks = np.zeros(lanes), np.arange(shape.blocks)
        self._stands, self._towards_tip = _NOWHERE, False  # of which tree the messages towards tip 0 are
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    @property
    def n_sites(self) -> float:
        """Characters, by the weights of the patterns."""
        return float(self._columns.weights[self._real].sum())

    def set_models(self, models: Sequence[SiteModel], rates: Sequence[float]) -> None:
        """Take the numbers of every part's model over, and what its branch lengths are multiplied by;
        messages are not up to date then."""
        shape = self.shape
        l, c, p = shape.parts, shape.categories, shape.states
        right, left, into = (np.zeros((l, c, p, p)) for _ in range(3))
        values, start, sets = np.zeros((l, c, p)), np.zeros((l, c, p)), np.zeros((l, c, p), np.int64)
        share = self._columns.invariant
        self._invariable = np.zeros(p)  # share and frequency of every state, of the first part
        self._invariable[: self._states[0]] = models[0].invariant * models[0].invariant_frequencies
        for i, (model, rate, states) in enumerate(zip(models, rates, self._states)):
            for k in range(c):
                real = k < len(model.rates)  # one that is not is scaled as the first is, and has no weight
                of = k if real else 0
                process = model.processes[model.process[of]]
                eigen = process.real_eigen
                assert eigen is not None
                right[i, k, :states, :states], left[i, k, :states, :states] = eigen.right, eigen.left
                values[i, k, :states] = eigen.values * (model.rates[of] * rate)
                start[i, k, :states] = model.weights[of] * process.root_frequencies * real
                into[i, k] = right[i, k].T * start[i, k]
                sets[i, k] = model.length_class[of]
            share[self._spans[i]] = model.invariant * (self._constant[i] @ model.invariant_frequencies)
        for own, new in zip(self._numbers, (right, left, values, start, into, sets)):
            own[:] = new.ravel()
        self._columns.varies[:] = share == 0
        self._stands = _NOWHERE

    def fill(self, back: np.ndarray, lengths: np.ndarray, order: np.ndarray) -> float:
        """All messages of a tree; its log-likelihood."""
        return self._filled(back, lengths, order, np.full(len(back), WHOLE, np.int8))

    def fill_half(self, back: np.ndarray, lengths: np.ndarray, order: np.ndarray) -> float:
        """The messages towards tip 0, which are enough for a sweep; the log-likelihood."""
        what = np.zeros(len(back), np.int8)
        what[order] = WHOLE
        return self._filled(back, lengths, order, what)

    def _filled(self, back: np.ndarray, lengths: np.ndarray, order: np.ndarray, what: np.ndarray) -> float:
        self.write_matrices(back, lengths)
        room = self._threads[0].desk.room
        fill_messages(order, what, back, self._columns, self._messages, room.first, self.shape)
        self._stands = back.copy(), lengths.copy()
        return self._value(back, int(order[0]))

    def sweep(
        self, back: np.ndarray, lengths: np.ndarray, order: np.ndarray, todo: np.ndarray | None = None
    ) -> float:
        """Fit lengths once, in place, all or as todo says (directed_lengths.sweep); the log-likelihood then.
        Needs the messages towards tip 0, and leaves them up to date."""
        room, root = self._threads[0].desk.room, int(order[0])
        todo = np.full(len(back), FIT, np.int8) if todo is None else todo
        sweep(
            root, todo, back, _by_set(lengths), self._columns, self._numbers, self._messages, room, self.shape
        )
        self._stands = back.copy(), lengths.copy()
        return self._value(back, root)

    def _value(self, back: np.ndarray, root: int) -> float:
        """The log-likelihood at the branch of a half-edge whose message is up to date, as the other end's."""
        room = self._threads[0].desk.room.first
        h = back[root]
        value = log_likelihood_at(
            h, self._blocks, back, self._columns, self._numbers, self._messages, room, self.shape, self._sites
        )
        return self._unseen.put(value, self._sites)

    def sites(self) -> np.ndarray:
        """(P,) log-likelihoods of the patterns, of the last fill or sweep."""
        return self._unseen.conditional(self._sites.copy())[self._real]

    def regrafts(
        self,
        back: np.ndarray,
        lengths: np.ndarray,
        order: np.ndarray,
        pruned: np.ndarray,
        radius: int,
        slack: float = np.inf,
    ) -> Regrafts:
        """Regrafts of these subtrees within radius, scored: all, or those that probably lose less than slack.
        Fills the messages that a second look at these needs."""
        return screened([self], back, [lengths], order, pruned, radius, slack)

    def scores(self, steps: np.ndarray, back: np.ndarray, order: np.ndarray, shares: range) -> np.ndarray:
        """(n + 1,) what some shares of the patterns add to the log-likelihood of every step, and of the tree
        as it is. Fills the messages that steps ask for; the matrices are there."""
        what = np.zeros(len(back), np.int8)
        ask(steps, back, order, what)
        what[order] = NOTHING if self._towards_tip else WHOLE
        what[back[steps[:, OUT]]] |= MIDDLE
        root, found = int(order[0]), np.zeros((len(shares), len(steps) + 1))

        def work(k: int, thread: Thread) -> None:
            own = np.arange(shares[k], self.shape.blocks, _SHARES)
            messages, share = self._messages._replace(half=thread.half), Share(own, order, what)
            walk, room = thread.desk.walk, thread.desk.room.first
            data = back, self._columns, self._numbers, messages
            score_steps(steps, share, *data, walk, self.shape, found[k, :-1])
            found[k, -1] = log_likelihood_at(back[root], own, *data, room, self.shape, self._sites)

        self._share_out(work, len(shares))
        return found.sum(0) + self._unseen.constant * (shares.start == 0)

    def prepare(self, back: np.ndarray, lengths: np.ndarray, order: np.ndarray) -> None:
        """For scores: P of all branches, and what is expected to have gone unseen on this tree."""
        self.write_matrices(back, lengths)
        if self._unseen and not self._towards_tip:
            self.fill_half(back, lengths, order)
            self._towards_tip = True

    def write_matrices(self, back: np.ndarray, lengths: np.ndarray) -> None:
        """P of all branches; messages towards tip 0 of this very tree stay up to date."""
        write_matrices(back, _by_set(lengths), self._numbers, self.shape, self._messages)
        self._towards_tip = np.array_equal(self._stands[0], back) and np.array_equal(self._stands[1], lengths)
        if not self._towards_tip:
            self._stands = _NOWHERE

    def states_behind(self, ends: Sequence[int], back: np.ndarray) -> np.ndarray:
        """(n, P, S) probabilities of the states at the nodes of some half-edges, given the tips behind them
        alone, as if each were a root. Needs all messages, and one part. Source: Mo et al. 2023."""
        shape, states = self.shape, self._states[0]
        tips = self._columns.tips.reshape(shape.blocks, shape.tips, shape.states, -1)
        size = shape.blocks, len(back), shape.categories, shape.states, len(shape.lanes)
        values, powers = self._messages.values.reshape(size), self._messages.powers.reshape(*size[:2], -1)
        start = self._numbers.start.reshape(shape.categories, shape.states)
        found = np.empty((len(ends), self.n_patterns, states))
        for k, h in enumerate(ends):
            behind = [h]
            for g in behind:
                first = shape.tips + 3 * ((g - shape.tips) // 3)
                others = [x for x in range(first, first + 3) if x != g] if g >= shape.tips else []
                behind += [int(back[x]) for x in others]
            arrive, power = behind[1:3], np.zeros((1, 1, 1))
            if not arrive:
                column = np.repeat(tips[:, None, h], shape.categories, 1)
            else:
                column, power = values[:, arrive].prod(1), powers[:, arrive].sum(1)[:, None]
            here = np.einsum("cs,bcsl->bsl", start, column)
            constant = tips[:, [g for g in behind if g < shape.tips]].all(1)
            still = self._invariable[:, None] * constant
            here = np.where(still.any(1, keepdims=True), here * np.exp2(power) + still, here)
            here = here.transpose(0, 2, 1).reshape(-1, shape.states)[self._real, :states]
            found[k] = here / here.sum(1, keepdims=True)
        return found

    def set_weights(self, weights: np.ndarray) -> None:
        """(P,) how often every pattern counts from now on: a resampled alignment is other weights."""
        self._columns.weights[self._real] = weights

    def resolutions(self, back: np.ndarray, lengths: np.ndarray, branches: np.ndarray) -> Resolutions:
        """The three resolutions of inner branches, named by a half-edge each, with the five lengths around
        fitted; sites (n, 3, P). Needs all messages."""
        n, padded, own_sets = len(branches), self.shape.blocks * len(self.shape.lanes), lengths.shape[1:]
        by_set = _by_set(lengths)
        found = Resolutions(np.zeros((n, 3)), np.zeros((n, 3, 5, by_set.shape[1])), np.zeros((n, 3, padded)))

        def work(share: int, thread: Thread) -> None:
            own = np.arange(share, n, len(self._threads))
            part = Resolutions(*(np.ascontiguousarray(x[own]) for x in found))
            fit_resolutions(
                branches[own], back, by_set, self._columns, self._numbers, self._messages,
                quartet_of(self.shape, thread.desk.room, by_set.shape[1]), self.shape, part,
            )  # fmt: skip
            for whole, mine in zip(found, part):
                whole[own] = mine

        self._share_out(work, len(self._threads))
        if self._unseen:
            self._unseen.conditional(found.sites)
            found.values[:] = found.sites @ self._columns.weights
        shaped = found.lengths.reshape(n, 3, 5, *own_sets)
        return found._replace(lengths=shaped, sites=found.sites[:, :, self._real])

    def fitted(
        self, rows: np.ndarray, found: Regrafts, back: np.ndarray, lengths: np.ndarray, sites: bool = False
    ) -> Looks:
        """Some rows of regrafts with the three lengths around fitted: on the side that the subtree came from,
        beyond, and its own. With sites (n, P) if asked for."""
        padded, by_set = self.shape.blocks * len(self.shape.lanes), _by_set(lengths)
        n = len(rows)
        result = Looks(np.zeros((n, 4, by_set.shape[1])), np.zeros((n if sites else 0, padded)))

        def work(share: int, thread: Thread) -> None:
            own = slice(share, None, len(self._threads))
            part = Looks(*(np.ascontiguousarray(x[own]) for x in result))
            fit_insertions(
                np.ascontiguousarray(rows[own]), found.steps, back, by_set, self._columns, self._numbers,
                self._messages, thread.desk, self.shape, part,
            )  # fmt: skip
            for whole, mine in zip(result, part):
                whole[own] = mine

        self._share_out(work, len(self._threads))
        result.found[:, 0, 0] += self._unseen.constant
        looks = result.found.reshape(n, 4, *lengths.shape[1:])
        return Looks(looks, self._unseen.conditional(result.sites)[:, self._real])

    def _share_out(self, work: Callable[[int, Thread], None], n_shares: int) -> None:
        """work(share, thread) of every share, each thread every n-th."""
        n = len(self._threads)

        def run(k: int) -> None:
            for share in range(k, n_shares, n):
                work(share, self._threads[k])

        if self._pool is None:
            run(0)
        else:
            list(self._pool.map(run, range(n)))


def _by_set(lengths: np.ndarray) -> np.ndarray:
    """(4T-6, K), the same memory."""
    return lengths.reshape(len(lengths), -1)


def screened(
    sets: Sequence[DirectedMessages],
    back: np.ndarray,
    lengths: Sequence[np.ndarray],
    order: np.ndarray,
    pruned: np.ndarray,
    radius: int,
    slack: float,
) -> Regrafts:
    """DirectedMessages.regrafts of the sum over sets, each with its lengths.

    Scored first in an eighth of the patterns, spread over all: what loses 2/3 of the slack there hardly ever
    ends within it, as most patterns lose by a bad move; so on after three eighths.
    """
    for one, own in zip(sets, lengths):
        assert radius <= one.radius  # rooms end there
        one.prepare(back, own, order)
    stack = np.zeros((2 * radius + 4, 4), np.int64)
    count = list_steps(pruned, back, sets[0].shape.tips, radius, np.zeros((0, 7), np.int64), stack)
    steps, first = np.zeros((count, 7), np.int64), 0
    list_steps(pruned, back, sets[0].shape.tips, radius, steps, stack)
    scores, good = np.zeros(count + 1), np.ones(count, np.bool_)
    for shares, part in _SCREENS if slack < np.inf else _SCREENS[-1:]:
        for one in sets:
            scores += one.scores(steps, back, order, range(first, shares))
        first = shares
        good &= scores[:-1] > scores[-1] - part * slack
        if shares < _SHARES:
            steps, kept = _with_ways(steps, good)
            scores, good = np.append(scores[:-1][kept], scores[-1]), good[kept]
    return Regrafts(steps[:, PRUNED], steps[:, OUT], np.where(good, scores[:-1], -np.inf), steps)


def _with_ways(steps: np.ndarray, good: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The good steps and all that a walk passes on its way there, numbered anew; and which these are."""
    kept, waiting = good.copy(), np.flatnonzero(good)
    while len(waiting):
        waiting = np.unique(steps[waiting, BEFORE])
        waiting = waiting[(waiting >= 0) & ~kept[waiting]]
        kept[waiting] = True
    rows = np.flatnonzero(kept)
    fewer, place = steps[rows], np.cumsum(kept) - 1
    later = fewer[:, BEFORE] >= 0
    fewer[later, BEFORE] = place[fewer[later, BEFORE]]
    fewer[:, GOES_ON] = 0
    fewer[fewer[later, BEFORE], GOES_ON] = 1
    return fewer, rows
