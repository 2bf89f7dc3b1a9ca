"""What `phloem mcmc` makes of single draws, beside the summary of all of them: sites, ancestors, simulated
data, codons under selection."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from phloem.analysis.mcmc_ancestral import ENDING as STATES
from phloem.analysis.mcmc_ancestral import TREE_ENDING, node_states, write_states
from phloem.analysis.mcmc_data import ChainInput
from phloem.analysis.mcmc_draws import ChainData, Drawn, Told
from phloem.analysis.mcmc_predictive import ENDING as PREDICTIVE
from phloem.analysis.mcmc_predictive import predictive_checks, require_simulated
from phloem.analysis.mcmc_record import McmcSettings
from phloem.analysis.mcmc_sites import ENDING as SITES
from phloem.analysis.mcmc_sites import all_left_out, site_tables, write_sites
from phloem.analysis.pieces import taxon_of
from phloem.analysis.selection import ENDING as SELECTION
from phloem.analysis.selection import has_classes, write_selection
from phloem.errors import InputError
from phloem.inference.mcmc.checkpoint import KEPT
from phloem.inference.mcmc.structure import ChainModel
from phloem.io.output_file import write_file
from phloem.summary.predictive import Check, LeftOut, checks_text
from phloem.tree.tree import Tree

if TYPE_CHECKING:
    from phloem.analysis.time_record import TimeTreeSettings

OfDraws = tuple[LeftOut | None, tuple[Check, ...]]
_SHOWN = ("outgroup", "consensus", "site_table", "ancestral", "predictive")  # of what the samples are shown


def files_of_draws(settings: McmcSettings, data: ChainInput) -> dict[str, str]:
    """File name → what it holds. InputError for what cannot be made of these data."""
    prefix, chains, found = settings.file_prefix, settings.chains, dict[str, str]()
    if not chains.use_data or chains.stones:
        return found
    found |= table_files(settings, data.structure, "the consensus")
    if settings.predictive:
        require_simulated(data.unrecorded)
        found[f"{prefix}.{PREDICTIVE}"] = "statistics of the data and of simulated ones"
    return found


def table_files(
    settings: McmcSettings | TimeTreeSettings, structure: ChainModel, tree: str
) -> dict[str, str]:
    """Of the tables of draws that both samplers make: file name → what it holds. tree: whose nodes have
    states. InputError for one that takes sites as independent where they are not."""
    prefix, found = settings.file_prefix, dict[str, str]()
    if has_classes(structure):
        found[f"{prefix}.{SELECTION}"] = "codons: probability of positive selection, mean omega"
    for name in ("site_table", "ancestral"):
        if structure.along_sites and getattr(settings, name):
            raise InputError(
                f"--{name.replace('_', '-')} takes sites as independent, which they are not under +AG",
                hint="Leave it out, or write +G in place of +AG.",
            )
    if settings.site_table:
        found[f"{prefix}.{SITES}"] = "sites: log-likelihood, leave-one-out, mean rate"
    if settings.ancestral:
        found[f"{prefix}.{STATES}"] = f"states at the inner nodes of {tree}, with probabilities"
        found[f"{prefix}.{TREE_ENDING}"] = f"{tree} with the names of these nodes"
    return found


def write_tables(
    settings: McmcSettings | TimeTreeSettings, data: ChainData, drawn: Drawn, tree: tuple[Tree, str | None],
    told: Told,
) -> LeftOut | None:  # fmt: skip
    """Make and write them; leave-one-out of all sites where a table of sites was asked for. tree: whose nodes
    have states, and the taxon that it hangs from, None of one with a root."""
    prefix, of_sites = settings.file_prefix, None
    if has_classes(data.structure):
        write_selection(prefix, data, drawn, told, KEPT)
    if settings.site_table:
        tables = site_tables(data, drawn, told)
        write_sites(prefix, data, tables, KEPT)
        of_sites = all_left_out(tables, sum(map(len, drawn.evenly())))
    if settings.ancestral:
        write_states(prefix, data, node_states(data, drawn, *tree, told), KEPT)
    return of_sites


def made_before(settings: McmcSettings, files: Iterable[str]) -> OfDraws | None:
    """What an analysis that is finished has already, and its record says; None where something of it is
    missing, or was to look otherwise: then all but the samples is written anew."""
    record = json.loads(Path(f"{settings.file_prefix}.json").read_text())
    then, usual = record["settings"], McmcSettings("")
    same = all(then.get(name, getattr(usual, name)) == getattr(settings, name) for name in _SHOWN)
    if not (same and all(Path(file).exists() for file in files)):
        return None
    of_sites, checks = record.get("leave_one_out"), record.get("predictive", ())
    return None if of_sites is None else LeftOut(**of_sites), tuple(Check(**check) for check in checks)


def write_of_draws(
    settings: McmcSettings, data: ChainInput, drawn: Drawn, consensus: Tree, told: Told
) -> OfDraws:
    """Make and write all that is asked for: leave-one-out of all sites where a table of sites was, checks
    where simulated data were."""
    prefix, checks = settings.file_prefix, tuple[Check, ...]()
    if not settings.chains.use_data:
        return None, ()
    away = taxon_of(settings.outgroup or data.taxa[0], data.taxa)
    of_sites = write_tables(settings, data, drawn, (consensus, away), told)
    if settings.predictive:
        checks = predictive_checks(data, drawn, settings.predictive, settings.chains.seed, told)
        write_file(f"{prefix}.{PREDICTIVE}", checks_text(checks), KEPT)
    return of_sites, checks
