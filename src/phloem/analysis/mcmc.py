"""`phloem mcmc`: a Bayesian analysis of one alignment by Metropolis-coupled MCMC."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from phloem.analysis.mcmc_start import RANDOM, ChainStart, chain_start, start_identity
from phloem.analysis.provenance import provenance, refuse_to_overwrite, sha256
from phloem.analysis.reading import alignment_of
from phloem.data.alignment import Alignment
from phloem.engine.compilation import on_first_compilation
from phloem.engine.select import Selection
from phloem.errors import DeviceError, InputError
from phloem.inference.mcmc.checkpoint import write_atomically
from phloem.inference.mcmc.convergence import Diagnosis, kept
from phloem.inference.mcmc.frozen import frozen_warnings
from phloem.inference.mcmc.observations import observations
from phloem.inference.mcmc.sampler import Progress, Sampled, sample
from phloem.inference.mcmc.settings import ChainSettings, Priors, parse_length_prior
from phloem.inference.mcmc.structure_of_model import structure_of_model
from phloem.inference.mcmc.trace_files import paths
from phloem.io.trees import nexus_text
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.model.model import Model
from phloem.summary.consensus import consensus_tree
from phloem.summary.trace import TraceSummary, trace_summary
from phloem.tree.tree import Tree

__all__ = ["ChainSettings", "McmcResult", "McmcSettings", "Priors", "parse_length_prior", "run_mcmc"]

LEAST_SAMPLES = 10
DEFAULT_MODELS = {"dna": "GTR+G4", "rna": "GTR+G4", "protein": "LG+G4", "codon": "GY94+F3X4"}


@dataclass(frozen=True)
class McmcSettings:
    """One analysis. alignment and the options after it are those of `phloem likelihood`; model None takes
    the default for the data type (DEFAULT_MODELS, MK+G4 for other characters). start: what chains start
    from, random, nj, bionj, upgma or a tree file (analysis.mcmc_start). prefix: of every file
    written; None takes the alignment's name in the working directory. redo: replace files that exist.
    chains: what the sampler does."""

    alignment: str
    model: str | None = None
    start: str = RANDOM
    prefix: str | None = None
    redo: bool = False
    datatype: str | None = None
    genetic_code: int = 1
    stop_codons: Literal["error", "mask"] = "error"
    sites: str | None = None
    ambiguity: Literal["partial", "missing"] = "partial"
    gamma: Literal["mean", "median"] = "mean"
    chains: ChainSettings = field(default_factory=ChainSettings)

    @property
    def file_prefix(self) -> str:
        return self.prefix or Path(self.alignment).name.removesuffix(".gz").rsplit(".", 1)[0]


@dataclass(frozen=True, eq=False)
class McmcResult:
    """consensus: majority rule, prob at its nodes. parameters: log-likelihood, tree length and every free
    number. diagnosis: convergence at the end. acceptance: move → (tried, accepted share, tuning) of the
    cold chains. swaps: accepted share of the swaps between neighbouring ranks of heat. speed:
    chain-generations a second. files: name → what it holds."""

    settings: McmcSettings
    model: str
    start: str
    data: dict[str, object]
    consensus: Tree
    parameters: TraceSummary
    diagnosis: Diagnosis
    acceptance: dict[str, tuple[int, float, float]]
    swaps: tuple[float, ...]
    warnings: tuple[str, ...]
    seconds: float
    speed: float
    resumed_at: int | None
    files: dict[str, str]
    provenance: dict[str, Any]

    def to_json(self) -> dict[str, object]:
        """Plain numbers, strings, lists and dictionaries; NaN becomes None."""
        p = self.parameters
        columns = {
            n: getattr(p, n)
            for n in ("mean", "sd", "hpd_low", "hpd_high", "ess", "ess_tail", "r_hat", "mcse")
        }
        rows = [
            {"name": name} | {c: _plain(v[i]) for c, v in columns.items()} for i, name in enumerate(p.names)
        ]
        settings = asdict(self.settings)
        settings["chains"]["priors"]["branch_lengths"] = str(self.settings.chains.priors.branch_lengths)
        return {
            "finished": True,
            "model": self.model,
            "start": self.start,
            "data": self.data,
            "parameters": rows,
            "convergence": {name: _plain(value) for name, value in asdict(self.diagnosis).items()},
            "acceptance": {
                n: dict(zip(("tried", "accepted", "tuning"), v)) for n, v in self.acceptance.items()
            },
            "swaps_between_neighbouring_ranks": [_plain(x) for x in self.swaps],
            "warnings": list(self.warnings),
            "seconds": self.seconds,
            "chain_generations_per_second": self.speed,
            "resumed_at": self.resumed_at,
            "files": self.files,
            "settings": settings,
            "provenance": self.provenance,
        }


def run_mcmc(
    settings: McmcSettings,
    progress: Callable[[Progress], None] | None = None,
    started: Callable[[Model, Alignment, str], None] | None = None,
    compiling: Callable[[str], None] | None = None,
) -> McmcResult:
    """Sample, summarise, write. An analysis that was interrupted is resumed. A finished one goes on where
    more generations are asked for than before; otherwise it is an error unless redo.

    started: called once, before sampling, with model, alignment and what chains start from. compiling: with
    a sentence if kernels must be compiled. Errors: PhloemError of every kind.
    """
    if compiling is not None:
        on_first_compilation(compiling)
    settings = settings if settings.redo else _as_extension(settings)
    prefix, chains = settings.file_prefix, settings.chains
    checkpoint = Path(f"{prefix}.ckp.npz")
    files = _files(prefix, chains.n_runs)
    _refuse_unexplained(checkpoint, files, settings.redo)
    _refuse_short(chains)
    alignment = alignment_of(settings)
    model = model_for_alignment(settings.model or _default_model(alignment), alignment, settings.gamma)
    structure = structure_of_model(model)
    selection = _selection(chains)
    start = chain_start(settings.start, alignment, chains.branch_length_bounds)
    if started is not None:
        started(model, alignment, start.origin)
    observed = observations(alignment, structure.ascertained)
    _make_room(prefix, files, settings.redo)
    sampled = sample(observed, structure, chains, prefix, _identity(settings, model), progress, start.tree)
    result = _summarised(settings, model, start, alignment, sampled, selection, files)
    write_atomically(Path(f"{prefix}.con.tre"), nexus_text([result.consensus]).encode())
    text = json.dumps(result.to_json(), indent=1, allow_nan=False, ensure_ascii=False)
    write_atomically(Path(f"{prefix}.json"), (text + "\n").encode())
    return result


def _files(prefix: str, n_runs: int) -> dict[str, str]:
    files = {}
    for r in range(n_runs):
        p_file, t_file = paths(prefix, r)
        files[str(p_file)] = f"trace of run {r + 1}: log-likelihood, prior, parameters"
        files[str(t_file)] = f"trees of run {r + 1}"
    files[f"{prefix}.con.tre"] = "consensus tree with clade probabilities"
    files[f"{prefix}.json"] = "settings, provenance, summary"
    files[f"{prefix}.ckp.npz"] = "checkpoint, to resume from"
    return files


def _as_extension(settings: McmcSettings) -> McmcSettings:
    """The settings that carry a finished analysis of this prefix on, or as they are where there is none.

    Moves adapted in the first generations only; what those were stays as it was. InputError where no more
    generations are asked for, or where the checkpoint is gone.
    """
    record, chains = Path(f"{settings.file_prefix}.json"), settings.chains
    if not record.exists():
        return settings
    try:
        told = json.loads(record.read_text())["settings"]["chains"]
        before = replace(chains, **{n: told[n] for n in ("generations", "burn_in", "tuning_generations")})
    except (ValueError, KeyError, TypeError):
        raise InputError(
            "this file is no record of an analysis",
            file=str(record),
            hint="Choose another --prefix, or replace it with --redo.",
        ) from None
    checkpoint = Path(f"{settings.file_prefix}.ckp.npz")
    if chains.generations <= before.generations or not checkpoint.exists():
        raise InputError(
            f"this analysis is finished: {before.generations:,} generations were asked for",
            file=str(record),
            hint="Ask for more --generations to go on, choose another --prefix, or replace it with --redo.",
        )
    return replace(settings, chains=replace(chains, tuning_generations=before.tuning))


def _refuse_unexplained(checkpoint: Path, files: dict[str, str], redo: bool) -> None:
    """InputError for files that no analysis of ours explains."""
    if not redo and not checkpoint.exists():
        refuse_to_overwrite([file for file in files if Path(file).exists()], redo)


def _refuse_short(chains: ChainSettings) -> None:
    """InputError where burn-in and tuning would leave nothing to summarise."""
    samples = chains.generations // chains.sample_every + 1
    left = samples - max(int(chains.burn_in * samples), chains.tuning // chains.sample_every + 1)
    if left < LEAST_SAMPLES:
        raise InputError(
            f"{chains.generations:,} generations, one sample every {chains.sample_every:,}, leave "
            f"{max(left, 0)} samples a run after burn-in and tuning; {LEAST_SAMPLES} are the least",
            hint="Raise --generations, or lower --sample-every.",
        )


def _make_room(prefix: str, files: dict[str, str], redo: bool) -> None:
    """Remove what is to be replaced, only now that the input has proved readable; make the folder."""
    for file in files if redo else ():
        Path(file).unlink(missing_ok=True)
    Path(prefix).parent.mkdir(parents=True, exist_ok=True)


def _default_model(alignment: Alignment) -> str:
    return DEFAULT_MODELS.get(alignment.alphabet.kind, "MK+G4")


def _selection(chains: ChainSettings) -> Selection:
    threads = min(chains.n_runs, chains.threads or chains.n_runs)
    reason = "the sampler's compiled loop; one thread a run, results do not depend on threads"
    return Selection("cpu", threads, "float64", reason, _no_evaluator)


def _no_evaluator(_problem):
    raise DeviceError("the sampler evaluates its chains itself")


def _identity(settings: McmcSettings, model: Model) -> dict[str, Any]:
    """What decides the chains' numbers: all of it must agree for a checkpoint to be resumed."""
    chains = asdict(settings.chains)
    for name in ("threads", "generations", "until_converged", "check_every", "burn_in", "convergence"):
        del chains[name]
    chains["priors"]["branch_lengths"] = str(settings.chains.priors.branch_lengths)
    chains["tuning_generations"] = settings.chains.tuning
    return {
        "alignment": sha256(settings.alignment),
        "model": model.text(),
        "gamma": settings.gamma,
        "datatype": settings.datatype,
        "genetic_code": settings.genetic_code,
        "stop_codons": settings.stop_codons,
        "sites": settings.sites,
        "ambiguity": settings.ambiguity,
        **start_identity(settings.start),
        **chains,
    }


