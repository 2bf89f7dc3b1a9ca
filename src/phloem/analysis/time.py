"""`phloem time`: dated trees from an alignment and sampling dates, or from calibrations."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from phloem.analysis.json_record import json_text, plain
from phloem.analysis.mcmc_data import DEFAULT_MODELS
from phloem.analysis.outputs import check_outputs
from phloem.analysis.provenance import provenance
from phloem.analysis.reading import DataOptions, alignment_of, reading_identity
from phloem.analysis.time_files import output_files, write_past
from phloem.analysis.time_start import time_origin, time_selection
from phloem.data.alignment import Alignment
from phloem.data.dates import TipDates
from phloem.density.parameterisation import PartModel
from phloem.errors import STANDARD_INPUT, InputError
from phloem.hardware.limits import require_memory, require_time
from phloem.hardware.machine import usable_cores
from phloem.hardware.notice import on_first_compilation
from phloem.inference.mcmc.checkpoint import KEPT, state_path
from phloem.inference.mcmc.convergence import Diagnosis
from phloem.inference.mcmc.guard import report_path
from phloem.inference.mcmc.recipes import observations
from phloem.inference.mcmc.run import Device
from phloem.inference.mcmc.sampler import Progress
from phloem.inference.mcmc.structure import sites_per_character, structure_of_parts
from phloem.inference.time.draws import past
from phloem.inference.time.sampler import (
    Sampled,
    first_kept,
    plain_time_likelihood,
    sample,
    warnings_of,
)
from phloem.inference.time.settings import Clade, TimeSettings, TreeModel, parse_family
from phloem.inference.time.structure import TimeModel, time_model
from phloem.io.date_table import read_dates
from phloem.io.input_file import input_digest
from phloem.io.output_file import locked, remove_partial, write_file
from phloem.io.trees import nexus_text
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.pruning.select import Selection
from phloem.summary.clade_trees import tree_of_clades
from phloem.summary.trace import TraceSummary, trace_summary
from phloem.tree.tree import Tree

__all__ = ["TimeResult", "TimeSettings", "TimeTreeSettings", "TreeModel", "run_time"]

LEAST_SAMPLES = 10
RUN_BYTES = 40_000  # of a run, for each node: the table of clades
GENERATION_SECONDS = 1e-6  # of a run of few taxa without data, at least
ROOT = "root"


@dataclass(frozen=True)
class TimeTreeSettings(DataOptions):
    """One analysis. dates: a table of names and dates, None where all taxa are of one time. model, gamma,
    prefix, redo, device: as of `phloem mcmc`. tree: clock, tree prior, priors. clade: "name=taxon,taxon,…",
    known from then on by its name, as root is; monophyletic: names of those that must be clades; clock_clade:
    of those with clocks of their own, or "name=taxon,taxon,…"; calibrate: "name=density" of its age.
    summary_tree: of summary.clade_trees.tree_of_clades. chains: what the sampler does."""

    dates: str | None = None
    model: str | None = None
    tree: TreeModel = field(default_factory=TreeModel)
    clade: tuple[str, ...] = ()
    monophyletic: tuple[str, ...] = ()
    clock_clade: tuple[str, ...] = ()
    calibrate: tuple[str, ...] = ()
    prior: tuple[str, ...] = ()
    prefix: str | None = None
    redo: bool = False
    device: Literal["auto", "cpu", "gpu"] = "auto"
    gamma: Literal["mean", "median"] = "mean"
    summary_tree: Literal["mcc", "hipstr", "ccd"] = "mcc"
    chains: TimeSettings = field(default_factory=TimeSettings)

    @property
    def inputs(self) -> list[str]:
        """Files that will be read."""
        return [*self.data_files, *([self.dates] if self.dates else [])]

    @property
    def file_prefix(self) -> str:
        """What the names of all files written begin with."""
        name = "stdin" if self.alignment == STANDARD_INPUT else Path(self.alignment).name
        return self.prefix or name.removesuffix(".gz").rsplit(".", 1)[0] + ".time"


@dataclass(frozen=True, eq=False)
class TimeInput:
    """What was read: the alignment, its dates if any, and the model of everything."""

    alignment: Alignment
    dates: TipDates | None
    model: TimeModel


@dataclass(frozen=True, eq=False)
class TimeResult:
    """tree: that stands for the sample, median heights. parameters: all columns of the trace; the
    rest as analysis.mcmc_record.McmcResult."""

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
    was_finished: bool = False

    def to_json(self) -> dict[str, object]:
        """Plain numbers, strings, lists and dictionaries; NaN becomes None."""
        p = self.parameters
        columns = ("mean", "sd", "hpd_low", "hpd_high", "ess", "ess_tail", "r_hat", "mcse")
        rows = [{"name": n} | {c: plain(getattr(p, c)[i]) for c in columns} for i, n in enumerate(p.names)]
        settings = asdict(replace(self.settings, tree=TreeModel()))
        settings["tree"] = _tree_text(self.settings.tree)
        settings["chains"]["tuning_generations"] = self.settings.chains.tuning
        return {
            "finished": True,
            "model": self.model,
            "parameters": rows,
            "convergence": {n: plain(v) for n, v in asdict(self.diagnosis).items()},
            "acceptance": {
                n: dict(zip(("tried", "accepted", "tuning"), v)) for n, v in self.acceptance.items()
            },
            "warnings": list(self.warnings),
            "seconds": self.seconds,
            "generations_per_second": self.speed,
            "resumed_at": self.resumed_at,
            "files": self.files,
            "settings": settings,
            "provenance": self.provenance,
        }


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


# What is read.


def time_input(settings: TimeTreeSettings) -> TimeInput:
    """Read data, dates and models. Errors: InputError, ModelError that name file and taxon."""
    alignment = alignment_of(settings)
    text = settings.model or DEFAULT_MODELS.get(alignment.alphabet.kind, "MK+G4")
    model = model_for_alignment(text, alignment, settings.gamma)
    part = PartModel("all", model, alignment.n_sites, sites_per_character(model))
    dates, bounds, youngest = None, np.zeros((alignment.n_taxa, 2)), float("nan")
    if settings.dates is not None:
        dates = read_dates(settings.dates, alignment.taxa)
        bounds, youngest = np.stack(dates.ages, axis=1), dates.latest
        if not np.isfinite(bounds).all():
            taxon = alignment.taxa[int(np.argmin(np.isfinite(bounds).all(axis=1)))]
            raise InputError("a date without limits", taxon=taxon, hint="Give the earliest and the latest.")
    for name, low, high in (("cutoff", 0.0, np.inf), ("sampled", 0.0, 1.0 + 1e-12)):
        value = settings.tree.options.get(name)
        if value is not None and not low < value < high:
            raise InputError(f"--{name} {value:g} is out of range")
    tree = replace(
        settings.tree,
        priors=dict(_named_density(text, "--prior") for text in settings.prior),
        clades=_clades(settings, alignment.taxa),
    )
    return TimeInput(
        alignment, dates, time_model(structure_of_parts([part]), tree, alignment.taxa, bounds, youngest)
    )


def _named_density(text: str, option: str):
    name, equals, density = text.partition("=")
    if not equals or not name.strip():
        raise InputError(
            f"{option} {text}: expected a name, = and a density", hint="As in alpha=exponential(2)."
        )
    return name.strip(), parse_family(density)


def _clades(settings: TimeTreeSettings, taxa: tuple[str, ...]) -> tuple[Clade, ...]:
    found = {ROOT: Clade(ROOT, taxa)}
    for text in (*settings.clade, *(text for text in settings.clock_clade if "=" in text)):
        name, equals, members = text.partition("=")
        names = tuple(member.strip() for member in members.split(",") if member.strip())
        if not equals or not name.strip() or name.strip() in found:
            raise InputError(f"clade {text}: expected a new name, = and taxa with commas between")
        found[name.strip()] = Clade(name.strip(), names)
    for name in settings.monophyletic:
        _require(found, name)
        found[name] = replace(found[name], together=True)
    for text in settings.clock_clade:
        name = text.partition("=")[0].strip()
        _require(found, name)
        if name == ROOT:
            raise InputError("the clock of all taxa is clock_rate's", hint="Name a clade of some of them.")
        found[name] = replace(found[name], clock=True)
    for text in settings.calibrate:
        name, family = _named_density(text, "--calibrate")
        _require(found, name)
        if isinstance(family, str | float) or family.domain == "simplex":
            raise InputError(f"--calibrate {text}: an age needs a density of single numbers")
        found[name] = replace(found[name], age=family)
    if found[ROOT].age is None:
        del found[ROOT]
    return tuple(found.values())


def _require(clades: dict[str, Clade], name: str) -> None:
    if name not in clades:
        raise InputError(f"there is no clade '{name}'", hint="Name its taxa: --clade name=taxon,taxon.")


# The analysis.


def run_time(
    settings: TimeTreeSettings,
    progress: Callable[[Progress], None] | None = None,
    started: Callable[[TimeInput, str], None] | None = None,
    compiling: Callable[[str], None] | None = None,
) -> TimeResult:
    """Sample, summarise, write; an interrupted analysis is resumed, a finished one goes on where more
    generations are asked for. Arguments and errors as of analysis.mcmc.run_mcmc."""
    if compiling is not None:
        on_first_compilation(compiling)
    lock = f"{settings.file_prefix}.lock"
    check_outputs([lock], settings.inputs, redo=True)
    with locked(lock, f"--prefix {settings.file_prefix}"):
        return _run_alone(settings, progress, started)


def _run_alone(settings: TimeTreeSettings, progress, started) -> TimeResult:
    record, prefix = Path(f"{settings.file_prefix}.json"), settings.file_prefix
    was_finished = record.exists() and not settings.redo
    if was_finished:
        settings = _extended(settings, record)
    _refuse_too_much(settings.chains, 4)
    files = output_files(prefix, settings.chains.n_runs, settings.summary_tree)
    check_outputs(files, settings.inputs, settings.redo or state_path(prefix).exists())
    remove_partial(files)
    _refuse_short(settings.chains)
    data = time_input(settings)
    _refuse_too_much(settings.chains, len(data.model.taxa))
    selection = time_selection(settings, data)
    device: Device = "gpu" if selection.engine == "gpu" else "cpu"
    settings = replace(settings, device=device)
    origin = time_origin(settings, data)
    if started is not None:
        started(data, selection.reason)
    for file in [*files, str(report_path(prefix))] if settings.redo else ():
        Path(file).unlink(missing_ok=True)
    observed = observations(data.alignment, data.model.engine.unseen)
    plain = plain_time_likelihood(data.alignment, data.model)
    identity = _identity(settings, data)
    sampled = sample(observed, data.model, settings.chains, prefix, identity, progress, plain, origin, device)
    result = _summarised(settings, data, sampled, selection, files)
    if was_finished and sampled.generations == 0:
        return replace(result, was_finished=True)
    write_file(f"{prefix}.{settings.summary_tree}.tre", nexus_text([result.tree]), KEPT)
    first = first_kept(sampled.runs[0])
    draws = [run.samples for run in sampled.runs]
    write_past(prefix, past(sampled.runs[0].columns, draws, first), data.model.youngest)
    write_file(record, json_text(result.to_json()), KEPT)
    return result


def _extended(settings: TimeTreeSettings, record: Path) -> TimeTreeSettings:
    """A finished analysis goes on with the warm-up it had. InputError where less is asked for."""
    try:
        told = json.loads(record.read_text())["settings"]["chains"]
        before, tuning = int(told["generations"]), int(told["tuning_generations"])
    except (ValueError, KeyError, TypeError):
        raise InputError(
            "this file is no record of an analysis",
            file=str(record),
            hint="Choose another --prefix, or replace it with --redo.",
        ) from None
    if settings.chains.generations < before or not state_path(settings.file_prefix).exists():
        raise InputError(
            f"this analysis is finished: {before:,} generations were asked for",
            file=str(record),
            hint="Ask for more --generations to go on, choose another --prefix, or replace it with --redo.",
        )
    return replace(settings, chains=replace(settings.chains, tuning_generations=tuning))


def _refuse_short(chains: TimeSettings) -> None:
    left = (chains.generations - chains.tuning) // chains.sample_every
    if left < LEAST_SAMPLES:
        raise InputError(
            f"{chains.generations:,} generations, one sample every {chains.sample_every:,}, leave {left} "
            f"samples a run after the warm-up; {LEAST_SAMPLES} are the least",
            hint="Raise --generations, or lower --sample-every.",
        )


def _refuse_too_much(chains: TimeSettings, n_taxa: int) -> None:
    """InputError where chains, their samples or their time are more than any machine like this one has."""
    nodes, runs = 2 * n_taxa, f"{chains.n_runs:,} runs"
    require_memory(runs, chains.n_runs * RUN_BYTES * nodes, "Ask for fewer --runs.")
    if chains.until_converged:  # the number of generations is a limit then
        return
    n_samples = chains.n_runs * (chains.generations // chains.sample_every)
    hint = "Raise --sample-every, ask for fewer --generations, or add --until-converged."
    require_memory(f"{n_samples:,} samples", n_samples * (200 + 28 * nodes), hint)
    work = chains.generations * chains.n_runs * GENERATION_SECONDS / (chains.threads or usable_cores()[0])
    require_time(f"{chains.generations:,} generations of {runs}", work, "Ask for fewer --generations.")


def _identity(settings: TimeTreeSettings, data: TimeInput) -> dict[str, Any]:
    """What decides the chains' numbers: all of it must agree for a checkpoint to be resumed."""
    chains = asdict(settings.chains)
    for name in ("threads", "generations", "until_converged", "check_every", "warm_up", "most_warm_up"):
        del chains[name]
    del chains["convergence"]
    chains["tuning_generations"] = settings.chains.tuning
    tree = replace(
        settings.tree,
        priors={p.block: p.family for p in data.model.priors}
        | {name: float(data.model.space.block(name).start[0]) for name in data.model.fixed},
        clades=data.model.clades,
    )
    return {
        "kind": "dated trees",
        "alignment": input_digest(settings.alignment),
        "dates": input_digest(settings.dates) if settings.dates else None,
        "model": data.model.engine.parts[0].model.text(),
        "gamma": settings.gamma,
        "device": settings.device,
        "tree": _tree_text(tree),
        **reading_identity(settings),
        **chains,
    }


