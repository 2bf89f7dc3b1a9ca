"""What a move is, which ones there are, and which of them a model's chains use, how often and how tuned."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import numpy as np

from phloem.errors import InputError
from phloem.inference.mcmc import moves
from phloem.inference.mcmc.records import (
    OF_ALL_NUMBERS,
    OF_LENGTHS,
    OF_NUMBERS,
    OF_TOPOLOGY,
    MoveTable,
)
from phloem.inference.mcmc.structure import ChainModel

LENGTHS, TOPOLOGY, NUMBERS = ("lengths",), ("topology",), ("numbers",)


@dataclass(frozen=True)
class Move:
    """A way to change a chain's state. A file of the folder `moves` that defines MOVE is all it takes.

    name: that of the file, or, of a move of one block, what stands after the block's name. on: LENGTHS, one
    set of branch lengths, chosen uniformly; TOPOLOGY, with all sets of lengths; NUMBERS, all blocks of
    numbers and all lengths; or the supports of blocks of numbers (density.space.Block) that have such a move.
    propose: a plain function of a Proposal (compiled/dispatch.py), which it changes, → log Hastings ratio,
    -inf for an impossible proposal; the sampler compiles it. weight: relative, as MrBayes 3.2.7a's relprob.
    tuning: a number of the move's own at the start (a width in log space, a window, a Dirichlet's count per
    entry; SPR and TBR: the width of the multipliers that go with them). target: acceptance aimed at while
    tuning, 0: not tuned. bounds: of tuning. narrows: a larger tuning makes smaller steps. gradients: how many
    it asks for; it is called with each (dispatch.Proposal.turn), and what it returns is added up. parsimony:
    whether it reads the characters (dispatch.Proposal.parsimony). splits: whether it reads what splits chains
    have had.
    """

    name: str
    on: tuple[str, ...]
    propose: Callable[[Any], float]
    weight: float
    tuning: float = 1.0
    target: float = 0.0
    bounds: tuple[float, float] = (0.0, 0.0)
    narrows: bool = False
    gradients: int = 0
    parsimony: bool = False
    splits: bool = False


@dataclass(frozen=True)
class ChainMove:
    """A move as the chains of a model use it. kind: its number among the registered ones. block: the number
    of the block of numbers that it changes."""

    name: str
    kind: int
    move: Move
    weight: float
    block: int = 0


@cache
def registered() -> Mapping[str, Move]:
    """Name of its file → move, in the order of the names; the place is the move's number in compiled code."""
    names = sorted(module.name for module in iter_modules(moves.__path__))
    return {name: import_module(f"{moves.__name__}.{name}").MOVE for name in names}


def available_moves(
    structure: ChainModel, n_tips: int, fixed_topology: bool = False
) -> tuple[ChainMove, ...]:
    """Every move that can change something: of lengths, of the topology, which can from four tips on
    (extending moves then find three branches) and where it is not fixed, and of every block of numbers."""
    known = list(enumerate(registered().values()))
    found = [ChainMove(m.name, kind, m, m.weight) for kind, m in known if m.on == LENGTHS]
    if n_tips > 3 and not fixed_topology:
        found += [ChainMove(m.name, kind, m, m.weight) for kind, m in known if m.on == TOPOLOGY]
    if structure.space.blocks:
        found += [ChainMove(m.name, kind, m, m.weight) for kind, m in known if m.on == NUMBERS]
    for number, block in enumerate(structure.space.blocks):
        found += [
            ChainMove(f"{block.name}_{m.name}", kind, m, m.weight, number)
            for kind, m in known
            if block.support in m.on
        ]
    return tuple(found)


def chosen_moves(
    structure: ChainModel, n_tips: int, weights: dict[str, float] | None, fixed_topology: bool = False
) -> tuple[ChainMove, ...]:
    """The available moves with a weight, or those that weights names, with its weights."""
    available = available_moves(structure, n_tips, fixed_topology)
    if weights is None:
        return tuple(m for m in available if m.weight > 0)
    for name in [m.name for m in available if m.move.gradients and structure.along_sites]:
        if weights.get(name, 0.0) > 0:
            raise InputError(
                f"move '{name}' asks for gradients, which chains have of independent sites only",
                hint="Leave it out, or write +G in place of +AG.",
            )
    names = [m.name for m in available]
    for name in weights:
        if name not in names:
            raise InputError(f"no move '{name}' for this model", hint=f"Choose among {', '.join(names)}.")
    return tuple(
        ChainMove(m.name, m.kind, m.move, weights[m.name], m.block)
        for m in available
        if weights.get(m.name, 0.0) > 0
    )


def move_arrays(moves: Sequence[ChainMove]) -> MoveTable:
    """The moves as the compiled loop reads them."""
    on: dict[tuple[str, ...], int] = {
        LENGTHS: OF_LENGTHS,
        TOPOLOGY: OF_TOPOLOGY,
        NUMBERS: OF_ALL_NUMBERS,
    }
    return MoveTable(
        kind=np.array([m.kind for m in moves], np.int64),
        on=np.array([on.get(m.move.on, OF_NUMBERS) for m in moves], np.int64),
        block=np.array([m.block for m in moves], np.int64),
        target=np.array([m.move.target for m in moves]),
        bounds=np.array([m.move.bounds for m in moves]),
        narrows=np.array([m.move.narrows for m in moves], np.uint8),
        gradients=np.array([m.move.gradients for m in moves], np.int64),
        parsimony=np.array([m.move.parsimony for m in moves], np.int64),
        splits=np.array([m.move.splits for m in moves], np.int64),
    )
