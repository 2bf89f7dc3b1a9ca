"""`phloem mcmc`: a Bayesian analysis of one alignment by Metropolis-coupled MCMC."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np

from phloem.analysis.mcmc_files import (
    as_extension,
    chain_identity,
    make_room,
    output_files,
    refuse_unexplained,
)
from phloem.analysis.mcmc_record import McmcResult, McmcSettings
from phloem.analysis.mcmc_start import ChainStart, chain_start
from phloem.analysis.provenance import provenance
from phloem.analysis.reading import alignment_of
from phloem.data.alignment import Alignment
from phloem.errors import DeviceError, InputError
from phloem.hardware.notice import on_first_compilation
from phloem.inference.mcmc.checkpoint import state_path, write_atomically
from phloem.inference.mcmc.convergence import kept
from phloem.inference.mcmc.frozen import frozen_warnings
from phloem.inference.mcmc.guard import plain_likelihood
from phloem.inference.mcmc.observations import observations
from phloem.inference.mcmc.sampler import Progress, Sampled, sample
from phloem.inference.mcmc.settings import ChainSettings, Priors, parse_length_prior
from phloem.inference.mcmc.structure import structure_of_model
from phloem.io.trees import nexus_text
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.model.model import Model
from phloem.pruning.select import Selection
from phloem.summary.trace import trace_summary
from phloem.summary.trees import consensus_tree

__all__ = ["ChainSettings", "McmcResult", "McmcSettings", "Priors", "parse_length_prior", "run_mcmc"]

LEAST_SAMPLES = 10
DEFAULT_MODELS = {"dna": "GTR+G4", "rna": "GTR+G4", "protein": "LG+G4", "codon": "GY94+F3X4"}


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
    settings = settings if settings.redo else as_extension(settings)
    prefix, chains = settings.file_prefix, settings.chains
    files = output_files(prefix, chains.n_runs)
    refuse_unexplained(state_path(prefix), files, settings.redo)
    _refuse_short(chains)
    alignment = alignment_of(settings)
    model = model_for_alignment(settings.model or _default_model(alignment), alignment, settings.gamma)
    structure = structure_of_model(model, alignment.n_sites)
    selection = _selection(chains)
    start = chain_start(settings.start, alignment, chains.branch_length_bounds)
    if started is not None:
        started(model, alignment, start.origin)
    observed = observations(alignment, structure.ascertained)
    make_room(prefix, files, settings.redo)
    identity, plain = chain_identity(settings, model), plain_likelihood([alignment], structure)
    sampled = sample(observed, structure, chains, prefix, identity, progress, start.tree, plain)
    result = _summarised(settings, model, start, alignment, sampled, selection, files)
    unit = f"#NEXUS\n[Branch lengths: {result.length_unit}]\n"
    tree = nexus_text([result.consensus]).replace("#NEXUS\n", unit, 1)
    write_atomically(Path(f"{prefix}.con.tre"), tree.encode())
    text = json.dumps(result.to_json(), indent=1, allow_nan=False, ensure_ascii=False)
    write_atomically(Path(f"{prefix}.json"), (text + "\n").encode())
    return result


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


def _default_model(alignment: Alignment) -> str:
    return DEFAULT_MODELS.get(alignment.alphabet.kind, "MK+G4")


def _selection(chains: ChainSettings) -> Selection:
    threads = min(chains.n_runs, chains.threads or chains.n_runs)
    reason = "the sampler's compiled loop; one thread a run, results do not depend on threads"
    return Selection("cpu", threads, "float64", reason, _no_evaluator)


def _no_evaluator(_problem):
    raise DeviceError("the sampler evaluates its chains itself")


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
            "patterns": int((runs[0].forest.parts[0].weights > 0).sum()),
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
        length_unit=runs[0].columns.structure.length_unit,
        provenance=provenance([settings.alignment, *start.files], selection) | {"seed": chains.seed},
    )


def _swaps(runs) -> tuple[float, ...]:
    tried = sum(run.state.swaps_tried for run in runs)
    accepted = sum(run.state.swaps_accepted for run in runs)
    return tuple(
        float(accepted[i, i + 1] / tried[i, i + 1]) if tried[i, i + 1] else math.nan
        for i in range(len(tried) - 1)
    )
