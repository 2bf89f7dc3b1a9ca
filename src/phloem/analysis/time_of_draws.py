"""What `phloem time` makes of single draws, as `phloem mcmc` does: tables of sites, codons under selection.

The model of substitution knows no root: a dated tree is looked at as the tree without a root that it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

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
from phloem.inference.time.draws import without_root
from phloem.inference.time.sampler import AnyRun
from phloem.inference.time.structure import TimeModel
from phloem.summary.predictive import LeftOut


@dataclass(frozen=True, eq=False)
class Rootless:
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
    return found


def write_of_draws(
    settings: TimeTreeSettings, data: TimeInput, runs: Sequence[AnyRun], first: int, told: Told
) -> LeftOut | None:
    """Make and write all that is asked for, of draws from `first` on; how well sites are foretold that were
    left out, where a table of them was asked for."""
    if not settings.chains.use_data:
        return None
    model, prefix = data.model, settings.file_prefix
    names = tuple(part.name for part in model.engine.parts)
    rootless = Rootless(data.taxa, dict(zip(names, data.alignments)), model.engine, data.sites)
    drawn = Drawn([run.samples for run in runs], runs[0].columns.names, first, partial(_without_root, model))
    if has_classes(model.engine):
        write_selection(prefix, rootless, drawn, told, KEPT)
    if not settings.site_table:
        return None
    tables = site_tables(rootless, drawn, told)
    write_sites(prefix, rootless, tables, KEPT)
    return all_left_out(tables, sum(map(len, drawn.evenly())))


def _without_root(model: TimeModel, draw: Draw) -> Draw:
    return Draw(*without_root(model, draw.parent.astype(np.int64), draw.lengths), draw.numbers)
