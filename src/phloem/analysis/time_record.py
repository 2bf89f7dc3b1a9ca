"""What a dated analysis was told, its files, and what came of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from phloem.analysis.auspice import AuspiceOptions
from phloem.analysis.dated_input import DateOptions
from phloem.analysis.json_record import generations_of, of_finished, plain
from phloem.analysis.reading import SampledDataOptions, reading_identity, sampled_identity
from phloem.analysis.time_traits import TraitOptions, trait_files
from phloem.analysis.working import working_identity
from phloem.density.tree_priors.tree_prior import registered
from phloem.errors import InputError, require_count
from phloem.inference.mcmc.checkpoint import KEPT, checkpoint_files, state_path
from phloem.inference.mcmc.convergence import Diagnosis
from phloem.inference.mcmc.samples import ModelShare
from phloem.inference.mcmc.settings import LONGEST
from phloem.inference.time.sampler import paths
from phloem.inference.time.settings import TimeSettings, TreeModel
from phloem.inference.time.structure import TimeModel, prior_options
from phloem.io.input_file import input_digest
from phloem.io.output_file import write_file
from phloem.plot.pictures import svg_text
from phloem.plot.through_time_figure import Course, through_time_drawing
from phloem.summary.clade_trees import SUMMARY_TREES
from phloem.summary.predictive import Check, LeftOut
from phloem.summary.routes import Route
from phloem.summary.through_time import POP_SIZE, ThroughTime
from phloem.summary.trace import TraceSummary
from phloem.tree.tree import Tree

UNTIL_CONVERGED = TimeSettings(generations=LONGEST, until_converged=True)
"""What chains do of which nothing else is asked."""


@dataclass(frozen=True)
class TimeTreeSettings(SampledDataOptions):
    """One analysis. dates: a table of names and dates, or where else they come from, the names for example;
    None where all taxa are of one time. model, linkage, link, gamma, prefix, redo, device: as of `phloem
    mcmc`, but that parts share a clock, "proportional" with a rate each, "linked" with one; "unlinked": each
    has its own, with its own rates of branches, but for those that link names together, as lengths:a,b. tree:
    clock, tree prior, priors. clade: "name=taxon,taxon,…", known from then on by its name, as root is;
    monophyletic: names of those that must be clades; constraint: "name: taxon, …" of taxa that must be one,
    and so on (constraint_text.py), with names that are known likewise; clock_clade: of those with clocks of
    their own, or "name=taxon,taxon,…"; calibrate: "name=density" of its age; shift: "name=time,time,…", dates
    or ages at which a number of the tree prior changes. summary_tree: of summary.clade_trees.tree_of_clades.
    predictive: how many data sets are simulated from the draws, to be held against the data
    (inference/time/predictive.py). site_table, ancestral: whether what draws say of sites, and of the states
    of ancestors, is written. auspice, metadata, metadata_column: whether the summary tree is written for
    Nextstrain, and of which table which columns with it. trait: that changes along the tree, if any. engine:
    whether sequences of ancestors are summed over, on "patterns", or sampled ("ancestors"), which "auto" asks
    for where genomes are many and nearly equal. chains: what the sampler does; usual_samples: but that
    samples are as far apart as is usual of so many taxa. of_block, told: as of analysis.mcmc_record."""

    dates: str | DateOptions | None = None
    model: str | None = None
    linkage: Literal["linked", "proportional", "unlinked"] | None = None
    link: tuple[str, ...] = ()
    tree: TreeModel = field(default_factory=TreeModel)
    clade: tuple[str, ...] = ()
    monophyletic: tuple[str, ...] = ()
    constraint: tuple[str, ...] = ()
    clock_clade: tuple[str, ...] = ()
    calibrate: tuple[str, ...] = ()
    prior: tuple[str, ...] = ()
    shift: tuple[str, ...] = ()
    prefix: str | None = None
    redo: bool = False
    device: Literal["auto", "cpu", "gpu"] = "auto"
    gamma: Literal["mean", "median"] = "mean"
    summary_tree: Literal["mcc", "hipstr", "ccd"] = "mcc"
    predictive: int = 0
    site_table: bool = False
    ancestral: bool = False
    auspice: bool = False
    metadata: str | None = None
    metadata_column: tuple[str, ...] = ()
    trait: TraitOptions | None = None
    engine: Literal["auto", "patterns", "ancestors"] = "auto"
    stones_from: str | None = None
    prior_constant: str | None = None
    chains: TimeSettings = UNTIL_CONVERGED
    usual_samples: bool = False
    of_block: str | None = None
    told: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.trait and self.trait.bssvs and self.chains.stones:
            raise InputError(
                "marginal likelihoods are of traits that have all routes",
                hint="Leave --bssvs or --stepping-stone out.",
            )
        if self.chains.stones and not self.chains.use_data and self.stones_from is None:
            raise InputError(
                "a stepping-stone analysis of the prior begins at a working distribution",
                hint="Name draws of --prior-only as --stones-from, or leave --prior-only out.",
            )
        _ = self.auspice_options
        if self.auspice and self.chains.stones:
            told, hint = "a stepping-stone analysis has no tree to show", "Leave --auspice out."
            raise InputError(told, hint=hint)
        if self.predictive:
            require_count("predictive", self.predictive)
            if self.chains.stones:
                raise InputError(
                    "a stepping-stone analysis has no posterior to predict from",
                    hint="Leave --predictive or --stepping-stone out.",
                )

    @property
    def inputs(self) -> list[str]:
        """Files that will be read."""
        table = self.date_source.dates if self.date_source else None
        traits, tips = [self.trait.table] if self.trait else [], self.auspice_options.table(table)
        others = [tips] if tips not in (None, table) else []
        return [*self.data_files, *([table] if table else []), *traits, *others]

    @property
    def date_source(self) -> DateOptions | None:
        """How dates are read."""
        return DateOptions(self.dates) if isinstance(self.dates, str) else self.dates

    @property
    def auspice_options(self) -> AuspiceOptions:
        """What is written for Nextstrain, and with it."""
        file = f"{self.file_prefix}.auspice.json" if self.auspice else None
        return AuspiceOptions(file, self.metadata, self.metadata_column)

    @property
    def file_prefix(self) -> str:
        """What the names of all files written begin with."""
        own = self.prefix or f"{self.usual_prefix}.time"
        return f"{own}.ss" if self.chains.stones else own


def table_of_dates(settings: TimeTreeSettings) -> str | None:
    """The file that dates are read from, if they are from one."""
    return settings.date_source.dates if settings.date_source else None


@dataclass(frozen=True, eq=False)
class Ancestors:
    """Samples that may be ancestors of others, the likeliest first, and the shares of each run's draws in
    which they are (R, K)."""

    taxa: tuple[str, ...]
    shares: np.ndarray

    def to_json(self) -> dict[str, float]:
        return dict(zip(self.taxa, map(plain, self.shares.mean(axis=0))))

    def text(self) -> str:
        """As a table."""
        runs = [f"run{r + 1}" for r in range(len(self.shares))]
        rows = ["\t".join(["sample", "ancestor", *runs])]
        for taxon, own in zip(self.taxa, self.shares.T):
            rows.append("\t".join([taxon, *(f"{x:.6g}" for x in (own.mean(), *own))]))
        return "\n".join(rows) + "\n"


@dataclass(frozen=True, eq=False)
class TimeResult:
    """tree: that stands for the sample, median heights. parameters: all columns of the trace, but those of
    single routes of a trait, which are in routes, and of which model holds, whose shares are models.
    predictive: of simulated data sets, left_out: of sites, where they were asked for. swaps: none of single
    chains. ancestors: how often samples are ancestors of others, where they may be. data: taxa and sites.
    ages_before: what ages count from. The rest as analysis.mcmc_record.McmcResult."""

    settings: TimeTreeSettings
    model: str
    tree: Tree
    parameters: TraceSummary
    diagnosis: Diagnosis
    acceptance: dict[str, tuple[int, float, float]]
    warnings: tuple[str, ...]
    seconds: float
    speed: float
    resumed_at: int | None
    files: dict[str, str]
    provenance: dict[str, Any]
    predictive: tuple[Check, ...] = ()
    undefined_proposals: int = 0
    was_finished: bool = False
    routes: tuple[Route, ...] = ()
    swaps: tuple[float, ...] = ()
    ancestors: Ancestors | None = None
    models: tuple[ModelShare, ...] = ()
    left_out: LeftOut | None = None
    data: dict[str, int] = field(default_factory=dict)
    ages_before: str = "the youngest tip"

    def __repr__(self) -> str:
        return f"TimeResult({self.model}, {self.diagnosis.text}, prefix={self.settings.file_prefix!r})"

    def to_json(self) -> dict[str, object]:
        """Plain numbers, strings, lists and dictionaries; NaN becomes None."""
        p = self.parameters
        columns = ("mean", "sd", "hpd_low", "hpd_high", "ess", "ess_tail", "r_hat", "mcse")
        rows = [{"name": n} | {c: plain(getattr(p, c)[i]) for c in columns} for i, n in enumerate(p.names)]
        return {
            "finished": True,
            "model": self.model,
            "data": self.data,
            "ages_before": self.ages_before,
            "parameters": rows,
            "leave_one_out": None if self.left_out is None else asdict(self.left_out),
            "predictive": [asdict(check) for check in self.predictive],
            "sampled_ancestors": self.ancestors.to_json() if self.ancestors else {},
            "models": [{n: plain(v) for n, v in asdict(share).items()} for share in self.models],
            "routes": [{n: plain(v) for n, v in asdict(route).items()} for route in self.routes],
            "convergence": {n: plain(v) for n, v in asdict(self.diagnosis).items()},
            "acceptance": {
                n: dict(zip(("tried", "accepted", "tuning"), v)) for n, v in self.acceptance.items()
            },
            "swaps_between_neighbouring_ranks": [plain(x) for x in self.swaps],
            "undefined_proposals": self.undefined_proposals,
            "warnings": list(self.warnings),
            "seconds": self.seconds,
            "generations_per_second": self.speed,
            "resumed_at": self.resumed_at,
            "files": self.files,
            "settings": settings_record(self.settings),
            "provenance": self.provenance,
        }


def settings_record(settings: TimeTreeSettings) -> dict[str, Any]:
    """Settings as plain numbers, strings, lists and dictionaries."""
    found = asdict(replace(settings, tree=TreeModel(), chains=replace(settings.chains, working=None)))
    found["tree"] = _tree_text(settings.tree)
    found["chains"]["tuning_generations"] = settings.chains.tuning
    return found


def _tree_text(tree: TreeModel) -> dict[str, object]:
    """The model of the tree in plain words, which also tell whether a checkpoint is of this analysis."""
    return {
        "clock": tree.clock,
        "clock_sd": tree.clock_sd,
        "prior": tree.prior,
        "pieces": tree.pieces,
        "options": dict(tree.options),
        "priors": {name: repr(family) for name, family in tree.priors.items()},
        "clades": [repr(clade) for clade in tree.clades],
    }


def model_text(model: TimeModel) -> str:
    """Of the only part, or of every one by its name."""
    parts = model.engine.parts
    if len(parts) == 1:
        return parts[0].model.text()
    return "; ".join(f"{part.name}: {part.model.text()}" for part in parts)


def time_identity(settings: TimeTreeSettings, model: TimeModel) -> dict[str, Any]:
    """What decides the chains' numbers: all of it must agree for a checkpoint to be resumed."""
    chains = asdict(replace(settings.chains, working=None))
    unnamed = ["working", "threads", "until_converged", "check_every", "most_warm_up", "convergence"]
    # of stones these say what is one; of others nothing, and older checkpoints do not name stones
    unnamed += [] if settings.chains.stones else ["generations", "warm_up", "stones", "stone_shape"]
    # of single chains there is nothing to say, as older checkpoints do not
    unnamed += ["n_chains", "heating", "swap_every", "swap_seed"] if settings.chains.n_chains == 1 else []
    for name in unnamed:
        del chains[name]
    chains["tuning_generations"] = settings.chains.tuning
    tree = replace(
        settings.tree,
        priors={p.block: p.family for p in model.priors}
        | {name: float(model.space.block(name).start[0]) for name in model.fixed},
        clades=model.clades,
    )
    return {
        "kind": "dated trees",
        "alignment": input_digest(settings.alignment),
        "dates": _date_identity(settings.date_source),
        **({"trait": settings.trait.identity()} if settings.trait else {}),
        "model": model_text(model),
        **({"linkage": [settings.linkage, *settings.link]} if len(model.engine.parts) > 1 else {}),
        "gamma": settings.gamma,
        **({"fossils": model.fossils} if model.fossils else {}),
        **({"shift": list(settings.shift)} if settings.shift else {}),
        # which older versions moved by walks alone
        **({"moves of uncertain dates": "trajectories"} if np.ptp(model.tip_bounds, axis=1).any() else {}),
        "device": settings.device,
        "tree": _tree_text(tree),
        **reading_identity(settings),
        **sampled_identity(settings),
        **({"partitions": input_digest(settings.data_files[1])} if settings.data_files[1:] else {}),
        **chains,
        **working_identity(settings.chains.working),
    }


