"""What a dated chain's likelihood and proposals need of the data, and what of that each of several processes
needs: as of inference/mcmc/seen.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from phloem.hardware.ranks import Ranks
from phloem.inference.mcmc.characters import parsimony_room
from phloem.inference.mcmc.recipes import Observations, recipes_of
from phloem.inference.mcmc.seen import Seen
from phloem.inference.mcmc.spread import dealt_cells
from phloem.inference.time.move_table import Costs
from phloem.inference.time.settings import TimeSettings
from phloem.inference.time.start import dated_cells, likelihood_costs
from phloem.inference.time.structure import TimeModel
from phloem.pruning.cpu.cell_memory import Part, cell_work

PRICE = 8.0
"""Of a change, times MrBayes': dated genomes are so alike that a change which a place does not need costs
eight log units, and a subtree has a place or two where it fits among two hundred."""


@dataclass(frozen=True, eq=False)
class DatedSeen(Seen):
    """costs: of all columns, by which moves are weighed."""

    costs: Costs


def dated_seen(
    parts: Sequence[Observations], model: TimeModel, settings: TimeSettings, size: int, on_device: bool
) -> DatedSeen:
    """Of a chain that so many processes share. on_device: its likelihoods are found there."""
    cells = tuple(dated_cells(parts, model, whole=on_device))
    dealt = dealt_cells([cell_work(cell) for cell in cells], size) if size > 1 else (range(len(cells)),)
    characters = parsimony_room(cells, settings.use_data)
    per_length = _per_length(cells, model)
    characters = characters._replace(price=PRICE * characters.price, per_length=per_length)
    ancestors = settings.use_data and settings.ancestors == "sampled"
    costs = likelihood_costs(cells, on_device, ancestors)
    return DatedSeen(len(parts[0].taxa), cells, dealt, characters, costs)


def dated_sent(
    beside: Ranks, parts: Sequence[Observations], model: TimeModel, settings: TimeSettings
) -> DatedSeen:
    """On every process of those that share a chain what it needs; only the first of them is given parts."""
    if beside.number > 0:
        return beside.scatter(None)
    found = dated_seen(parts, model, settings, beside.size, on_device=False)
    return beside.scatter([found.of(k) for k in range(beside.size)])


def _per_length(cells: Sequence[Part], model: TimeModel) -> np.ndarray:
    """(K,) changes expected, in the columns of all parts of a clock, of a branch of length 1 by it."""
    found, unit = np.zeros(model.n_clocks), recipes_of(model.engine).unit
    part_of = np.cumsum([cell.model_of < 0 for cell in cells]) - 1
    for own, part in zip(cells, part_of):
        found[own.first_lengths] += own.weights[~own.unobservable].sum() * unit[part]
    return found
