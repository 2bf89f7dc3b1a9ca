"""Climbing to a likelier tree: subtrees are moved while that pays, with the model's numbers held."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from phloem.inference.ml.moves import Regraft, regraft_all
from phloem.pruning.cpu.directed_messages import DirectedMessages
from phloem.tree.half_edges import HalfEdges, nexts, preorder

SLACK = 20.0  # log units below the tree at hand, down to which a regraft gets a second look
LOOKS = 3  # second looks a subtree
SMALLEST_GAIN = 1e-3  # in log-likelihood


@dataclass(frozen=True, eq=False)
class Place:
    """A tree with its lengths, and its log-likelihood."""

    edges: HalfEdges
    log_likelihood: float


def fit_lengths(messages: DirectedMessages, edges: HalfEdges, tolerance: float, most: int = 30) -> Place:
    """Sweeps over all lengths, in place, until one gains less than the tolerance."""
    order = preorder(edges.back)
    value = messages.fill(edges.back, edges.lengths, order)
    for _ in range(most):
        before, value = value, messages.sweep(edges.back, edges.lengths, order)
        if value - before < tolerance:
            break
    return Place(edges, value)


def climb(messages: DirectedMessages, place: Place, radius: int) -> Place:
    """Rounds of moves of any subtree by at most radius nodes, until none gains."""
    better: Place | None = place
    while better is not None:
        place = better
        better = _after(messages, place, improving(messages, place, radius))
    return place


def improving(messages: DirectedMessages, place: Place, radius: int) -> list[Regraft]:
    """Regrafts that gain, by the second look that the best of every subtree get."""
    back, lengths = place.edges
    subtrees = np.arange(place.edges.n_tips, len(back))
    found = messages.regrafts(back, lengths, preorder(back), subtrees, radius)
    rows = _worth_a_look(found.pruned, found.scores, place.log_likelihood - SLACK)
    fitted = messages.fitted(rows, found, back, lengths)
    gains = fitted[:, 0] - place.log_likelihood
    return [
        Regraft(int(found.pruned[r]), int(found.out[r]), (float(a), float(b), float(c)), float(gain))
        for r, (_, a, b, c), gain in zip(rows, fitted, gains)
        if gain > SMALLEST_GAIN
    ]


def _worth_a_look(pruned: np.ndarray, scores: np.ndarray, least: float) -> np.ndarray:
    """Rows of the best scores of every subtree."""
    order = np.lexsort((-scores, pruned))
    new = np.diff(pruned[order], prepend=-1) != 0
    first = np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))
    return order[(np.arange(len(order)) - first < LOOKS) & (scores[order] > least)]


def _after(messages: DirectedMessages, place: Place, moves: Sequence[Regraft]) -> Place | None:
    """The place after all moves that are out of each other's way, or the best quarter of them if together
    they lose, and so on; None if not even the best one gains."""
    while moves:
        edges = place.edges.copy()
        done = regraft_all(edges, moves)
        new = fit_lengths(messages, edges, 0.01, most=2)
        if new.log_likelihood > place.log_likelihood + SMALLEST_GAIN:
            return new
        moves = done[: len(done) // 4]
    return None


def shaken(edges: HalfEdges, rng: np.random.Generator, moves: int, radius: int) -> HalfEdges:
    """A copy with some subtrees moved, anywhere, by up to radius nodes."""
    edges, n, done = edges.copy(), edges.n_tips, 0
    while done < moves:
        pruned = int(rng.integers(n, len(edges.back)))
        h, out = int(edges.back[nexts(pruned, n)[rng.integers(2)]]), -1
        for _ in range(rng.integers(1, radius + 1)):
            if h < n:
                break
            out = nexts(h, n)[rng.integers(2)]
            h = int(edges.back[out])
        if out >= 0:
            half = 0.5 * float(edges.lengths[out])
            move = Regraft(pruned, out, (half, half, float(edges.lengths[pruned])), 0.0)
            done += len(regraft_all(edges, [move]))
    return edges
