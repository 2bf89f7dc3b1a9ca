"""What a dated chain's likelihood and proposals need of the data, and what of that each of several processes
needs: as of inference/mcmc/seen.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from phloem.inference.mcmc.characters import parsimony_room
from phloem.inference.mcmc.recipes import Observations
from phloem.inference.mcmc.seen import Seen, dealt
from phloem.inference.time.move_table import Costs
from phloem.inference.time.settings import TimeSettings
from phloem.inference.time.start import dated_cells, likelihood_costs
from phloem.inference.time.structure import TimeModel
from phloem.pruning.cpu.cell_memory import Part

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
    cells = tuple(dated_cells(parts, model, on_device))
    characters = parsimony_room(cells, settings.use_data)
    per_length = _per_length(cells, model)
    characters = characters._replace(price=PRICE * characters.price, per_length=per_length)
    ancestors = settings.use_data and settings.ancestors == "sampled"
    costs = likelihood_costs(cells, on_device, ancestors)
    return DatedSeen(len(parts[0].taxa), cells, dealt(cells, size), characters, costs)


def _per_length(cells: Sequence[Part], model: TimeModel) -> np.ndarray:
    """(K,) changes expected, in the columns of all parts of a clock, of a branch of length 1 by it."""
    found, part_of = np.zeros(model.n_clocks), np.cumsum([cell.model_of < 0 for cell in cells]) - 1
    for own, part in zip(cells, part_of):
        site_length = model.engine.parts[part].site_length
        found[own.first_lengths] += own.weights[~own.unobservable].sum() * site_length
    return found
