"""`phloem time`: dated trees from an alignment and sampling dates, or from calibrations."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from phloem.analysis.division import Processes, cells_of_chain, divide_dated
from phloem.analysis.former_files import former_files
from phloem.analysis.json_record import json_text
from phloem.analysis.mcmc_draws import Told
from phloem.analysis.mcmc_predictive import require_simulated
from phloem.analysis.outputs import alone, check_outputs
from phloem.analysis.provenance import provenance
from phloem.analysis.stones import PriorConstant, StonesResult, finish_stones
from phloem.analysis.time_auspice import write_for_auspice
from phloem.analysis.time_data import TimeInput, time_input
from phloem.analysis.time_of_draws import files_of_draws, write_of_draws
from phloem.analysis.time_record import (
    Ancestors,
    TimeResult,
    TimeTreeSettings,
    as_extension,
    may_sample_ancestors,
    model_text,
    output_files,
    settings_record,
    table_of_dates,
    time_identity,
    write_past,
)
from phloem.analysis.time_start import (
    problems_of,
    time_origin,
    time_selection,
    with_engine,
    with_usual_samples,
)
from phloem.analysis.time_traits import routes_of, states_along, write_trait
from phloem.analysis.time_working import prior_constant, with_working
from phloem.analysis.working import working_identity
from phloem.density import clocks
from phloem.density.tree_priors.tree_prior import LEVEL
from phloem.errors import InputError
from phloem.hardware.limits import require_memory, require_time
from phloem.hardware.machine import usable_cores
from phloem.hardware.notice import on_first_compilation
from phloem.hardware.ranks import Ranks, ranks
from phloem.inference.mcmc.checkpoint import KEPT, state_path
from phloem.inference.mcmc.run import Device
from phloem.inference.mcmc.sampler import Progress, Where, threads_of
from phloem.inference.mcmc.samples import choices_of, model_shares
from phloem.inference.mcmc.settings import chain_length
from phloem.inference.mcmc.spread import measured_speeds, message_seconds
from phloem.inference.mcmc.undefined import n_undefined
from phloem.inference.time.draws import RATES, ancestral, dates_along, of_all_data, past
from phloem.inference.time.predictive import predictive_checks
from phloem.inference.time.sampler import (
    Sampled,
    first_kept,
    sample,
    swaps_of,
    warnings_of,
)
from phloem.inference.time.settings import TimeSettings, TreeModel, family_text
from phloem.inference.time.start import Origin
from phloem.inference.time.structure import TimeModel
from phloem.inference.time.traits import PER_ROUTE
from phloem.io.output_file import remove_partial, write_file
from phloem.io.trees import nexus_text
from phloem.pruning.select import Selection
from phloem.summary.clade_trees import tree_of_clades
from phloem.summary.predictive import Check, checks_text
from phloem.summary.routes import Route
from phloem.summary.trace import trace_summary
from phloem.summary.trees import StatesAlong
from phloem.tree.sample import TreeSample

__all__ = [
    "TimeResult",
    "TimeSettings",
    "TimeTreeSettings",
    "TreeModel",
    "chain_length",
    "family_text",
    "run_time",
]

LEAST_SAMPLES = 10
RUN_BYTES = 40_000  # of a run, for each node: the table of clades
GENERATION_SECONDS = 1e-6  # of a run of few taxa without data, at least


# The analysis.


def run_time(
    settings: TimeTreeSettings,
    progress: Callable[[Progress], None] | None = None,
    started: Callable[[TimeInput, str], None] | None = None,
    compiling: Callable[[str], None] | None = None,
    told: Told = lambda what, done, n: None,
) -> TimeResult | StonesResult:
    """Sample, summarise, write; an interrupted analysis is resumed, a finished one goes on where more
    generations are asked for. With chains.stones the marginal likelihood is estimated instead. Arguments and
    errors as of analysis.mcmc.run_mcmc."""
    if compiling is not None:
        on_first_compilation(compiling)
    with alone(settings.file_prefix, settings.inputs):
        return _run_alone(settings, progress, started, told)


def look_at(settings: TimeTreeSettings) -> tuple[TimeTreeSettings, TimeInput, str]:
    """What run_time would do, without a start, a sample or a file: the settings with what is chosen by the
    data, the data and their model, and where likelihoods would be found. Errors as of run_time."""
    _refuse_too_much(settings.chains, 4)
    _refuse_short(settings.chains)
    data = _input(settings)
    settings, selection = _chosen(settings, data)
    prior_constant(with_working(settings, data.model), data.model)
    return settings, data, selection.reason


def most_processes(settings: TimeTreeSettings) -> int:
    """How many processes with a GPU each could have a share of an analysis: of every run its parts that are
    several cells are shared. Errors as of run_time."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are said when data are read to be sampled
        cells = [cells_of_chain(problem, on_device=True) for problem in problems_of(time_input(settings))]
    return settings.chains.n_runs * max(1, sum(n for n in cells if n > 1))


