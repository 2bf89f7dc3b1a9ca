"""The files of an analysis: what they are called, and whether it may go on from them or replace them."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from phloem.analysis.mcmc_record import McmcSettings
from phloem.analysis.mcmc_start import start_identity
from phloem.analysis.provenance import refuse_to_overwrite, sha256
from phloem.analysis.reading import reading_identity
from phloem.errors import InputError
from phloem.inference.mcmc.checkpoint import samples_path, state_path
from phloem.inference.mcmc.guard import report_path
from phloem.inference.mcmc.trace_files import paths


def output_files(prefix: str, n_runs: int) -> dict[str, str]:
    """File name → what it holds, for every file that an analysis writes."""
    files = {}
    for r in range(n_runs):
        p_file, t_file = paths(prefix, r)
        files[str(p_file)] = f"trace of run {r + 1}: log-likelihood, prior, parameters"
        files[str(t_file)] = f"trees of run {r + 1}"
    files[f"{prefix}.con.tre"] = "consensus tree with clade probabilities"
    files[f"{prefix}.json"] = "settings, provenance, summary"
    files[str(state_path(prefix))] = "checkpoint, to resume from"
    for r in range(n_runs):
        files[str(samples_path(prefix, r))] = f"samples of run {r + 1}, of the checkpoint"
    return files


def as_extension(settings: McmcSettings) -> McmcSettings:
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
    checkpoint = state_path(settings.file_prefix)
    if chains.generations <= before.generations or not checkpoint.exists():
        raise InputError(
            f"this analysis is finished: {before.generations:,} generations were asked for",
            file=str(record),
            hint="Ask for more --generations to go on, choose another --prefix, or replace it with --redo.",
        )
    return replace(settings, chains=replace(chains, tuning_generations=before.tuning))


def refuse_unexplained(checkpoint: Path, files: dict[str, str], redo: bool) -> None:
    """InputError for files that no analysis of ours explains."""
    if not redo and not checkpoint.exists():
        refuse_to_overwrite([file for file in files if Path(file).exists()], redo)


def make_room(prefix: str, files: dict[str, str], redo: bool) -> None:
    """Remove what is to be replaced, only now that the input has proved readable; make the folder."""
    for file in [*files, str(report_path(prefix))] if redo else ():
        Path(file).unlink(missing_ok=True)
    Path(prefix).parent.mkdir(parents=True, exist_ok=True)


def chain_identity(settings: McmcSettings, model_text: str) -> dict[str, Any]:
    """What decides the chains' numbers: all of it must agree for a checkpoint to be resumed."""
    chains = asdict(settings.chains)
    for name in ("threads", "generations", "until_converged", "check_every", "burn_in", "convergence"):
        del chains[name]
    chains["priors"]["branch_lengths"] = str(settings.chains.priors.branch_lengths)
    chains["tuning_generations"] = settings.chains.tuning
    return {
        "alignment": sha256(settings.alignment),
        "model": model_text,
        "device": settings.device,
        "linkage": settings.linkage,
        "link": list(settings.link),
        "gamma": settings.gamma,
        **reading_identity(settings),
        **({"partitions": sha256(settings.partitions)} if settings.partitions else {}),
        **start_identity(settings.start),
        **chains,
    }