def _date_identity(source: DateOptions | None) -> dict[str, object] | None:
    if source is None:
        return None
    found = asdict(source) | {"dates": input_digest(source.dates) if source.dates else None}
    if not source.tip_age:  # of which older checkpoints say nothing
        del found["tip_age"]
    return found


def as_extension(settings: TimeTreeSettings, record: Path) -> TimeTreeSettings:
    """A finished analysis goes on with the warm-up it had, one over stones not at all: what its generations
    were for depends on how many there are. InputError where less is asked for."""
    before, tuning = of_finished(
        record, lambda found: (generations_of(found), int(found["settings"]["chains"]["tuning_generations"]))
    )
    wanted, stones = settings.chains.generations, settings.chains.stones
    another_end = wanted < before or (stones and wanted != before)
    if another_end or not state_path(settings.file_prefix).exists():
        more = "" if stones else "Ask for more --generations to go on, "
        hint = f"{more}choose another --prefix, or replace it with --redo."
        raise InputError(
            f"this analysis is finished: it has {before:,} generations",
            file=str(record),
            hint=hint[0].upper() + hint[1:],
        )
    return replace(settings, chains=replace(settings.chains, tuning_generations=tuning))


def may_sample_ancestors(settings: TimeTreeSettings) -> bool:
    """Whether the tree prior lets dated samples be ancestors of others."""
    prior = registered().get(settings.tree.prior)
    if prior is None or prior.samples is None:
        return False
    return prior.samples(prior_options(prior, settings.tree)) == "ancestors"


