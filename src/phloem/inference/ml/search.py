"""Climbing to a likelier tree: subtrees are moved while that pays, with the model's numbers held."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from phloem.inference.ml.constrained_messages import ConstrainedMessages, Messages, allowed_by
from phloem.inference.ml.moves import Allowed, Interchange, Regraft, interchange_all, regraft_all
from phloem.inference.ml.surroundings import surroundings
from phloem.pruning.cpu.directed_insertions import Looks
from phloem.pruning.cpu.directed_lengths import FIT, LEAVE, PASS
from phloem.pruning.cpu.directed_messages import Regrafts
from phloem.pruning.cpu.directed_regrafts import BEHIND, LEVEL, OUT, SIBLING
from phloem.tree.half_edges import NO_LENGTH, HalfEdges, nexts, node_of, preorder, tree_key

SLACK = 15.0  # log units below the tree at hand, down to which a regraft gets a second look
LOOKS = 2  # second looks a subtree
FAR, FAR_LOOKS = 20, 50  # nodes that a subtree is moved at most before a search ends, and second looks then
WIDE = 100.0  # as SLACK, before a search ends: in the middle of a long branch much may be lost at first
_WIDE_LOSS = 3.0  # of a second look, up to which such a regraft has all lengths fitted
_WIDE_TREES = 12  # that many at most
_MANY = 250  # taxa, from which so many regrafts would take longer than all else
NEAR = 1  # nodes from what was changed, up to which subtrees are moved again first
TEMPERATURE = 20.0  # log units; of the choice of moves that shake a tree
SMALLEST_GAIN = 1e-3  # in log-likelihood
_NEIGHBOURS, _CLOSE = 30.0, 3.0  # as SLACK, and after a second look, of interchanges with five lengths fitted
_MUCH = 20.0  # expected of moves: one sweep over lengths is enough then
_WORTH = 0.01  # what an interchange gains at least, as its lengths are fitted to no more
_AT_ONCE = 256  # branches whose sites are in memory together

_Move = TypeVar("_Move", Interchange, Regraft)


@dataclass(frozen=True, eq=False)
class Place:
    """A tree with its lengths, and its log-likelihood."""

    edges: HalfEdges
    log_likelihood: float

    @property
    def key(self) -> int:
        """half_edges.tree_key."""
        return tree_key(self.edges)


def fit_lengths(
    messages: Messages,
    edges: HalfEdges,
    tolerance: float,
    most: int = 30,
    before: np.ndarray | None = None,
) -> Place:
    """Sweeps over lengths, in place, until one gains less than the tolerance, so many at most (0: the lengths
    as they are): over all, or those around what is not as in before (`back` of a tree whose lengths were
    fitted)."""
    order = preorder(edges.back)
    todo = None if before is None else _around(edges.back, before, order)
    value = messages.fill_half(edges.back, edges.lengths, order)
    for _ in range(most):
        last, value = value, messages.sweep(edges.back, edges.lengths, order, todo)
        if value - last < tolerance:
            break
    return Place(edges, value)


def _around(back: np.ndarray, before: np.ndarray, order: np.ndarray) -> np.ndarray:
    """What a sweep is to do: fit the branches at nodes near a change, and pass others on the way there."""
    n = (len(back) + 6) // 4
    close, nodes = _close(back, before), node_of(np.arange(len(back)), n)
    todo = np.where(close[nodes] | close[nodes[back]], FIT, LEAVE).astype(np.int8)
    inside, other = (todo == FIT).tolist(), back.tolist()
    for h in order[::-1].tolist():
        if h >= n:
            a, b = nexts(h, n)
            inside[h] = inside[h] or inside[other[a]] or inside[other[b]]
    todo[np.array(inside) & (todo == LEAVE)] = PASS
    todo[order[0]] = max(todo[order[0]], PASS)
    return todo


def climb(
    messages: Messages,
    place: Place,
    radius: int,
    known: Collection[int] = (),
    closely: bool = False,
    before: np.ndarray | None = None,
    vain: set[int] | None = None,
) -> Place:
    """Rounds of moves of any subtree by at most radius nodes, until none gains, or until the topology is one
    of the known (half_edges.tree_key), which are hilltops. After a round that moved some, those near come
    first, and all again where none of these gains. Closely: in the end interchanges of neighbours with all
    five lengths around fitted, too: a second look fits three, and leaves small gains behind. before: as of
    fit_lengths; subtrees near what is not as there come first."""
    subtrees = None if before is None else near(place.edges.back, before)
    while not (known and place.key in known):
        moves = improving(messages, place, radius, subtrees, vain=vain)
        better = _after(messages, place, moves, regraft_all)
        if better is None and subtrees is None:
            better = _interchanged(messages, place) if closely else None
            if better is None:
                break
        subtrees = None if better is None else near(better.edges.back, place.edges.back)
        place = better or place
    return place


def _interchanged(messages: Messages, place: Place) -> Place | None:
    """The place after interchanges that gain; None if none does."""
    back, lengths = place.edges
    order = preorder(back)
    inner = order[(order >= place.edges.n_tips) & (back[order] >= place.edges.n_tips)]
    subtrees = np.concatenate([nexts(int(h), place.edges.n_tips) for h in inner] or [inner])
    found = messages.regrafts(back, lengths, order, subtrees, 1, _NEIGHBOURS)
    rows = worth_a_look(found, place.log_likelihood - _NEIGHBOURS, len(inner))
    looks = messages.fitted(rows, found, back, lengths)
    rows = rows[looks.values > place.log_likelihood - _CLOSE]
    branches = np.unique(_branch_between(found.steps[rows], place.edges))
    moves = []
    for first in range(0, len(branches), _AT_ONCE):
        some = branches[first : first + _AT_ONCE]
        tried = messages.resolutions(back, lengths, some)
        for h, values, own in zip(some.tolist(), tried.values, tried.lengths):
            r = 1 + int(np.argmax(values[1:]))
            gain = float(values[r] - max(values[0], place.log_likelihood))
            if gain > _WORTH:
                moves.append(Interchange(h, r, own[r], gain))
    return _after(messages, place, moves, interchange_all)


def _branch_between(steps: np.ndarray, edges: HalfEdges) -> np.ndarray:
    """The branch that a step of level 1 goes over, as its half-edge towards the gap."""
    n = edges.n_tips
    first = n + 3 * ((steps[:, OUT] - n) // 3)
    return 3 * first + 3 - steps[:, OUT] - steps[:, SIBLING]


def climb_near(
    messages: Messages,
    place: Place,
    radius: int,
    before: np.ndarray,
    known: Collection[int],
    vain: set[int] | None = None,
) -> Place:
    """climb, by moves of subtrees near what was changed last. before: `back` of a hilltop, a few moves away:
    elsewhere nothing was to be gained there, and hardly anything is now."""
    better: Place | None = place
    while better is not None:
        before, place = (place.edges.back if better is not place else before), better
        if place.key in known:
            break
        subtrees = near(place.edges.back, before)
        moves = improving(messages, place, radius, subtrees, vain=vain)
        better = _after(messages, place, moves, regraft_all)
    return place


def near(back: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Half-edges of inner nodes within NEAR nodes of a branch that is not where it was before."""
    n = (len(back) + 6) // 4
    return np.flatnonzero(_close(back, before)[node_of(np.arange(n, len(back)), n)]) + n