def _input(settings: TimeTreeSettings) -> TimeInput:
    """Data and model; refused are those of which nothing can be sampled, or not what is asked for."""
    data = time_input(settings)
    _refuse_improper(settings.chains, data.model)
    if settings.predictive:
        require_simulated(data.unrecorded)
    _refuse_too_much(settings.chains, len(data.model.taxa), data.model.n_clocks)
    return data


def _chosen(settings: TimeTreeSettings, data: TimeInput) -> tuple[TimeTreeSettings, Selection]:
    """The settings with engine, device and distance of samples that the data choose, and why."""
    settings, sampled_why = with_engine(with_usual_samples(settings, len(data.taxa)), data)
    _refuse_short(settings.chains)
    selection = time_selection(settings, data)
    if sampled_why:
        selection = replace(selection, reason=f"{selection.reason}; engine of ancestors: {sampled_why}")
    return replace(settings, device="gpu" if selection.engine == "gpu" else "cpu"), selection


def _run_alone(settings: TimeTreeSettings, progress, started, told: Told) -> TimeResult | StonesResult:
    record, prefix, chains = Path(f"{settings.file_prefix}.json"), settings.file_prefix, settings.chains
    was_finished = record.exists() and not settings.redo
    if was_finished:
        settings = as_extension(settings, record)
    _refuse_too_much(chains, 4)
    files = output_files(settings)
    replaced = former_files(prefix, files) if settings.redo else []
    check_outputs([*files, *replaced], settings.inputs, settings.redo or state_path(prefix).exists())
    remove_partial(files)
    _refuse_short(settings.chains)
    data = _input(settings)
    if more := files_of_draws(settings, data):
        files |= more
        check_outputs(files, settings.inputs, settings.redo or state_path(prefix).exists())
        remove_partial(files)
    tips = settings.auspice_options.read(data.taxa, table_of_dates(settings))
    settings, selection = _chosen(settings, data)
    settings = with_working(settings, data.model)
    constant = prior_constant(settings, data.model)
    chains, device = settings.chains, settings.device
    assert device != "auto"
    origin, here = time_origin(settings, data), ranks()
    where, divided = _divided(chains, data, here, device)
    selection = replace(selection, reason=selection.reason + divided)
    if started is not None:
        started(data, selection.reason)
    for file in [*files, *former_files(prefix, files)] if settings.redo else ():
        Path(file).unlink(missing_ok=True)
    here.broadcast((settings, origin, where.ranks_a_chain, where.speeds, data.model))
    sampled = _sampled(settings, data, origin, where, time_identity(settings, data.model), progress)
    if chains.stones:
        return _stones(settings, data, sampled, selection, (files, constant))
    result = _summarised(settings, data, sampled, selection, files)
    if settings.predictive:
        write_file(f"{prefix}.predictive.tsv", checks_text(result.predictive), KEPT)
    of_draws = settings.predictive or settings.site_table or settings.ancestral or settings.auspice
    if (
        was_finished
        and sampled.generations == 0
        and not of_draws
        and all(Path(file).exists() for file in more)
    ):
        return replace(result, was_finished=True)
    result = replace(result, left_out=write_of_draws(settings, data, sampled.runs, result.tree, told))
    write_file(f"{prefix}.{settings.summary_tree}.tre", nexus_text([result.tree]), KEPT)
    if result.ancestors:
        write_file(f"{prefix}.ancestors.tsv", result.ancestors.text(), KEPT)
    draws, first = [run.samples for run in sampled.runs], first_kept(sampled.runs[0])
    through_time = past(sampled.runs[0].columns, draws, first)
    write_past(prefix, through_time, data.model.youngest)
    latest = dates_along(data.model, draws, first)[1]
    if settings.auspice:
        write_for_auspice(result, latest, tips)
    if data.model.trait is not None:
        write_trait(prefix, data.model.trait.tips.name, result.routes, result.tree, latest)
    write_file(record, json_text(result.to_json()), KEPT)
    return result


