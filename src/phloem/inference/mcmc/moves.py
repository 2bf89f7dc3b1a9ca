"""The table of moves: which are used for a model, how often, and how they are tuned."""

from __future__ import annotations

from dataclasses import dataclass

from phloem.density.space import Block
from phloem.errors import InputError
from phloem.inference.mcmc import records as r
from phloem.inference.mcmc.structure import ChainModel


@dataclass(frozen=True)
class Move:
    """One row. kind, block: numbers of phloem.inference.mcmc.records. weight: relative, as MrBayes 3.2.7a's
    relprob.

    tuning: its parameter at the start (a width in log space, a window, a Dirichlet's count per entry; TBR and
    SPR: the width of the multipliers that go with them). target: acceptance aimed at while tuning, 0: not
    tuned. bounds: of tuning.
    """

    name: str
    kind: int
    weight: float
    tuning: float
    target: float
    bounds: tuple[float, float]
    block: int = 0


_LENGTHS = (
    Move("branch_multiplier", r.BRANCH_MULTIPLIER, 20, 1.386, 0.25, (1e-3, 20.0)),
    Move("node_slider", r.NODE_SLIDER, 7, 0.191, 0.0, (0.191, 0.191)),
    Move("tree_multiplier", r.TREE_MULTIPLIER, 3, 1.386, 0.25, (1e-4, 20.0)),
)
_TOPOLOGY = (
    Move("nni", r.NNI, 5, 1.0, 0.0, (1.0, 1.0)),
    Move("spr", r.SPR, 7.5, 0.098, 0.0, (0.098, 0.098)),
    Move("tbr", r.TBR, 7.5, 0.098, 0.0, (0.098, 0.098)),
)
_POSITIVE = 0.811, 0.25, (1e-3, 20.0)


def available_moves(structure: ChainModel, n_tips: int) -> tuple[Move, ...]:
    """Every move that can change something. A topology can from four tips on, extending moves then find
    three branches."""
    moves = list(_LENGTHS)
    if n_tips > 3:
        moves += _TOPOLOGY
    for number, block in enumerate(structure.space.blocks):
        moves += block_moves(number, block)
    return tuple(moves)


def block_moves(number: int, block: Block) -> list[Move]:
    """Moves of one block of numbers, by its support."""
    if block.support == "simplex":
        dirichlet = Move(
            f"{block.name}_dirichlet", r.SIMPLEX_DIRICHLET, 0.5, 100.0, 0.25, (1e-2, 1e6), number
        )
        return [
            dirichlet,
            Move(f"{block.name}_slider", r.SIMPLEX_SLIDER, 0.5, 0.2, 0.25, (1e-4, 1.0), number),
        ]
    if block.support == "positive":
        return [Move(f"{block.name}_multiplier", r.POSITIVE_MULTIPLIER, 1, *_POSITIVE, number)]
    kind = r.REAL_SLIDER if block.support == "real" else r.UNIT_SLIDER
    return [Move(f"{block.name}_slider", kind, 1, 0.1, 0.25, (1e-3, 1.0), number)]


def chosen_moves(structure: ChainModel, n_tips: int, weights: dict[str, float] | None) -> tuple[Move, ...]:
    """The available moves, or those that weights names, with its weights."""
    moves = available_moves(structure, n_tips)
    if weights is None:
        return moves
    names = [m.name for m in moves]
    for name in weights:
        if name not in names:
            raise InputError(f"no move '{name}' for this model", hint=f"Choose among {', '.join(names)}.")
    return tuple(
        Move(m.name, m.kind, weights[m.name], m.tuning, m.target, m.bounds, m.block)
        for m in moves
        if weights.get(m.name, 0.0) > 0
    )
