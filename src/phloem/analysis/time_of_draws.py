"""What `phloem time` makes of single draws, as `phloem mcmc` does: tables of sites and of codons under
selection, states of ancestors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from phloem.analysis.mcmc_draws import Draw, Drawn, Told
from phloem.analysis.mcmc_of_draws import table_files, write_tables
from phloem.analysis.time_data import TimeInput
from phloem.analysis.time_record import TimeTreeSettings
from phloem.data.alignment import Alignment
from phloem.inference.mcmc.structure import ChainModel
from phloem.inference.time.draws import lengths_by_clock
from phloem.inference.time.sampler import AnyRun, first_kept
from phloem.inference.time.structure import TimeModel
from phloem.summary.predictive import LeftOut
from phloem.tree.tree import Tree


@dataclass(frozen=True, eq=False)
class DatedChains:
    """mcmc_draws.ChainData of dated trees."""

    taxa: tuple[str, ...]
    alignments: dict[str, Alignment]
    structure: ChainModel
    sites: tuple[np.ndarray | None, ...]


def files_of_draws(settings: TimeTreeSettings, data: TimeInput) -> dict[str, str]:
    """File name → what it holds."""
    chains = settings.chains
    return (
        table_files(settings, data.model.engine, "the tree") if chains.use_data and not chains.stones else {}
    )


def write_of_draws(
    settings: TimeTreeSettings, data: TimeInput, runs: Sequence[AnyRun], tree: Tree, told: Told
) -> LeftOut | None:
    """Make and write all that is asked for, of draws after the warm-up; how well sites are foretold that were
    left out, where a table of them was asked for. tree: that stands for the draws."""
    if not settings.chains.use_data:
        return None
    model, first = data.model, first_kept(runs[0])
    names = tuple(part.name for part in model.engine.parts)
    chains = DatedChains(data.taxa, dict(zip(names, data.alignments)), model.engine, data.sites)
    drawn = Drawn([run.samples for run in runs], runs[0].columns.names, first, partial(_with_lengths, model))
    return write_tables(settings, chains, drawn, (tree, None), told)


def _with_lengths(model: TimeModel, draw: Draw) -> Draw:
    parent = draw.parent.astype(np.int64)
    return Draw(parent, lengths_by_clock(model, parent, draw.lengths), draw.numbers)