def _close(back: np.ndarray, before: np.ndarray) -> np.ndarray:
    """(2T-2,) whether a node is within NEAR nodes of a branch that is not where it was before."""
    n = (len(back) + 6) // 4
    nodes = node_of(np.arange(len(back)), n)
    close = np.zeros(2 * n - 2, bool)
    close[nodes[np.flatnonzero(back != before)]] = True
    for _ in range(NEAR):
        close[nodes[back[close[nodes]]]] = True
    return close


def moved_far(messages: Messages, place: Place, radius: int) -> Place | None:
    """The place after regrafts that gain, of any subtree by FAR nodes, climbed from there; None if none does.

    Branches without a length make ways long and places at them alike, so that a climb by few nodes, with few
    second looks a subtree, misses some. Under a constraint, which forbids the ways around, so does a second
    look, which fits three lengths, where a move changes many: those that lose little by it have all fitted.
    """
    if place.edges.n_tips > _MANY:
        return None
    moved = _after(messages, place, improving(messages, place, FAR, looks=FAR_LOOKS), regraft_all)
    if moved is None and isinstance(messages, ConstrainedMessages):
        moved = _moved_with_all_lengths(messages, place, radius)
    return None if moved is None else climb(messages, moved, radius, closely=True)


def _moved_with_all_lengths(messages: Messages, place: Place, radius: int) -> Place | None:
    """The place after one regraft that gains when all lengths are fitted; None if none is found. Places that
    lose up to WIDE log units get a second look: where all lose much, their order means little."""
    subtrees = np.arange(place.edges.n_tips, len(place.edges.back))
    seen = _second_looks(messages, place, subtrees, radius, WIDE, FAR_LOOKS)
    for move in sorted(seen.moves(-_WIDE_LOSS), key=lambda move: -move.gain)[:_WIDE_TREES]:
        edges = place.edges.copy()
        if regraft_all(edges, [move], allowed_by(messages)):
            new = fit_lengths(messages, edges, 0.01)
            if new.log_likelihood > place.log_likelihood + _WORTH:
                return new
    return None