def assist_time() -> bool:
    """Where this process is one of several, and not the first: do a share of what the first one is told to,
    and return True. Errors as of run_time."""
    here = ranks()
    if here.number == 0:
        return False
    message_seconds(here)
    measured_speeds(here)
    settings, origin, ranks_a_chain, speeds, model = here.broadcast(None)
    where = Where(settings.device, here, ranks_a_chain=ranks_a_chain, speeds=speeds)
    if where.reads(settings.chains.n_runs, 1):
        _sampled(settings, time_input(settings), origin, where, {})
    else:  # it is sent the columns that it needs, or needs none
        sample((), model, settings.chains, origin=origin, where=where)
    return True


def _sampled(
    settings: TimeTreeSettings,
    data: TimeInput,
    origin: Origin | None,
    where: Where,
    identity: dict,
    progress=None,
) -> Sampled:
    """What the chains draw, here and in other processes. settings.device: cpu or gpu."""
    assert settings.device != "auto"
    plain = data.plain_likelihood()
    observed = data.observed()
    made_from = observed, data.model, settings.chains, settings.file_prefix, identity, progress
    return sample(*made_from, plain, origin, where)


def _divided(chains: TimeSettings, data: TimeInput, here: Ranks, device: Device) -> tuple[Where, str]:
    """How processes share runs and columns, and that for people."""
    if here.size == 1:
        return Where(device, here), ""
    whole = None
    if not chains.use_data:
        whole = "a prior has no columns to divide"
    elif chains.ancestors == "sampled":
        whole = "columns are not divided where ancestors are sampled"
    measured = message_seconds(here), device == "gpu", whole, measured_speeds(here, device)
    there = Processes(here.size, threads_of(chains, here), *measured)
    division = divide_dated(problems_of(data), chains, there)
    where = Where(device, here, ranks_a_chain=division.ranks_a_chain, speeds=there.speeds)
    return where, f"; {division.text(here.how)}"


def _stones(
    settings: TimeTreeSettings,
    data: TimeInput,
    sampled: Sampled,
    selection: Selection,
    into: tuple[dict[str, str], PriorConstant | None],
) -> StonesResult:
    """into: the files, and what the estimate is divided by."""
    model, (files, constant) = data.model, into
    clock = "clock" if model.n_clocks == 1 else f"clocks of {model.n_clocks} sets of parts"
    trait = f"; {settings.trait.rates} trait, {settings.trait.root} root" if settings.trait else ""
    told = {
        "model": f"{model_text(model)}; {settings.tree.clock} {clock}; {settings.tree.prior}{trait}",
        "start": settings.chains.start,
        "data": {"taxa": len(data.taxa), "sites": data.n_sites},
        "undefined_proposals": n_undefined(sampled.runs),
        "settings": settings_record(settings),
        "provenance": provenance(settings.inputs, selection) | data.read | {"seed": settings.chains.seed},
        **working_identity(settings.chains.working),
    }
    draws = [of_all_data(run.columns, run.samples) for run in sampled.runs]
    took = sampled.seconds, sampled.generations, sampled.resumed_at
    ladder, of_prior = settings.chains.ladder, not settings.chains.use_data
    return finish_stones(draws, ladder, settings.file_prefix, told, took, files, constant, of_prior)


def _refuse_improper(chains: TimeSettings, model: TimeModel) -> None:
    """InputError where the prior is sampled, and cannot be: it has no integral."""
    root = any(c.age is not None and len(c.taxa) == model.n_tips for c in model.clades)
    if (chains.stones or not chains.use_data) and model.has_open_level and not root:
        raise InputError(
            f"the {model.tree_prior.name} leaves the level of its population sizes open, so that the prior "
            "alone is no distribution",
            hint=f"Leave --prior {LEVEL}=jeffreys out, or calibrate the root.",
        )


def _refuse_short(chains: TimeSettings) -> None:
    if chains.stones:
        _ = chains.ladder  # which says how few
        return
    left = (chains.generations - chains.tuning) // chains.sample_every
    if left < LEAST_SAMPLES:
        raise InputError(
            f"{chains.generations:,} generations, one sample every {chains.sample_every:,}, leave {left} "
            f"samples a run after the warm-up; {LEAST_SAMPLES} are the least",
            hint="Raise --generations, or lower --sample-every.",
        )


