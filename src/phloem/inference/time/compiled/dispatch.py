"""Moves of dated trees by number, compiled: one chain of tests made from the moves there are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from phloem.inference.mcmc.compiled.dispatch import chain_of_moves
from phloem.inference.mcmc.records import ParsimonyRoom
from phloem.inference.time import (
    move_table,
    moves,  # noqa: F401
)
from phloem.inference.time.field import Field
from phloem.inference.time.records import KnownPlaces


class Proposal(NamedTuple):
    """What every move is given: the proposal's copy of a chain's state, which it changes in place.

    n_tips: T. rng: (4,). tuning: the move's. low, high: bounds of the block's numbers, of a move of numbers,
    which are numbers (k,), the first of them values[first]. room: (n,) to work in. parent, left, right,
    heights, order, deviations: (N,), the root last; order: nodes by height before the move; a deviation
    belongs to the branch above a node, and is that of one clock, `own`; branches: (K, N) those of all clocks.
    values: (n,) all numbers; rates, spreads: (K,) which of them are the clocks', -1 without; free: (K,)
    uint8, 1 where the rate is not fixed. clock: density.clocks.STRICT, …. tree_first: the first of the tree
    prior's numbers. groups: (K,). tip_bounds: (T, 2) of heights; moving: tips whose dates are not known.
    edges, stack: (N,) int64, spots: (N,), to work in. parsimony: the characters, empty where no move asks for
    them, its per_length (K,). field: sizes of neighbouring times. known: places of burn-in. power: of
    likelihood and prior, as TimeScratch has it."""

    n_tips: int
    rng: np.ndarray
    tuning: float
    low: float
    high: float
    numbers: np.ndarray
    first: int
    room: np.ndarray
    parent: np.ndarray
    left: np.ndarray
    right: np.ndarray
    heights: np.ndarray
    order: np.ndarray
    deviations: np.ndarray
    branches: np.ndarray
    values: np.ndarray
    rates: np.ndarray
    spreads: np.ndarray
    free: np.ndarray
    own: int
    clock: int
    tree_first: int
    groups: np.ndarray
    tip_bounds: np.ndarray
    moving: np.ndarray
    edges: np.ndarray
    stack: np.ndarray
    spots: np.ndarray
    parsimony: ParsimonyRoom
    field: Field
    known: KnownPlaces
    power: np.ndarray


propose_kind = chain_of_moves(
    [m.propose for m in (*move_table.registered().values(), *move_table.NUMBER_MOVES)]
)
"""(kind, Proposal) → log Hastings ratio, -inf for an impossible proposal."""
