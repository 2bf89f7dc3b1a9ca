"""Subtrees moved on an unrooted tree, several at once where they are out of each other's way."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from phloem.tree.half_edges import HalfEdges, Length, join, nexts, node_of


class Regraft(NamedTuple):
    """The subtree beyond half-edge `pruned` of an inner node goes to the branch of half-edge `out`, which
    looks away from where it was. lengths: of that branch's two parts, nearer first, and of the subtree's own.
    gain: in log-likelihood, as scored alone."""

    pruned: int
    out: int
    lengths: tuple[Length, Length, Length]
    gain: float


class Interchange(NamedTuple):
    """The inner branch of half-edge `branch` resolved otherwise: corner 1 of it and corner 1 + resolution (1
    or 2) change places. lengths: of the four corners' branches and the branch itself, by corner
    (pruning/cpu/directed_quartets.py). gain: in log-likelihood, as scored alone."""

    branch: int
    resolution: int
    lengths: np.ndarray
    gain: float


def corners(edges: HalfEdges, branch: int) -> list[int]:
    """The half-edges beside an inner branch, at its own end and at the other."""
    return [*nexts(branch, edges.n_tips), *nexts(int(edges.back[branch]), edges.n_tips)]


def interchange(edges: HalfEdges, move: Interchange) -> None:
    """Do it, in place."""
    back, lengths = edges
    places = corners(edges, move.branch)
    beyond = [int(back[h]) for h in places]
    other = 1 + move.resolution
    places[1], places[other] = places[other], places[1]
    for h, subtree, length in zip(places, beyond, move.lengths):
        join(back, lengths, h, subtree, length)
    join(back, lengths, move.branch, int(back[move.branch]), move.lengths[4])


Allowed = Callable[[np.ndarray], bool]  # whether a tree (HalfEdges.back) may be gone to


def _any(back: np.ndarray) -> bool:
    return True


def interchange_all(
    edges: HalfEdges, moves: Iterable[Interchange], allowed: Allowed = _any
) -> list[Interchange]:
    """Do those of the moves, best first, that touch no node which an earlier one touched and lead to a tree
    that is allowed; returns them."""
    done: list[Interchange] = []
    touched: set[int] = set()
    for move in sorted(moves, key=lambda m: -m.gain):
        ends = [move.branch, int(edges.back[move.branch])]
        ends += [int(edges.back[h]) for h in corners(edges, move.branch)]
        own = set(node_of(np.array(ends), edges.n_tips).tolist())
        if not own & touched:
            before = edges.copy()
            interchange(edges, move)
            if _kept(edges, before, allowed):
                touched |= own
                done.append(move)
    return done


def regraft(edges: HalfEdges, move: Regraft) -> None:
    """Do it, in place."""
    back, lengths = edges
    a, b = nexts(move.pruned, edges.n_tips)
    join(back, lengths, int(back[a]), int(back[b]), lengths[a] + lengths[b])
    beyond = int(back[move.out])
    join(back, lengths, move.out, a, move.lengths[0])
    join(back, lengths, beyond, b, move.lengths[1])
    join(back, lengths, move.pruned, int(back[move.pruned]), move.lengths[2])


def _kept(edges: HalfEdges, before: HalfEdges, allowed: Allowed) -> bool:
    """Whether the tree is allowed; if not, it is as before again."""
    if allowed(edges.back):
        return True
    edges.back[:], edges.lengths[:] = before
    return False


def regraft_all(edges: HalfEdges, moves: Iterable[Regraft], allowed: Allowed = _any) -> list[Regraft]:
    """As interchange_all."""
    done: list[Regraft] = []
    touched: set[int] = set()
    n = edges.n_tips
    for move in sorted(moves, key=lambda m: -m.gain):
        a, b = nexts(move.pruned, n)
        ends = [move.pruned, *(int(edges.back[h]) for h in (move.pruned, a, b, move.out)), move.out]
        own = set(node_of(np.array(ends), n).tolist())
        if own & touched or _inside(edges, move):
            continue
        before = edges.copy()
        regraft(edges, move)
        if _kept(edges, before, allowed):
            touched |= own
            done.append(move)
    return done


def _inside(edges: HalfEdges, move: Regraft) -> bool:
    """Whether the branch to go to is the subtree's own, or one of the two that become one, or in the subtree.

    Both sides of the subtree's branch are walked through in turn, nearest first: the branch to go to mostly
    is a few nodes from there, and one side may be nearly the whole tree.
    """
    n, back = edges.n_tips, edges.back
    here = {move.out, int(back[move.out])}
    around = nexts(move.pruned, n)
    if here & {move.pruned, *around}:
        return True
    sides = [deque([int(back[move.pruned])]), deque([int(back[g]) for g in around])]
    while True:
        for inside, waiting in zip((True, False), sides):
            if not waiting:
                return not inside
            h = waiting.popleft()
            if h in here:
                return inside
            if h >= n:
                waiting.extend(int(back[g]) for g in nexts(h, n))
