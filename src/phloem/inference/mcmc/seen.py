"""What a chain's likelihood and proposals need of the data, and what of that each of several processes needs.

Of processes that share a chain's columns the first one has the data, cuts them into cells, and sends the
others theirs: these never hold the alignment, nor the columns of others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from phloem.hardware.ranks import Ranks
from phloem.inference.mcmc.recipes import Observations
from phloem.inference.mcmc.records import ParsimonyRoom
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.spread import dealt_cells
from phloem.inference.mcmc.structure import ChainModel
from phloem.pruning.cpu.cell_memory import Part, cell_work


@dataclass(frozen=True, eq=False)
class Seen:
    """n_tips: of the trees. cells: of all parts, whoever has them; of those that another process has
    there may be no columns here. dealt: the cells of every process that shares the chain. characters: of all
    columns, for moves that go by parsimony."""

    n_tips: int
    cells: tuple[Part, ...]
    dealt: tuple[range, ...]
    characters: ParsimonyRoom

    def of(self, number: int) -> Seen:
        """What that process needs."""
        own = self.dealt[number]
        return replace(self, cells=tuple(c if i in own else _empty(c) for i, c in enumerate(self.cells)))


def _empty(part: Part) -> Part:
    """A cell without its columns."""
    none, n_tips = np.zeros(0), len(part.tip_codes)
    codes = np.zeros((n_tips, 0), part.tip_codes.dtype)
    return replace(part, tip_codes=codes, weights=none, unobservable=none.astype(bool))


def seen_of(
    parts: Sequence[Observations], structure: ChainModel, settings: ChainSettings, size: int, whole: bool
) -> Seen:
    """Of a chain that so many processes share. whole: a cell a part, for a device."""
    from phloem.inference.mcmc import start  # numba takes a third of a second to load
    from phloem.inference.mcmc.characters import parsimony_room
    from phloem.inference.mcmc.move_table import chosen_moves

    n_tips = len(parts[0].taxa)
    moves = chosen_moves(structure, n_tips, settings.move_weights)
    cells = tuple(start.chain_cells(parts, structure, settings, whole))
    dealt = dealt_cells([cell_work(cell) for cell in cells], size) if size > 1 else (range(len(cells)),)
    return Seen(n_tips, cells, dealt, parsimony_room(cells, any(move.move.parsimony for move in moves)))


def sent(
    beside: Ranks, parts: Sequence[Observations], structure: ChainModel, settings: ChainSettings
) -> Seen:
    """On every process of those that share a chain what it needs; only the first of them is given parts."""
    if beside.number > 0:
        return beside.scatter(None)
    found = seen_of(parts, structure, settings, beside.size, whole=False)
    return beside.scatter([found.of(k) for k in range(beside.size)])
