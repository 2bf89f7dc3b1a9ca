"""What a chain's likelihood and proposals need of the data, and what of that each of several processes needs.

Of processes that share a chain's columns the first one has the data, cuts them into cells, and sends the
others theirs: these never hold the alignment, nor the columns of others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self, TypeVar

import numpy as np

from phloem.hardware.ranks import Ranks
from phloem.inference.mcmc.recipes import Observations
from phloem.inference.mcmc.records import ParsimonyRoom
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.spread import dealt_cells
from phloem.inference.mcmc.structure import ChainModel
from phloem.model.model import Model
from phloem.pruning.cpu.cell_memory import Part, cell_work, column_ranges
from phloem.pruning.select import require_cpu_for_order
from phloem.pruning.site_order import SiteOrder


@dataclass(frozen=True, eq=False)
class Seen:
    """n_tips: of the trees. cells: of all parts, whoever has them; of those that another process has
    there may be no columns here. dealt: the cells of every process that shares the chain. characters: of all
    columns, for moves that go by parsimony."""

    n_tips: int
    cells: tuple[Part, ...]
    dealt: tuple[range, ...]
    characters: ParsimonyRoom

    def of(self, number: int) -> Self:
        """What that process needs."""
        own = self.dealt[number]
        return replace(self, cells=tuple(c if i in own else _empty(c) for i, c in enumerate(self.cells)))


AnySeen = TypeVar("AnySeen", bound=Seen)


def _empty(part: Part) -> Part:
    """A cell without its columns."""
    none, n_tips = np.zeros(0), len(part.tip_codes)
    codes = np.zeros((n_tips, 0), part.tip_codes.dtype)
    return replace(part, tip_codes=codes, weights=none, unobservable=none.astype(bool))


def seen_of(
    parts: Sequence[Observations], structure: ChainModel, settings: ChainSettings, size: int, on_device: bool
) -> Seen:
    """Of a chain that so many processes share. on_device: its likelihoods are found there."""
    # numba takes a third of a second to load
    from phloem.inference.mcmc.characters import parsimony_room
    from phloem.inference.mcmc.move_table import chosen_moves

    n_tips = len(parts[0].taxa)
    moves = chosen_moves(structure, n_tips, settings.move_weights, settings.fixed_topology)
    cells = tuple(chain_cells(parts, structure, settings, on_device))
    return Seen(
        n_tips, cells, dealt(cells, size), parsimony_room(cells, any(move.move.parsimony for move in moves))
    )


def chain_cells(
    observed: Sequence[Observations], structure: ChainModel, settings: ChainSettings, on_device: bool = False
) -> list[Part]:
    """The cells of a chain, whoever has them, in all partitions, their models those of the starting numbers.
    on_device: where devices evaluate them."""
    start, parts = structure.space.start(), list[Part]()
    for i, data in enumerate(observed):
        refuse_order(structure.parts[i].model, data.order, on_device)
        model, hidden = structure.site_model(i, start), np.zeros(data.codes.shape[1], bool)
        hidden[: data.n_hidden] = True
        sets = np.asarray(data.code_sets, bool)[:, structure.parts[i].model.observed_state]
        first = structure.sets[i].start
        part = Part(
            data.codes,
            sets,
            data.weights,
            hidden,
            model.process,
            model.length_class,
            first,
            settings.repeats,
            order=None if model.neighbours is None else data.order,
        )
        parts += column_ranges(part, len(parts), on_device)
    return parts


def refuse_order(model: Model, order: SiteOrder | None, on_device: bool) -> None:
    """Errors for chains that would take sites as independent whose neighbours depend on each other."""
    if model.along_sites is not None and on_device:
        require_cpu_for_order("gpu")
    if (model.along_sites is None) != (order is None):
        raise ValueError("the order of the sites is given where the model needs it, and else not")


def dealt(cells: Sequence[Part], size: int, speeds: Sequence[float] = ()) -> tuple[range, ...]:
    """Those of each of so many processes."""
    return dealt_cells([cell_work(cell) for cell in cells], size, speeds)


def sent(beside: Ranks, speeds: Sequence[float], seen: Callable[[], AnySeen]) -> AnySeen:
    """On every process of those that share a chain what it needs; seen: of all, which the first of them finds
    out, as it alone has the data. speeds: of each, nothing where they are alike."""
    if beside.number > 0:
        return beside.scatter(None)
    found = seen()
    found = replace(found, dealt=dealt(found.cells, beside.size, speeds))
    return beside.scatter([found.of(k) for k in range(beside.size)])