def output_files(settings: TimeTreeSettings) -> dict[str, str]:
    """File name → what it holds."""
    prefix, n_runs, stones, files = settings.file_prefix, settings.chains.n_runs, settings.chains.stones, {}
    of = ", of power posteriors" if stones else ""
    for r in range(n_runs):
        log, trees = paths(prefix, r)
        files[str(log)] = f"trace of run {r + 1} (Tracer){of}"
        files[str(trees)] = f"dated trees of run {r + 1} with rates (FigTree){of}"
    if stones:
        files[f"{prefix}.tsv"] = "every stone: power, ratio of constants, standard error"
    else:
        files[f"{prefix}.{settings.summary_tree}.tre"] = (
            f"{SUMMARY_TREES[settings.summary_tree]} with ages (FigTree)"
        )
        files[f"{prefix}.past.tsv"] = "lineages, and population sizes or R, through time"
        files[f"{prefix}.past.svg"] = "the same as a picture"
        if may_sample_ancestors(settings):
            files[f"{prefix}.ancestors.tsv"] = "how often each sample is an ancestor of others"
        files |= trait_files(prefix) if settings.trait else {}
        if settings.auspice:
            files[f"{prefix}.auspice.json"] = "the same tree as a dataset of Auspice (Nextstrain)"
        if settings.predictive:
            files[f"{prefix}.predictive.tsv"] = "statistics of the data and of simulated ones"
    files[f"{prefix}.json"] = "settings, provenance, summary"
    return files | checkpoint_files(prefix, n_runs)


