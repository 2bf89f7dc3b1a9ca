"""The cells of a chain: its parts, or ranges of their columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phloem.inference.mcmc.recipes import Observations
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.structure import ChainModel
from phloem.model.model import Model
from phloem.pruning.cpu.cell_memory import Part, column_ranges
from phloem.pruning.select import require_cpu_for_order
from phloem.pruning.site_order import SiteOrder


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
