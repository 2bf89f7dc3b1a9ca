"""Ultrafast bootstrap: the best tree of every resampled alignment among trees whose sites are known.

Minh, Nguyen and von Haeseler 2013 (Mol. Biol. Evol. 30:1188) and Hoang et al. 2018 (35:518): a resampled
log-likelihood is the resampled weights times the log-likelihoods of the sites (RELL), so that a tree is
evaluated once for all replicates. Here the trees are the hilltops that the search met, and regrafts that get
a second look: of the tree that wins most replicates, then of the one that does so among all, and so on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from phloem.inference.ml.constrained_messages import Messages
from phloem.inference.ml.moves import Regraft, regraft
from phloem.inference.ml.regraft_topologies import regraft_numbers, topology_number
from phloem.inference.ml.search import climb, fit_lengths, worth_a_look
from phloem.tree.half_edges import HalfEdges, branch_splits, preorder, topology_key

TIE = 0.5  # log units: within these, trees of a replicate are equally good, and one is drawn (Hoang et al.)
_SLACK, _LOOKS = 25.0, 3  # regrafts that get a second look: log units below their tree; of a subtree at most
_HIGH, _MOST_TOPS = 30.0, 20  # hilltops that are among the trees: log units below the best; at most
_WINNERS, _WINS = 32, 0.005  # trees whose regrafts are looked at: at most; share of replicates that one wins
_ROOM = 1 << 27  # bytes of log-likelihoods of sites held at a time


@dataclass(frozen=True, eq=False)
class Replicates:
    """trees (R,): of every replicate, as numbers of `distinct`."""

    distinct: list[HalfEdges]
    trees: np.ndarray

    def frequencies(self) -> dict[bytes, float]:
        """Share of the replicates that have a branch, by its split (half_edges.branch_splits)."""
        times: dict[bytes, int] = {}
        counts = np.bincount(self.trees, minlength=len(self.distinct)).tolist()
        for edges, count in zip(self.distinct, counts):
            order, splits = branch_splits(edges.back)
            for split in splits[order >= edges.n_tips]:
                times[split.tobytes()] = times.get(split.tobytes(), 0) + count
        return {key: count / len(self.trees) for key, count in times.items()}


def ultrafast(
    messages: Messages,
    hilltops: Sequence[HalfEdges],
    counts: np.ndarray,
    rng: np.random.Generator,
    radius: int,
) -> Replicates:
    """hilltops: trees that no move improves, the best first; the messages have the model, and the data's
    weights. counts (R, P): resampled weights."""
    pool = _Pool(messages, counts, rng, radius)
    for edges in hilltops[:_MOST_TOPS]:
        pool.add_hilltop(edges.copy())
    for _ in range(_WINNERS):
        winner = pool.winner()
        if winner is None:
            break
        pool.expand(winner)
    return pool.chosen()


class _Pool:
    """Trees, and of every replicate those that may be its best one; log-likelihoods of sites are not kept."""

    def __init__(self, messages: Messages, counts: np.ndarray, rng: np.random.Generator, radius: int) -> None:
        self._messages, self._counts, self._rng, self._radius = messages, counts, rng, radius
        self._trees: list[tuple[HalfEdges, Regraft | None]] = []
        self._numbers: list[int] = []  # topology_number of each
        self._expanded: set[int] = set()
        self._ahead, self._score = np.zeros(len(counts), np.int64), np.full(len(counts), -np.inf)
        self._close: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []  # replicates, trees, scores
        # of differences between trees: in double precision they take as long again
        self._short = counts.astype(np.float32)
        self._best = -np.inf

    def add_hilltop(self, edges: HalfEdges) -> None:
        """Add a tree, its lengths fitted in place, unless it is far below the best."""
        place = fit_lengths(self._messages, edges, 0.1)
        self._best = max(self._best, place.log_likelihood)
        number = topology_number(edges.back)
        if place.log_likelihood >= self._best - _HIGH and number not in self._numbers:
            self._add([(edges, None)], [number], (self._counts @ self._messages.sites())[:, None])

    def winner(self) -> int | None:
        """Of the trees whose regrafts are not known, the one that wins most replicates, if many."""
        wins = np.bincount(self._ahead)
        for k in np.argsort(-wins, kind="stable").tolist():
            if wins[k] < _WINS * len(self._counts):
                break
            if self._numbers[k] not in self._expanded:
                return k
        return None

    def expand(self, k: int) -> None:
        """Add the regrafts of a tree that are not among the trees."""
        self._expanded.add(self._numbers[k])
        messages, edges, move = self._messages, self._tree(k), self._trees[k][1]
        place = fit_lengths(messages, edges, 0.1, before=None if move is None else self._trees[k][0].back)
        own, subtrees = messages.sites(), np.arange(edges.n_tips, len(edges.back))
        found = messages.regrafts(
            edges.back, edges.lengths, preorder(edges.back), subtrees, self._radius, _SLACK
        )
        rows = worth_a_look(found, place.log_likelihood - _SLACK, _LOOKS)
        numbers = regraft_numbers(edges.back, found.steps)[rows]
        first = np.sort(np.unique(numbers, return_index=True)[1])
        new = first[~np.isin(numbers[first], np.array(self._numbers, np.uint64))]
        rows, numbers = rows[new], numbers[new]
        here = (self._counts @ own)[:, None]
        step = max(1, _ROOM // (8 * self._counts.shape[1]))
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            looks = messages.fitted(part, found, edges.back, edges.lengths, sites=True)
            scores = here + self._short @ (looks.sites - own).astype(np.float32).T
            moves = [
                Regraft(int(found.pruned[row]), int(found.out[row]), (a, b, c), 0.0)
                for row, (_, a, b, c) in zip(part, looks.found)
            ]
            self._add([(edges, one) for one in moves], numbers[start : start + step].tolist(), scores)

    def _add(
        self, trees: Sequence[tuple[HalfEdges, Regraft | None]], numbers: Sequence[int], scores: np.ndarray
    ) -> None:
        """scores (R, n)."""
        first, best = len(self._trees), scores.argmax(1)
        self._trees += trees
        self._numbers += numbers
        top = scores[np.arange(len(scores)), best]
        better = top > self._score
        self._ahead[better], self._score[better] = first + best[better], top[better]
        rows, columns = np.nonzero(scores >= self._score[:, None] - TIE)
        self._close.append((rows, first + columns, scores[rows, columns]))

    def chosen(self) -> Replicates:
        """For every replicate one of the trees that are within TIE of its best."""
        rows, trees, scores = (np.concatenate(each) for each in zip(*self._close))
        still = scores >= self._score[rows] - TIE
        rows, trees = rows[still], trees[still]
        trees = trees[np.lexsort((trees, rows))]
        first = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(self._score)))])
        drawn = trees[first[:-1] + (self._rng.random(len(self._score)) * np.diff(first)).astype(np.int64)]
        used, trees = np.unique(drawn, return_inverse=True)
        return Replicates([self._tree(k) for k in used], trees)

    def _tree(self, k: int) -> HalfEdges:
        edges, move = self._trees[k]
        edges = edges.copy()
        if move is not None:
            regraft(edges, move)
        return edges


def climb_each(
    messages: Messages, found: Replicates, counts: np.ndarray, weights: np.ndarray, radius: int = 1
) -> Replicates:
    """Every replicate's tree climbed with the replicate's own weights (Hoang et al. 2018 call it bnni: less
    overestimation where the model is violated). weights: the data's, put back in the end."""
    known: dict[int, int] = {}
    distinct: list[HalfEdges] = []
    trees = np.empty(len(counts), np.int64)
    for r, own in enumerate(counts):
        messages.set_weights(own)
        start = fit_lengths(messages, found.distinct[found.trees[r]].copy(), TIE, most=2)
        edges = climb(messages, start, radius).edges
        trees[r] = known.setdefault(topology_key(edges.back), len(distinct))
        if trees[r] == len(distinct):
            distinct.append(edges)
    messages.set_weights(weights)
    return Replicates(distinct, trees)
