"""Ultrafast bootstrap: the best tree of every resampled alignment among trees whose sites are known.

Minh, Nguyen and von Haeseler 2013 (Mol. Biol. Evol. 30:1188) and Hoang et al. 2018 (35:518): a resampled
log-likelihood is the resampled weights times the log-likelihoods of the sites (RELL), so that a tree is
evaluated once for all replicates. Here the trees are the hilltops that the search met, all their regrafts
that get a second look, and those of the few trees that then win most replicates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from phloem.inference.ml.moves import Regraft, regraft
from phloem.inference.ml.search import climb, fit_lengths, worth_a_look
from phloem.pruning.cpu.directed_sets import TreeMessages
from phloem.tree.half_edges import HalfEdges, branch_splits, preorder, topology_key

TIE = 0.5  # log units: within these, trees of a replicate are equally good, and one is drawn (Hoang et al.)
_SLACK, _LOOKS = 25.0, 8  # regrafts that get a second look: log units below their tree; of a subtree at most
_HIGH, _MOST_TOPS = 30.0, 20  # hilltops whose regrafts are looked at: log units below the best; at most
_WINNERS = 4  # further trees whose regrafts are looked at
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
    messages: TreeMessages,
    hilltops: Sequence[HalfEdges],
    counts: np.ndarray,
    rng: np.random.Generator,
    radius: int,
) -> Replicates:
    """hilltops: trees that no move improves, the best first; the messages have the model, and the data's
    weights. counts (R, P): resampled weights."""
    pool = _Pool(messages, counts, rng, radius)
    for edges in hilltops[:_MOST_TOPS]:
        pool.expand(edges.copy())
    wins = pool.chosen()
    for k in np.argsort(-np.bincount(wins.trees), kind="stable")[: _WINNERS + len(hilltops)]:
        if pool.n_expanded == min(len(hilltops), _MOST_TOPS) + _WINNERS:
            break
        pool.expand(wins.distinct[k].copy())
    return pool.chosen()


class _Pool:
    """Trees and every replicate's score of each; scores are kept, log-likelihoods of sites are not."""

    def __init__(
        self, messages: TreeMessages, counts: np.ndarray, rng: np.random.Generator, radius: int
    ) -> None:
        self._messages, self._counts, self._rng, self._radius = messages, counts, rng, radius
        self._known: set[int] = set()
        self._expanded: set[int] = set()
        self._trees: list[tuple[HalfEdges, Regraft | None]] = []
        self._scores: list[np.ndarray] = []
        self._best = -np.inf

    @property
    def n_expanded(self) -> int:
        return len(self._expanded)

    def expand(self, edges: HalfEdges) -> None:
        """Add a tree, its lengths fitted in place, and its regrafts; nothing if that was done, or the tree is
        far below the best."""
        key = topology_key(edges.back)
        if key in self._expanded:
            return
        self._expanded.add(key)
        messages, order = self._messages, preorder(edges.back)
        place = fit_lengths(messages, edges, 0.1)
        self._best = max(self._best, place.log_likelihood)
        if place.log_likelihood < self._best - _HIGH:
            return
        if key not in self._known:
            self._add(key, edges, None, (self._counts @ messages.sites())[:, None])
        subtrees = np.arange(edges.n_tips, len(edges.back))
        found = messages.regrafts(edges.back, edges.lengths, order, subtrees, self._radius, _SLACK)
        rows = worth_a_look(found, place.log_likelihood - _SLACK, _LOOKS)
        messages.fill(edges.back, edges.lengths, order)
        step = max(1, _ROOM // (8 * self._counts.shape[1]))
        for first in range(0, len(rows), step):
            part = rows[first : first + step]
            looks = messages.fitted(part, found, edges.back, edges.lengths, sites=True)
            scores = self._counts @ looks.sites.T
            for k, (row, (_, a, b, c)) in enumerate(zip(part, looks.found)):
                move = Regraft(int(found.pruned[row]), int(found.out[row]), (a, b, c), 0.0)
                other = edges.copy()
                regraft(other, move)
                moved = topology_key(other.back)
                if moved not in self._known:
                    self._add(moved, edges, move, scores[:, k : k + 1])

    def _add(self, key: int, edges: HalfEdges, move: Regraft | None, scores: np.ndarray) -> None:
        self._known.add(key)
        self._trees.append((edges, move))
        self._scores.append(scores)

    def chosen(self) -> Replicates:
        """For every replicate one of the trees that are within TIE of its best."""
        scores = np.concatenate(self._scores, axis=1)
        self._scores = [scores]
        tied = scores >= scores.max(1, keepdims=True) - TIE
        drawn = np.where(tied, self._rng.random(scores.shape), -1.0).argmax(1)
        used, trees = np.unique(drawn, return_inverse=True)
        distinct = []
        for k in used:
            edges, move = self._trees[k]
            edges = edges.copy()
            if move is not None:
                regraft(edges, move)
            distinct.append(edges)
        return Replicates(distinct, trees)


def climb_each(
    messages: TreeMessages, found: Replicates, counts: np.ndarray, weights: np.ndarray, radius: int = 1
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