def _refuse_too_much(chains: TimeSettings, n_taxa: int, n_clocks: int = 1) -> None:
    """InputError where chains, their samples or their time are more than any machine like this one has."""
    nodes, runs, n_chains = 2 * n_taxa, f"{chains.n_runs:,} runs", chains.n_runs * chains.n_chains
    fewer = "Ask for fewer --runs."
    if chains.n_chains > 1:
        runs, fewer = f"{runs} of {chains.n_chains:,} chains", "Ask for fewer --runs or --chains."
    require_memory(runs, n_chains * RUN_BYTES * nodes, fewer)
    if chains.until_converged:  # the number of generations is a limit then
        return
    n_samples = chains.n_runs * (chains.generations // chains.sample_every)
    hint = "Raise --sample-every, ask for fewer --generations, or add --until-converged."
    require_memory(f"{n_samples:,} samples", n_samples * (200 + (20 + 8 * n_clocks) * nodes), hint)
    work = chains.generations * n_chains * GENERATION_SECONDS / (chains.threads or usable_cores()[0])
    require_time(f"{chains.generations:,} generations of {runs}", work, "Ask for fewer --generations.")


def _summarised(
    settings: TimeTreeSettings, data: TimeInput, sampled: Sampled, selection: Selection, files: dict[str, str]
) -> TimeResult:
    runs, first = sampled.runs, first_kept(sampled.runs[0])
    checks: tuple[Check, ...] = ()
    if settings.predictive:
        samples, n, seed = [run.samples for run in runs], settings.predictive, settings.chains.seed
        checks = predictive_checks(runs[0].columns, samples, first, data.alignments, n, seed)
    draws = np.stack([run.samples.numbers[first:] for run in runs])
    trees = [run.samples.tree_sample(data.model.taxa, first) for run in runs]
    along: dict[str, np.ndarray | StatesAlong] = {}
    for k, name in enumerate(data.model.rate_traits):
        if data.model.clock != clocks.STRICT:  # whose branches all have one rate
            rates = np.concatenate([run.samples.sets[first:, RATES + k] for run in runs])
            along[name] = np.where(rates > 0, rates, np.nan)  # an ancestor's branch, of no time, has none
    dates = dates_along(data.model, [run.samples for run in runs], first)[0]
    along |= {} if dates is None else {"date": dates}
    routes: tuple[Route, ...] = ()
    if data.model.trait is not None:
        along |= states_along(data.model.trait, runs, first)
        routes = routes_of(data.model, runs[0].columns, draws)
    names = ("LnL", "LnPr", *runs[0].columns.names)
    shown = [i for i, name in enumerate(names) if not (name.startswith(PER_ROUTE) or choices_of(name))]
    cold = [run.cold.state for run in runs]
    tried, accepted = (np.sum([getattr(state, n) for state in cold], axis=0) for n in ("tried", "accepted"))
    tuning = np.mean([state.tuning for state in cold], axis=0)
    return TimeResult(
        settings=settings,
        model=model_text(data.model),
        tree=tree_of_clades(trees, settings.summary_tree, "median", along=along),
        parameters=trace_summary(tuple(names[i] for i in shown), draws[:, :, shown]),
        models=model_shares(names, draws),
        diagnosis=sampled.diagnosis,
        acceptance={
            m.name: (int(n), float(a / n) if n else 0.0, float(t))
            for m, n, a, t in zip(runs[0].moves, tried, accepted, tuning)
        },
        undefined_proposals=n_undefined(runs),
        warnings=tuple(warnings_of(runs)),
        seconds=sampled.seconds,
        speed=sampled.generations / sampled.seconds,
        resumed_at=sampled.resumed_at,
        files=files,
        data={"taxa": len(data.taxa), "sites": data.n_sites},
        ages_before=data.ages_before,
        provenance=provenance(settings.inputs, selection) | data.read | {"seed": settings.chains.seed},
        predictive=checks,
        routes=routes,
        swaps=swaps_of(runs),
        ancestors=_ancestors(data.model, trees) if may_sample_ancestors(settings) else None,
    )


def _ancestors(model: TimeModel, trees: list[TreeSample]) -> Ancestors:
    """How often dated tips are ancestors of others."""
    may = np.flatnonzero(model.tip_bounds[:, 1] > 0.0)
    shares = np.stack([ancestral(own.lengths[:, may]).mean(axis=0) for own in trees])
    order = np.argsort(-shares.mean(axis=0), kind="stable")
    return Ancestors(tuple(model.taxa[x] for x in may[order]), shares[:, order])