def improving(
    messages: Messages,
    place: Place,
    radius: int,
    subtrees: np.ndarray | None = None,
    looks: int = LOOKS,
    vain: set[int] | None = None,
) -> list[Regraft]:
    """Regrafts that gain, of some subtrees or all, by the second look that the best of every subtree get.

    A branch without a length is no place to go to: those beside it are as good. vain: surroundings of
    subtrees for which none gained under the same numbers of the model, which are left out; adds some.
    """
    back = place.edges.back
    if subtrees is None:
        subtrees = np.arange(place.edges.n_tips, len(back))
    if vain is not None:
        around = dict(zip(subtrees.tolist(), surroundings(back, subtrees, radius).tolist()))
        subtrees = np.array([h for h, key in around.items() if key not in vain], np.int64)
        if not len(subtrees):
            return []
    seen = _second_looks(messages, place, subtrees, radius, SLACK, looks)
    moves = seen.moves(SMALLEST_GAIN)
    if vain is not None:
        gaining = {move.pruned for move in moves}
        vain.update(around[h] for h in subtrees.tolist() if h not in gaining)
    return moves


class _Seen(NamedTuple):
    """Regrafts that got a second look: their rows, and what is gained by it."""

    found: Regrafts
    rows: np.ndarray
    looks: Looks
    gains: np.ndarray

    def moves(self, least: float) -> list[Regraft]:
        """Those that gain more than that."""
        pruned, out = self.found.pruned, self.found.out
        return [
            Regraft(int(pruned[r]), int(out[r]), (a, b, c), float(gain))
            for r, (_, a, b, c), gain in zip(self.rows, self.looks.found, self.gains)
            if gain > least
        ]


def _second_looks(
    messages: Messages, place: Place, subtrees: np.ndarray, radius: int, slack: float, looks: int
) -> _Seen:
    """Of every subtree the best places that lose less than slack; a branch without a length is none."""
    back, lengths = place.edges
    found = messages.regrafts(back, lengths, preorder(back), subtrees, radius, slack)
    none = (lengths if lengths.ndim == 1 else lengths.max(1))[found.out] < NO_LENGTH
    found = found._replace(scores=np.where(none, -np.inf, found.scores))
    rows = worth_a_look(found, place.log_likelihood - slack, looks)
    seen = messages.fitted(rows, found, back, lengths)
    return _Seen(found, rows, seen, seen.values - place.log_likelihood)