def _summarised(
    settings: TimeTreeSettings, data: TimeInput, sampled: Sampled, selection: Selection, files: dict[str, str]
) -> TimeResult:
    runs, first = sampled.runs, first_kept(sampled.runs[0])
    draws = np.stack([run.samples.numbers[first:] for run in runs])
    trees = [run.samples.tree_sample(data.model.taxa, first) for run in runs]
    tried = np.sum([run.state.tried for run in runs], axis=0)
    accepted = np.sum([run.state.accepted for run in runs], axis=0)
    tuning = np.mean([run.state.tuning for run in runs], axis=0)
    return TimeResult(
        settings=settings,
        model=data.model.engine.parts[0].model.text(),
        tree=tree_of_clades(trees, settings.summary_tree, "median"),
        parameters=trace_summary(("LnL", "LnPr", *runs[0].columns.names), draws),
        diagnosis=sampled.diagnosis,
        acceptance={
            m.name: (int(n), float(a / n) if n else 0.0, float(t))
            for m, n, a, t in zip(runs[0].moves, tried, accepted, tuning)
        },
        warnings=tuple(warnings_of(runs)),
        seconds=sampled.seconds,
        speed=sampled.generations / sampled.seconds,
        resumed_at=sampled.resumed_at,
        files=files,
        provenance=provenance(settings.inputs, selection) | {"seed": settings.chains.seed},
    )
