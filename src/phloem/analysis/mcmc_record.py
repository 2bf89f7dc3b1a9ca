"""What an analysis by `phloem mcmc` was told, its files, and what came of it."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from phloem.analysis.former_files import former_files
from phloem.analysis.json_record import generations_of, of_finished, plain
from phloem.analysis.mcmc_start import METHODS, RANDOM, start_identity
from phloem.analysis.outputs import check_outputs
from phloem.analysis.reading import SampledDataOptions, reading_identity, sampled_identity
from phloem.analysis.split_tables import SPLIT_TABLES
from phloem.density.parts import LengthLinkage
from phloem.errors import InputError
from phloem.inference.mcmc.checkpoint import checkpoint_files, state_path
from phloem.inference.mcmc.convergence import Diagnosis
from phloem.inference.mcmc.heating import USUAL
from phloem.inference.mcmc.samples import ModelShare
from phloem.inference.mcmc.settings import LONGEST, ChainSettings, length_prior_text
from phloem.inference.mcmc.trace_files import history_path, paths
from phloem.io.input_file import input_digest
from phloem.summary.predictive import Check, LeftOut
from phloem.summary.trace import TraceSummary
from phloem.summary.trees import ConsensusRule
from phloem.tree.tree import Tree

# What an analysis by `phloem mcmc` was told, and what came of it.

UNTIL_CONVERGED = ChainSettings(generations=LONGEST, until_converged=True)
"""What chains do of which nothing else is asked."""


def length_text(chains: Any) -> str:
    """How long the chains of either sampler run, for people."""
    if chains.until_converged and chains.generations == LONGEST:
        return "until converged"
    until = "until converged, at most " if chains.until_converged else ""
    over = f" over {chains.stones:,} stepping stones" if chains.stones else ""
    return f"{until}{chains.generations:,} generations{over}"


def heating_text(chains: ChainSettings) -> str:
    """How hot chains are, for people."""
    learnt = "learnt" if chains.learns_heating else f"{USUAL:g}"
    return learnt if chains.heating is None else f"{chains.heating:g}"


@dataclass(frozen=True)
class McmcSettings(SampledDataOptions):
    """One analysis. model: None takes the default for the data type (analysis.pieces); with partitions,
    that of the subsets to which their file gives none. linkage, link: what parts share
    (analysis.partitioned_likelihood); None is a rate a part. start: what chains start from, random, nj,
    bionj, upgma or a tree file; start_tree: the name or number of one of its trees (analysis.mcmc_start).
    prefix: of every file written; None takes the alignment's name in the working directory. device: of the
    likelihood; auto lets phloem choose, and the record says what it chose. redo: replace files that exist.
    outgroup: a taxon that the consensus hangs from. constraint: "name:
    taxon, taxon, …", splits that every tree has, and others as --constraint. consensus: which one is written.
    of_block: the file whose MRBAYES block says all this. told: what it says that is done otherwise. report:
    whether PREFIX.html is written. stones_from: prefix of an analysis near whose posterior stepping stones
    begin, in place of the prior (analysis.working). site_table, ancestral, predictive: what is made of single
    draws (analysis.mcmc_of_draws), the last: how many data sets are simulated. chains: what the sampler does;
    as usual it stops when converged."""

    model: str | None = None
    linkage: LengthLinkage | None = None
    link: tuple[str, ...] = ()
    start: str = RANDOM
    start_tree: str | None = None
    device: Literal["auto", "cpu", "gpu"] = "auto"
    prefix: str | None = None
    redo: bool = False
    gamma: Literal["mean", "median"] = "mean"
    outgroup: str | None = None
    constraint: tuple[str, ...] = ()
    consensus: ConsensusRule = "majority"
    of_block: str | None = None
    told: tuple[str, ...] = ()
    report: bool = False
    site_table: bool = False
    ancestral: bool = False
    predictive: int = 0
    stones_from: str | None = None
    chains: ChainSettings = UNTIL_CONVERGED

    @property
    def inputs(self) -> list[str]:
        """Files that will be read."""
        is_file = self.start != RANDOM and self.start not in METHODS
        return [*self.data_files, *([self.start] if is_file else [])]

    @property
    def file_prefix(self) -> str:
        """What the names of all files written begin with."""
        own = self.prefix or self.usual_prefix
        return f"{own}.ss" if self.chains.stones else own


@dataclass(frozen=True, eq=False)
class McmcResult:
    """consensus: majority rule, prob at its nodes. parameters: log-likelihood, tree length and every free
    number. models: those among which the chains chose. diagnosis: convergence at the end. acceptance: move →
    (tried, accepted share, tuning) of the cold chains. swaps: accepted share of those between neighbouring
    ranks of heat. powers: of every run the inverse temperatures by rank. speed: chain-generations a
    second. files: name → what it holds. length_unit: of branch
    lengths and TL. command: that does the same. undefined_proposals: of all chains, see
    inference/mcmc/undefined.py. left_out: leave-one-out of all sites; checks: of simulated data, where
    these were asked for. was_finished: nothing was left to do, and the files are as they were."""

    settings: McmcSettings
    model: str
    start: str
    data: dict[str, object]
    consensus: Tree
    parameters: TraceSummary
    models: tuple[ModelShare, ...]
    diagnosis: Diagnosis
    acceptance: dict[str, tuple[int, float, float]]
    swaps: tuple[float, ...]
    powers: tuple[tuple[float, ...], ...]
    warnings: tuple[str, ...]
    seconds: float
    speed: float
    resumed_at: int | None
    files: dict[str, str]
    length_unit: str
    provenance: dict[str, Any]
    command: str
    undefined_proposals: int = 0
    left_out: LeftOut | None = None
    checks: tuple[Check, ...] = ()
    was_finished: bool = False

    def __repr__(self) -> str:
        return f"McmcResult({self.model}, {self.diagnosis.text}, prefix={self.settings.file_prefix!r})"

    def to_json(self) -> dict[str, object]:
        """Plain numbers, strings, lists and dictionaries; NaN becomes None."""
        p = self.parameters
        columns = {
            n: getattr(p, n)
            for n in ("mean", "sd", "hpd_low", "hpd_high", "ess", "ess_tail", "r_hat", "mcse")
        }
        rows = [
            {"name": name} | {c: plain(v[i]) for c, v in columns.items()} for i, name in enumerate(p.names)
        ]
        return {
            "finished": True,
            "model": self.model,
            "start": self.start,
            "data": self.data,
            "branch_lengths": self.length_unit,
            "parameters": rows,
            "models": [{k: plain(v) for k, v in asdict(share).items()} for share in self.models],
            "convergence": {name: plain(value) for name, value in asdict(self.diagnosis).items()},
            "acceptance": {
                n: dict(zip(("tried", "accepted", "tuning"), v)) for n, v in self.acceptance.items()
            },
            "swaps_between_neighbouring_ranks": [plain(x) for x in self.swaps],
            "inverse_temperatures": [list(powers) for powers in self.powers],
            "undefined_proposals": self.undefined_proposals,
            "leave_one_out": None if self.left_out is None else asdict(self.left_out),
            "predictive": [asdict(check) for check in self.checks],
            "warnings": list(self.warnings),
            "seconds": self.seconds,
            "chain_generations_per_second": self.speed,
            "resumed_at": self.resumed_at,
            "files": self.files,
            "command": self.command,
            "settings": settings_record(self.settings),
            "provenance": self.provenance,
        }


def settings_record(settings: McmcSettings) -> dict[str, Any]:
    """Settings as plain numbers, strings, lists and dictionaries."""
    found = asdict(settings)
    found["chains"]["tuning_generations"] = settings.chains.tuning
    found["chains"]["priors"]["branch_lengths"] = length_prior_text(settings.chains.priors.branch_lengths)
    return found


# The files of an analysis: what they are called, and whether it may go on from them or replace them.


def output_files(prefix: str, n_runs: int, stones: int = 0, report: bool = False) -> dict[str, str]:
    """File name → what it holds, for every file that an analysis writes."""
    files, of = {}, ", of power posteriors" if stones else ""
    for r in range(n_runs):
        p_file, t_file = paths(prefix, r)
        files[str(p_file)] = f"trace of run {r + 1}: log-likelihood, prior, parameters{of}"
        files[str(t_file)] = f"trees of run {r + 1}{of}"
    if stones:
        files[f"{prefix}.tsv"] = "every stone: power, ratio of constants, standard error"
    else:
        files[str(history_path(prefix))] = "acceptance and agreement of the runs, by generation"
        files[f"{prefix}.con.tre"] = "consensus tree with clade probabilities"
        files |= {f"{prefix}.{ending}": what for ending, what in SPLIT_TABLES.items()}
    if report:
        files[f"{prefix}.html"] = "report: numbers, traces, tree, splits"
    files[f"{prefix}.json"] = "settings, provenance, summary"
    return files | checkpoint_files(prefix, n_runs)


def as_extension(settings: McmcSettings) -> McmcSettings:
    """The settings that carry a finished analysis of this prefix on, or as they are where there is none.

    Moves adapted in the first generations only; what those were stays as it was. As many generations as
    before leave it as it is. InputError where less is asked for than was drawn, or where the checkpoint is
    gone.
    """
    record, chains = Path(f"{settings.file_prefix}.json"), settings.chains
    if not record.exists():
        return settings

    def told(found: Any) -> tuple[ChainSettings, int]:
        then = found["settings"]["chains"]
        kept = {name: then[name] for name in ("generations", "burn_in", "tuning_generations")}
        return replace(chains, **kept), generations_of(found)

    before, drawn = of_finished(record, told)
    checkpoint = state_path(settings.file_prefix)
    another_end = (
        chains.generations < drawn
        or (chains.stones and chains.generations != before.generations)
        or (chains.generations in (before.generations, drawn) and chains.burn_in != before.burn_in)
    )
    if another_end or not checkpoint.exists():
        raise InputError(
            f"this analysis is finished: it has {drawn:,} generations, and a burn-in of {before.burn_in:g}",
            file=str(record),
            hint="Choose another --prefix, or replace it with --redo."
            if chains.stones
            else "Ask for more --generations to go on, choose another --prefix, or replace it with --redo.",
        )
    return replace(settings, chains=replace(chains, tuning_generations=before.tuning))


def check_files(settings: McmcSettings, files: dict[str, str]) -> None:
    """InputError for files that cannot be written, that are inputs, or that no analysis of ours explains."""
    if not Path(settings.file_prefix).name or settings.file_prefix.endswith(os.sep):
        raise InputError(
            "the prefix names a folder", file=settings.file_prefix, hint="Add how the files' names begin."
        )
    explained = settings.redo or state_path(settings.file_prefix).exists()
    check_outputs([*files, *_replaced(settings, files)], settings.inputs, explained)


def make_room(settings: McmcSettings, files: dict[str, str]) -> None:
    """Remove what is to be replaced, only now that the input has proved readable."""
    for file in [*files, *_replaced(settings, files)] if settings.redo else ():
        Path(file).unlink(missing_ok=True)


def _replaced(settings: McmcSettings, files: dict[str, str]) -> list[str]:
    """What goes with an analysis that is replaced, although the new one does not write it."""
    return former_files(settings.file_prefix, files) if settings.redo else []


# What older checkpoints do not name: a checkpoint names it where it is not as usual.
_NEW = ("constraint",)
_NEW_OF_CHAINS = (
    "swap_every", "swap_seed", "constraints", "partial_constraints", "negative_constraints", "stones",
    "stone_shape", "stone_burn_in", "stones_from_prior", "working", "usual_weights", "fixed_topology",
    "precision", )  # fmt: skip


def chain_identity(settings: McmcSettings, model_text: str) -> dict[str, Any]:
    """What decides the chains' numbers: all of it must agree for a checkpoint to be resumed."""
    chains = asdict(settings.chains)
    for name in (
        "threads",
        "gpus",
        "generations",
        "until_converged",
        "check_every",
        "burn_in",
        "convergence",
    ):
        if not (settings.chains.stones and name in ("generations", "burn_in")):  # which say what is a stone
            del chains[name]
    chains["priors"]["branch_lengths"] = length_prior_text(settings.chains.priors.branch_lengths)
    chains["tuning_generations"] = settings.chains.tuning
    if not chains["priors"]["others"]:
        del chains["priors"]["others"]
    usual = McmcSettings("")
    for name, value in asdict(usual.chains).items():
        if name in _NEW_OF_CHAINS and chains[name] == value:
            del chains[name]
    return {
        "alignment": input_digest(settings.alignment),
        "model": model_text,
        "device": settings.device,
        "linkage": settings.linkage,
        "link": list(settings.link),
        "gamma": settings.gamma,
        **reading_identity(settings),
        **({"partitions": input_digest(settings.data_files[1])} if settings.data_files[1:] else {}),
        **start_identity(settings.start, settings.start_tree),
        **sampled_identity(settings),
        **{name: getattr(settings, name) for name in _NEW if getattr(settings, name) != getattr(usual, name)},
        **chains,
    }