def worth_a_look(found: Regrafts, least: float, looks: int = LOOKS) -> np.ndarray:
    """Rows of the best scores of every subtree; of the four that are one interchange, the best."""
    good = np.flatnonzero(found.scores > least)
    good = good[np.lexsort((-found.scores[good], found.pruned[good]))]
    good = good[_rank_among_equals(found.pruned[good]) < looks]
    near = found.steps[good, LEVEL] == 1
    interchanges = good[near]
    interchanges = interchanges[np.argsort(-found.scores[interchanges], kind="stable")]
    _, first = np.unique(_interchange(found, interchanges), axis=0, return_index=True)
    return np.concatenate([good[~near], interchanges[np.sort(first)]])


def _rank_among_equals(sorted_values: np.ndarray) -> np.ndarray:
    new = np.diff(sorted_values, prepend=-1) != 0
    places = np.arange(len(sorted_values))
    return places - np.maximum.accumulate(np.where(new, places, 0))


def _interchange(found: Regrafts, rows: np.ndarray) -> np.ndarray:
    """(n, 3) what identifies the topology of regrafts across one branch: of the four half-edges around it the
    smallest, its new neighbour, and the smaller of the other two."""
    one = np.stack([found.pruned[rows], found.out[rows]])
    other = found.steps[rows][:, [BEHIND, SIBLING]].T
    pairs = np.sort(np.stack([one, other]), 1)  # (pair, member, row)
    swapped = pairs[0, 0] > pairs[1, 0]
    first = np.where(swapped, pairs[1], pairs[0])
    second = np.where(swapped, pairs[0], pairs[1])
    return np.stack([first[0], first[1], second[0]], 1)


def _after(
    messages: Messages,
    place: Place,
    moves: Sequence[_Move],
    do: Callable[[HalfEdges, Iterable[_Move], Allowed], list[_Move]],
) -> Place | None:
    """The place after all moves that are out of each other's way, or the best quarter of them if together
    they lose, and so on; None if not even the best one gains."""
    while moves:
        edges = place.edges.copy()
        done = do(edges, moves, allowed_by(messages))
        sweeps = 1 if sum(move.gain for move in done) > _MUCH else 2
        new = fit_lengths(messages, edges, 0.01, sweeps, place.edges.back)
        if new.log_likelihood > place.log_likelihood + SMALLEST_GAIN:
            return new
        moves = done[: len(done) // 4]
    return None


@dataclass(frozen=True, eq=False)
class Hilltop:
    """A place that no move improves, and regrafts from there with how likely each is to be chosen."""

    place: Place
    found: Regrafts
    chances: np.ndarray
    allowed: Allowed

    def shaken(self, rng: np.random.Generator, moves: int) -> HalfEdges:
        """A copy with about so many subtrees moved, chosen by how little each alone would cost; with none
        where none may be moved."""
        edges = self.place.edges.copy()
        if not self.chances.any():
            return edges
        rows = rng.choice(len(self.chances), moves, p=self.chances)
        lengths = edges.lengths
        chosen = []
        for rank, row in enumerate(rows.tolist()):
            pruned, out = int(self.found.pruned[row]), int(self.found.out[row])
            half, own = 0.5 * lengths[out], lengths[pruned].copy()
            chosen.append(Regraft(pruned, out, (half, half, own), -float(rank)))
        regraft_all(edges, chosen, self.allowed)
        return edges


def hilltop(messages: Messages, place: Place, radius: int) -> Hilltop:
    """What is needed to shake this place."""
    back, lengths = place.edges
    subtrees = np.arange(place.edges.n_tips, len(back))
    found = messages.regrafts(back, lengths, preorder(back), subtrees, radius)
    chances = np.exp(np.minimum(found.scores - place.log_likelihood, 0.0) / TEMPERATURE)
    return Hilltop(place, found, chances / max(chances.sum(), 1e-300), allowed_by(messages))
