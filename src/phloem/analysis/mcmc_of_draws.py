"""What `phloem mcmc` makes of single draws, beside the summary of all of them: sites, ancestors, simulated
data, codons under selection."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from phloem.analysis.mcmc_ancestral import ENDING as STATES
from phloem.analysis.mcmc_ancestral import TREE_ENDING, node_states, write_states
from phloem.analysis.mcmc_data import ChainInput
from phloem.analysis.mcmc_draws import Drawn, Told
from phloem.analysis.mcmc_predictive import ENDING as PREDICTIVE
from phloem.analysis.mcmc_predictive import predictive_checks, require_simulated
from phloem.analysis.mcmc_record import McmcSettings
from phloem.analysis.mcmc_sites import ENDING as SITES
from phloem.analysis.mcmc_sites import all_left_out, site_tables, write_sites
from phloem.analysis.pieces import taxon_of
from phloem.analysis.selection import ENDING as SELECTION
from phloem.analysis.selection import has_classes, write_selection
from phloem.inference.mcmc.checkpoint import KEPT
from phloem.io.output_file import write_file
from phloem.summary.predictive import Check, LeftOut, checks_text
from phloem.tree.tree import Tree

OfDraws = tuple[LeftOut | None, tuple[Check, ...]]
_SHOWN = ("outgroup", "consensus", "site_table", "ancestral", "predictive")  # of what the samples are shown


def files_of_draws(settings: McmcSettings, data: ChainInput) -> dict[str, str]:
    """File name → what it holds. InputError for what cannot be made of these data."""
    prefix, chains, found = settings.file_prefix, settings.chains, dict[str, str]()
    if not chains.use_data or chains.stones:
        return found
    if has_classes(data.structure):
        found[f"{prefix}.{SELECTION}"] = "codons: probability of positive selection, mean omega"
    if settings.site_table:
        found[f"{prefix}.{SITES}"] = "sites: log-likelihood, leave-one-out, mean rate"
    if settings.ancestral:
        found[f"{prefix}.{STATES}"] = "states at the inner nodes of the consensus, with probabilities"
        found[f"{prefix}.{TREE_ENDING}"] = "the consensus with the names of these nodes"
    if settings.predictive:
        require_simulated(data)
        found[f"{prefix}.{PREDICTIVE}"] = "statistics of the data and of simulated ones"
    return found


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
    prefix, of_sites, checks = settings.file_prefix, None, tuple[Check, ...]()
    if not settings.chains.use_data:
        return None, ()
    if has_classes(data.structure):
        write_selection(prefix, data, drawn, told, KEPT)
    if settings.site_table:
        tables = site_tables(data, drawn, told)
        write_sites(prefix, data, tables, KEPT)
        of_sites = all_left_out(tables, sum(map(len, drawn.evenly())))
    if settings.ancestral:
        away = taxon_of(settings.outgroup or data.taxa[0], data.taxa)
        write_states(prefix, data, node_states(data, drawn, consensus, away, told), KEPT)
    if settings.predictive:
        checks = predictive_checks(data, drawn, settings.predictive, settings.chains.seed, told)
        write_file(f"{prefix}.{PREDICTIVE}", checks_text(checks), KEPT)
    return of_sites, checks
