"""What `phloem time` makes of single draws, as `phloem mcmc` does: tables of sites and of codons under
selection, states of ancestors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from phloem.analysis.mcmc_ancestral import ENDING as STATES
from phloem.analysis.mcmc_ancestral import TREE_ENDING, node_states, write_states
from phloem.analysis.mcmc_draws import Draw, Drawn, Told
from phloem.analysis.mcmc_sites import ENDING as SITES
from phloem.analysis.mcmc_sites import all_left_out, site_tables, write_sites
from phloem.analysis.selection import ENDING as SELECTION
from phloem.analysis.selection import has_classes, write_selection
from phloem.analysis.time_data import TimeInput
from phloem.analysis.time_record import TimeTreeSettings
from phloem.data.alignment import Alignment
from phloem.inference.mcmc.checkpoint import KEPT
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
    prefix, chains, found = settings.file_prefix, settings.chains, dict[str, str]()
    if chains.use_data and not chains.stones:
        if has_classes(data.model.engine):
            found[f"{prefix}.{SELECTION}"] = "codons: probability of positive selection, mean omega"
        if settings.site_table:
            found[f"{prefix}.{SITES}"] = "sites: log-likelihood, leave-one-out, mean rate"
        if settings.ancestral:
            found[f"{prefix}.{STATES}"] = "states at the inner nodes of the tree, with probabilities"
            found[f"{prefix}.{TREE_ENDING}"] = "the tree with the names of these nodes"
    return found


def write_of_draws(
    settings: TimeTreeSettings, data: TimeInput, runs: Sequence[AnyRun], tree: Tree, told: Told
) -> LeftOut | None:
    """Make and write all that is asked for, of draws after the warm-up; how well sites are foretold that were
    left out, where a table of them was asked for. tree: that stands for the draws."""
    if not settings.chains.use_data:
        return None
    model, prefix, first = data.model, settings.file_prefix, first_kept(runs[0])
    names = tuple(part.name for part in model.engine.parts)
    chains = DatedChains(data.taxa, dict(zip(names, data.alignments)), model.engine, data.sites)
    drawn = Drawn([run.samples for run in runs], runs[0].columns.names, first, partial(_with_lengths, model))
    if has_classes(model.engine):
        write_selection(prefix, chains, drawn, told, KEPT)
    if settings.ancestral:
        write_states(prefix, chains, node_states(chains, drawn, tree, None, told), KEPT)
    if not settings.site_table:
        return None
    tables = site_tables(chains, drawn, told)
    write_sites(prefix, chains, tables, KEPT)
    return all_left_out(tables, sum(map(len, drawn.evenly())))


def _with_lengths(model: TimeModel, draw: Draw) -> Draw:
    parent = draw.parent.astype(np.int64)
    return Draw(parent, lengths_by_clock(model, parent, draw.lengths), draw.numbers)