def write_past(prefix: str, past: ThroughTime, youngest: float) -> None:
    """PREFIX.past.tsv and PREFIX.past.svg; times are dates where there are any, else ages before the present,
    negative in the picture."""
    dated = bool(np.isfinite(youngest))
    times, root = ((youngest if dated else 0.0) - of for of in (past.ages, past.root))
    columns, names = [past.ages], ["age"]
    if dated:
        columns, names = [past.ages, times], ["age", "date"]
    found = [Course("lineages", past.lineages, logarithmic=False)]
    if past.sizes is not None:
        sizes = past.sizes_are == POP_SIZE
        found.insert(0, Course(past.sizes_are, past.sizes, sizes, None if sizes else 1.0))
    for course in found:
        name = course.name.replace(" ", "_")
        names += [name, f"{name}_low", f"{name}_high"]
        columns += list(course.values.T)
    rows = ["\t".join(names), *("\t".join(f"{x:.8g}" for x in row) for row in np.stack(columns, 1))]
    write_file(f"{prefix}.past.tsv", "\n".join(rows) + "\n", KEPT)
    title = f"Through time: medians, and where {100 * past.mass:g}% of the draws are"
    write_file(f"{prefix}.past.svg", svg_text(through_time_drawing(times, found, root, title)), KEPT)