def _summarised(
    settings, model: Model, start: ChainStart, alignment: Alignment, sampled: Sampled, selection, files
) -> McmcResult:
    runs, chains = sampled.runs, settings.chains
    first = kept(runs[0].samples, chains.burn_in, chains.tuning)
    draws = np.stack([run.samples.numbers[first:] for run in runs])
    summary = trace_summary(("LnL", "LnPr", *runs[0].columns.names), draws)
    consensus = consensus_tree([run.samples.tree_sample(alignment.taxa, first) for run in runs])
    tried = np.sum([run.state.tried[0] for run in runs], axis=0)
    accepted = np.sum([run.state.accepted[0] for run in runs], axis=0)
    tuning = np.mean([run.state.tuning[0] for run in runs], axis=0)
    return McmcResult(
        settings=settings,
        model=model.text(),
        start=start.origin,
        data={
            "taxa": alignment.n_taxa,
            "sites": alignment.n_sites,
            "patterns": runs[0].data.tip_codes.shape[1] - runs[0].data.n_hidden,
            "datatype": alignment.alphabet.kind,
            "states": alignment.alphabet.n_states,
        },
        consensus=consensus,
        parameters=summary,
        diagnosis=sampled.diagnosis,
        acceptance={
            m.name: (int(n), float(a / n) if n else 0.0, float(t))
            for m, n, a, t in zip(runs[0].moves, tried, accepted, tuning)
        },
        swaps=_swaps(runs),
        warnings=tuple(frozen_warnings(runs)),
        seconds=sampled.seconds,
        speed=sampled.chain_generations / sampled.seconds,
        resumed_at=sampled.resumed_at,
        files=files,
        provenance=provenance([settings.alignment, *start.files], selection) | {"seed": chains.seed},
    )


def _swaps(runs) -> tuple[float, ...]:
    tried = sum(run.state.swaps_tried for run in runs)
    accepted = sum(run.state.swaps_accepted for run in runs)
    return tuple(
        float(accepted[i, i + 1] / tried[i, i + 1]) if tried[i, i + 1] else math.nan
        for i in range(len(tried) - 1)
    )


def _plain(value):
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not math.isfinite(value) else value
