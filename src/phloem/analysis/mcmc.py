"""`phloem mcmc`: a Bayesian analysis of one alignment by Metropolis-coupled MCMC."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from phloem.analysis.division import Processes, divide, gpus_of_use
from phloem.analysis.json_record import json_text
from phloem.analysis.mcmc_data import ChainInput, chain_input
from phloem.analysis.mcmc_draws import Drawn, Told
from phloem.analysis.mcmc_of_draws import files_of_draws, made_before, write_of_draws
from phloem.analysis.mcmc_options import command_line
from phloem.analysis.mcmc_record import (
    McmcResult,
    McmcSettings,
    as_extension,
    chain_identity,
    check_files,
    heating_text,
    make_room,
    output_files,
    settings_record,
)
from phloem.analysis.mcmc_start import ChainStart, chain_start
from phloem.analysis.outputs import alone
from phloem.analysis.pieces import taxon_of
from phloem.analysis.provenance import provenance
from phloem.analysis.report import Report, ReportNumbers, report_html
from phloem.analysis.split_tables import write_split_tables
from phloem.analysis.stones import StonesResult, finish_stones
from phloem.analysis.working import refuse_on_device, working_identity
from phloem.errors import InputError
from phloem.hardware.limits import require_memory, require_time
from phloem.hardware.machine import usable_cores
from phloem.hardware.notice import on_first_compilation
from phloem.hardware.ranks import Ranks, ranks
from phloem.inference.mcmc.checkpoint import KEPT, stored_device
from phloem.inference.mcmc.convergence import frozen_warnings, kept, swap_shares, weak_evidence
from phloem.inference.mcmc.move_table import chosen_moves
from phloem.inference.mcmc.run import Device
from phloem.inference.mcmc.sampler import Progress, Sampled, Where, sample, threads_of
from phloem.inference.mcmc.samples import choices_of, model_shares
from phloem.inference.mcmc.settings import ChainSettings, Priors, parse_length_prior
from phloem.inference.mcmc.spread import measured_speeds, message_seconds
from phloem.inference.mcmc.stones import ladder
from phloem.inference.mcmc.trace_files import analysis_id
from phloem.inference.mcmc.undefined import n_undefined
from phloem.io.output_file import remove_partial, write_file
from phloem.io.trees import nexus_text
from phloem.pruning.calibration import on_calibration
from phloem.pruning.gpu.cost import ChainPlan
from phloem.pruning.select import (
    ALONG_SITES,
    Selection,
    chains_on_cpu,
    chains_on_gpu,
    require_cpu_for_order,
    select_chains,
)
from phloem.summary.splits import SplitTable, split_table
from phloem.summary.trace import trace_summary
from phloem.summary.trees import consensus_tree
from phloem.tree.reroot import root_at_outgroup, unroot

__all__ = ["ChainSettings", "McmcResult", "McmcSettings", "Priors", "parse_length_prior", "run_mcmc"]

LEAST_SAMPLES = 10
_FINER = (200, 100, 50, 20, 10, 5, 2, 1)  # one sample in so many generations, where the usual 500 leaves none
CHAIN_BYTES = 8_000  # of a chain's records, at least
GENERATION_SECONDS = 2e-7  # of a chain of few taxa without data, at least


def run_mcmc(
    settings: McmcSettings,
    progress: Callable[[Progress], None] | None = None,
    started: Callable[[ChainInput, str, str], None] | None = None,
    compiling: Callable[[str], None] | None = None,
    measuring: Callable[[], None] | None = None,
    told: Told = lambda what, done, n: None,
) -> McmcResult | StonesResult:
    """Sample, summarise, write. An analysis that was interrupted is resumed. A finished one goes on where
    more generations are asked for than before, stays as it is where as many are, and is an error where less
    is asked for, unless redo. Only one process at a time works on a prefix. With stones a marginal likelihood
    is estimated instead, and the result is a StonesResult.

    started: called once, before sampling, with data and models, what chains start from, and where they are
    evaluated and why. compiling: with a sentence if kernels must be compiled. measuring: if the machine's
    engines must be measured to choose a device. told: how far it is with what is made of single draws.
    Errors: PhloemError of every kind.
    """
    if compiling is not None:
        on_first_compilation(compiling)
    if measuring is not None:
        on_calibration(measuring)
    with alone(settings.file_prefix, settings.inputs):
        return _run_alone(settings, progress, started, told)


def _run_alone(settings: McmcSettings, progress, started, told: Told) -> McmcResult | StonesResult:
    """run_mcmc, while no other process works on the same files."""
    was_finished = Path(f"{settings.file_prefix}.json").exists() and not settings.redo
    settings = settings if settings.redo else as_extension(settings)
    prefix, chains = settings.file_prefix, settings.chains
    _refuse_too_much(chains, 4)
    files = output_files(prefix, chains.n_runs, chains.stones, settings.report)
    check_files(settings, files)
    remove_partial(files)
    _refuse_short(chains)
    data = chain_input(settings)
    if more := files_of_draws(settings, data):
        files |= more
        check_files(settings, files)
    chains = data.chains(chains)
    _refuse_too_much(chains, len(data.taxa))
    selection = chains_selection(settings, data)
    settings, on_gpus = _placed(settings, data, selection)
    start, here = _start(settings, data, chains), ranks()
    where, divided = _divided(chains, data, here, selection)
    selection = replace(selection, reason=selection.reason + on_gpus + divided)
    if started is not None:
        started(data, start.origin, selection.reason)
    make_room(settings, files)
    identity = chain_identity(settings, data.model_text()) | working_identity(data.working)
    made_of = data.structure, chains, start.tree
    here.broadcast((settings, where.ranks_a_run, where.ranks_a_chain, where.speeds, made_of))
    sampled = _sampled(settings, data, start, where, identity, progress)
    if chains.stones:
        facts = {
            "model": data.model_text(),
            "start": start.origin,
            "data": data.record(),
            "command": command_line(settings),
            "undefined_proposals": n_undefined(sampled.runs),
            "settings": settings_record(settings),
            "provenance": provenance(settings.inputs, selection) | data.read | {"seed": chains.seed},
            **working_identity(data.working),
        }
        draws, took = [run.samples for run in sampled.runs], (sampled.seconds, sampled.chain_generations)
        return finish_stones(draws, ladder(chains), prefix, facts, (*took, sampled.resumed_at), files)
    first = kept(sampled.runs[0].samples, chains.burn_in, chains.tuning)
    table = split_table([run.samples.tree_sample(data.taxa, first) for run in sampled.runs])
    result = _summarised(settings, data, start, sampled, table, selection, files)
    before = made_before(settings, more) if was_finished and sampled.chain_generations == 0 else None
    drawn = Drawn([run.samples for run in sampled.runs], sampled.runs[0].columns.names, first)
    made = before or write_of_draws(settings, data, drawn, result.consensus, told)
    result = replace(result, left_out=made[0], checks=made[1])
    if settings.report:
        write_file(f"{prefix}.html", report_html(_report(result, sampled, table, first)), KEPT)
    if before is not None:
        there = {file: what for file, what in files.items() if Path(file).exists()}
        return replace(result, was_finished=True, files=there)
    _write(result, table)
    return result


def _write(result: McmcResult, table: SplitTable) -> None:
    """What all analyses have; the JSON last: with it all is there."""
    prefix, seed = result.settings.file_prefix, result.settings.chains.seed
    unit = f"#NEXUS\n[Branch lengths: {result.length_unit}]\n"
    tree = nexus_text([result.consensus]).replace("#NEXUS\n", unit, 1)
    write_file(f"{prefix}.con.tre", tree, KEPT)
    write_split_tables(prefix, table, f"[ID: {analysis_id(seed)}]", KEPT)
    write_file(f"{prefix}.json", json_text(result.to_json()), KEPT)


def assist_mcmc() -> bool:
    """Where this process is one of several, and not the first: do a share of what the first one is told to,
    and return True. Errors as of run_mcmc."""
    here = ranks()
    if here.number == 0:
        return False
    message_seconds(here)
    measured_speeds(here)
    settings, *how, made_of = here.broadcast(None)
    where = Where(settings.device, here, *how)
    structure, chains, tree = made_of
    if not where.reads(chains.n_runs, chains.n_chains):  # it is sent the columns that it needs, or needs none
        sample((), structure, chains, start_tree=tree, where=where)
        return True
    data = chain_input(settings)
    start = _start(settings, data, settings.chains)
    _sampled(settings, data, start, where, {})
    return True


def _sampled(
    settings: McmcSettings, data: ChainInput, start: ChainStart, where: Where, identity: dict, progress=None
) -> Sampled:
    """What the chains draw, here and in other processes."""
    chains = data.chains(settings.chains)
    made_from = data.observed(), data.structure, chains, settings.file_prefix, identity, progress
    return sample(*made_from, start.tree, data.plain_likelihood(), where)


def _start(settings: McmcSettings, data: ChainInput, chains: ChainSettings) -> ChainStart:
    first = data.alignments[data.largest]
    others = [own for own in data.alignments.values() if own is not first]
    return chain_start(settings.start, first, chains, settings.start_tree, others)


def look_at(settings: McmcSettings) -> tuple[ChainInput, str, str]:
    """Data and models of an analysis, what its chains would start from, and where they would be evaluated."""
    data = chain_input(settings)
    start, selection = _start(settings, data, settings.chains), chains_selection(settings, data)
    return data, start.origin, selection.reason + _placed(settings, data, selection)[1]


def _refuse_too_much(chains: ChainSettings, n_taxa: int) -> None:
    """InputError where chains, their samples or their time are more than any machine like this one has."""
    n_chains, nodes = chains.n_runs * chains.n_chains, 2 * n_taxa
    what = f"{chains.n_runs:,} runs of {chains.n_chains:,} chains"
    require_memory(what, n_chains * (CHAIN_BYTES + 48 * nodes), "Ask for fewer --runs or --chains.")
    if chains.until_converged:  # the number of generations is a limit then
        return
    n_samples = chains.n_runs * (chains.generations // chains.sample_every)
    hint = "Raise --sample-every, ask for fewer --generations, or add --until-converged."
    require_memory(f"{n_samples:,} samples", n_samples * (32 + 12 * nodes), hint)
    work = chains.generations * n_chains * GENERATION_SECONDS / (chains.threads or usable_cores()[0])
    require_time(f"{chains.generations:,} generations of {what}", work, "Ask for fewer --generations.")


def _refuse_short(chains: ChainSettings) -> None:
    """InputError where burn-in and tuning would leave nothing to summarise."""
    if chains.stones:
        ladder(chains)
        return
    left = _samples_left(chains, chains.sample_every)
    if left < LEAST_SAMPLES:
        every = next((n for n in _FINER if _samples_left(chains, n) >= LEAST_SAMPLES), None)
        raise InputError(
            f"{chains.generations:,} generations, one sample every {chains.sample_every:,}, leave "
            f"{max(left, 0)} samples a run after burn-in and tuning; {LEAST_SAMPLES} are the least",
            hint=f"Raise --generations{f', or give --sample-every {every}' if every else ''}.",
        )


def _samples_left(chains: ChainSettings, every: int) -> int:
    """Samples of a run after burn-in and tuning, of one in so many generations."""
    samples = chains.generations // every + 1
    return samples - max(int(chains.burn_in * samples), chains.tuning // every + 1)


def chains_selection(settings: McmcSettings, data: ChainInput) -> Selection:
    """Where the chains are evaluated, and why. A checkpoint is gone on with where it was made."""
    chains, asked = settings.chains, settings.device == "gpu"
    refuse_on_device(settings)
    if data.structure.along_sites:
        require_cpu_for_order("gpu" if chains.precision == "float32" else settings.device)
    if chains.precision == "float32":
        return chains_on_gpu("asked for" if asked else "chosen: float32 is there only", chains.precision)
    there = None if settings.redo else stored_device(settings.file_prefix)
    threads = chains.threads or usable_cores()[0]
    if settings.device == "auto" and there == "gpu":
        return chains_on_gpu("chosen: the checkpoint was made on one")
    if settings.device == "auto":
        why = "the checkpoint was made on one" if there == "cpu" else _only_on_cpu(chains, data)
        if why is not None:
            return chains_on_cpu(f"chosen: {why}", threads)
    plan = ChainPlan(chains.n_runs, chains.n_chains, chains.expected_generations)
    return select_chains(settings.device, data.problems, plan, chains.threads)


def _divided(chains: ChainSettings, data: ChainInput, here: Ranks, chosen: Selection) -> tuple[Where, str]:
    """How processes share chains and columns, and that for people."""
    device: Device = "gpu" if chosen.engine == "gpu" else "cpu"
    if here.size == 1:
        return Where(device, here), ""
    whole = _whole_columns(chains, data)
    measured = message_seconds(here), device == "gpu", whole, measured_speeds(here, device)
    there = Processes(here.size, threads_of(chains, here), *measured)
    division = divide(data.problems(), chains, there)
    where = Where(device, here, division.ranks_a_run, division.ranks_a_chain, there.speeds)
    return where, f"; {division.text(here.how)}"


def _placed(settings: McmcSettings, data: ChainInput, selection: Selection) -> tuple[McmcSettings, str]:
    """With the device chosen, and as many GPUs of one process as make chains faster; and that for people."""
    settings = replace(settings, device="gpu" if selection.engine == "gpu" else "cpu")
    asked = settings.chains.gpus
    if settings.device == "cpu" or asked == 1:
        return settings, ""
    used, why = gpus_of_use(data.problems(), settings.chains)
    together = settings.chains.n_runs * settings.chains.n_chains
    text = f"; chains on {used} GPU{'s' * (used > 1)}{f' of {asked}: {why}' if why else ''}"
    if used > together:
        text += f"; each has some columns of a chain, which {used // together} share"
    return replace(settings, chains=replace(settings.chains, gpus=used)), text


def _whole_columns(chains: ChainSettings, data: ChainInput) -> str | None:
    """Why a chain's columns stay together, as a clause, wherever that is so at any size."""
    if not chains.use_data:
        return "a prior has no columns to divide"
    if data.structure.along_sites:
        return "rates that are correlated along the sites keep columns together"
    moves = chosen_moves(data.structure, len(data.taxa), chains.move_weights, chains.fixed_topology)
    if any(move.move.gradients for move in moves):
        return "columns are not divided where moves ask for gradients"
    return None


