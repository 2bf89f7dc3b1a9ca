"""Moves by number, compiled: one chain of tests made from the moves there are.

The folder of moves is imported as a whole, so that compiled code in the cache is of the files that are there
(hardware/numba_compile).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from phloem.hardware import numba_compile
from phloem.inference.mcmc import (
    move_table,
    moves,  # noqa: F401
)
from phloem.inference.mcmc.records import Joint, KnownSplits, ParsimonyRoom


class Proposal(NamedTuple):
    """What every move is given: the proposal's copy of a chain's state, which it changes in place.

    n_tips: T. rng: (4,) the chain's random numbers. tuning: the move's. low, high: bounds of what it changes.
    p_extend: probability that the walk of extending SPR and TBR goes on. numbers: (k,) the block's, of a move
    of numbers. lengths: (G, N) every set of branch lengths; set: the one that a move of lengths changes.
    left, right: (N,) children, -1 at tips; order: (N,) children before parents; beside: the root's child
    beside tip 0, whose own branch has length 0 and stays so, as tip 0 has it. adjacency, edge: (N, 3) of
    compiled/unrooted.py, for a move of the topology, which permutes there. room: (n,) floats to work in.
    parsimony: the characters, of moves that they guide. joint: the blocks, of a move of all numbers.
    splits: those that chains have had.
    Of a move that asks for gradients, and is called with each: turn: 0, 1, …; slope: (G, N) derivatives of
    the log density of log lengths, at the chain's temperature and at the lengths that the turn before left
    behind; momentum: (G, N) stays from turn to turn.
    """

    n_tips: int
    rng: np.ndarray
    tuning: float
    low: float
    high: float
    p_extend: float
    numbers: np.ndarray
    lengths: np.ndarray
    set: int
    left: np.ndarray
    right: np.ndarray
    beside: int
    adjacency: np.ndarray
    edge: np.ndarray
    room: np.ndarray
    turn: int
    slope: np.ndarray
    momentum: np.ndarray
    parsimony: ParsimonyRoom
    joint: Joint
    order: np.ndarray
    splits: KnownSplits


def _compiled(function, **options) -> Any:
    """Part of its callers, which are what is cached; allocates nothing, so counts no references."""
    return numba_compile.compiled(function, cache=False, _nrt=False, **options)


def _only(number: int, move):
    def propose(kind, proposal):
        if kind != number:
            raise RuntimeError("no move has this number")
        return move(proposal)

    return _compiled(propose, inline="always")


def _either(first: int, below, others):
    def propose(kind, proposal):
        return below(kind, proposal) if kind < first else others(kind, proposal)

    return _compiled(propose, inline="always")


def chain_of_moves(functions):
    """(kind, Proposal) → functions[kind](Proposal); a number that none has is an error.

    Halved again and again: one test after the other would be merged one into the other, which copies most
    moves as often as there are moves, and makes names longer than LLVM tells apart where there are 36.
    """

    def among(first: int, end: int):
        if end - first == 1:
            return _only(first, _compiled(functions[first]))
        middle = (first + end) // 2
        return _either(middle, among(first, middle), among(middle, end))

    return among(0, len(functions))


propose_kind = chain_of_moves([move.propose for move in move_table.registered().values()])
"""(kind, Proposal) → log Hastings ratio, -inf for an impossible proposal."""