def _only_on_cpu(chains: ChainSettings, data: ChainInput) -> str | None:
    """What no GPU is asked about, as a clause."""
    if not chains.use_data:
        return "a prior needs no likelihood"
    if data.working is not None:
        return "the working distribution of stepping stones is evaluated there"
    moves = chosen_moves(data.structure, len(data.taxa), chains.move_weights, chains.fixed_topology)
    if any(move.move.gradients for move in moves):
        return "moves that ask for gradients are made there only"
    if data.structure.along_sites:
        return ALONG_SITES
    values = data.structure.space.start()
    for k in range(len(data.structure.parts)):
        if any(process.real_eigen is None for process in data.structure.site_model(k, values).processes):
            return "matrices without a real eigensystem are made there"
    return None


def _summarised(
    settings, data: ChainInput, start: ChainStart, sampled: Sampled, table: SplitTable, selection, files
) -> McmcResult:
    runs, chains = sampled.runs, settings.chains
    first = kept(runs[0].samples, chains.burn_in, chains.tuning)
    draws = np.stack([run.samples.numbers[first:] for run in runs])
    names = ("LnL", "LnPr", *runs[0].columns.names)
    numbers = [i for i, name in enumerate(names) if not choices_of(name)]
    summary = trace_summary(tuple(names[i] for i in numbers), draws[:, :, numbers])
    consensus = consensus_tree(table, settings.consensus)
    if settings.outgroup is not None:
        consensus = unroot(root_at_outgroup(consensus, taxon_of(settings.outgroup, data.taxa), 1.0))
    tried = np.sum([run.state.tried[0] for run in runs], axis=0)
    accepted = np.sum([run.state.accepted[0] for run in runs], axis=0)
    tuning = np.mean([run.state.tuning[0] for run in runs], axis=0)
    return McmcResult(
        settings=settings,
        model=data.model_text(),
        start=start.origin,
        data=data.record(),
        consensus=consensus,
        parameters=summary,
        models=model_shares(names, draws),
        diagnosis=sampled.diagnosis,
        acceptance={
            m.name: (int(n), float(a / n) if n else 0.0, float(t))
            for m, n, a, t in zip(runs[0].moves, tried, accepted, tuning)
        },
        swaps=swap_shares(
            *(
                np.sum([getattr(run.state, n) for run in runs], axis=0)
                for n in ("swaps_tried", "swaps_accepted")
            )
        ),
        powers=tuple(tuple(run.state.powers.tolist()) for run in runs),
        warnings=(
            *frozen_warnings(runs),
            *weak_evidence([r.samples for r in runs], data.taxa, first, chains.fixed_topology),
        ),
        seconds=sampled.seconds,
        speed=sampled.chain_generations / sampled.seconds,
        resumed_at=sampled.resumed_at,
        files=files,
        length_unit=runs[0].columns.structure.length_unit,
        provenance=provenance(settings.inputs, selection) | data.read | {"seed": chains.seed},
        command=command_line(settings),
        undefined_proposals=n_undefined(runs),
    )


def _report(result: McmcResult, sampled: Sampled, table: SplitTable, first: int) -> Report:
    """What the page says of an analysis."""
    chains, samples = result.settings.chains, [run.samples for run in sampled.runs]
    numbers = ReportNumbers(
        result.parameters,
        [s.generation.astype(float) for s in samples],
        [s.numbers for s in samples],
        [first] * len(samples),
    )
    facts = [
        ("data", result.settings.alignment),
        ("model", result.model),
        ("chains", f"{chains.n_runs} runs of {chains.n_chains}, heating {heating_text(chains)}"),
        ("generations", f"{samples[0].generation[-1]:,}, a sample every {chains.sample_every:,}"),
        ("samples", f"{samples[0].n - first:,} a run after the burn-in"),
        ("lengths", result.length_unit),
        ("start", result.start),
        ("undefined proposals", f"{result.undefined_proposals:,}"),
        ("command", result.command),
    ]
    kind = "Majority-rule consensus" + (", all compatible splits" * (result.settings.consensus != "majority"))
    return Report(
        f"phloem mcmc: {Path(result.settings.file_prefix).name}", facts, numbers, result.consensus, kind,
        table, result.diagnosis, chains.convergence, result.warnings,
    )  # fmt: skip
